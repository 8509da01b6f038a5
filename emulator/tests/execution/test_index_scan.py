"""The cost of a query: the rows and entities that it reads, counted rather than timed."""

import dataclasses
from collections.abc import Iterator
from typing import Any

import pytest

from datastore_emulator.storage import row_reader
from emulator.tests.support import service_calls

GROUPS = 10


@dataclasses.dataclass
class Cost:
    """The number of rows and entities read since the last `reset`."""

    rows: int = 0
    seeks: int = 0
    entities: int = 0

    def reset(self) -> None:
        self.rows = self.seeks = self.entities = 0


@pytest.fixture
def cost(monkeypatch: pytest.MonkeyPatch) -> Cost:
    """Count the rows and entities in the reader, which every scan uses."""
    found = Cost()
    scan, entity_by_id = row_reader.RowReader.scan, row_reader.RowReader.entity_by_id

    def counted_scan(
        self: row_reader.RowReader,
        name: tuple[bytes, bytes],
        low: bytes,
        high: bytes,
        *,
        with_entities: bool,
    ) -> Iterator[tuple[Any, ...]]:
        found.seeks += 1
        for row in scan(self, name, low, high, with_entities=with_entities):
            found.rows += 1
            found.entities += row[3] is not None
            yield row

    def counted_entity(self: row_reader.RowReader, entity_id: int) -> row_reader.StoredEntity:
        found.entities += 1
        return entity_by_id(self, entity_id)

    monkeypatch.setattr(row_reader.RowReader, "scan", counted_scan)
    monkeypatch.setattr(row_reader.RowReader, "entity_by_id", counted_entity)
    return found


def fill(service: service_calls.Service, size: int) -> None:
    """Put `size` entities in each of GROUPS groups of a; b counts up within each group."""
    for a in range(GROUPS):
        for start in range(0, size, 400):
            service.commit(
                *(
                    {
                        "upsert": service.entity(
                            service.key("T", 1 + a * 10_000 + b), a=a, b=b, c=b % 2, tag="all"
                        )
                    }
                    for b in range(start, min(size, start + 400))
                )
            )


def keys(service: service_calls.Service) -> list[Any]:
    return [service.key("T", 1 + a * 10_000) for a in range(5)]


QUERIES = {
    "OR": lambda s: s.query("T", ("or", ("a", "=", 3), ("b", "=", 7)), limit=5),
    "OR with an inequality": lambda s: s.query(
        "T", ("or", ("tag", "=", "all"), ("a", "=", 2)), ("a", ">", 1), limit=5
    ),
    "!=": lambda s: s.query("T", ("a", "!=", 0), limit=5),
    "NOT_IN": lambda s: s.query("T", ("b", "not in", list(range(10))), limit=5),
    "IN with an order": lambda s: s.query("T", ("c", "in", [0, 1]), order=["a"], limit=5),
    "several inequalities": lambda s: s.query("T", ("a", ">", 3), ("b", ">", 9), limit=5),
    "a key beside an order": lambda s: s.query("T", ("__key__", "in", keys(s)), order=["a"]),
    "keys behind a key": lambda s: s.query(
        "T", ("__key__", ">", s.key("T", 1 + 90_000)), ("a", ">", 7), limit=5
    ),
    "distinct": lambda s: s.query(distinct=["a"]),
    "distinct in an order": lambda s: s.query(order=["-a", "b"], distinct=["a"]),
    "projected and distinct": lambda s: s.query(projection=["a"], distinct=["a"]),
}


@pytest.mark.slow
def test_the_cost_of_a_query_depends_on_its_results_and_not_on_stored_data(
    near: service_calls.Service, cost: Cost
) -> None:
    costs = []
    for size in (40, 400):
        fill(near, size)
        costs.append({})
        for name, make in QUERIES.items():
            query = make(near)
            cost.reset()
            results = near.results(query)
            assert len(results) >= 5
            costs[-1][name] = dataclasses.replace(cost)
            assert cost.rows <= 7 * len(results), name
            assert cost.entities <= len(results) + 1, name
    assert costs[0] == costs[1]


def test_rows_excluded_by_a_later_inequality_are_skipped_without_reading_entities(
    near: service_calls.Service, cost: Cost
) -> None:
    fill(near, 200)
    cost.reset()
    found = near.names("T", ("a", ">", 3), ("b", ">=", 198))
    assert len(found) == 12
    assert cost.entities == len(found)
    assert cost.rows <= 6 * len(found)  # Far fewer than the 1,200 rows with a > 3


def test_an_ancestor_query_does_not_read_all_descendants(
    near: service_calls.Service, cost: Cost
) -> None:
    for n in range(1, 9):
        near.put(near.key("A", 1, "B", 1, "T", n), a=[n, n + 1] if n == 8 else n)
    under = ("__key__", "under", near.key("A", 1))
    cost.reset()
    assert near.names("T", under, order=["-a"], keys_only=True) == [8, 7, 6, 5, 4, 3, 2, 1]
    assert cost.entities == 1  # Only the entity with the array
    assert near.names("T", ("__key__", "under", near.key("A", 1, "B", 1)), order=["-a"])[0] == 8


def test_an_offset_skips_rows_without_reading_entities(
    near: service_calls.Service, cost: Cost
) -> None:
    fill(near, 40)
    cost.reset()
    assert len(near.names("T", ("a", ">=", 0), offset=300, limit=5)) == 5
    assert (cost.rows, cost.entities) == (305, 5)


@pytest.mark.slow
def test_a_large_group_is_skipped_by_a_seek(near: service_calls.Service, cost: Cost) -> None:
    fill(near, 200)
    cost.reset()
    assert len(near.results(near.query(distinct=["a"]))) == GROUPS
    assert cost.rows <= 6 * GROUPS
    assert cost.seeks <= 2 * GROUPS


def test_small_groups_are_skipped_by_steps(near: service_calls.Service, cost: Cost) -> None:
    fill(near, 2)
    cost.reset()
    assert len(near.results(near.query(distinct=["a"]))) == GROUPS
    assert cost.seeks == 1


def test_an_array_costs_one_read_of_its_entity(near: service_calls.Service, cost: Cost) -> None:
    near.put(near.key("T", 1), a=list(range(300)))
    near.put(near.key("T", 2), a=list(range(300)))
    cost.reset()
    assert near.names("T", ("a", ">=", 0), keys_only=True) == [1, 2]
    assert (cost.rows, cost.entities) == (600, 2)
