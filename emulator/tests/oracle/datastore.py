"""Model a Datastore with a dict: its entities, the effects of commits, and the assigned ids.

This module owns the state and the expected status of every write. The module predicts a commit's
outcome from the state alone. The service chooses versions and new ids; the module checks them when
the service returns them.
"""

from __future__ import annotations

import bisect
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from emulator.tests.oracle import mutation_results
from emulator.tests.oracle.query_results import State, Stored
from emulator.tests.oracle.values import Key, Properties, Value

INSERT, UPDATE, UPSERT, DELETE = "insert", "update", "upsert", "delete"
MAX_SAFE_ID = 2**53
ID_DIGITS = 16
NOTHING = Properties(())


@dataclass(frozen=True, slots=True)
class Mutation:
    """One mutation. With `must_hold`, the commit fails if the version is not `base_version`."""

    operation: str
    key: Key
    properties: Properties = NOTHING
    mask: tuple[str, ...] | None = None
    transforms: tuple[mutation_results.Transform, ...] = ()
    base_version: int | None = None
    must_hold: bool = False

    def is_expected(self, version: int) -> bool:
        """Return whether a stored version (0 for a missing entity) is the expected version."""
        return self.base_version is None or self.base_version == version


@dataclass(frozen=True, slots=True)
class Told:
    """The service's result for one mutation."""

    version: int
    key: Key | None = None
    created: Any = None  # Microseconds; None for a delete
    updated: Any = None
    has_conflict: bool = False
    transformed: tuple[bytes, ...] = ()


class Datastore:
    """The data of all databases and namespaces."""

    def __init__(self) -> None:
        self.state: dict[Key, Stored] = {}
        self.version = 0
        self.used_ids: set[Key] = set()
        self.past: list[tuple[int, State]] = []

    def version_of(self, key: Key) -> int:
        stored = self.state.get(key)
        return 0 if stored is None else stored.version

    def status_of(
        self, database: str, mutations: Sequence[Mutation], *, is_transactional: bool
    ) -> str:
        """Predict a commit's status in a database."""
        return self.outcome_of(database, mutations, is_transactional=is_transactional)[0]

    def outcome_of(
        self, database: str, mutations: Sequence[Mutation], *, is_transactional: bool
    ) -> tuple[str, int]:
        """Predict a commit's status, and how many mutations succeed before the first failure."""
        if not _are_legal(database, mutations, is_transactional=is_transactional):
            return "INVALID_ARGUMENT", 0
        there = set(self.state)
        for place, each in enumerate(mutations):
            if each.operation == INSERT and each.key in there:
                return "ALREADY_EXISTS", place
            if each.operation == UPDATE and each.key not in there:
                return "NOT_FOUND", place
            status = self._conflict(each)
            if status != "OK":
                return status, place
            if each.is_expected(self.version_of(each.key)):
                there.discard(each.key)
                if each.operation != DELETE and each.key.is_complete:
                    there.add(each.key)
        return "OK", len(mutations)

    def _conflict(self, mutation: Mutation) -> str:
        """Return the status for an unexpected version."""
        stored = self.version_of(mutation.key)
        if mutation.is_expected(stored):
            return "OK"
        if 0 < stored < (mutation.base_version or 0):
            return "INVALID_ARGUMENT"
        return "FAILED_PRECONDITION" if mutation.must_hold else "OK"

    def apply(self, mutations: Sequence[Mutation], told: Sequence[Told]) -> list[list[Value]]:
        """Apply a commit with the versions and ids that the service returned.

        Return the expected results for each mutation's transforms.
        """
        assert len(told) == len(mutations)
        before = self.version
        answers = []
        for mutation, result in zip(mutations, told, strict=True):
            expected = mutation.is_expected(self.version_of(mutation.key))
            assert result.has_conflict == (not expected)
            if not expected:
                stored = self.version_of(mutation.key)
                assert not stored or result.version == stored, (
                    "a conflict returns the stored version"
                )
                answers.append([])
                continue
            assert result.version > before, "a version must grow"
            self.version = max(self.version, result.version)
            if mutation.key.is_complete:
                assert result.key is None, "only a key that got an id is returned"
            else:
                assert result.key is not None
                self.take(mutation.key, result.key)
            answers.append(self._apply_one(mutation, result))
        self.past.append((self.version, dict(self.state)))
        return answers

    def _apply_one(self, mutation: Mutation, result: Told) -> list[Value]:
        key = result.key or mutation.key
        old = self.state.get(key)
        if mutation.operation == DELETE:
            self.state.pop(key, None)
            return []
        created = result.created if old is None else old.created
        assert result.created == created, "the create time never changes"
        assert result.updated >= created
        given = mutation.properties
        if mutation.mask is not None:
            given = mutation_results.merged(
                None if old is None else old.properties, given, mutation.mask
            )
        new, answers = mutation_results.transformed(given, mutation.transforms)
        self.state[key] = Stored(key, new, result.version, created)
        self.used_ids.add(key)
        return answers

    def take(self, asked: Key, given: Key) -> None:
        """Check an id that the service chose, which must never have existed before."""
        number = given.path[-1][1]
        assert replace(given, path=(*given.path[:-1], (asked.kind, None))) == asked
        assert isinstance(number, int)
        assert 0 < number < MAX_SAFE_ID
        assert len(str(number)) == ID_DIGITS
        assert given not in self.used_ids, "an id is handed out only once"
        self.used_ids.add(given)

    def at(self, version: int) -> State:
        """Return the state at a version."""
        place = bisect.bisect_right(self.past, version, key=lambda each: each[0])
        return self.past[place - 1][1] if place else {}

    def snapshot(self) -> State:
        return dict(self.state)


def _are_legal(database: str, mutations: Sequence[Mutation], *, is_transactional: bool) -> bool:
    """Return whether mutations are valid regardless of the stored data."""
    complete = [each.key for each in mutations if each.key.is_complete]
    incomplete = [each for each in mutations if not each.key.is_complete]
    inserted = [each for each in mutations if each.operation == INSERT] + incomplete
    return (
        all(each.key.database == database for each in mutations)
        and all(each.operation in (INSERT, UPSERT) for each in incomplete)
        and not any(each.base_version for each in inserted)
        and (is_transactional or len(set(complete)) == len(complete))
    )
