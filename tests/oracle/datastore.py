"""A Datastore in a dict: entities, what a commit does to them, and the ids that were given.

Owns the state and the status of every write. A commit's outcome is foretold from the state alone;
versions and new ids are the service's to choose, and are checked when it tells them.
"""

from __future__ import annotations

import bisect
from collections.abc import Sequence
from dataclasses import dataclass, replace

from tests.oracle.results import State, Stored
from tests.oracle.values import Key, Properties

INSERT, UPDATE, UPSERT, DELETE = "insert", "update", "upsert", "delete"
MAX_SAFE_ID = 2**53
ID_DIGITS = 16


NOTHING = Properties(())


@dataclass(frozen=True, slots=True)
class Mutation:
    operation: str
    key: Key
    properties: Properties = NOTHING


@dataclass(frozen=True, slots=True)
class Told:
    """What the service said of one mutation."""

    version: int
    key: Key | None = None
    created: int | None = None
    updated: int | None = None


class Datastore:
    """All databases and namespaces at once."""

    def __init__(self) -> None:
        self.state: dict[Key, Stored] = {}
        self.version = 0
        self.used_ids: set[Key] = set()
        self.past: list[tuple[int, State]] = []

    def status_of(
        self, database: str, mutations: Sequence[Mutation], *, is_transactional: bool
    ) -> str:
        """Foretell the status of a commit to a database."""
        if not _are_legal(database, mutations, is_transactional=is_transactional):
            return "INVALID_ARGUMENT"
        there = set(self.state)
        for each in mutations:
            if each.operation == INSERT and each.key in there:
                return "ALREADY_EXISTS"
            if each.operation == UPDATE and each.key not in there:
                return "NOT_FOUND"
            there = there - {each.key} if each.operation == DELETE else there | {each.key}
            there = {key for key in there if key.is_complete}
        return "OK"

    def apply(self, mutations: Sequence[Mutation], told: Sequence[Told]) -> None:
        """Do what a commit did, with the versions and ids that the service told."""
        assert len(told) == len(mutations)
        before = self.version
        for mutation, result in zip(mutations, told, strict=True):
            assert result.version > before, "a version must grow"
            self.version = max(self.version, result.version)
            if mutation.key.is_complete:
                assert result.key is None, "only a key that got an id is answered"
            else:
                self.take(mutation.key, result.key)
            self._apply_one(mutation, result)
        self.past.append((self.version, dict(self.state)))

    def _apply_one(self, mutation: Mutation, result: Told) -> None:
        key = result.key or mutation.key
        if mutation.operation == DELETE:
            self.state.pop(key, None)
            return
        old = self.state.get(key)
        created = result.created if old is None else old.created
        assert result.created == created, "the time of creation never changes"
        assert result.updated >= created
        self.state[key] = Stored(key, mutation.properties, result.version, created)
        self.used_ids.add(key)

    def take(self, asked: Key, given: Key) -> None:
        """Check an id that the service chose: never one that was there before."""
        number = given.path[-1][1]
        assert replace(given, path=(*given.path[:-1], (asked.kind, None))) == asked
        assert isinstance(number, int)
        assert 0 < number < MAX_SAFE_ID
        assert len(str(number)) == ID_DIGITS
        assert given not in self.used_ids, "an id is given once"
        self.used_ids.add(given)

    def at(self, version: int) -> State:
        """Return the state as it was at a version."""
        place = bisect.bisect_right(self.past, version, key=lambda each: each[0])
        return self.past[place - 1][1] if place else {}

    def snapshot(self) -> State:
        return dict(self.state)


def _are_legal(database: str, mutations: Sequence[Mutation], *, is_transactional: bool) -> bool:
    """Tell whether mutations may be asked for, whatever is stored."""
    complete = [each.key for each in mutations if each.key.is_complete]
    incomplete = [each for each in mutations if not each.key.is_complete]
    return (
        all(each.key.database == database for each in mutations)
        and all(each.operation in (INSERT, UPSERT) for each in incomplete)
        and (is_transactional or len(set(complete)) == len(complete))
    )
