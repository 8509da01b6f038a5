"""Compute the metadata kinds by brute force, with each existing name as an entity."""

from __future__ import annotations

from emulator.tests.oracle import values
from emulator.tests.oracle.queries import Query
from emulator.tests.oracle.query_results import State, Stored
from emulator.tests.oracle.values import KEY, Key

NAMESPACE, KIND, PROPERTY = "__namespace__", "__kind__", "__property__"
KINDS = (NAMESPACE, KIND, PROPERTY)
# Type names; the index is the first number of a rank.
TYPES = ("NULL", "INT64", "BOOLEAN", "STRING", "STRING", "DOUBLE", "POINT", "REFERENCE")


def entities(query: Query, state: State) -> State:
    """Return the entities that a metadata query searches, or for other queries the state itself."""
    if query.kind not in KINDS:
        return state
    found = {NAMESPACE: _namespaces, KIND: _kinds, PROPERTY: _properties}[query.kind](query, state)
    return {each.key: each for each in found}


def _here(query: Query, state: State) -> list[Stored]:
    return [stored for stored in state.values() if stored.key.place == query.place]


def _entity(query: Query, *path: tuple[str, int | str], **given: object) -> Stored:
    return Stored(Key(path, query.namespace, query.database), values.properties(**given), 0, 0)


def _namespaces(query: Query, state: State) -> list[Stored]:
    names = {key.namespace for key in state if key.database == query.database}
    return [_entity(query, (NAMESPACE, name or 1)) for name in names]


def _kinds(query: Query, state: State) -> list[Stored]:
    return [
        _entity(query, (KIND, kind)) for kind in {each.key.kind for each in _here(query, state)}
    ]


def _properties(query: Query, state: State) -> list[Stored]:
    found: dict[tuple[str, str], set[int]] = {}
    for stored in _here(query, state):
        for name in stored.ranks.keys() - {KEY}:
            types = found.setdefault((stored.key.kind, name), set())
            types.update(each[0] for each in stored.ranks[name])
    return [
        _entity(
            query,
            (KIND, kind),
            (PROPERTY, name),
            property_representation=list(dict.fromkeys(TYPES[each] for each in sorted(types))),
        )
        for (kind, name), types in found.items()
    ]
