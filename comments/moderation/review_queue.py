"""List a site's comments: by status, time, author, page, category, reason and words.

The newest comments come first.

Except for lists of approved comments, the caller must have checked that the reader is allowed to
see the whole site. `thread_list` lists threads.

The number of reads per page has an upper limit, which does not depend on the size of the site. Only
statuses, times and categories have an index for each combination. For all other filters, a page
examines at most `LOOKED_THROUGH` comments. Its cursor continues after the last one examined, in the
order of creation time, revision and id. A comment is listed twice only if it changes between two
pages and other comments were created at the same time.
"""

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, TypeVar

from comments import errors
from comments.domain import records
from comments.domain.crypto import cursors
from comments.domain.moderation import ruling_texts
from comments.domain.records import Status
from comments.store import reads
from comments.store.models import comment_rows, conversion, counter_rows, schema

MOST = 100  # Maximum number of comments per page.
MOST_COUNTED = 1000  # The engine bills one read for so many counted comments.
PAGE = 25
LOOKED_THROUGH = 2_000
_LARGEST_PART = 400  # Comments that a search reads at once, after smaller parts.
LONGEST_TEXT = 100  # Maximum number of characters in a search text.
# Exclude retracted comments, because they have no text left to review.
STATUSES = tuple(status for status in Status if status is not Status.RETRACTED)

T = TypeVar("T")
Position = tuple[datetime, int, str]
_Where = tuple[tuple[str, str, object], ...]


@dataclasses.dataclass(frozen=True, slots=True)
class QueueFilter:
    """A query for a site's comments by status and, optionally, by other conditions.

    `threads` contains the possible ids of one thread. `category` is a canonical category term
    (`categories`). `rule` is a kind of ruling, such as "policy", or one rule, such as "rule:links"
    (`ruling_texts`). The comments were created at `since` or later, and before `before`. `linked`
    contains further ids of the author.
    """

    site: str
    statuses: tuple[Status, ...] = (Status.PENDING,)
    author: str = ""
    text: str = ""
    threads: tuple[str, ...] = ()
    rule: str = ""
    since: datetime | None = None
    before: datetime | None = None
    category: str = ""
    linked: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Check the length of the search text.

        Raises:
            errors.BadInput: the text is longer than `LONGEST_TEXT`.
        """
        check_text(self.text)

    @property
    def label(self) -> str:
        """Return the label that binds a cursor to this listing."""
        period = (str(self.since or ""), str(self.before or ""))
        return cursors.label(
            "docket", self.site, *self.statuses, "", self.author, self.text, *self.threads, "",
            self.rule, *period, *filter(None, [self.category]), *self.linked,
        )  # fmt: skip

    @property
    def is_search(self) -> bool:
        """Whether comments must be read to find out which of them match."""
        return bool(self.author or self.text or self.threads or self.rule)

    def matches(self, case: records.Case) -> bool:
        """Return whether a comment matches.

        The author and the time are not checked here, because `scans` has already checked them.
        """
        comment = case.comment
        if comment.status not in self.statuses:
            return False
        if self.threads and comment.thread not in self.threads:
            return False
        if self.category and self.category not in case.category_terms:
            return False
        if self.rule and not ruling_texts.is_ruling(self.rule, case.rule):
            return False
        wanted = self.text.casefold()
        texts = (comment.body, comment.author.name, comment.author.website)
        return not wanted or any(wanted in text.casefold() for text in texts)

    def scans(self) -> Iterator[_Where]:
        """Yield the index ranges that together contain all matches, whatever their time."""
        if self.author:
            for author in (self.author, *self.linked):
                yield (("site", "=", self.site), ("author_id", "=", author))
            return
        below = (("category_terms", "=", self.category),) if self.category else ()
        for status in self.statuses:
            yield (("site", "=", self.site), *below, ("status", "=", status.value))

    def period(self, before: datetime | None = None) -> _Where:
        """Return the conditions on the time, which is before `before` if that is given."""
        end = before or self.before
        return (
            *([("created", ">=", self.since)] if self.since else []),
            *([("created", "<", end)] if end else []),
        )


@dataclasses.dataclass(frozen=True, slots=True)
class QueuePage:
    """A page of comments, newest first.

    `back_to` is the creation time of the oldest of the `examined` comments; `cursor` continues
    after that comment.
    """

    cases: tuple[records.Case, ...]
    cursor: str | None
    back_to: datetime | None
    examined: int


def count_pending(site: str) -> int:
    """Count a site's pending comments, up to `MOST_COUNTED`. Decisions count at once."""
    return count(QueueFilter(site), MOST_COUNTED)


def count(wanted: QueueFilter, most: int) -> int:
    """Count the comments of a filter that is no search, up to `most` of each status."""
    # With this order, the queries scan the indexes of `page` instead of indexes of their own.
    order = ("-created", "revision")
    return sum(
        reads.count(reads.Query("Comment", (*where, *wanted.period()), order, limit=most))
        for where in wanted.scans()
    )


def page(
    wanted: QueueFilter, *, limit: int = PAGE, cursor: str | None = None, secret: str
) -> QueuePage:
    """Return a page of comments.

    Raises:
        errors.BadInput: the limit is not between 1 and `MOST`.
        errors.BadCursor: the cursor is invalid or belongs to a different listing.
    """
    check_limit(limit)
    after = None if cursor is None else unseal(cursor, wanted.label, secret)
    most = LOOKED_THROUGH if wanted.is_search else limit
    candidates = places(wanted, after, most + 1)
    matching, looked = matching_rows(candidates[:most], limit, read_cases, wanted.matches)
    last = candidates[looked - 1] if looked else None
    more = last is not None and looked < len(candidates)
    return QueuePage(
        tuple(matching),
        seal(last, wanted.label, secret) if more and last else None,
        last[0] if last else None,
        looked,
    )


def newest(site: str, limit: int) -> list[str]:
    """Return the ids of a site's newest comments that are not retracted, newest first."""
    return [name for _, _, name in places(QueueFilter(site, STATUSES), None, limit)]


def cases(comment_ids: Sequence[str]) -> dict[str, records.Case]:
    """Read existing comments by id in one look-up."""
    keys = [comment_rows.comment_key(comment_id) for comment_id in dict.fromkeys(comment_ids)]
    return {case.comment.id: case for case in _cases(keys) if case is not None}


def pending_cases(name: records.ThreadName) -> tuple[list[records.Case], bool]:
    """Return the pending comments of a thread in reading order, and whether there are more.

    If there are more than `MOST`, the choice among them is arbitrary.
    """
    where = (
        ("thread", "=", comment_rows.thread_key_name(name)),
        ("status", "=", Status.PENDING.value),
    )
    query = reads.Query("Comment", where=where, limit=MOST + 1, keys_only=True)
    known = cases([name_of(message) for message in reads.fetch(query)])
    # Check the status again, because a comment may have been decided since the index was read.
    held = [case for case in known.values() if case.comment.status is Status.PENDING]
    held.sort(key=lambda case: case.comment.sort_hash)
    return held[:MOST], len(held) > MOST


def ancestors(comment: records.Comment, most: int) -> list[records.Comment]:
    """Return up to `most` of a comment's nearest ancestors, from the root down."""
    above: list[records.Comment] = []
    while comment.parent is not None and len(above) < most:
        row = reads.get(comment_rows.comment_key(comment.parent))
        if row is None:
            break
        comment = conversion.comment_record(row)
        above.append(comment)
    return above[::-1]


def standings(site: str, authors: Iterable[str]) -> Mapping[str, counter_rows.Numbers]:
    """Return each author's comment counts on a site by status, read in one look-up.

    The counts do not include changes whose events have not been delivered yet.
    """
    ids = [author for author in dict.fromkeys(authors) if author]
    rows = reads.get_multi([counter_rows.standing_key(site, author) for author in ids])
    return {author: counter_rows.numbers_of(row) for author, row in zip(ids, rows, strict=True)}


def check_text(text: str) -> None:
    """Raise errors.BadInput if a search text is too long."""
    if len(text) > LONGEST_TEXT:
        raise errors.BadInput("q", "too-long", limit=LONGEST_TEXT)


def check_limit(limit: int) -> None:
    """Raise errors.BadInput if the number of rows per page is out of range."""
    if not 1 <= limit <= MOST:
        raise errors.BadInput("limit", "out-of-range", minimum=1, maximum=MOST)


def places(wanted: QueueFilter, after: Position | None, limit: int) -> list[Position]:
    """Return the positions of the newest comments after a position, merged from all scans."""
    positions = [
        place for where in wanted.scans() for place in _behind(wanted, where, after, limit)
    ]
    positions.sort(key=lambda place: place[1:])
    positions.sort(key=lambda place: place[0], reverse=True)
    return positions[:limit]


def _behind(
    wanted: QueueFilter, where: _Where, after: Position | None, limit: int
) -> list[Position]:
    """Return a scan's newest positions after a position, by time, then revision, then id."""
    # Datastore cannot compare tuples, so the remaining comments with the same revision and those
    # with the same creation time need separate range queries.
    if after is None:
        return _query_comments((*where, *wanted.period()), limit)
    moment, revision, name = after
    at = (*where, ("created", "=", moment))
    tie = (("revision", "=", revision), ("__key__", ">", name))
    query = reads.Query(
        "Comment", where=(*at, *tie), order=("__key__",), limit=limit, keys_only=True
    )
    positions = [(moment, revision, name_of(message)) for message in reads.fetch(query)]
    if len(positions) < limit:
        query = reads.Query(
            "Comment",
            where=(*at, ("revision", ">", revision)),
            order=("revision",),
            projection=("revision",),
            limit=limit - len(positions),
        )
        positions += [
            (moment, message.properties["revision"].integer_value, name_of(message))
            for message in reads.fetch(query)
        ]
    if len(positions) < limit:
        earlier = (*where, *wanted.period(moment))
        positions += _query_comments(earlier, limit - len(positions))
    return positions


def _query_comments(where: _Where, limit: int) -> list[Position]:
    query = reads.Query(
        "Comment",
        where=where,
        order=("-created", "revision"),
        projection=("created", "revision"),
        limit=limit,
    )
    return [
        (moment, message.properties["revision"].integer_value, name_of(message))
        for message in reads.fetch(query)
        if (moment := conversion.projected_time(message.properties["created"])) is not None
    ]


def matching_rows(
    places: Sequence[Position],
    limit: int,
    read: Callable[[Sequence[Position]], Iterable[T | None]],
    has: Callable[[T], bool],
) -> tuple[list[T], int]:
    """Return the first rows that match, and the number of places examined to find them.

    Each part that is read has twice the size of the one before, so rare matches need few calls.
    """
    matching: list[T] = []
    looked, size = 0, limit
    while looked < len(places) and len(matching) < limit:
        for row in read(places[looked : looked + size]):
            if len(matching) < limit:
                looked += 1
                matching += [row] if row is not None and has(row) else []
        size = max(limit, min(2 * size, _LARGEST_PART))
    return matching, looked


def read_cases(places: Sequence[Position]) -> Iterator[records.Case | None]:
    """Yield the comments at some positions, with None for each comment that is gone."""
    return _cases([comment_rows.comment_key(name) for _, _, name in places])


def _cases(keys: Sequence[schema.RowKey]) -> Iterator[records.Case | None]:
    for message in reads.read(keys):
        yield None if message is None else conversion.case_from_message(message)


def name_of(message: Any) -> str:
    """Return the name in the key of a row."""
    name: str = message.key.path[-1].name
    return name


def seal(place: Position, label: str, secret: str) -> str:
    """Return the cursor that continues a list after a position."""
    moment, revision, name = place
    return cursors.seal([moment.isoformat(), str(revision), name], label, secret)


def unseal(cursor: str, label: str, secret: str) -> Position:
    """Return the position in a cursor; raise errors.BadCursor if the cursor is invalid."""
    moment, revision, name = cursors.unseal(cursor, label, secret)
    return datetime.fromisoformat(moment).astimezone(UTC), int(revision), name
