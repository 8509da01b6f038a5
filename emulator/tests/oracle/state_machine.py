"""Run random histories of calls; results and status codes must match the oracle's.

This module owns the steps that both read and write, and the final comparison. The other steps are
in `read_steps` and `write_steps`.
"""

from __future__ import annotations

from dataclasses import replace

from hypothesis import strategies as st
from hypothesis.stateful import rule

from datastore_emulator import inprocess
from datastore_emulator.storage import inspection
from emulator.tests.oracle import (
    aggregations,
    datastore,
    messages,
    metadata,
    queries,
    query_results,
    strategies,
    transactions,
)
from emulator.tests.oracle.comparison import SLOTS
from emulator.tests.oracle.queries import Query
from emulator.tests.oracle.query_results import Paging
from emulator.tests.oracle.read_steps import PAST, Readers, View
from emulator.tests.oracle.write_steps import slots


class Machine(Readers):
    """A state machine with all steps."""

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
                self.client = messages.Client(inprocess.Channel(again))
                self.compare_everything()

    @rule(
        query=strategies.wide_queries(),
        limit=strategies.limits,
        changed=strategies.mutations(""),
        turn=st.sampled_from(("anything", "a result", "a result", "a phantom", "a phantom")),
        place=st.integers(0, 3),
        own=strategies.mutations(""),
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
        """Read in a transaction, change an entity (often a result) outside it, and commit."""
        self.begin(0, is_read_only=False, database="")
        if reads_number:
            self.aggregate(query, [aggregations.Aggregation("count")], 0, 0, limit)
        elif not queries.has_open_order(query):
            self.ask(query, Paging(limit=limit), 0)
        found = [] if queries.complaints(query) else query_results.run(query, self.oracle.state)
        if found and turn != "anything":
            changed = self.aimed(changed, found[place % len(found)].stored, turn)
        self.commit_to("", [changed])
        if again and not queries.has_open_order(query):
            self.ask(query, Paging(limit=limit), 0 if again == "in the transaction" else PAST + 1)
        self.commit_transaction(0, ("", (own,)))

    @staticmethod
    def aimed(
        changed: datastore.Mutation, result: query_results.Stored, turn: str
    ) -> datastore.Mutation:
        """Make a mutation change one of a query's results or create a similar entity."""
        if turn == "a result":
            operation = datastore.DELETE if changed.operation == datastore.DELETE else "upsert"
            return replace(changed, operation=operation, key=result.key)
        key = replace(changed.key, namespace=result.key.namespace)
        return datastore.Mutation(datastore.UPSERT, key, result.properties)

    @rule(slot=slots, query=strategies.all_queries(), is_read_only=st.booleans())
    def begin_later(self, slot: int, query: Query, *, is_read_only: bool) -> None:
        """Begin a transaction together with its first read."""
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
            self.assert_same_batch(query, Paging(), self.oracle.state, response.batch)

    def compare_everything(self) -> None:
        """Compare all entities and all metadata in all partitions."""
        for database, namespace in sorted(set(strategies.PLACES)):
            for kind in (None, *metadata.KINDS):
                self.ask(Query(kind, database=database, namespace=namespace), Paging(), None)
