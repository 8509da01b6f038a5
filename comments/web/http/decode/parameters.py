"""The parameters that several calls and pages share, and the base of all requests.

A type that belongs to one call or page is defined beside this call or page.
"""

from collections.abc import Mapping, Sequence
from typing import Annotated, Literal

import msgspec

from comments import errors
from comments.domain.ids import thread_ids
from comments.reading import thread_pages
from comments.web.http.decode import field_errors

DEFAULT_LIMIT = 50
MAX_LIMIT = 200

# The length is checked separately, because "$" also matches before a final line break.
CommentId = Annotated[
    str,
    msgspec.Meta(
        pattern="^[a-z2-7]{26}$",
        min_length=26,
        max_length=26,
        extra={field_errors.CODE: "not-a-comment-id"},
    ),
]
_SLUG = "[1-9][0-9]{0,18}(-[1-9][0-9]{0,18})*"
_LONGEST_SLUG = 500
Slug = Annotated[
    str,
    msgspec.Meta(
        pattern=f"^{_SLUG}$", max_length=_LONGEST_SLUG, extra={field_errors.CODE: "not-a-slug"}
    ),
]
IdOrSlug = Annotated[
    str,
    msgspec.Meta(
        pattern=f"^([a-z2-7]{{26}}|{_SLUG})$",
        max_length=_LONGEST_SLUG,
        extra={field_errors.CODE: "not-an-id-or-slug"},
    ),
]
Cursor = Annotated[str, msgspec.Meta(min_length=1)]
Address = Annotated[str, msgspec.Meta(min_length=1, max_length=thread_ids.MAX_BYTES)]
Limit = Annotated[int, msgspec.Meta(ge=1, le=MAX_LIMIT)]
ALL = "all"
LimitOrAll = Limit | Literal["all"]
Typed = Annotated[str, msgspec.Meta(max_length=1_000)]  # A text field in the service's own forms.


class Request(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A query, form or body. Unknown fields are errors."""


class NoQuery(Request, frozen=True):
    """No parameters, apart from `thread` and `page` if the call requires them."""


class NoForm(Request, frozen=True):
    """A form with a button but without fields."""


class PageQuery(Request, frozen=True):
    """A page of one of the caller's lists: threads that they follow, or unread replies."""

    limit: Limit = DEFAULT_LIMIT
    cursor: Cursor | msgspec.UnsetType = msgspec.UNSET


def refuse_together(query: msgspec.Struct, excluded: Mapping[str, Sequence[str]]) -> None:
    """Raise errors.BadInput if a query combines a parameter with one that `excluded` forbids.

    Naming the order `thread` does not count as choosing an order, because it is the default.
    """
    given = {
        name
        for name in query.__struct_fields__
        if getattr(query, name) not in {msgspec.UNSET, thread_pages.ListingOrder.THREAD}
    }
    for name, others in excluded.items():
        for other in others:
            if name in given and other in given:
                raise errors.BadInput(other, "conflicting-fields", other=name)
