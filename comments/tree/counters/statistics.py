"""Read a website's statistics for reports: by category, by day, by author and by thread.

This module owns the paginated reading of counter rows. Every page is one bounded read of counter
rows, in key order. No report counts comments. A page continues after the last row of the previous
page (`after`), so rows that are added or deleted in between do not cause other rows to be skipped
or repeated. The numbers include all delivered events, and are usually about a second old.

Commenters are authors with an approved comment, and each author is counted once. Do not add up the
commenters of several days: an author who wrote on two days is one commenter of the site. The site's
own row contains the number of commenters on the site. The numbers of a category include those of
its subcategories, so do not add up the numbers of categories either.

The authors in a thread and the threads of an author are two indexes of one kind, Participation. The
authors in a category and the categories of an author are two indexes of another kind, Appearance.
All lists with authors' ids are for the operator and the site's moderators only, because no public
response may contain these ids.
"""

from collections.abc import Callable, Iterator
from datetime import date, timedelta
from typing import Any, Generic, TypeVar

import msgspec

from comments import errors
from comments.domain import categories, records
from comments.domain.counters import counting
from comments.store import reads
from comments.store.models import comment_rows, counter_rows, schema
from comments.tree.counters import totals

T = TypeVar("T")

MOST = 1_000  # Maximum number of rows in one page
_LAST = "\U0010ffff"


class StatisticsEntry(msgspec.Struct, frozen=True):
    """The statistics of a website, a category, a day, or a category on a day.

    Without a `category`, the numbers are for the whole site; without a `day`, they are for all
    time. `comments` is the number of approved comments.
    """

    category: str
    day: date | None
    comments: int
    commenters: int
    pending: int
    spam: int
    rejected: int
    retracted: int


class SiteEntry(StatisticsEntry, frozen=True):
    """The statistics of a whole website or of one of its days, with the votes on its comments.

    Votes are not counted by category, because each vote would write a row for each category.
    """

    up: int
    down: int


class AuthorCount(msgspec.Struct, frozen=True):
    """An author, with the number of their approved comments in a thread or category."""

    author: str
    comments: int


class ThreadCount(msgspec.Struct, frozen=True):
    """A thread, with the number of an author's approved comments in it."""

    thread: str
    title: str
    comments: int


class CategoryCount(msgspec.Struct, frozen=True):
    """A category, with the number of an author's approved comments in it."""

    category: str
    comments: int


class ReportPage(msgspec.Struct, Generic[T], frozen=True):
    """A page of a report. `after` is where the next page starts, or None at the end."""

    lines: tuple[T, ...]
    after: str | None


def site(site_id: str) -> StatisticsEntry:
    """Return a website's numbers, with one read."""
    return _line("", "", totals.of_site(site_id))


def by_category(
    site_id: str, *, under: str = "", after: str = "", limit: int = MOST
) -> ReportPage[StatisticsEntry]:
    """List a website's categories that have comments, each before its subcategories.

    `under` limits the list to a category and its subcategories. Each page is one scan.
    """
    low, high = f"{site_id}/", f"{site_id}/{_LAST}"
    if under:
        low, high = counter_rows.subtree_names(site_id, categories.canonical(under))
    if after:
        low = f"{site_id}/{counter_rows.category_part(after)}"
    rows = _by_key("Category", low, high, limit, with_low=not after)
    lines = [
        _line(counter_rows.statistics_scope("Category", name).category, "", numbers)
        for name, numbers in rows
    ]
    return _page(lines, [line.category for line in lines], limit)


def by_day(
    site_id: str,
    category: str = "",
    *,
    since: date | None = None,
    until: date | None = None,
    after: str = "",
    limit: int = MOST,
) -> ReportPage[StatisticsEntry]:
    """List the days (UTC) with comments in a category, or on the whole site, with one scan."""
    category = categories.canonical(category) if category else ""
    before = f"{site_id}/{counter_rows.category_part(category)}/"
    low, high = _range(since, until)
    rows = _by_key("Day", f"{before}{after or low}", f"{before}{high}", limit, with_low=not after)
    days = [(counter_rows.statistics_scope("Day", name).day, numbers) for name, numbers in rows]
    lines = [_line(category, day, numbers) for day, numbers in days]
    return _page(lines, [day for day, _ in days], limit)


def last_day(site_id: str, category: str = "", *, until: date) -> date | None:
    """Return the last day up to `until` that `by_day` lists, or None.

    Read one day first, and then increasingly long periods before `until`.
    """
    first = by_day(site_id, category, until=until, limit=1).lines
    start = first[0].day if first else None
    length = MOST
    while start is not None and start <= until:
        since = max(start, date.fromordinal(max(until.toordinal() - length, 1)))
        page = by_day(site_id, category, since=since, until=until)
        while page.after is not None:
            page = by_day(site_id, category, until=until, after=page.after)
        if page.lines:
            return page.lines[-1].day
        until, length = since - timedelta(days=1), 2 * length
    return None


def by_day_and_category(
    site_id: str,
    *,
    since: date | None = None,
    until: date | None = None,
    after: str = "",
    limit: int = MOST,
) -> ReportPage[StatisticsEntry]:
    """List the days of a site and of all its categories, by day and category, with one scan."""
    low, high = _range(since, until)
    query = reads.Query(
        "Day",
        where=(
            ("entry", ">" if after else ">=", f"{site_id}/{after or low}"),
            ("entry", "<=", f"{site_id}/{high}"),
        ),
        order=("entry",),
        limit=_check_limit(limit),
    )
    lines, entries = [], []
    for message in reads.fetch(query):
        scope = counter_rows.statistics_scope("Day", message.key.path[-1].name)
        lines.append(_line(scope.category, scope.day, _numbers(message)))
        entries.append(message.properties["entry"].string_value.removeprefix(f"{site_id}/"))
    return _page(lines, entries, limit)


def commenters(
    name: records.ThreadName, *, after: str = "", limit: int = MOST
) -> ReportPage[AuthorCount]:
    """List a thread's commenters by id.

    A page may be short, because authors without an approved comment are left out.
    """
    where = (("__key__", ">", counter_rows.participation_key(name, after)),) if after else ()
    query = reads.Query(
        "Participation",
        where=where,
        order=("__key__",),
        limit=_check_limit(limit),
        ancestor=comment_rows.thread_key(name),
    )
    rows = [(message.key.path[-1].name, _numbers(message)) for message in reads.fetch(query)]
    return _people(rows, limit)


def commenters_of_category(
    site_id: str, category: str, *, after: str = "", limit: int = MOST
) -> ReportPage[AuthorCount]:
    """List a category's commenters by id, with one scan."""
    before = f"{site_id}/{counter_rows.category_part(categories.canonical(category))}//"
    rows = _by_key("Appearance", f"{before}{after}", f"{before}{_LAST}", limit)
    return _people([(name[len(before) :], numbers) for name, numbers in rows], limit)


def threads_of(
    site_id: str, author: str, *, after: str = "", limit: int = MOST
) -> ReportPage[ThreadCount]:
    """List the threads in which an author has approved comments, with one scan and one lookup."""
    where: list[tuple[str, str, object]] = [
        ("author", "=", counter_rows.author_name(site_id, author))
    ]
    if after:
        here = schema.RowKey("Participation", author, parent=comment_rows.thread_key_of(after))
        where.append(("__key__", ">", here))
    query = reads.Query("Participation", where=where, order=("__key__",), limit=_check_limit(limit))
    rows = [(message.key.path[0].name, _numbers(message)) for message in reads.fetch(query)]
    threads = reads.get_multi([comment_rows.thread_key_of(name) for name, _ in rows])
    places = [
        ThreadCount(thread.alias or thread.thread, thread.title, numbers.get(counting.APPROVED, 0))
        for thread, (_, numbers) in zip(threads, rows, strict=True)
        if thread is not None
    ]
    lines = [place for place in places if place.comments > 0]
    return _page(lines, [name for name, _ in rows], limit)


def categories_of(
    site_id: str, author: str, *, after: str = "", limit: int = MOST
) -> ReportPage[CategoryCount]:
    """List the categories in which an author has approved comments, with one scan.

    The list has the order of the keys, in which subcategories precede their category.
    """
    where: list[tuple[str, str, object]] = [
        ("author", "=", counter_rows.author_name(site_id, author)),
        ("day", "=", ""),
    ]
    if after:
        here = counter_rows.statistics_key(counting.category_scope(site_id, after, author))
        where.append(("__key__", ">", here))
    query = reads.Query("Appearance", where=where, order=("__key__",), limit=_check_limit(limit))
    rows = [
        (counter_rows.statistics_scope("Appearance", message.key.path[-1].name), _numbers(message))
        for message in reads.fetch(query)
    ]
    lines = [
        CategoryCount(scope.category, numbers.get(counting.APPROVED, 0)) for scope, numbers in rows
    ]
    return _page(lines, [scope.category for scope, _ in rows], limit)


def _by_key(
    kind: str, low: str, high: str, limit: int, *, with_low: bool = False
) -> list[tuple[str, counter_rows.Numbers]]:
    where = (("__key__", ">=" if with_low else ">", low), ("__key__", "<=", high))
    query = reads.Query(kind, where=where, order=("__key__",), limit=_check_limit(limit))
    return [(message.key.path[-1].name, _numbers(message)) for message in reads.fetch(query)]


def _range(since: date | None, until: date | None) -> tuple[str, str]:
    """Return the key bounds for a range of days, including all categories of each day."""
    if since and until and since > until:
        raise errors.BadInput("since", "since-after-until")
    # ":" sorts after every digit.
    return since.isoformat() if since else "", f"{until.isoformat() if until else ':'}/{_LAST}"


def _check_limit(limit: int) -> int:
    if not 1 <= limit <= MOST:
        raise errors.BadInput("limit", "out-of-range", minimum=1, maximum=MOST)
    return limit


def _line(category: str, day: str, numbers: counter_rows.Numbers) -> StatisticsEntry:
    entry = StatisticsEntry(
        category=category,
        day=date.fromisoformat(day) if day else None,
        comments=numbers.get(counting.APPROVED, 0),
        commenters=numbers.get(counting.PARTICIPANTS, 0),
        pending=numbers.get(records.Status.PENDING, 0),
        spam=numbers.get(records.Status.SPAM, 0),
        rejected=numbers.get(records.Status.REJECTED, 0),
        retracted=numbers.get(records.Status.RETRACTED, 0),
    )
    if category:
        return entry
    fields = msgspec.structs.asdict(entry)
    return SiteEntry(**fields, up=numbers.get("up", 0), down=numbers.get("down", 0))


def _people(rows: list[tuple[str, counter_rows.Numbers]], limit: int) -> ReportPage[AuthorCount]:
    people = [AuthorCount(author, numbers.get(counting.APPROVED, 0)) for author, numbers in rows]
    return _page(
        [person for person in people if person.comments > 0], [name for name, _ in rows], limit
    )


def _page(lines: list[T], read: list[str], limit: int) -> ReportPage[T]:
    """Make a report page from lines. The next page starts after the last row that was read."""
    return ReportPage(tuple(lines), read[-1] if len(read) == limit else None)


def _numbers(message: Any) -> counter_rows.Numbers:
    return counter_rows.decode(message.properties["numbers"].string_value)


def whole(read: Callable[[str], ReportPage[T]]) -> Iterator[T]:
    """Yield all lines of a report, page by page."""
    after: str | None = ""
    while after is not None:
        page = read(after)
        yield from page.lines
        after = page.after
