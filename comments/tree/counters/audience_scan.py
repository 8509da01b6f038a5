"""Count and list audiences: distinct commenters of any combination of sources.

An author's rows are stored in the order of the authors' ids within each scope: Appearance rows for
a category, and for a day of a category or the site; Standings for the site; Participations for a
thread. A scan merges these ranges by author id. It therefore reaches all rows of an author one
after the other, and learns which sources the author belongs to. One scan therefore answers all
audiences of a question, and keeps only a page of ids of each range in memory.

The numbers include all delivered events, and are usually about a second old. The numbers of a
thread are exact. Authors without an approved comment belong to no audience.

The cost is known before a scan, from the counters of the scopes:

- Ranges of Appearances and Standings are read by keys only, at one read for each page of ids.
- A Participation also exists for an author whose comments are all pending or refused. A scan
  therefore reads the numbers of Participations, at one read for each author in the thread.
- Finding out the cost takes one read for each category, site and day with comments, and for each
  1,000 authors of a thread. Days without commenters are not scanned.

A scan and the counters from which its cost is known are read at one moment, in a read-only
transaction. A scan ends a range only at a page that is not full, so its result does not depend on
the counters. The only exception is that a scan omits scopes whose counters show no commenters.
"""

import heapq
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple, TypeVar

import msgspec

from comments import errors
from comments.domain import records
from comments.domain.counters import audiences, counting
from comments.store import connection, reads, transactions
from comments.store.models import comment_rows, counter_rows, schema
from comments.tree.counters import statistics

T = TypeVar("T")

MOST = statistics.MOST  # Maximum number of authors in one page
_PAGE = 300  # Maximum number of ids that a store returns at once
_SMALLEST_PAGE = 20
_BUFFERED = 150_000  # Maximum number of ids in memory, about 15 MB; many ranges get smaller pages
_COUNTED_AT_ONCE = 1_000  # Number of a thread's authors that one read can count
_LAST = "\U0010ffff"


class AudienceCount(msgspec.Struct, frozen=True):
    """The number of authors in an audience."""

    audience: str
    commenters: int


class AudienceMember(msgspec.Struct, frozen=True):
    """An author in an audience."""

    author: str


class ScanCost(msgspec.Struct, frozen=True):
    """The cost of a scan: its rows, and the reads that Datastore bills.

    The number of reads is correct only if the store returns full pages. The number includes the
    reads that find out the cost.
    """

    rows: int
    reads: int


class _Plan(NamedTuple):
    """The ranges of a scan: each scope's sources as a mask, and the number of ids in a page."""

    scopes: Mapping[counting.Scope, int]
    page: int
    cost: ScanCost


def cost(site: str, question: audiences.Question) -> ScanCost:
    """Return the cost of a scan, without scanning."""
    return _at_one_moment(lambda: _plan(site, question).cost)


def count(
    site: str, question: audiences.Question, *, most: int | None = None
) -> list[AudienceCount]:
    """Count the authors in each audience, with one scan.

    Raises:
        errors.BadInput: the scan would read more than `most` rows.
        errors.Overloaded: the scan was not complete after `reads.LONGEST` seconds.
    """

    def body() -> list[AudienceCount]:
        numbers = [0] * len(question.names)
        for _, mask in _scan(_check_size(_plan(site, question), most)):
            for place in question.places(mask):
                numbers[place] += 1
        return list(map(AudienceCount, question.names, numbers))

    return _at_one_moment(body)


def members(
    site: str,
    question: audiences.Question,
    *,
    after: str = "",
    limit: int = MOST,
    most: int | None = None,
) -> statistics.ReportPage[AudienceMember]:
    """List the authors in a question's only audience, by id.

    Raises:
        errors.BadInput: there are several audiences, the limit is outside 1 to `MOST`, or the scan
            of the whole audience would read more than `most` rows.
        errors.Overloaded: the page was not complete after `reads.LONGEST` seconds.
    """
    if len(question.names) > 1:
        raise errors.BadInput(audiences.FIELD, "too-many-items", limit=1)
    if not 1 <= limit <= MOST:
        raise errors.BadInput("limit", "out-of-range", minimum=1, maximum=MOST)

    def body() -> statistics.ReportPage[AudienceMember]:
        authors: list[AudienceMember] = []
        for author, mask in _scan(_check_size(_plan(site, question), most), after):
            if question.places(mask):
                authors.append(AudienceMember(author))
                if len(authors) == limit:
                    return statistics.ReportPage(tuple(authors), author)
        return statistics.ReportPage(tuple(authors), None)

    return _at_one_moment(body)


def _at_one_moment(body: Callable[[], T]) -> T:
    with connection.within(reads.LONGEST):
        return transactions.snapshot(body)


def _check_size(plan: _Plan, most: int | None) -> _Plan:
    if most is not None and plan.cost.rows > most:
        raise errors.BadInput(
            audiences.FIELD, "audience-too-large", rows=plan.cost.rows, limit=most
        )
    return plan


def _plan(site: str, question: audiences.Question) -> _Plan:
    """Find the scopes of a question's sources that have commenters, and the cost of a scan."""
    masks: dict[counting.Scope, int] = {}
    sizes: dict[counting.Scope, int] = {}
    billed = 0
    for place, source in enumerate(question.sources):
        scopes, more = _sizes(site, source)
        billed += more
        sizes |= {scope: rows for scope, rows in scopes.items() if rows}
        for scope in sizes.keys() & scopes.keys():
            masks[scope] = masks.get(scope, 0) | 1 << place
    page = _page_size(list(sizes.values()))
    for scope, rows in sizes.items():
        billed += rows if scope.kind == "thread" else -(-rows // page)
    return _Plan(masks, page, ScanCost(sum(sizes.values()), billed))


def _sizes(site: str, source: audiences.Source) -> tuple[dict[counting.Scope, int], int]:
    """Return the number of rows in each scope of a source, and how many reads this took."""
    if source.thread:
        name = comment_rows.thread_key_name(records.ThreadName(site, source.thread))
        rows = reads.count(reads.Query("Participation", ancestor=comment_rows.thread_key_of(name)))
        return {counting.thread_scope(name): rows}, max(1, -(-rows // _COUNTED_AT_ONCE))
    if source.days:
        lines = statistics.by_day(
            site, source.category, since=source.days[0], until=source.days[-1]
        ).lines
        days = {
            counting.day_scope(site, str(line.day), source.category): line.commenters
            for line in lines
        }
        return days, len(lines)
    scope = (
        counting.category_scope(site, source.category)
        if source.category
        else counting.site_scope(site)
    )
    numbers = counter_rows.numbers_of(reads.get(counter_rows.scope_key(scope)))
    return {scope: numbers.get(counting.PARTICIPANTS, 0)}, 1


def _page_size(sizes: list[int]) -> int:
    buffered = sum(min(rows, _PAGE) for rows in sizes)
    return _PAGE if buffered <= _BUFFERED else max(_SMALLEST_PAGE, _PAGE * _BUFFERED // buffered)


def _scan(plan: _Plan, after: str = "") -> Iterator[tuple[str, int]]:
    """Yield each author in a plan's scopes once, in order, with the mask of their sources."""
    ranges = [_range(scope, mask, after, plan.page) for scope, mask in plan.scopes.items()]
    current, sources = "", 0
    for author, mask in heapq.merge(*ranges):
        if author == current:
            sources |= mask
            continue
        if current:
            yield current, sources
        current, sources = author, mask
    if current:
        yield current, sources


def _range(scope: counting.Scope, mask: int, after: str, page: int) -> Iterator[tuple[str, int]]:
    """Yield the authors in a scope that come after the author `after`, in order."""
    read = _participants if scope.kind == "thread" else _keys
    while True:
        names, last = read(scope, after, page)
        for name in names:
            yield name, mask
        if not last:
            return
        after = last


def _participants(scope: counting.Scope, after: str, page: int) -> tuple[list[str], str]:
    """Read a page of a thread's authors: commenters, and the last author of a full page."""
    thread = comment_rows.thread_key_of(scope.place)
    where = (
        (("__key__", ">", schema.RowKey("Participation", after, parent=thread)),) if after else ()
    )
    query = reads.Query(
        "Participation", where=where, order=("__key__",), limit=page, ancestor=thread
    )
    messages = list(reads.fetch(query))
    names = [
        message.key.path[-1].name
        for message in messages
        if counter_rows.decode(message.properties["numbers"].string_value).get(counting.APPROVED)
    ]
    return names, messages[-1].key.path[-1].name if len(messages) == page else ""


def _keys(scope: counting.Scope, after: str, page: int) -> tuple[list[str], str]:
    """Read a page of the commenters of a category, a day or the site, reading keys only."""
    is_site = scope.kind == "site"
    prefix = f"{scope.place}/" if is_site else counter_rows.appearances_prefix(scope)
    where: list[tuple[str, str, object]] = [
        ("__key__", ">", f"{prefix}{after}"),
        ("__key__", "<=", f"{prefix}{_LAST}"),
    ]
    if is_site:
        where.append(("takes_part", "=", True))
    kind = "Standing" if is_site else "Appearance"
    keys = reads.names(kind, where, order=("__key__",), limit=page)
    names = [key[len(prefix) :] for key in keys]
    return names, names[-1] if len(names) == page else ""
