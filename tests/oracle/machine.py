"""Any history of calls, against the oracle: the same results and the same status codes.

Owns the steps and what is compared after each. A query that no index serves gets the index that the
refusal recommends, and must then be served.
"""

from __future__ import annotations

import contextlib
import functools
import tempfile
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import grpc
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    initialize,
    multiple,
    precondition,
    rule,
)

from emulator import inprocess
from tests.oracle import (
    aggregations,
    datastore,
    draws,
    queries,
    results,
    transactions,
    values,
    wire,
)
from tests.oracle.queries import Query
from tests.oracle.results import Gap, Paging
from tests.oracle.transactions import Transaction
from tests.oracle.values import Key

SLOTS = (0, 1, 2)
MAX_RETRIES = 8
FULL, PROJECTION, KEY_ONLY = 1, 2, 3
AFTER_LIMIT, NO_MORE, AFTER_CURSOR = 2, 3, 4

slots = st.sampled_from(SLOTS)
maybe_slots = st.sampled_from((None, None, None, None, *SLOTS))
Cursor = tuple[Query, bytes, Gap]


class Clock:
    """A clock that only the machine moves."""

    def __init__(self) -> None:
        self.now = 1_700_000_000.0

    def __call__(self) -> float:
        return self.now


class Machine(RuleBasedStateMachine):
    """One engine and the oracle, side by side."""

    tally: Counter[str] = Counter()  # noqa: RUF012 - shared on purpose: what all runs did
    cursors = Bundle("cursors")

    def __init__(self) -> None:
        super().__init__()
        self.tally["examples"] += 1
        self.clock = Clock()
        self.stack = contextlib.ExitStack()
        folder = self.stack.enter_context(tempfile.TemporaryDirectory(prefix="oracle-"))
        self.index_yaml = Path(folder) / "index.yaml"
        self.index_yaml.write_text("indexes:\n")
        self.engine = self.stack.enter_context(
            inprocess.open_engine(None, indexes=self.index_yaml, clock=self.clock)
        )
        self.client = wire.Client(self.stack.enter_context(self.open_door(self.engine)))
        self.indexes: list[str] = []
        self.oracle = datastore.Datastore()
        self.open: dict[int, Transaction] = {}
        self.ended: list[tuple[str, bytes]] = []

    @staticmethod
    def open_door(engine: inprocess.Engine) -> contextlib.AbstractContextManager[grpc.Channel]:
        """Return the door to the engine; a machine for the other door has another one."""
        return contextlib.nullcontext(inprocess.Channel(engine))

    def teardown(self) -> None:
        with self.stack:
            self.compare_everything()

    # Calls

    def call(self, method: str, database: str, /, **fields: Any) -> tuple[str, Any]:
        """Call and return the status and the response, or the error's details."""
        self.tally["calls"] += 1
        try:
            return "OK", self.client.call(method, database, **fields)
        except grpc.RpcError as error:
            return error.code().name, error.details()

    def send(self, method: str, database: str, /, **fields: Any) -> Any:
        """Call what must be served."""
        status, response = self.call(method, database, **fields)
        assert status == "OK", response
        return response

    def define(self, recommended: str) -> None:
        """Add the indexes that a refusal recommends, as an operator would."""
        new = [f"- kind{entry}".rstrip() + "\n" for entry in recommended.split("- kind")[1:]]
        assert set(new) - set(self.indexes), f"refused in spite of its index: {recommended}"
        self.indexes += new
        self.index_yaml.write_text("indexes:\n" + "".join(self.indexes))
        path = self.engine._storage.path
        inprocess.open_engine(path, indexes=self.index_yaml, clock=self.clock).close()

    # Writes

    @initialize(entities=draws.populations)
    def populate(self, entities: dict[Key, values.Properties]) -> None:
        mutations = [datastore.Mutation("upsert", *each) for each in entities.items()]
        self.commit_to("", mutations)

    @rule(request=draws.requests(draws.mutations, most=3))
    def commit(self, request: tuple[str, tuple[datastore.Mutation, ...]]) -> None:
        self.commit_to(*request)

    @rule(mutation=draws.mutations(""))
    def change(self, mutation: datastore.Mutation) -> None:
        self.commit_to("", [mutation])

    def commit_to(self, database: str, mutations: Sequence[datastore.Mutation]) -> None:
        expected = self.oracle.status_of(database, mutations, is_transactional=False)
        status, response = self.call("Commit", database, **wire.commit(mutations))
        assert status == expected, response
        if status == "OK":
            self.oracle.apply(mutations, [wire.told(each) for each in response.mutation_results])

    @rule(request=draws.requests(draws.incomplete_keys, most=3))
    def allocate(self, request: tuple[str, tuple[Key, ...]]) -> None:
        database, keys = request
        status, response = self.call("AllocateIds", database, keys=[*map(wire.key, keys)])
        if any(key.database != database for key in keys):
            assert status == "INVALID_ARGUMENT"
            return
        assert status == "OK", response
        for asked, given in zip(keys, response.keys, strict=True):
            self.oracle.take(asked, wire.key_from(given))

    @rule(seconds=st.sampled_from((0.5, 0.5, 0.5, 7.3, 50.0, 61.7, 300.1)))
    def wait(self, seconds: float) -> None:
        self.clock.now += seconds

    # Transactions

    @rule(
        slot=slots,
        is_read_only=st.sampled_from((False, False, False, True)),
        database=draws.databases,
    )
    def begin(self, slot: int, is_read_only: bool, database: str) -> None:  # noqa: FBT001
        self.drop(slot)
        options = {"read_only": {}} if is_read_only else {"read_write": {}}
        response = self.send("BeginTransaction", database, transaction_options=options)
        self.begun(slot, response.transaction, database, is_read_only=is_read_only)

    def begun(self, slot: int, name: bytes, database: str, *, is_read_only: bool) -> None:
        now = self.clock.now
        self.open[slot] = Transaction(name, is_read_only, database, began=now, used=now)

    def drop(self, slot: int) -> None:
        """Roll back what is open in a slot."""
        transaction = self.open.pop(slot, None)
        if transaction is not None:
            expected = "INVALID_ARGUMENT" if transaction.is_expired(self.clock.now) else "OK"
            status, response = self.call(
                "Rollback", transaction.database, transaction=transaction.name
            )
            assert status == expected, response
            self.ended.append((transaction.database, transaction.name))

    @rule(slot=slots)
    @precondition(lambda self: self.open)
    def roll_back(self, slot: int) -> None:
        self.drop(slot)

    @rule(slot=slots, request=draws.requests(draws.mutations, most=3))
    @precondition(lambda self: self.open)
    def commit_transaction(
        self, slot: int, request: tuple[str, tuple[datastore.Mutation, ...]]
    ) -> None:
        if slot not in self.open:
            return
        database, mutations = request
        transaction = self.open.pop(slot)
        allowed = self.outcomes(transaction, database, mutations)
        fields = wire.commit(mutations, transaction.name)
        status, response = self.call("Commit", database, **fields)
        assert status in allowed, (status, allowed, response)
        self.tally[f"transactions {status}"] += 1
        if status == "OK":
            self.oracle.apply(mutations, [wire.told(each) for each in response.mutation_results])
            self.ended.append((transaction.database, transaction.name))
            return
        rolled_back, _ = self.call("Rollback", transaction.database, transaction=transaction.name)
        if status == "ABORTED":
            assert rolled_back == "OK", "an aborted transaction may be rolled back"
        else:
            assert rolled_back in ("OK", "INVALID_ARGUMENT")

    def outcomes(
        self,
        transaction: Transaction,
        database: str,
        mutations: tuple[datastore.Mutation, ...],
    ) -> set[str]:
        """Foretell the statuses that a transactional commit may have."""
        if transaction.is_expired(self.clock.now) or database != transaction.database:
            return {"INVALID_ARGUMENT"}
        status = self.oracle.status_of(database, mutations, is_transactional=True)
        if transaction.is_read_only or status == "INVALID_ARGUMENT":
            return {"INVALID_ARGUMENT"}
        if transaction.must_abort(self.oracle.state):
            return {"ABORTED"} if status == "OK" else {"ABORTED", status}
        return {status, "ABORTED"} if transaction.may_abort(self.oracle.state) else {status}

    @rule(slot=slots)
    @precondition(lambda self: self.open)
    def commit_nothing(self, slot: int) -> None:
        transaction = self.open.pop(slot, None)
        if transaction is None:
            return
        status, response = self.call(
            "Commit", transaction.database, **wire.commit((), transaction.name)
        )
        is_expired = transaction.is_expired(self.clock.now)
        assert status == ("INVALID_ARGUMENT" if is_expired else "OK"), response
        self.ended.append((transaction.database, transaction.name))

    @rule(mutation=draws.mutations(""))
    @precondition(lambda self: self.ended)
    def use_ended_transaction(self, mutation: datastore.Mutation) -> None:
        database, name = self.ended[-1]
        for method, fields in (
            ("Commit", wire.commit([mutation], name)),
            ("Rollback", {"transaction": name}),
            ("Lookup", {"keys": [], "read_options": {"transaction": name}}),
        ):
            assert self.call(method, database, **fields)[0] == "INVALID_ARGUMENT"

    # Reads

    @contextlib.contextmanager
    def reading(self, slot: int | None, database: str):
        """Yield read options, the state that must be seen, and the status if it is foretold."""
        transaction = None if slot is None else self.open.get(slot)
        if transaction is None:
            yield {}, self.oracle.state, None, None
            return
        options = {"transaction": transaction.name}
        if transaction.is_expired(self.clock.now) or transaction.database != database:
            yield options, {}, None, "INVALID_ARGUMENT"
            return
        transaction.used = self.clock.now
        if transaction.snapshot is None:
            transaction.snapshot = self.oracle.snapshot()
        yield options, transaction.snapshot, transaction, None

    @rule(slot=maybe_slots, request=draws.requests(draws.keys, most=4))
    def lookup(self, slot: int | None, request: tuple[str, tuple[Key, ...]]) -> None:
        database, keys = request
        with self.reading(slot, database) as (options, state, transaction, foretold):
            status, response = self.call(
                "Lookup", database, keys=[*map(wire.key, keys)], read_options=options
            )
        if foretold or any(key.database != database for key in keys):
            assert status == "INVALID_ARGUMENT", response
            return
        assert status == "OK", response
        if transaction is not None:
            transaction.reads.append(transactions.read_of_keys(keys))
        self.compare_lookup(keys, state, response)

    def compare_lookup(self, keys: tuple[Key, ...], state: results.State, response: Any) -> None:
        query = Query(None)
        found = {wire.key_from(each.entity.key): each for each in response.found}
        missing = {wire.key_from(each.entity.key): each for each in response.missing}
        assert len(found) == len(response.found), "a key is found once"
        assert found.keys() == {key for key in keys if key in state}
        assert missing.keys() == {key for key in keys if key not in state}
        assert not response.deferred
        for key, each in found.items():
            assert wire.result_from(each) == wire.result(query, results.Result((), state[key]))
        seen = max((stored.version for stored in state.values()), default=0)
        for each in missing.values():
            assert each.version >= seen, "a missing entity has the snapshot's version"

    @rule(
        target=cursors,
        query=draws.all_queries(),
        slot=maybe_slots,
        offset=draws.offsets,
        limit=draws.limits,
    )
    def query(self, query: Query, slot: int | None, offset: int, limit: int | None) -> Any:
        if queries.has_open_order(query):
            offset, limit = 0, None
        return self.ask(query, Paging(offset=offset, limit=limit), slot)

    @rule(target=cursors, start=cursors, slot=maybe_slots, offset=draws.offsets, limit=draws.limits)
    def resume(self, start: Cursor, slot: int | None, offset: int, limit: int | None) -> Any:
        query, cursor, gap = start
        return self.ask(query, Paging(gap, None, offset, limit), slot, start=cursor)

    @rule(start=cursors, end=cursors)
    def read_between(self, start: Cursor, end: Cursor) -> None:
        query, cursor, gap = start
        other, last, until = end
        if query is other:
            self.ask(query, Paging(gap, until), None, start=cursor, end=last)
        elif wire.raw(wire.query(query)) != wire.raw(wire.query(other)):
            fields = self.request(other, Paging(), start=cursor)
            status, response = self.call("RunQuery", other.database, **fields)
            assert status == "INVALID_ARGUMENT", response

    @rule(query=draws.all_queries(), size=st.integers(1, 3))
    def page_through(self, query: Query, size: int) -> None:
        """Read pages to the end: together they are the whole answer."""
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
        message = wire.query(query)
        message.offset = paging.offset
        message.start_cursor = start
        message.end_cursor = end
        if paging.limit is not None:
            message.limit.value = paging.limit
        return {"query": message, "partition_id": wire.partition(query)}

    def ask(
        self,
        query: Query,
        paging: Paging,
        slot: int | None,
        *,
        start: bytes = b"",
        end: bytes = b"",
    ) -> Any:
        """Run a query, compare its batch, and return the cursors of its results."""
        fields = self.request(query, paging, start=start, end=end)
        with self.reading(slot, query.database) as (options, state, transaction, foretold):
            response = self.served(
                functools.partial(
                    self.call, "RunQuery", query.database, **fields, read_options=options
                ),
                query,
                [foretold] if foretold else queries.complaints(query),
                may_retry=transaction is None,
            )
        if response is None:
            return multiple()
        if transaction is not None:
            transaction.reads.append(transactions.read_of_query(query, paging))
        self.tally["query results"] += len(response.batch.entity_results)
        return self.compare_batch(query, paging, state, response.batch)

    def served(
        self,
        call: Callable[[], tuple[str, Any]],
        query: Query,
        complaints: list[str],
        *,
        may_retry: bool,
    ) -> Any:
        """Return the response of a read, None if it is refused as it must be."""
        needs_index = queries.needs_index(query)
        has_none = f"- kind: {query.kind}\n" not in "".join(self.indexes)
        for attempt in range(MAX_RETRIES):
            status, response = call()
            if status == "UNIMPLEMENTED":  # what other work is to bring
                self.tally[response] += 1
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
            self.define(response)
            if not may_retry:
                return None
        raise AssertionError("indexes were recommended without end")

    def compare_batch(self, query: Query, paging: Paging, state: results.State, batch: Any) -> Any:
        skipped, expected = results.page(results.run(query, state), paging)
        found = [wire.result_from(each) for each in batch.entity_results]
        wanted = [wire.result(query, each) for each in expected]
        if queries.has_open_order(query):
            assert sorted(map(repr, found)) == sorted(map(repr, wanted)), (query, found, wanted)
            return multiple()
        assert found == wanted, (query, [*map(wire.shown, batch.entity_results)], expected)
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

    @rule(
        query=draws.all_queries(),
        numbers=st.lists(draws.aggregation, min_size=1, max_size=3),
        slot=maybe_slots,
        offset=draws.offsets,
        limit=draws.limits,
    )
    def aggregate(
        self,
        query: Query,
        numbers: list[aggregations.Aggregation],
        slot: int | None,
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
            "aggregations": [wire.aggregation(each) for each in numbers],
        }
        with self.reading(slot, query.database) as (options, state, transaction, foretold):
            response = self.served(
                functools.partial(
                    self.call, "RunAggregationQuery", query.database, **fields, read_options=options
                ),
                aggregations.widened(query, names),
                [foretold] if foretold else complaints,
                may_retry=transaction is None,
            )
        if response is None:
            return
        if transaction is not None:
            answer = functools.partial(aggregations.answers, query, numbers, paging=paging)
            transaction.reads.append(transactions.read_of_number(query, answer))
        if queries.has_open_order(aggregations.widened(query, names)) and paging != Paging():
            return
        (result,) = response.batch.aggregation_results
        for place, expected in enumerate(aggregations.answers(query, numbers, state, paging), 1):
            found = result.aggregate_properties[f"property_{place}"]
            assert wire.same_number(found, expected), (found, expected)

    # Everything

    def compare_everything(self) -> None:
        """Compare all entities of all places, and the index rows with those they should be."""
        for database, namespace in sorted(set(draws.PLACES)):
            query = Query(None, database=database, namespace=namespace)
            self.ask(query, Paging(), None)
