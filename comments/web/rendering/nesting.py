"""The comments on one page as nested lists, each with the comment that it answers (pure).

A comment is nested below its parent if both are on the page. Otherwise, the comment starts at the
left edge and names the comment that it answers. Nesting does not change the order of the comments.
"""

from collections.abc import Sequence
from datetime import UTC, datetime
from urllib.parse import urlencode

import msgspec

from comments.domain import presentation, records
from comments.domain.languages import catalogue, formats
from comments.domain.text import cleaning
from comments.reading import thread_pages
from comments.threads import thread_info
from comments.web.http.decode import parameters

# Each comment on every fifth level links to a separate page with the comment's replies.
STEP = 5
# Replies are indented up to this level, as in the widget.
DEEPEST = 12
# The orders that a page offers, in the sequence in which it offers them.
_ORDERS = (
    thread_pages.ListingOrder.THREAD,
    thread_pages.ListingOrder.RECENT,
    thread_pages.ListingOrder.BEST,
    thread_pages.ListingOrder.OLDEST,
    thread_pages.ListingOrder.NEWEST,
)
_FLAT = {thread_pages.ListingOrder.OLDEST, thread_pages.ListingOrder.NEWEST}


def comment_url(
    site: records.Site,
    name: records.ThreadName,
    url: str,
    comment: str,
    *,
    embed: str,
    lang: str = "",
) -> str:
    """Return a comment's URL on the site's own page or, if that is unknown, on the embed page.

    `url` is the address that the thread shows, or "", and `embed` the embed page of the site.
    """
    address = thread_info.address(url, site)
    if address:
        return f"{address}#{anchor(comment)}"
    order = thread_pages.ListingOrder.THREAD
    return Links(embed, name, order, parameters.DEFAULT_LIMIT, lang=lang).around(comment)


class Item(msgspec.Struct, frozen=True):
    """A comment and its nesting depth.

    The template closes `closes` lists before it writes the comment.

    `answers` is the id of the answered comment; None if the nesting already shows which comment
    that is. `answered` is the answered comment itself if it is on the page.
    """

    comment: presentation.PublicComment
    depth: int
    opens: bool
    closes: int
    answers: str | None
    answered: presentation.PublicComment | None

    @property
    def is_flat(self) -> bool:
        """True if the replies to the comment are not indented further."""
        return self.depth >= DEEPEST

    @property
    def is_deep(self) -> bool:
        """True if the comment links to a separate page with its replies."""
        return self.depth > 0 and self.depth % STEP == 0 and bool(self.comment.replies)


class Links(msgspec.Struct, frozen=True):
    """The URLs of one thread's pages.

    If `base` is empty, the URLs are relative to one of these pages. `default` is the order of a
    page whose URL does not name an order. `lang` is the language that the request names, or "".
    `title` and `url` describe the page that embeds the thread, as the request gives them.
    """

    base: str
    name: records.ThreadName
    order: thread_pages.ListingOrder
    limit: int
    default: thread_pages.ListingOrder = thread_pages.ListingOrder.THREAD
    lang: str = ""
    title: str = ""
    url: str = ""

    def first(self) -> str:
        """Return the URL of the first page in this order."""
        return self._to(order=self.order)

    def write(self) -> str:
        """Return the URL of the first page with the form; the URL contains the form's values."""
        return self._to(order=self.order, title=self.title, url=self.url)

    def after(self, cursor: str) -> str:
        """Return the URL of the page after a cursor, in this order."""
        return self._to(order=self.order, cursor=cursor)

    def around(self, comment_id: str) -> str:
        """Return the URL of the page that contains a comment, scrolled to the comment."""
        return f"{self._to(around=comment_id)}#{anchor(comment_id)}"

    def below(self, comment_id: str, *, cursor: str | None = None) -> str:
        """Return the URL of the page with a comment and its replies."""
        return self._to(below=comment_id, cursor=cursor)

    def reply(self, comment_id: str) -> str:
        """Return the URL of the page with a form to answer a comment, scrolled to the comment."""
        return f"{self._to(reply=comment_id)}#{anchor(comment_id)}"

    def form(self) -> str:
        """Return the URL to which the form posts, relative to the thread's pages."""
        return f"{self.name.site}?{urlencode(self._thread_query())}"

    def feed(self) -> str:
        """Return the URL of the thread's feed, relative to the service's root."""
        return f"feeds/{self.name.site}/thread?{urlencode(self._thread_query())}"

    def orders(self) -> list[tuple[thread_pages.ListingOrder, str, bool]]:
        """Return each order, the URL of its first page, and whether it is the current order."""
        return [(order, self._to(order=order), order is self.order) for order in _ORDERS]

    def _to(
        self,
        *,
        order: thread_pages.ListingOrder | None = None,
        **more: str | None,
    ) -> str:
        query: dict[str, str | int] = {**self._thread_query()}
        if order not in {None, self.default}:
            query["order"] = str(order)
        if self.limit != parameters.DEFAULT_LIMIT:
            query["limit"] = self.limit
        query |= {name: value for name, value in more.items() if value}
        return f"{self.base}?{urlencode(query)}"

    def _thread_query(self) -> dict[str, str]:
        return {"thread": self.name.id} | ({"lang": self.lang} if self.lang else {})


def items(
    comments: Sequence[presentation.PublicComment], order: thread_pages.ListingOrder
) -> list[Item]:
    """Return the comments on a page with their nesting."""
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


def page_comments(page: presentation.ThreadPage) -> list[presentation.PublicComment]:
    return list(map(presentation.read, page.comments, page.replies))


def pinned_comments(page: presentation.ThreadPage) -> list[presentation.PublicComment]:
    """Return the pinned comments of a first page; none for other pages."""
    rows = page.pinned or presentation.Rows((), ())
    return list(map(presentation.read, rows.comments, rows.replies))


def anchor(comment_id: str) -> str:
    """Return the id of the HTML element for a comment.

    The widget uses the same ids, so links work with and without the widget.
    """
    return f"comment-{comment_id}"


def kind_of(comment: presentation.PublicComment) -> str:
    """Return the kind of the comment's author: guest, member or staff; "" if unknown."""
    kind = comment.author.kind if comment.author else None
    return kind.value if isinstance(kind, presentation.AuthorKind) else ""


def author_of(comment: presentation.PublicComment, texts: catalogue.Catalogue) -> str:
    """Return the author's displayed name."""
    return (comment.author.name if comment.author else "") or texts.text("embed.anonymous")


def website_of(comment: presentation.PublicComment) -> str:
    """Return the author's website if it is a valid web address, otherwise ""."""
    return web_address(comment.author.website if comment.author else "")


def web_address(text: str) -> str:
    """Return the text if it is a valid web address, otherwise "".

    Older releases also stored other texts.
    """
    return text if cleaning.is_website(text) else ""


def machine_time(moment: datetime) -> str:
    """Return a time for a `datetime` attribute, which allows at most three decimals."""
    return moment.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


def day(moment: datetime, texts: catalogue.Catalogue) -> str:
    """Return a date in UTC, in the format for readers."""
    return formats.day(moment, texts.language)


def human_time(moment: datetime, texts: catalogue.Catalogue) -> str:
    """Return a time in UTC, in the format for readers."""
    return formats.moment(moment, texts.language)
