"""Compare every counter with the rows that it counts, and correct differences.

First, the vote counts in each comment's row are compared with the votes, except for comments with
uncounted votes. Wrong vote counts are corrected by counting again, which can safely be repeated.
Then each thread's counters are compared with its comments. The site's counters and its rows of
thread counts are compared with its threads. The counters of authors are compared with the authors'
numbers in the threads. The counters of categories and days are compared with the site's comments.
At the end, declared counters are compared with the comments, and unfinished ones are completed
(`declared_backfill`).

Participant counters count rows of other counters. Participant counters are corrected to match those
rows as stored. If those rows are corrected too, the usual formula then adjusts the participant
counters.

If a recount of a site is interrupted, the next one continues after the last thread named in the Job
row.

Invariant: A counter is corrected by adding the difference, so concurrent increments are not lost,
and each correction stores its number in the corrected row (`mended`), so the difference is added
only once (test_recount_races.py::test_two_concurrent_recounts_repair_once).

Each comparison reads one snapshot (a read-only transaction) and takes into account what undelivered
events will add, so concurrent writes cause no differences.
"""

import dataclasses
import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from comments.domain import records
from comments.domain.counters import counting
from comments.domain.counters.counting import Scope
from comments.notifications import thread_followers
from comments.posting import cast_vote
from comments.store import ownership, reads, transactions
from comments.store.large_sets import membership
from comments.store.models import comment_rows, conversion, counter_rows, event_rows
from comments.tree import votes
from comments.tree.counters import counter_repair, thread_counts, totals
from comments.tree.counters.declared import declared_backfill
from comments.upkeep.migrations import thread_count_rows

NOTE_EVERY = 20  # Threads between two writes of the position; a restart may repeat them
_NOT_OF_THREADS = {counting.PARTICIPANTS, counting.LISTED, counting.FOLLOWERS}

Numbers = Mapping[str, int]
Tell = Callable[["Difference"], None]


@dataclasses.dataclass(frozen=True, slots=True)
class Difference:
    """A counter that differs from its expected value."""

    scope: Scope
    name: str
    stored: int
    expected: int


@dataclasses.dataclass(frozen=True, slots=True)
class _Comparison(counter_repair.Comparison):
    """The result of one comparison, with the differences to report."""

    differences: Sequence[Difference]


def thread(name: records.ThreadName, *, tell: Tell, fixes: bool) -> int:
    """Compare a thread's comments with their votes, then the thread's counters with the comments.

    Returns:
        The number of differences.
    """
    count = _votes(name, tell, fixes=fixes)
    mend = functools.partial(counter_repair.thread_writes, name)
    return count + _settle(lambda: _compare_thread(name), mend, tell, fixes=fixes)


def site(site_id: str, *, tell: Tell, fixes: bool) -> int:
    """Compare all counters of a site; return the number of differences.

    If an earlier recount was interrupted, continue where it stopped.
    """
    count = 0
    row = reads.get(event_rows.job_key(f"recount/{site_id}"))
    position = "" if row is None else str(row.position)
    for number, name in enumerate(_threads(site_id, after=position), 1):
        count += thread(name, tell=tell, fixes=fixes)
        if fixes and number % NOTE_EVERY == 0:
            _note(site_id, comment_rows.thread_key_name(name))

    if fixes:
        thread_count_rows.complete(site_id)
    mend = functools.partial(counter_repair.site_writes, site_id)
    count += _settle(lambda: _compare_site(site_id), mend, tell, fixes=fixes)
    count += declared_backfill.recount(
        site_id, tell=lambda each: tell(_declared_difference(site_id, each)), fixes=fixes
    )
    if fixes:
        _note(site_id, "")
    return count


def _declared_difference(site_id: str, found: declared_backfill.CountDifference) -> Difference:
    place = found.place
    here = Scope("counter", f"{site_id}{place.thread}", place.author, place.category, place.day)
    return Difference(here, found.counter, found.stored, found.expected)


def _votes(name: records.ThreadName, tell: Tell, *, fixes: bool) -> int:
    """Compare a thread's comments with their votes, and recount comments with differences."""
    differences = transactions.snapshot(lambda: _vote_differences(name))
    for difference in differences:
        tell(difference)
    for comment_id in (
        dict.fromkeys(difference.scope.place for difference in differences) if fixes else ()
    ):
        cast_vote.mend(comment_id, now=datetime.now(UTC))
    return len(differences)


def _vote_differences(name: records.ThreadName) -> list[Difference]:
    where = (("thread", "=", comment_rows.thread_key_name(name)),)
    query = reads.Query("Comment", where=where, order=("sort_hash",))
    rows = {message.key.path[-1].name: message.properties for message in reads.fetch(query)}
    cast, waiting = votes.of_thread(name), votes.waiting_comments(name)
    return [
        Difference(Scope("comment", comment_id), *number)
        for comment_id in dict.fromkeys((*rows, *cast))
        if comment_id not in waiting
        for number in _wrong_counts(rows.get(comment_id), cast.get(comment_id, (0, 0)))
    ]


def _wrong_counts(row: Any, cast: tuple[int, int]) -> Iterator[tuple[str, int, int]]:
    """Yield each wrong vote count in a row: its name, stored value and expected value."""
    if row is None or row["status"].string_value == records.Status.RETRACTED:
        # The comment no longer accepts votes, so these votes should have been deleted.
        pairs = {"votes": (sum(cast), 0)}
    else:
        up, down = (
            (row[name].integer_value, row[name].integer_value - row[f"cast_{name}"].integer_value)
            for name in ("up", "down")
        )
        expected = up[1] + cast[0], down[1] + cast[1]
        pairs = {
            "up": (up[0], expected[0]),
            "down": (down[0], expected[1]),
            "score": (row["score"].integer_value, expected[0] - expected[1]),
        }
    return ((name, *pair) for name, pair in pairs.items() if pair[0] != pair[1])


def _settle(
    look: Callable[[], _Comparison],
    mend: Callable[..., ownership.Writes],
    tell: Tell,
    *,
    fixes: bool,
) -> int:
    """Compare, correct the differences, and report them."""
    comparison = transactions.snapshot(look)
    if fixes and comparison.differences:
        comparison = counter_repair.settle(look, mend)
    for difference in comparison.differences:
        tell(difference)
    return len(comparison.differences)


def _compare_thread(name: records.ThreadName) -> _Comparison:
    key = comment_rows.thread_key_name(name)
    here = counting.thread_scope(key)
    query = reads.Query("Comment", where=(("thread", "=", key),), order=("sort_hash",))
    expected = counting.by_scope(
        counting.total(
            counting.increments(counting.IN_THREAD, None, conversion.state_from_message(message))
            for message in reads.fetch(query)
        )
    )
    stored: dict[Scope, Numbers] = {
        counting.participation_scope(key, message.key.path[-1].name): _numbers(message)
        for message in reads.fetch(
            reads.Query("Participation", ancestor=comment_rows.thread_key(name))
        )
    }
    mended, stored[here], stored_shards = totals.stored_numbers(name)
    if following := _count_followers(name):
        expected.setdefault(here, {})[counting.FOLLOWERS] = following
    comparison = _compare(here, stored, expected, mended)
    if stored_shards[0] == stored_shards[1]:
        return comparison
    # Every correction writes the first shard, so it also corrects the number of shards there.
    shards = Difference(here, "shards", *stored_shards)
    return dataclasses.replace(comparison, differences=(*comparison.differences, shards))


def _compare_site(site_id: str) -> _Comparison:
    here = counting.site_scope(site_id)
    row = reads.get(counter_rows.site_counter_key(site_id))
    mended = 0 if row is None else row.mended
    stored = {here: counter_rows.numbers_of(row), **dict(_rows(site_id))}
    expected = _expected_numbers(site_id)
    listings = counting.listings_scope(site_id)
    if thread_counts.is_open(row):
        stored[listings] = thread_counts.stored_numbers(site_id, row)
    else:
        expected.pop(listings, None)
    return _compare(here, stored, expected, mended)


def _expected_numbers(site_id: str) -> dict[Scope, dict[str, int]]:
    """Return the expected numbers in a site's rows, without participants."""
    expected = {
        scope: counting.difference({}, numbers)
        for scope, numbers in counter_repair.pending_numbers(counting.FROM_EVENTS).items()
        if scope.place == site_id
    }

    def count(scope: Scope, numbers: Numbers) -> None:
        expected[scope] = counting.sums(expected.get(scope, {}), numbers)

    counters = list(reads.fetch(reads.Query("Counter", where=(("site", "=", site_id),))))
    count(counting.site_scope(site_id), _threads_numbers(counters))
    count(counting.listings_scope(site_id), thread_count_rows.listed_counts(counters))
    for author, numbers in _participations(site_id):
        count(counting.author_scope(site_id, author), numbers)
    for scope, numbers in _statistics(site_id).items():
        count(scope, numbers)
    return {scope: numbers for scope, numbers in expected.items() if numbers}


def _statistics(site_id: str) -> dict[Scope, dict[str, int]]:
    """Count a site's comments by category and day."""
    query = reads.Query("Comment", where=(("site", "=", site_id),))
    return counting.by_scope(
        counting.total(
            counting.increments(counting.STATISTICS, None, conversion.state_from_message(message))
            for message in reads.fetch(query)
        )
    )


def _rows(site_id: str) -> Iterator[tuple[Scope, Numbers]]:
    """Yield the numbers in a site's event-driven rows, except for the site's own row."""
    query = reads.Query("Standing", where=(("site", "=", site_id),))
    for message in reads.fetch(query):
        author = message.key.path[-1].name.partition("/")[2]
        yield counting.author_scope(site_id, author), _numbers(message)
    low, high = f"{site_id}/", f"{site_id}0"  # In ASCII, "0" follows "/".
    for kind in ("Category", "Day", "Month", "Appearance"):
        where = (("__key__", ">=", low), ("__key__", "<", high))
        for message in reads.fetch(reads.Query(kind, where=where, order=("__key__",))):
            yield counter_rows.statistics_scope(kind, message.key.path[-1].name), _numbers(message)


def _compare(
    here: Scope,
    stored: Mapping[Scope, Numbers],
    expected: Mapping[Scope, Numbers],
    mended: int,
) -> _Comparison:
    """Compare the numbers of a site or thread, of its scopes, and of the authors in them."""
    part = counting.PARTICIPANTS
    present, wanted = _present(stored), _present(expected)
    scopes = {*stored, *expected, *present, *wanted}
    differences: list[Difference] = []
    missing: dict[Scope, Numbers] = {}
    for scope in sorted(scopes, key=lambda each: (each != here, each.author, each)):
        old, new = stored.get(scope, {}), expected.get(scope, {})
        more = {name: new.get(name, 0) - old.get(name, 0) for name in {*old, *new} - {part}}
        if not scope.author:
            new = counting.sums(new, {part: wanted.get(scope, 0)})
            more[part] = present.get(scope, 0) - old.get(part, 0)
        differences += _differences(scope, old, new)
        more = counting.sums({}, more)
        if more:
            missing[scope] = more
    return _Comparison(mended, missing, differences)


def _present(rows: Mapping[Scope, Numbers]) -> dict[Scope, int]:
    """Count the participants in each scope from the authors' rows."""
    present: dict[Scope, int] = {}
    for scope, numbers in rows.items():
        if scope.author and numbers.get(counting.APPROVED, 0) > 0:
            place = counting.above(scope)
            present[place] = present.get(place, 0) + 1
    return present


def _differences(scope: Scope, stored: Numbers, expected: Numbers) -> Iterator[Difference]:
    for name in sorted({*stored, *expected}):
        pair = (stored.get(name, 0), expected.get(name, 0))
        if pair[0] != pair[1]:
            yield Difference(scope, name, *pair)


def _threads_numbers(counters: Sequence[Any]) -> dict[str, int]:
    numbers: dict[str, int] = {}
    for message in counters:
        numbers = counting.sums(numbers, _numbers(message))
    return {name: number for name, number in numbers.items() if name not in _NOT_OF_THREADS}


def _count_followers(name: records.ThreadName) -> int:
    """Count a thread's followers, without those that undelivered events will add."""
    count = membership.count_within(thread_followers.set_of(name))
    return count - thread_followers.pending_count(name)


def _participations(site_id: str) -> Iterator[tuple[str, Numbers]]:
    low, high = counter_rows.author_name(site_id, ""), f"{site_id}0"  # In ASCII, "0" follows "/".
    where = (("author", ">=", low), ("author", "<", high))
    query = reads.Query("Participation", where=where, order=("author",))
    for message in reads.fetch(query):
        yield message.key.path[-1].name, _numbers(message)


def _threads(site_id: str, *, after: str) -> Iterator[records.ThreadName]:
    where: list[tuple[str, str, object]] = [("site", "=", site_id)]
    if after:
        where.append(("__key__", ">", after))
    for entity in reads.walk(reads.Query("Thread", where=where, order=("__key__",))):
        yield records.ThreadName(site_id, entity.properties["thread"].string_value)
    # Threads that have followers but no comments have no row yet.
    for thread_id in thread_followers.followed_thread_ids(site_id):
        name = records.ThreadName(site_id, thread_id)
        if reads.get(comment_rows.thread_key(name)) is None:
            yield name


def _note(site_id: str, position: str) -> None:
    key = event_rows.job_key(f"recount/{site_id}")
    writes = (
        ownership.Writes("recount", put=(event_rows.JobRow(key=key, position=position),))
        if position
        else ownership.Writes("recount", delete=(key,))
    )
    transactions.transaction(lambda: transactions.apply(writes))


def _numbers(message: Any) -> dict[str, int]:
    return counter_rows.decode(message.properties["numbers"].string_value)
