"""Any history of calls, against the oracle: the same results and the same status codes.

Owns the steps and what is compared after each. A query that no index serves gets the index that the
refusal recommends, and must then be served.
"""

from __future__ import annotations

import contextlib
import functools
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import grpc
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    initialize,
    invariant,
    multiple,
    precondition,
    rule,
)

from emulator import inprocess, inspection
from tests.oracle import (
    aggregations,
    datastore,
    draws,
    metadata,
    queries,
    results,
    transactions,
    values,
    wire,
)
from tests.oracle.queries import Query
from tests.oracle.results import Gap, Paging
from tests.oracle.transactions import Transaction
from tests.oracle.values import KEY, Key

SLOTS = (0, 1, 2)
MAX_RETRIES = 8
FULL, PROJECTION, KEY_ONLY = 1, 2, 3
AFTER_LIMIT, NO_MORE, AFTER_CURSOR = 2, 3, 4

PAST = 10  # views from here on are so many commits ago
HISTORY = 3_600_000_000  # microseconds

slots = st.sampled_from(SLOTS)
views = st.sampled_from((*10 * (None,), *3 * SLOTS, *range(PAST, PAST + 5)))
Cursor = tuple[Query, bytes, Gap]


@dataclass(frozen=True, slots=True)
class View:
    """How a read sees the data: read options, the state it must see, and its transaction."""

    options: dict[str, Any]
    state: results.State
    transaction: Transaction | None = None
    foretold: str | None = None


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
        with self.engine._storage.write() as writer:
            # The same ids in every replay: by their order Hypothesis draws what comes next.
            writer._connection.execute("UPDATE store SET seed = 1")
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
            for slot in SLOTS:
                self.drop(slot)
            self.compare_everything()
            path = self.engine._storage.path
            report = inspection.check(path)
            assert not report.wrong, report
            assert report.entities == len(self.oracle.state)
            with inprocess.open_engine(path, clock=self.clock) as again:
                self.client = wire.Client(inprocess.Channel(again))
                self.compare_everything()

    @invariant()
    def count(self) -> None:
        """Count the step: a deep run tells how many it took."""
        self.tally["steps"] += 1

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

    def define(self, recommended: str, *, is_in_transaction: bool) -> None:
        """Add the indexes that a refusal recommends, as an operator would."""
        new = [f"- kind{entry}".rstrip() + "\n" for entry in recommended.split("- kind")[1:]]
        new = [entry for entry in new if entry not in self.indexes]
        if not new:
            # A transaction sees the indexes of its snapshot.
            assert is_in_transaction, f"refused in spite of its index: {recommended}"
            return
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
        mutations = self.resolved(mutations)
        expected = self.oracle.status_of(database, mutations, is_transactional=False)
        status, response = self.call("Commit", database, **wire.commit(mutations))
        assert status == expected, (status, expected, response)
        if status == "OK":
            self.apply(mutations, response)

    def resolved(self, mutations: Sequence[datastore.Mutation]) -> list[datastore.Mutation]:
        """Put real versions in the place of drawn ones."""
        found = []
        keys = Counter(each.key for each in mutations)
        for each in mutations:
            stored = self.oracle.version_of(each.key)
            base = {draws.CURRENT: stored, draws.STALE: max(0, stored - 1)}.get(
                each.base_version, each.base_version
            )
            # The version that an earlier mutation of the commit makes is not known yet.
            found.append(replace(each, base_version=base if keys[each.key] == 1 else None))
        return found

    def apply(self, mutations: Sequence[datastore.Mutation], response: Any) -> None:
        told = [wire.told(each) for each in response.mutation_results]
        answers = self.oracle.apply(mutations, told)
        for each, expected in zip(told, answers, strict=True):
            assert each.transformed == tuple(wire.raw(wire.value(value)) for value in expected)

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
        database, drawn = request
        mutations = self.resolved(drawn)
        transaction = self.open.pop(slot)
        allowed = self.outcomes(transaction, database, mutations)
        fields = wire.commit(mutations, transaction.name)
        status, response = self.call("Commit", database, **fields)
        assert status in allowed, (status, allowed, response)
        self.tally[f"transactions {status}"] += 1
        if status == "OK":
            self.apply(mutations, response)
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
        mutations: Sequence[datastore.Mutation],
    ) -> set[str]:
        """Foretell the statuses that a transactional commit may have."""
        if transaction.is_expired(self.clock.now) or database != transaction.database:
            return {"INVALID_ARGUMENT"}
        status = self.oracle.status_of(database, mutations, is_transactional=True)
        if transaction.is_read_only:
            return {"INVALID_ARGUMENT"}
        if transaction.must_abort(self.oracle.state):
            # Whether another refusal comes first is not said.
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
    def reading(self, view: int | None, database: str) -> Iterator[View]:
        """Yield how a read sees the data: as they are, in a transaction, or in the past."""
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
        """Return the view of some commits ago."""
        now = int(self.clock.now * 1_000_000)
        moments = [moment for moment, _ in self.oracle.past if moment <= now]
        moment = moments[-1 - steps] if steps < len(moments) else now
        foretold = "INVALID_ARGUMENT" if now - moment > HISTORY else None
        self.tally["past"] += 1
        return View(
            {"read_time": wire.timestamp(moment)}, self.oracle.at(moment), foretold=foretold
        )

    @rule(view=views, request=draws.requests(draws.keys, most=4))
    def lookup(self, view: int | None, request: tuple[str, tuple[Key, ...]]) -> None:
        database, keys = request
        with self.reading(view, database) as seen:
            status, response = self.call(
                "Lookup", database, keys=[*map(wire.key, keys)], read_options=seen.options
            )
        if seen.foretold or any(key.database != database for key in keys):
            assert status == "INVALID_ARGUMENT", response
            return
        assert status == "OK", response
        if seen.transaction is not None:
            seen.transaction.reads.append(transactions.read_of_keys(keys))
        self.compare_lookup(keys, seen.state, response)

    def compare_lookup(self, keys: tuple[Key, ...], state: results.State, response: Any) -> None:
        query = Query(None)
        found = {wire.key_from(each.entity.key): each for each in response.found}
        missing = {wire.key_from(each.entity.key): each for each in response.missing}
        assert len(found) == len(response.found), "a key is found once"
        assert found.keys() == {key for key in keys if key in state}
        assert missing.keys() == {key for key in keys if key not in state}
        assert not response.deferred
        for key, each in found.items():
            assert wire.result_from(query, each) == wire.result(
                query, results.Result((), state[key])
            )
        seen = max((stored.version for stored in state.values()), default=0)
        for each in missing.values():
            assert each.version >= seen, "a missing entity has the snapshot's version"

    @rule(
        target=cursors,
        query=draws.all_queries(),
        view=views,
        offset=draws.offsets,
        limit=draws.limits,
    )
    def query(self, query: Query, view: int | None, offset: int, limit: int | None) -> Any:
        if queries.has_open_order(query):
            offset, limit = 0, None
        return self.ask(query, Paging(offset=offset, limit=limit), view)

    @rule(target=cursors, start=cursors, view=views, offset=draws.offsets, limit=draws.limits)
    def resume(self, start: Cursor, view: int | None, offset: int, limit: int | None) -> Any:
        query, cursor, gap = start
        return self.ask(query, Paging(gap, None, offset, limit), view, start=cursor)

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
        view: int | None,
        *,
        start: bytes = b"",
        end: bytes = b"",
    ) -> Any:
        """Run a query, compare its batch, and return the cursors of its results."""
        with self.reading(view, query.database) as seen:
            response = self.ask_as(query, paging, seen, start=start, end=end)
        if response is None:
            return multiple()
        if seen.transaction is not None:
            self.note(seen.transaction, query, transactions.read_of_query(query, paging))
        self.tally["query results"] += len(response.batch.entity_results)
        return self.compare_batch(query, paging, seen.state, response.batch)

    def ask_as(
        self, query: Query, paging: Paging, seen: View, *, start: bytes = b"", end: bytes = b""
    ) -> Any:
        """Return the response of a query, None if it is refused as it must be."""
        fields = self.request(query, paging, start=start, end=end)
        complaints = [seen.foretold] if seen.foretold else queries.complaints(query)
        call = functools.partial(
            self.call, "RunQuery", query.database, **fields, read_options=seen.options
        )
        return self.served(
            call,
            query,
            complaints,
            is_unserved=queries.is_unserved(query),
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
        """Return the response of a read, None if it is refused as it must be."""
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
        raise AssertionError("indexes were recommended without end")

    def compare_batch(self, query: Query, paging: Paging, state: results.State, batch: Any) -> Any:
        state = metadata.entities(query, state)
        skipped, expected = results.page(query, state, paging)
        found = [wire.result_from(query, each) for each in batch.entity_results]
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

    @staticmethod
    def note(transaction: Transaction, query: Query, read: transactions.Read) -> None:
        """Note a read. Changes of what metadata tell do not conflict with a read of them."""
        if query.kind not in metadata.KINDS:
            transaction.reads.append(read)

    @rule(start=cursors, limit=draws.limits)
    def turn_round(self, start: Cursor, limit: int | None) -> None:
        """Go back from a cursor: the reversed query may take it if the key is its last order."""
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
        query=draws.wide_queries(),
        limit=draws.limits,
        changed=draws.mutations(""),
        turn=st.sampled_from(("anything", "a result", "a result", "a phantom", "a phantom")),
        place=st.integers(0, 3),
        own=draws.mutations(""),
        reads_number=st.booleans(),
        again=st.sampled_from(("", "in the transaction", "in the past")),
    )
    def race(
        self,
        query: Query,
        limit: int | None,
        changed: datastore.Mutation,
        turn: str,
        place: int,
        own: datastore.Mutation,
        *,
        reads_number: bool,
        again: str,
    ) -> None:
        """Read in a transaction, change something outside, often a result, and commit."""
        self.begin(0, is_read_only=False, database="")
        if reads_number:
            self.aggregate(query, [aggregations.Aggregation("count")], 0, 0, limit)
        elif not queries.has_open_order(query):
            self.ask(query, Paging(limit=limit), 0)
        found = [] if queries.complaints(query) else results.run(query, self.oracle.state)
        if found and turn != "anything":
            changed = self.aimed(changed, found[place % len(found)].stored, turn)
        self.commit_to("", [changed])
        if again and not queries.has_open_order(query):
            self.ask(query, Paging(limit=limit), 0 if again == "in the transaction" else PAST + 1)
        self.commit_transaction(0, ("", (own,)))

    @staticmethod
    def aimed(changed: datastore.Mutation, result: results.Stored, turn: str) -> datastore.Mutation:
        """Let a mutation hit a result of a query, or make another one like it."""
        if turn == "a result":
            operation = datastore.DELETE if changed.operation == datastore.DELETE else "upsert"
            return replace(changed, operation=operation, key=result.key)
        key = replace(changed.key, namespace=result.key.namespace)
        return datastore.Mutation(datastore.UPSERT, key, result.properties)

    @rule(slot=slots, query=draws.all_queries(), is_read_only=st.booleans())
    def begin_later(self, slot: int, query: Query, *, is_read_only: bool) -> None:
        """Begin a transaction with its first read."""
        if queries.has_open_order(query):
            return
        self.drop(slot)
        mode = {"read_only": {}} if is_read_only else {"read_write": {}}
        response = self.ask_as(query, Paging(), View({"new_transaction": mode}, self.oracle.state))
        if response is not None:
            name = response.transaction
            self.begun(slot, name, query.database, is_read_only=is_read_only)
            self.open[slot].snapshot = self.oracle.snapshot()
            self.note(self.open[slot], query, transactions.read_of_query(query, Paging()))
            self.compare_batch(query, Paging(), self.oracle.state, response.batch)

    @rule(
        query=draws.all_queries(),
        numbers=st.lists(draws.aggregation, min_size=1, max_size=3),
        view=views,
        offset=draws.offsets,
        limit=draws.limits,
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
            "aggregations": [wire.aggregation(each) for each in numbers],
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
            assert wire.same_number(found, wanted), (query, numbers, found, wanted)

    # Everything

    def compare_everything(self) -> None:
        """Compare all entities and all metadata of all places."""
        for database, namespace in sorted(set(draws.PLACES)):
            for kind in (None, *metadata.KINDS):
                self.ask(Query(kind, database=database, namespace=namespace), Paging(), None)
