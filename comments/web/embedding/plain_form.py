"""The data of the form for comments without JavaScript (pure).

A page with the form is the same for all readers, because caches store it. The form contains nothing
about a reader. Only the response to a refused post contains what the reader typed. The form's key
depends only on the thread as the page shows it, so a reader who presses the button twice sends the
same key both times.
"""

import hashlib

import msgspec

from comments import config
from comments.domain import presentation, records
from comments.limits import post_limits
from comments.posting import admission
from comments.web.rendering import nesting

_LONGEST_KEY = 32


class Typed(msgspec.Struct, frozen=True):
    """The texts that the reader typed into the form's fields."""

    name: str = ""
    website: str = ""
    body: str = ""


class About(msgspec.Struct, frozen=True):
    """The title and address of the page with the thread; the form sends them with a comment."""

    title: str = ""
    url: str = ""


class Form(msgspec.Struct, frozen=True):
    """The form for a new comment or, with `parent`, for an answer to the comment with this id.

    `is_held` is True if every comment from the form is held for a moderator. `problem` says why a
    post was refused, and `field` is the name of the wrong field, or "".
    """

    action: str
    key: str
    has_website: bool
    is_held: bool
    about: About = About()
    parent: str = ""
    typed: Typed = Typed()
    problem: str = ""
    field: str = ""


def of(site: records.Site, links: nesting.Links, key: str, settings: config.Settings) -> Form:
    """Return the empty form for a thread."""
    return Form(
        action=links.form(),
        key=key,
        has_website=site.options.website,
        is_held=admission.holds_forms(site, post_limits.of(site, settings)),
    )


def key_of(name: records.ThreadName, page: presentation.ThreadPage) -> str:
    """Return the key for a form on a page.

    The key changes with every visible change of the thread.
    """
    shown = f"{name.site}\0{name.id}\0{page.total}\0{page.changed}"
    return hashlib.sha256(shown.encode()).hexdigest()[:_LONGEST_KEY]
