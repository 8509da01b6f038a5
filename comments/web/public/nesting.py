"""The comments of one page as nested lists, each with the comment that it answers (pure).

A comment is nested below its parent if both are on the page. Otherwise it starts at the left edge
and names the comment that it answers. The order of comments stays the page's own.
"""

from collections.abc import Sequence
from datetime import UTC, datetime
from urllib.parse import urlencode

import msgspec

from comments.domain import presentation, records
from comments.domain.languages import catalogue, formats
from comments.domain.text import cleaning
from comments.reading import thread_pages
from comments.web.http import request_shapes

# Every fifth level links to a separate page with the replies below it.
STEP = 5
# In the order in which a page offers them.
_ORDERS = (
    thread_pages.ListingOrder.THREAD,
    thread_pages.ListingOrder.RECENT,
    thread_pages.ListingOrder.BEST,
    thread_pages.ListingOrder.OLDEST,
    thread_pages.ListingOrder.NEWEST,
)
_FLAT = {thread_pages.ListingOrder.OLDEST, thread_pages.ListingOrder.NEWEST}


class Item(msgspec.Struct, frozen=True):
    """A comment and its nesting: it is `depth` lists deep, and `closes` deeper lists end before it.

    `answers` is the id of the comment that it answers, unless the nesting shows it. `answered` is
    that comment, if it is on the page.
    """

    comment: presentation.PublicComment
    depth: int
    opens: bool
    closes: int
    answers: str | None
    answered: presentation.PublicComment | None

    @property
    def is_deep(self) -> bool:
        """Whether the comment links to a separate page with its replies."""
        return self.depth > 0 and self.depth % STEP == 0 and bool(self.comment.replies)


class Links(msgspec.Struct, frozen=True):
    """URLs of the pages of one thread. With an empty `base` they are relative to such a page."""

    base: str
    name: records.ThreadName
    order: thread_pages.ListingOrder
    limit: int

    def first(self) -> str:
        """Return the first page in this order."""
        return self._to(order=self.order)

    def after(self, cursor: str) -> str:
        """Return the page after a cursor of this order."""
        return self._to(order=self.order, cursor=cursor)

    def around(self, comment_id: str) -> str:
        """Return the page that shows a comment, scrolled to it."""
        return f"{self._to(around=comment_id)}#{anchor(comment_id)}"

    def below(self, comment_id: str, *, cursor: str | None = None) -> str:
        """Return the page of a comment and its replies."""
        return self._to(below=comment_id, cursor=cursor)

    def feed(self) -> str:
        """Return the thread's feed, relative to the service's root."""
        return f"feeds/{self.name.site}/thread?{urlencode({'thread': self.name.id})}"

    def orders(self) -> list[tuple[thread_pages.ListingOrder, str, bool]]:
        """Return every order with its first page, and whether it is the order shown."""
        return [(order, self._to(order=order), order is self.order) for order in _ORDERS]

    def _to(
        self,
        *,
        order: thread_pages.ListingOrder = thread_pages.ListingOrder.THREAD,
        **more: str | None,
    ) -> str:
        query: dict[str, str | int] = {"thread": self.name.id}
        if order is not thread_pages.ListingOrder.THREAD:
            query["order"] = order
        if self.limit != request_shapes.DEFAULT_LIMIT:
            query["limit"] = self.limit
        query |= {name: value for name, value in more.items() if value}
        return f"{self.base}?{urlencode(query)}"


def items(
    comments: Sequence[presentation.PublicComment], order: thread_pages.ListingOrder
) -> list[Item]:
    """Return the comments of a page with their nesting."""
    here = {comment.id: comment for comment in comments}
    above: list[str] = []
    arranged: list[Item] = []
    for comment in comments:
        depth_before = len(above) - 1
        while above and (order in _FLAT or above[-1] != comment.parent):
            above.pop()
        depth = len(above)
        answers = comment.reply_to or comment.parent
        if depth and answers == comment.parent:
            answers = None
        arranged.append(
            Item(
                comment=comment,
                depth=depth,
                opens=depth > depth_before,
                closes=max(0, depth_before - depth),
                answers=answers,
                answered=here.get(answers or ""),
            )
        )
        above.append(comment.id)
    return arranged


def shown(page: presentation.ThreadPage) -> list[presentation.PublicComment]:
    return list(map(presentation.read, page.comments, page.replies))


def anchor(comment_id: str) -> str:
    """Return the id of a comment's element. The widget uses the same, so links work in both."""
    return f"comment-{comment_id}"


def kind_of(comment: presentation.PublicComment) -> str:
    """Return what kind of author wrote the comment: guest, member or staff; "" if unknown."""
    kind = comment.author.kind if comment.author else None
    return kind.value if isinstance(kind, presentation.AuthorKind) else ""


def author_of(comment: presentation.PublicComment) -> str:
    """Return the author's name as it is shown."""
    return (comment.author.name if comment.author else "") or anonymous()


def anonymous() -> str:
    """Return what is shown for an author without a name."""
    return catalogue.ENGLISH.text("embed.anonymous")


def website_of(comment: presentation.PublicComment) -> str:
    """Return the author's website if it is a web address, else ""."""
    return web_address(comment.author.website if comment.author else "")


def web_address(text: str) -> str:
    """Return a text if it is a web address, else "": older releases stored others."""
    return text if cleaning.is_website(text) else ""


def machine_time(moment: datetime) -> str:
    """Return a moment for a `datetime` attribute, which allows at most three decimals."""
    return moment.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


def human_time(moment: datetime) -> str:
    """Return a moment as readers see it, in UTC."""
    return formats.moment(moment, catalogue.ENGLISH.language)
