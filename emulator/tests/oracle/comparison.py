"""Compare the engine with the oracle: send calls to both and define indexes.

This module owns the open objects of one history: the engine's transport and clock, the oracle, and
the transactions by slot. If no index serves a query, the module defines the index that the refusal
recommends; the query must then succeed.
"""

from __future__ import annotations

import contextlib
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import grpc
from hypothesis.stateful import RuleBasedStateMachine, invariant

from datastore_emulator import inprocess
from emulator.tests.oracle import datastore, messages
from emulator.tests.oracle.transactions import Transaction

SLOTS = (0, 1, 2)


class Clock:
    """A clock that only the state machine advances."""

    def __init__(self) -> None:
        self.now = 1_700_000_000.0

    def __call__(self) -> float:
        return self.now


class Sides(RuleBasedStateMachine):
    """One engine and one oracle, side by side."""

    tally: Counter[str] = Counter()  # noqa: RUF012 - all runs share the counts on purpose

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
            # Use the same ids in every replay, because the order of ids affects the next steps that
            # Hypothesis draws.
            writer._connection.execute("UPDATE engine_state SET seed = 1")
        self.client = messages.Client(self.stack.enter_context(self.open_door(self.engine)))
        self.indexes: list[str] = []
        self.oracle = datastore.Datastore()
        self.open: dict[int, Transaction] = {}
        self.ended: list[tuple[str, bytes]] = []

    @staticmethod
    def open_door(engine: inprocess.Engine) -> contextlib.AbstractContextManager[grpc.Channel]:
        """Return the engine's transport; the state machine for sockets overrides this method."""
        return contextlib.nullcontext(inprocess.Channel(engine))

    @invariant()
    def count(self) -> None:
        """Count the step. Deep runs print the counts."""
        self.tally["steps"] += 1

    def call(self, method: str, database: str, /, **fields: Any) -> tuple[str, Any]:
        """Call a method; return the status and either the response or the error's details."""
        self.tally["calls"] += 1
        try:
            return "OK", self.client.call(method, database, **fields)
        except grpc.RpcError as error:
            return error.code().name, error.details()

    def send(self, method: str, database: str, /, **fields: Any) -> Any:
        """Call a method that must succeed."""
        status, response = self.call(method, database, **fields)
        assert status == "OK", response
        return response

    def define(self, recommended: str, *, is_in_transaction: bool) -> None:
        """Add the indexes that a refusal recommends, as an operator would."""
        new = [f"- kind{entry}".rstrip() + "\n" for entry in recommended.split("- kind")[1:]]
        new = [entry for entry in new if entry not in self.indexes]
        if not new:
            # A transaction sees only the indexes in its snapshot.
            assert is_in_transaction, f"refused despite its index: {recommended}"
            return
        self.indexes += new
        self.index_yaml.write_text("indexes:\n" + "".join(self.indexes))
        path = self.engine._storage.path
        inprocess.open_engine(path, indexes=self.index_yaml, clock=self.clock).close()
