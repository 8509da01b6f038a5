"""Writing steps: commits, id allocation, and transactions from beginning to end."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import initialize, precondition, rule

from emulator.tests.oracle import datastore, messages, strategies, values
from emulator.tests.oracle.comparison import SLOTS, Sides
from emulator.tests.oracle.transactions import Transaction
from emulator.tests.oracle.values import Key

slots = st.sampled_from(SLOTS)


class Writers(Sides):
    """Steps that commit inside and outside transactions; the oracle predicts each status."""

    @initialize(entities=strategies.populations)
    def populate(self, entities: dict[Key, values.Properties]) -> None:
        mutations = [datastore.Mutation("upsert", *each) for each in entities.items()]
        self.commit_to("", mutations)

    @rule(request=strategies.requests(strategies.mutations, most=3))
    def commit(self, request: tuple[str, tuple[datastore.Mutation, ...]]) -> None:
        self.commit_to(*request)

    @rule(mutation=strategies.mutations(""))
    def change(self, mutation: datastore.Mutation) -> None:
        self.commit_to("", [mutation])

    def commit_to(self, database: str, mutations: Sequence[datastore.Mutation]) -> None:
        mutations = self.resolved(mutations)
        expected, place = self.oracle.outcome_of(database, mutations, is_transactional=False)
        if expected != "OK" and place:
            # The error does not tell which ids the mutations before it have got.
            mutations = [each for each in mutations if each.key.is_complete]
            expected, place = self.oracle.outcome_of(database, mutations, is_transactional=False)
        status, response = self.call("Commit", database, **messages.commit(mutations))
        assert status == expected, (status, expected, response)
        if status == "OK":
            self.apply(mutations, response)
        elif place:
            self.learn(database, mutations[:place])

    def learn(self, database: str, mutations: Sequence[datastore.Mutation]) -> None:
        """Apply the mutations that a failed commit has stored, as a lookup tells them."""
        self.tally["partial commits"] += 1
        response = self.send(
            "Lookup", database, keys=[messages.key(each.key) for each in mutations]
        )
        found = {
            messages.key_from(each.entity.key): messages.stored(each)
            for each in (*response.found, *response.missing)
        }
        self.oracle.apply(
            mutations,
            [
                replace(
                    found[each.key],
                    has_conflict=not each.is_expected(self.oracle.version_of(each.key)),
                )
                for each in mutations
            ],
        )

    def resolved(self, mutations: Sequence[datastore.Mutation]) -> list[datastore.Mutation]:
        """Replace placeholder versions with real versions."""
        found = []
        keys = Counter(each.key for each in mutations)
        for each in mutations:
            stored = self.oracle.version_of(each.key)
            chosen: dict[int | None, int] = {
                strategies.CURRENT: stored,
                strategies.STALE: max(0, stored - 1),
            }
            base = chosen.get(each.base_version, each.base_version)
            # If a key occurs twice, the version that its first mutation creates is not known yet.
            found.append(replace(each, base_version=base if keys[each.key] == 1 else None))
        return found

    def apply(self, mutations: Sequence[datastore.Mutation], response: Any) -> None:
        told = [messages.told(each) for each in response.mutation_results]
        answers = self.oracle.apply(mutations, told)
        for each, expected in zip(told, answers, strict=True):
            assert each.transformed == tuple(
                messages.raw(messages.value(value)) for value in expected
            )

    @rule(request=strategies.requests(strategies.incomplete_keys, most=3))
    def allocate(self, request: tuple[str, tuple[Key, ...]]) -> None:
        database, keys = request
        status, response = self.call("AllocateIds", database, keys=[*map(messages.key, keys)])
        if any(key.database != database for key in keys):
            assert status == "INVALID_ARGUMENT"
            return
        assert status == "OK", response
        for asked, given in zip(keys, response.keys, strict=True):
            self.oracle.take(asked, messages.key_from(given))

    @rule(seconds=st.sampled_from((0.5, 0.5, 0.5, 7.3, 50.0, 61.7, 300.1)))
    def wait(self, seconds: float) -> None:
        self.clock.now += seconds

    # Transactions

    @rule(
        slot=slots,
        is_read_only=st.sampled_from((False, False, False, True)),
        database=strategies.databases,
    )
    def begin(self, slot: int, is_read_only: bool, database: str) -> None:
        self.drop(slot)
        options = {"read_only": {}} if is_read_only else {"read_write": {}}
        response = self.send("BeginTransaction", database, transaction_options=options)
        self.begun(slot, response.transaction, database, is_read_only=is_read_only)

    def begun(self, slot: int, name: bytes, database: str, *, is_read_only: bool) -> None:
        now = self.clock.now
        self.open[slot] = Transaction(name, is_read_only, database, began=now, used=now)

    def drop(self, slot: int) -> None:
        """Roll back a slot's open transaction."""
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

    @rule(slot=slots, request=strategies.requests(strategies.mutations, most=3))
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
        fields = messages.commit(mutations, transaction.name)
        status, response = self.call("Commit", database, **fields)
        assert status in allowed, (status, allowed, response)
        self.tally[f"transactions {status}"] += 1
        if status == "OK":
            self.apply(mutations, response)
            self.ended.append((transaction.database, transaction.name))
            return
        rolled_back, _ = self.call("Rollback", transaction.database, transaction=transaction.name)
        if status == "ABORTED":
            assert rolled_back == "OK", "an aborted transaction can be rolled back"
        else:
            assert rolled_back in ("OK", "INVALID_ARGUMENT")

    def outcomes(
        self,
        transaction: Transaction,
        database: str,
        mutations: Sequence[datastore.Mutation],
    ) -> set[str]:
        """Predict a transactional commit's possible statuses."""
        if transaction.is_expired(self.clock.now) or database != transaction.database:
            return {"INVALID_ARGUMENT"}
        status = self.oracle.status_of(database, mutations, is_transactional=True)
        if transaction.is_read_only:
            return {"INVALID_ARGUMENT"}
        if transaction.must_abort(self.oracle.state):
            # The documentation does not specify which refusal comes first.
            return {"ABORTED"} if status == "OK" else {"ABORTED", status}
        return {status, "ABORTED"} if transaction.may_abort(self.oracle.state) else {status}

    @rule(slot=slots)
    @precondition(lambda self: self.open)
    def commit_nothing(self, slot: int) -> None:
        transaction = self.open.pop(slot, None)
        if transaction is None:
            return
        status, response = self.call(
            "Commit", transaction.database, **messages.commit((), transaction.name)
        )
        is_expired = transaction.is_expired(self.clock.now)
        assert status == ("INVALID_ARGUMENT" if is_expired else "OK"), response
        self.ended.append((transaction.database, transaction.name))

    @rule(mutation=strategies.mutations(""))
    @precondition(lambda self: self.ended)
    def use_ended_transaction(self, mutation: datastore.Mutation) -> None:
        database, name = self.ended[-1]
        for method, fields in (
            ("Commit", messages.commit([mutation], name)),
            ("Rollback", {"transaction": name}),
            ("Lookup", {"keys": [], "read_options": {"transaction": name}}),
        ):
            assert self.call(method, database, **fields)[0] == "INVALID_ARGUMENT"
