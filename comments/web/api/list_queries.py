"""Check the query of a list of comments: its order, its start, and excluded combinations.

A list can start at its beginning, after a cursor, after an offset, at a numbered page, or around a
comment.
"""

import msgspec

from comments import errors
from comments.domain import records
from comments.reading import thread_pages
from comments.web.api import comment_shapes
from comments.web.http.decode import parameters

_NOT_WITH_ALL = ("cursor", "parent", "around", "slug", "page", "offset")
_EXCLUDED_START = {
    "offset": ("page",),
    "cursor": ("page", "offset"),
    "parent": ("page", "offset"),
}
_EXCLUDED_AROUND = {
    "around": ("slug", "cursor", "parent", "page", "offset", "order"),
    "slug": ("cursor", "parent", "page", "offset", "order"),
}


def default_order(site: records.Site, parent: str | None) -> thread_pages.ListingOrder:
    """Return the order of a page if the query does not specify one."""
    if parent is not None:
        return thread_pages.ListingOrder.THREAD
    return thread_pages.ListingOrder(site.options.order)


def page_request(
    query: comment_shapes.ListQuery, limit: int, secret: str
) -> thread_pages.PageRequest:
    """Return the length and the start of a page.

    Raises:
        errors.BadInput: the query contains several of `page`, `offset`, `cursor` and `parent`.
    """
    parameters.refuse_together(query, _EXCLUDED_START)
    if query.page:
        return thread_pages.PageRequest(
            limit, None, secret, offset=(query.page - 1) * limit, field="page"
        )
    return thread_pages.PageRequest(limit, query.cursor or None, secret, offset=query.offset or 0)


def refuse_beside_all(query: comment_shapes.ListQuery | comment_shapes.RepliesQuery) -> None:
    """Refuse parameters that cannot be combined with `limit=all`."""
    ordered = getattr(query, "order", None) or thread_pages.ListingOrder.THREAD
    if ordered is not thread_pages.ListingOrder.THREAD or any(
        getattr(query, name, msgspec.UNSET) is not msgspec.UNSET for name in _NOT_WITH_ALL
    ):
        raise errors.BadInput("limit", "all-not-allowed")


def refuse_beside_around(query: comment_shapes.ListQuery) -> None:
    """Refuse parameters that cannot be combined with `around` or `slug`."""
    parameters.refuse_together(query, _EXCLUDED_AROUND)
