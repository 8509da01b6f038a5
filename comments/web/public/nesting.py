"""A page of a thread, arranged as people read it: nested lists, and whom each comment answers.

Pure. A comment hangs below its parent where both are on the page; else it stands at the page's
left edge and says whom it answers. The order is the page's, whatever hangs where.
"""

from collections.abc import Sequence
from datetime import UTC, datetime
from urllib.parse import urlencode

import msgspec

from comments.domain import presentation, records
from comments.domain.text import cleaning
from comments.web.http import request_shapes

# Every so many lists within lists a comment offers its replies as a page of their own.
STEP = 5
ANONYMOUS = "Anonymous"
_ORDERS = {
    request_shapes.Order.THREAD: "Oldest discussions",
    request_shapes.Order.RECENT: "Newest discussions",
    request_shapes.Order.BEST: "Best discussions",
    request_shapes.Order.OLDEST: "Oldest comments",
    request_shapes.Order.NEWEST: "Newest comments",
}
_PLURALS = {"comment": "comments", "reply": "replies"}
_FLAT = {request_shapes.Order.OLDEST, request_shapes.Order.NEWEST}


class Item(msgspec.Struct, frozen=True):
    """A comment in its place: `depth` lists deep, after `closes` lists of deeper ones ended.

    `answers` is the id of the comment it answers where its place does not say it, `answered` that
    comment if it is on the page.
    """

    comment: presentation.Comment
    depth: int
    opens: bool
    closes: int
    answers: str | None
    answered: presentation.Comment | None

    @property
    def is_deep(self) -> bool:
        """Whether its replies are offered as a page of their own."""
        return self.depth > 0 and self.depth % STEP == 0 and bool(self.comment.replies)


class Links(msgspec.Struct, frozen=True):
    """Addresses of pages of one thread. `base` is empty for links relative to such a page."""

    base: str
    name: records.ThreadName
    order: request_shapes.Order
    limit: int

    def first(self) -> str:
        """The first page in this order."""
        return self._to(order=self.order)

    def after(self, cursor: str) -> str:
        """The page after a cursor of this order."""
        return self._to(order=self.order, cursor=cursor)

    def around(self, comment_id: str) -> str:
        """The page with a comment on it, at that comment."""
        return f"{self._to(around=comment_id)}#{anchor(comment_id)}"

    def below(self, comment_id: str, *, cursor: str | None = None) -> str:
        """The page of a comment and its replies."""
        return self._to(below=comment_id, cursor=cursor)

    def feed(self) -> str:
        """The thread's feed, from the service's root."""
        return f"feeds/{self.name.site}/thread?{urlencode({'thread': self.name.id})}"

    def orders(self) -> list[tuple[str, str, bool]]:
        """Every order: its name, its first page, and whether it is the one shown."""
        return [
            (label, self._to(order=order), order is self.order) for order, label in _ORDERS.items()
        ]

    def _to(
        self, *, order: request_shapes.Order = request_shapes.Order.THREAD, **more: str | None
    ) -> str:
        query: dict[str, str | int] = {"thread": self.name.id}
        if order is not request_shapes.Order.THREAD:
            query["order"] = order
        if self.limit != request_shapes.DEFAULT_LIMIT:
            query["limit"] = self.limit
        query |= {name: value for name, value in more.items() if value}
        return f"{self.base}?{urlencode(query)}"


def items(comments: Sequence[presentation.Comment], order: request_shapes.Order) -> list[Item]:
    """The comments of a page, each in its place."""
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


def shown(page: presentation.ThreadPage) -> list[presentation.Comment]:
    """The comments of a page."""
    return list(map(presentation.read, page.comments, page.replies))


def anchor(comment_id: str) -> str:
    """The id of a comment's element. The widget knows it too: links to either lead to both."""
    return f"comment-{comment_id}"


def kind_of(comment: presentation.Comment) -> str:
    """The server's mark beside an author's name; empty where nobody knows."""
    kind = comment.author.kind if comment.author else None
    return kind.value if isinstance(kind, presentation.Kind) else ""


def author_of(comment: presentation.Comment) -> str:
    """The name that stands over a comment."""
    return (comment.author.name if comment.author else "") or ANONYMOUS


def website_of(comment: presentation.Comment) -> str:
    """The author's website, if it is a web address."""
    return web_address(comment.author.website if comment.author else "")


def web_address(text: str) -> str:
    """A text that is a web address, else nothing: the other half of the check on writing."""
    return text if cleaning.is_website(text) else ""


def machine_time(moment: datetime) -> str:
    """A moment for a `datetime` attribute, which takes no more than three decimals."""
    return moment.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


def human_time(moment: datetime) -> str:
    """A moment in words that mean the same everywhere."""
    moment = moment.astimezone(UTC)
    return f"{moment.day} {moment:%B} {moment.year}, {moment:%H:%M} UTC"


def counted(number: int, noun: str) -> str:
    """A number of things: 1 comment, 1,145 comments."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {_PLURALS[noun]}"
