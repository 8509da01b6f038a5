"""Reading steps: lookups, queries, pages and aggregations on present, snapshot or past data.

The steps compare every response completely, and later steps begin at earlier steps' cursors.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import Bundle, multiple, rule

from emulator.tests.oracle import (
    aggregations,
    messages,
    metadata,
    queries,
    query_results,
    strategies,
    transactions,
    values,
)
from emulator.tests.oracle.comparison import SLOTS
from emulator.tests.oracle.queries import Query
from emulator.tests.oracle.query_results import Gap, Paging
from emulator.tests.oracle.transactions import Transaction
from emulator.tests.oracle.values import KEY, Key
from emulator.tests.oracle.write_steps import Writers

MAX_RETRIES = 8
FULL, PROJECTION, KEY_ONLY = 1, 2, 3
AFTER_LIMIT, NO_MORE, AFTER_CURSOR = 2, 3, 4

PAST = 10  # View numbers from 10 on count commits backwards.
HISTORY = 3_600_000_000  # Microseconds.

views = st.sampled_from((*10 * (None,), *3 * SLOTS, *range(PAST, PAST + 5)))
Cursor = tuple[Query, bytes, Gap]


@dataclass(frozen=True, slots=True)
class View:
    """A read's view of the data: read options, expected state, and transaction."""

    options: dict[str, Any]
    state: query_results.State
    transaction: Transaction | None = None
    foretold: str | None = None


class Readers(Writers):
    """Steps that read and compare each response with the oracle's brute-force result."""

    cursors = Bundle("cursors")

    @contextlib.contextmanager
    def reading(self, view: int | None, database: str) -> Iterator[View]:
        """Yield a read's view: the latest state, a transaction's snapshot, or a past state."""
        transaction = None if view is None else self.open.get(view)
        if view is not None and view >= PAST:
            yield self.past(view - PAST)
        elif transaction is None:
            yield View({}, self.oracle.state)
        else:
            options = {"transaction": transaction.name}
            if transaction.is_expired(self.clock.now) or transaction.database != database:
                yield View(options, {}, foretold="INVALID_ARGUMENT")
                return
            transaction.used = self.clock.now
            if transaction.snapshot is None:
                transaction.snapshot = self.oracle.snapshot()
            yield View(options, transaction.snapshot, transaction)

    def past(self, steps: int) -> View:
        """Return the view before the last `steps` commits."""
        now = int(self.clock.now * 1_000_000)
        moments = [moment for moment, _ in self.oracle.past if moment <= now]
        moment = moments[-1 - steps] if steps < len(moments) else now
        foretold = "INVALID_ARGUMENT" if now - moment > HISTORY else None
        self.tally["past"] += 1
        return View(
            {"read_time": messages.timestamp(moment)}, self.oracle.at(moment), foretold=foretold
        )

    @rule(view=views, request=strategies.requests(strategies.keys, most=4))
    def lookup(self, view: int | None, request: tuple[str, tuple[Key, ...]]) -> None:
        database, keys = request
        with self.reading(view, database) as seen:
            status, response = self.call(
                "Lookup", database, keys=[*map(messages.key, keys)], read_options=seen.options
            )
        if seen.foretold or any(key.database != database for key in keys):
            assert status == "INVALID_ARGUMENT", response
            return
        assert status == "OK", response
        if seen.transaction is not None:
            seen.transaction.reads.append(transactions.read_of_keys(keys))
        self.assert_same_lookup(keys, seen.state, response)

    def assert_same_lookup(
        self, keys: tuple[Key, ...], state: query_results.State, response: Any
    ) -> None:
        query = Query(None)
        found = {messages.key_from(each.entity.key): each for each in response.found}
        missing = {messages.key_from(each.entity.key): each for each in response.missing}
        assert len(found) == len(response.found), "a key is found once"
        assert found.keys() == {key for key in keys if key in state}
        assert missing.keys() == {key for key in keys if key not in state}
        assert not response.deferred
        for key, each in found.items():
            assert messages.result_from(query, each) == messages.result(
                query, query_results.Result((), state[key])
            )
        seen = max((stored.version for stored in state.values()), default=0)
        for each in missing.values():
            assert each.version >= seen, "a missing entity has the snapshot's version"

    @rule(
        target=cursors,
        query=strategies.all_queries(),
        view=views,
        offset=strategies.offsets,
        limit=strategies.limits,
    )
    def query(self, query: Query, view: int | None, offset: int, limit: int | None) -> Any:
        if queries.has_open_order(query):
            offset, limit = 0, None
        return self.ask(query, Paging(offset=offset, limit=limit), view)

    @rule(
        target=cursors,
        start=cursors,
        view=views,
        offset=strategies.offsets,
        limit=strategies.limits,
    )
    def resume(self, start: Cursor, view: int | None, offset: int, limit: int | None) -> Any:
        query, cursor, gap = start
        return self.ask(query, Paging(gap, None, offset, limit), view, start=cursor)

    @rule(start=cursors, end=cursors)
    def read_between(self, start: Cursor, end: Cursor) -> None:
        query, cursor, gap = start
        other, last, until = end
        if query is other:
            self.ask(query, Paging(gap, until), None, start=cursor, end=last)
        elif messages.raw(messages.query(query)) != messages.raw(messages.query(other)):
            fields = self.request(other, Paging(), start=cursor)
            status, response = self.call("RunQuery", other.database, **fields)
            assert status == "INVALID_ARGUMENT", response

    @rule(query=strategies.all_queries(), size=st.integers(1, 3))
    def page_through(self, query: Query, size: int) -> None:
        """Read pages to the end; together, they must be the complete result."""
        gap, cursor = None, b""
        while not queries.has_open_order(query):
            made = self.ask(query, Paging(gap, limit=size), None, start=cursor)
            found = made.values
            if len(found) < size:
                return
            _, cursor, gap = found[-1]

    def request(
        self, query: Query, paging: Paging, *, start: bytes = b"", end: bytes = b""
    ) -> dict[str, Any]:
        message = messages.query(query)
        message.offset = paging.offset
        message.start_cursor = start
        message.end_cursor = end
        if paging.limit is not None:
            message.limit.value = paging.limit
        return {"query": message, "partition_id": messages.partition(query)}

    def ask(
        self,
        query: Query,
        paging: Paging,
        view: int | None,
        *,
        start: bytes = b"",
        end: bytes = b"",
    ) -> Any:
        """Run a query, compare its batch, and return its results' cursors."""
        with self.reading(view, query.database) as seen:
            response = self.ask_as(query, paging, seen, start=start, end=end)
        if response is None:
            return multiple()
        if seen.transaction is not None:
            self.note(seen.transaction, query, transactions.read_of_query(query, paging))
        self.tally["query results"] += len(response.batch.entity_results)
        return self.assert_same_batch(query, paging, seen.state, response.batch)

    def ask_as(
        self, query: Query, paging: Paging, seen: View, *, start: bytes = b"", end: bytes = b""
    ) -> Any:
        """Return the response to a query, or None if the service refuses it as expected."""
        fields = self.request(query, paging, start=start, end=end)
        complaints = [seen.foretold] if seen.foretold else queries.complaints(query)
        call = functools.partial(
            self.call, "RunQuery", query.database, **fields, read_options=seen.options
        )
        return self.served(
            call,
            query,
            complaints,
            is_unserved=False,
            may_retry=seen.transaction is None,
        )

    def served(
        self,
        call: Callable[[], tuple[str, Any]],
        query: Query,
        complaints: list[str],
        *,
        is_unserved: bool,
        may_retry: bool,
    ) -> Any:
        """Return the response to a read, or None if the service refuses it as expected."""
        needs_index = queries.needs_index(query)
        has_none = f"- kind: {query.kind}\n" not in "".join(self.indexes)
        for attempt in range(MAX_RETRIES):
            status, response = call()
            if status == "UNIMPLEMENTED":
                assert is_unserved, response
                self.tally["unserved"] += 1
                return None
            if complaints:
                assert status == "INVALID_ARGUMENT", (status, complaints, response)
                self.tally["refused"] += 1
                return None
            if status != "FAILED_PRECONDITION":
                assert status == "OK", response
                assert not (attempt == 0 and has_none and needs_index), "it needs an index"
                return response
            assert needs_index is not False, response
            self.tally["indexes"] += 1
            self.define(response, is_in_transaction=not may_retry)
            if not may_retry:
                return None
        raise AssertionError("indexes were recommended endlessly")

    def assert_same_batch(
        self, query: Query, paging: Paging, state: query_results.State, batch: Any
    ) -> Any:
        state = metadata.entities(query, state)
        skipped, expected = query_results.page(query, state, paging)
        found = [messages.result_from(query, each) for each in batch.entity_results]
        wanted = [messages.result(query, each) for each in expected]
        if queries.has_open_order(query):
            assert sorted(map(repr, found)) == sorted(map(repr, wanted)), (query, found, wanted)
            return multiple()
        assert found == wanted, (query, [*map(messages.shown, batch.entity_results)], expected)
        shape = KEY_ONLY if query.is_keys_only else PROJECTION if query.projection else FULL
        assert batch.entity_result_type == shape
        assert batch.skipped_results == len(skipped)
        assert bool(batch.skipped_cursor) == bool(skipped)
        more = (
            AFTER_LIMIT
            if len(expected) == paging.limit
            else AFTER_CURSOR
            if paging.end
            else NO_MORE
        )
        assert batch.more_results == more
        cursors = [each.cursor for each in batch.entity_results]
        assert batch.end_cursor
        if cursors:
            assert batch.end_cursor == cursors[-1]
        return multiple(
            *(
                (query, cursor, Gap(each.position))
                for cursor, each in zip(cursors, expected, strict=True)
            )
        )

    @staticmethod
    def note(transaction: Transaction, query: Query, read: transactions.Read) -> None:
        """Record a read, unless it reads metadata: such reads cause no conflicts."""
        if query.kind not in metadata.KINDS:
            transaction.reads.append(read)

    @rule(start=cursors, limit=strategies.limits)
    def turn_round(self, start: Cursor, limit: int | None) -> None:
        """Page backwards from a cursor if the query's last order is the key."""
        query, cursor, gap = start
        is_total = query.orders and query.orders[-1].name == KEY
        if is_total and not query.distinct:
            position = tuple(
                each.rank if isinstance(each, values.Down) else values.Down(each)
                for each in gap.position
            )
            back = Gap(position, is_before=not gap.is_before)
            self.ask(query.reversed(), Paging(back, limit=limit), None, start=cursor)
            self.ask(query.reversed(), Paging(None, back, limit=limit), None, end=cursor)

    @rule(
        query=strategies.all_queries(),
        numbers=st.lists(strategies.aggregation, min_size=1, max_size=3),
        view=views,
        offset=strategies.offsets,
        limit=strategies.limits,
    )
    def aggregate(
        self,
        query: Query,
        numbers: list[aggregations.Aggregation],
        view: int | None,
        offset: int,
        limit: int | None,
    ) -> None:
        names = tuple(each.name for each in numbers if each.name)
        complaints = [*queries.complaints(query), *aggregations.complaints(query, numbers)]
        paging = Paging(offset=offset, limit=limit)
        fields = self.request(query, paging)
        nested = fields.pop("query")
        fields["aggregation_query"] = {
            "nested_query": nested,
            "aggregations": [messages.aggregation(each) for each in numbers],
        }
        with self.reading(view, query.database) as seen:
            response = self.served(
                functools.partial(
                    self.call,
                    "RunAggregationQuery",
                    query.database,
                    **fields,
                    read_options=seen.options,
                ),
                aggregations.widened(query, names),
                [seen.foretold] if seen.foretold else complaints,
                is_unserved=aggregations.is_unserved(query, numbers),
                may_retry=seen.transaction is None,
            )
        if response is None:
            return
        if seen.transaction is not None:
            answer = functools.partial(aggregations.answers, query, numbers, paging=paging)
            self.note(seen.transaction, query, transactions.read_of_number(query, answer))
        if queries.has_open_order(aggregations.widened(query, names)) and paging != Paging():
            return
        (result,) = response.batch.aggregation_results
        state = metadata.entities(query, seen.state)
        expected = aggregations.answers(query, numbers, state, paging)
        for place, wanted in enumerate(expected, 1):
            found = result.aggregate_properties[f"property_{place}"]
            assert messages.same_number(found, wanted), (query, numbers, found, wanted)
