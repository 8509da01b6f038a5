"""The checks of every page that `kills` reads (pure).

Every page must meet these conditions: parents come before their children, no comment appears twice
or belongs to a different thread, counts match the rows, and every acknowledged post is present at
its acknowledged version or a later one. A text identifies its post: `t2 w3 n17 v4` is version 4 of
the 17th post of writer 3, in thread 2.
"""

import html
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

_TEXT = re.compile(r"t(\d+) w(\d+) n(\d+) v(\d+)")
# Matches an article in the HTML and the text in it.
_ARTICLE = re.compile(r'<article [^>]*id="comment-([a-z2-7]{26})"(.*?)</article>', re.DOTALL)
TREES = ("thread", "recent", "best")  # The orders that keep discussions together.
ORDERS = (*TREES, "oldest", "newest")


def text(thread: int, writer: int, number: int, version: int) -> str:
    """Return the text of a version of a post."""
    return f"t{thread} w{writer} n{number} v{version}"


@dataclass(frozen=True, slots=True)
class Row:
    """A comment as a page shows it. `thread` and `version` are None for a removed comment."""

    id: str
    parent: str | None
    level: int
    replies: int
    thread: int | None
    version: int | None


def rows(page: Mapping[str, Any]) -> list[Row]:
    """Return the comments of a page of the API."""
    return [row(each) for each in page["comments"]]


def row(comment: Mapping[str, Any]) -> Row:
    """Convert a comment as the API returns it."""
    found = _TEXT.search(comment["html"])
    return Row(
        comment["id"],
        comment["parent"],
        comment["level"],
        comment.get("replies", 0),
        None if found is None else int(found[1]),
        None if found is None else int(found[4]),
    )


def shown_in_html(page: str, parents: Mapping[str, str | None]) -> list[Row]:
    """Return the comments of an HTML page, with their parents where the page shows them."""
    return [
        Row(
            match[1],
            parents.get(match[1]),
            0,
            0,
            None if (found := _TEXT.search(html.unescape(match[2]))) is None else int(found[1]),
            None if found is None else int(found[4]),
        )
        for match in _ARTICLE.finditer(page)
    ]


@dataclass(slots=True)
class Walk:
    """Consecutive pages in one order, starting with the first. Each method yields violations."""

    thread: int
    order: str
    seen: dict[str, Row] = field(default_factory=dict)

    def page(self, found: Sequence[Row], *, is_whole: bool, total: int | None) -> Iterator[str]:
        """Check the next page.

        `is_whole` means that this part is the first and contains the whole thread.
        """
        is_first = not self.seen
        here = {each.id for each in found}
        for each in found:
            if each.id in self.seen:
                yield f"{each.id} appears twice"
            if each.thread not in (None, self.thread):
                yield f"{each.id} is of thread {each.thread}"
            if self._is_orphan(each, here, is_first=is_first, is_whole=is_whole):
                yield f"{each.id} appears without its parent {each.parent}"
            self.seen[each.id] = each
        if is_whole:
            yield from _miscounted(found, total)

    def _is_orphan(self, row: Row, here: set[str], *, is_first: bool, is_whole: bool) -> bool:
        if row.parent is None:
            return False
        if self.order == "newest":
            # A parent is older than its reply, so it comes later, perhaps on a page that was not
            # read.
            return row.parent in self.seen or (is_whole and row.parent not in here)
        if self.order == "oldest" and not is_first:
            # The parent may have been committed before the cursor, after that part of the thread
            # was read.
            return row.parent in here and row.parent not in self.seen
        return row.parent not in self.seen

    def end(self, known: Mapping[str, int]) -> Iterator[str]:
        """Check that the pages had every earlier acknowledged post, at its version or later."""
        return missing(list(self.seen.values()), known)


def missing(found: Sequence[Row], known: Mapping[str, int]) -> Iterator[str]:
    """Yield violations of a response that must contain these comments at these versions."""
    shown = {each.id: each for each in found}
    for comment, version in known.items():
        each = shown.get(comment)
        if each is None or each.version is None:
            yield f"{comment} is missing at version {version}"
        elif each.version < version:
            yield f"{comment} has version {each.version}, not {version}"


def part(found: Sequence[Row], thread: int, *, above: str | None = None) -> Iterator[str]:
    """Check a part of a thread in reading order that can begin at any comment, or below `above`."""
    seen: set[str] = set() if above is None else {above}
    for each in found:
        if each.id in seen:
            yield f"{each.id} appears twice"
        if each.thread not in (None, thread):
            yield f"{each.id} is of thread {each.thread}"
        # Only ancestors of the first row come before the part, and no ancestor is deeper than that
        # row.
        may_be_before = above is None and each.level <= found[0].level
        if each.parent is not None and each.parent not in seen and not may_be_before:
            yield f"{each.id} appears without its parent {each.parent}"
        seen.add(each.id)


def _miscounted(found: Sequence[Row], total: int | None) -> Iterator[str]:
    if total is not None and total != len(found):
        yield f"the total is {total}, not {len(found)}"
    below = dict.fromkeys((each.id for each in found), 0)
    parents = {each.id: each.parent for each in found}
    for each in found:
        above = each.parent
        while above is not None:
            below[above] = below.get(above, 0) + 1
            above = parents.get(above)
    for each in found:
        if total is not None and each.replies != below[each.id]:
            yield f"{each.id} has {each.replies} replies, not {below[each.id]}"
