"""Find discussions that a site has twice, and merge them: threads with equal comments.

    doubled_threads.begin(site_id, now=now)
    doubled_threads.finish()
    pairs = doubled_threads.pairs(site, doubled_threads.get(site_id))

Such threads are one page under two addresses, for example because exports of two systems were
imported. Equal comments have the same time (`join_plan.content`). Therefore a search reads the
published and the pending comments of the site by time, compares those of the same second, and
forgets them. It stores its position and what it has found in a Job, so any process can continue it.
Merging all pairs is a part of the same job: one transaction merges a pair (`thread_joins`).

    Job  "doubles/{site id}": the site's last `Search`, as JSON
"""

import contextlib
import functools
import itertools
from collections import Counter, defaultdict
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import msgspec

from comments import errors
from comments.domain import decoders, records
from comments.sites import site_settings
from comments.store import ownership, reads, transactions
from comments.store.models import conversion, event_rows
from comments.threads import thread_aliases, thread_info
from comments.transfer.moves import join_plan, move_journal, thread_joins, thread_moves
from comments.tree.counters import totals

AT_ONCE = 300  # Comments in one step of a search
MOST_BYTES = 400_000  # Maximum length of the ids that a search keeps; a row has at most 1 MB.
_PREFIX = "doubles/"


class DoubledThreads(msgspec.Struct, frozen=True):
    """Two threads, by the ids that they show, and the number of comments that are in both.

    `comments` is the number of comments that readers see in the thread `double`, the smaller one.
    """

    thread: str
    double: str
    doubled: int
    comments: int

    @property
    def is_likely(self) -> bool:
        """Return whether most of the smaller thread is doubled, so both are probably one page."""
        return 2 * self.doubled >= self.comments


class Pair(msgspec.Struct, frozen=True, array_like=True):
    """Two stored threads with `doubled` equal comments."""

    one: str
    other: str
    doubled: int


class Search(msgspec.Struct, frozen=True):
    """The state of a search, and of the merges that follow it.

    The search is in the status number `stage` of `join_plan.COMPARED`, and has compared the
    comments since `before` there. `is_full` tells whether there are more pairs than it keeps. If
    `merger` is set, the likely pairs are merged in their order, and `next` is the first one left.
    """

    site: str
    began: datetime
    stage: int = 0
    before: datetime | None = None
    read: int = 0
    found: tuple[Pair, ...] = ()
    is_full: bool = False
    merger: records.Actor | None = None
    next: int = 0

    @property
    def is_searching(self) -> bool:
        """Return whether comments are left to compare."""
        return self.stage < len(join_plan.COMPARED)


def find(site: records.Site) -> list[DoubledThreads]:
    """Search now, without a job, and return the pairs, those with most equal comments first."""
    search = Search(site.id, datetime.now(UTC))
    while search.is_searching:
        search = _compare(search)
    return pairs(site, search)


def begin(site_id: str, *, now: datetime) -> None:
    """Begin a search, in place of an earlier one."""
    transactions.transaction(lambda: transactions.apply(_writes(Search(site_id, now))))


def merge_all(site_id: str, actor: records.Actor) -> None:
    """Begin to merge the likely pairs of a finished search, if nobody has begun."""

    def body() -> None:
        search = get(site_id)
        if search is not None and not search.is_searching and search.merger is None:
            search = msgspec.structs.replace(search, merger=actor, next=0)
            transactions.apply(_writes(search))

    transactions.transaction(body)


def get(site_id: str) -> Search | None:
    """Return the last search of a site."""
    row = reads.get(event_rows.job_key(f"{_PREFIX}{site_id}"))
    return None if row is None else decoders.json(Search).decode(row.position)


def pairs(site: records.Site, search: Search, most: int | None = None) -> list[DoubledThreads]:
    """Return up to `most` of the pairs that are still two threads."""
    return list(itertools.islice(_pairs(site, search.found), most))


def _pairs(site: records.Site, found: tuple[Pair, ...]) -> Iterator[DoubledThreads]:
    for pair in found:
        stored = list(dict.fromkeys(thread_aliases.stored_ids(site, (pair.one, pair.other))))
        infos = thread_info.get_many([records.ThreadName(site.id, thread) for thread in stored])
        counts = totals.listed_counts(site.id, stored)
        # The larger thread stays. Of two equal ones, the one with the shorter address stays.
        threads = sorted(
            (-count, len(info.shown_id), info.shown_id)
            for info, count in zip(infos, counts, strict=True)
            if info is not None
        )
        if len(threads) == 2:  # noqa: PLR2004 - a pair
            (_, _, thread), (count, _, double) = threads
            yield DoubledThreads(thread, double, pair.doubled, -count)


def finish(steps: int) -> int:
    """Continue the searches and merges of all sites; return how many of `steps` steps ran."""
    left = steps
    where = (("__key__", ">=", _PREFIX), ("__key__", "<", f"{_PREFIX}\U0010ffff"))
    for message in reads.fetch(reads.Query("Job", where, ("__key__",))):
        search = decoders.json(Search).decode(message.properties["position"].string_value)
        while left > 0 and (search.is_searching or search.merger is not None):
            after = _compare(search) if search.is_searching else _merge_next(search)
            if not transactions.transaction(functools.partial(_store, search, after)):
                break
            search, left = after, left - 1
    return steps - left


def _store(search: Search, after: Search) -> bool:
    """Store the next state, and return whether it differs and no other process has stored it."""
    if get(search.site) != search or after == search:
        return False
    transactions.apply(_writes(after))
    return True


def _writes(search: Search) -> ownership.Writes:
    position = msgspec.json.encode(search).decode()
    key = event_rows.job_key(f"{_PREFIX}{search.site}")
    row = event_rows.JobRow(key=key, position=position)
    return ownership.Writes("doubled_threads", put=(row,))


def _compare(search: Search) -> Search:
    """Compare the next comments, and return the state of the search afterwards."""
    older = [("created", "<", search.before)] if search.before else []
    messages = _read(search, older, AT_ONCE)
    if len(messages) < AT_ONCE:
        after = msgspec.structs.replace(search, stage=search.stage + 1, before=None)
    else:
        oldest = conversion.comment_from_message(messages[-1]).created
        last = oldest.replace(microsecond=0)
        messages += _read(search, [("created", "<=", oldest), ("created", ">=", last)], None)
        after = msgspec.structs.replace(search, before=last)
    rows = {message.key.path[-1].name: message for message in messages}
    threads: dict[object, set[str]] = defaultdict(set)
    for row in map(conversion.comment_from_message, rows.values()):
        if row.html:
            threads[join_plan.content(row)].add(row.thread)
    counts = Counter({(pair.one, pair.other): pair.doubled for pair in search.found})
    size, is_full = sum(len(f"{one}{other}".encode()) for one, other in counts), search.is_full
    for first, *others in map(sorted, threads.values()):
        for other in others:
            if (first, other) not in counts:
                size += len(f"{first}{other}".encode())
                if size > MOST_BYTES:
                    is_full = True
                    break
            counts[first, other] += 1
    return msgspec.structs.replace(
        after, read=search.read + len(rows), is_full=is_full,
        found=tuple(Pair(*threads, doubled) for threads, doubled in counts.most_common()),
    )  # fmt: skip


def _read(search: Search, where: list[tuple[str, str, Any]], limit: int | None) -> list[Any]:
    status = join_plan.COMPARED[search.stage].value
    conditions = (("site", "=", search.site), ("status", "=", status), *where)
    order = ("-created", "revision")
    return list(reads.fetch(reads.Query("Comment", conditions, order, limit=limit)))


def _merge_next(search: Search) -> Search:
    """Merge the next pair, unless it has become impossible or a move of the site is unfinished."""
    if search.next >= len(search.found) or search.merger is None:
        return msgspec.structs.replace(search, merger=None)
    with contextlib.suppress(errors.MoveRefused):
        move_journal.check_idle(search.site)
        with contextlib.suppress(errors.MoveRefused, errors.Conflict, errors.NotFound):
            site = site_settings.current(search.site)
            for pair in _pairs(site, (search.found[search.next],)):
                if pair.is_likely:
                    plan = join_plan.of_merge(site, pair.double, pair.thread)
                    now = datetime.now(UTC)
                    thread_moves.run_to_end(thread_joins.begin(site, plan, search.merger, now=now))
        return msgspec.structs.replace(search, next=search.next + 1)
    return search
