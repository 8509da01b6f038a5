"""The members of a page of comments that do not come from its comments.

These are the page's order, whether its thread accepts comments, and the site's options. They are
computed for every request from copies in the process (the site, its rules and usage, and the
thread's terms), so they cost no read of their own. The page's ETag covers them, and a cached answer
is sent again only while they are the same: no answer is older than the copies, which are used for a
minute.
"""

import functools
from datetime import UTC, datetime

import msgspec

from comments.domain import records, site_options
from comments.moderation import thread_access
from comments.reading.materialized import thread_view
from comments.web.http import response_shapes


def of(site: records.Site, name: records.ThreadName, order: str, *, mail: bool) -> bytes:
    """Return the members as JSON, after a comma and without braces.

    `mail` tells whether the service sends mail.
    """
    access = thread_access.shown(site, thread_view.terms(name), datetime.now(UTC))
    return _json(order, access, site.options, mail=mail)


@functools.lru_cache(maxsize=1024)
def _json(
    order: str, access: thread_access.ThreadAccess, options: site_options.SiteOptions, *, mail: bool
) -> bytes:
    shown = response_shapes.PageOptions(**msgspec.structs.asdict(options), mail=mail)
    members = {
        "order": order,
        "thread": response_shapes.PostingState(access),
        "options": shown,
    }
    return b"," + msgspec.json.encode(members)[1:-1]
