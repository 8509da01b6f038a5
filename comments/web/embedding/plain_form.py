"""The data of the form for comments without JavaScript (pure).

A page with the form is the same for all readers, because caches store it. The form contains nothing
about a reader; only the answer to a refused post contains what the reader typed. The form's key
depends only on the thread as the page shows it, so a reader who presses the button twice sends the
same key twice.
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
    """The text in the form's fields."""

    name: str = ""
    website: str = ""
    body: str = ""


class About(msgspec.Struct, frozen=True):
    """The title and address of the page with the thread, which the form sends with a comment."""

    title: str = ""
    url: str = ""


class Form(msgspec.Struct, frozen=True):
    """The form for a new comment or, with `parent`, for an answer to the comment with this id.

    `is_held` is True if each comment from the form waits for a moderator. `problem` is the reason
    for which a post was refused, and `field` the field that it is about, or "".
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
    """Return the key for a form on a page. It changes with every visible change of the thread."""
    shown = f"{name.site}\0{name.id}\0{page.total}\0{page.changed}"
    return hashlib.sha256(shown.encode()).hexdigest()[:_LONGEST_KEY]
