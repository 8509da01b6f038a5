"""The members of a page of comments that do not depend on its comments.

These members are the page's order, whether its thread accepts comments, and the site's options. The
members are computed for every request. Computing them takes no additional read, because the process
has copies of the site, its rules and usage, and the thread's terms. The page's ETag covers these
members, and a cached response is reused only while they are the same. The copies are used for a
minute, so no response is older than that.
"""

import functools
from datetime import UTC, datetime

import msgspec

from comments.domain import records, site_options
from comments.moderation import thread_access
from comments.reading.materialized import thread_view


class PostingState(msgspec.Struct, frozen=True):
    """Whether a thread accepts comments.

    If the thread is `read-only`, it does not accept edits either.
    """

    state: thread_access.ThreadAccess


class PageOptions(msgspec.Struct, frozen=True):
    """The options of the site; docs/embedding.md describes them.

    `live` is the number of seconds between two checks for new comments; 0 means no checks. If
    `language` is empty, the language is that of the page that embeds the comments. `inbox` tells
    whether authors have an inbox of unread replies. Three fields are not options of the site.
    `origins` are the origins whose pages may send comments. `mail` tells whether the service sends
    mail, which readers need to follow a thread. `sign_in` tells whether readers can sign in by mail
    or through a provider.
    """

    votes: bool
    website: bool
    guests: bool
    order: site_options.DefaultOrder
    images: list[str]
    live: int
    theme: site_options.Theme
    language: str
    moderation: bool
    forms: bool
    inbox: bool
    origins: tuple[str, ...]
    mail: bool
    sign_in: bool


class Service(msgspec.Struct, frozen=True):
    """Whether the service sends mail, and whether it has a PUBLIC_URL.

    Sign-in through a provider requires a PUBLIC_URL, to which the provider redirects readers.
    """

    mail: bool = False
    has_address: bool = False


def of(site: records.Site, name: records.ThreadName, order: str, service: Service) -> bytes:
    """Return the members as JSON, with a comma before them and without braces."""
    access = thread_access.for_pages(site, thread_view.terms(name), datetime.now(UTC))
    may_enter = service.mail or (service.has_address and site.has_providers)
    return _json(order, access, site.options, site.origins, mail=service.mail, sign_in=may_enter)


@functools.lru_cache(maxsize=1024)
def _json(
    order: str,
    access: thread_access.ThreadAccess,
    options: site_options.SiteOptions,
    origins: tuple[str, ...],
    *,
    mail: bool,
    sign_in: bool,
) -> bytes:
    given = msgspec.structs.asdict(options)
    del given["claims"]
    shown = PageOptions(**given, origins=origins, mail=mail, sign_in=sign_in)
    members = {
        "order": order,
        "thread": PostingState(access),
        "options": shown,
    }
    return b"," + msgspec.json.encode(members)[1:-1]
