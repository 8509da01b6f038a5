"""Prepared rows: index entries follow the entities, also with remembered indexed values."""

import contextlib
import itertools
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from datastore_emulator import inprocess
from datastore_emulator.encoding import indexes, keys
from datastore_emulator.storage import inspection, prepared_rows, row_reader
from emulator.tests.support import service_calls

HERE = keys.Partition("test")
SERVICE = service_calls.Service(None)  # type: ignore[arg-type]

# Few values, so that entities often return to an earlier form.
contents = st.none() | st.fixed_dictionaries({"a": st.integers(0, 2), "b": st.integers(0, 1)})
changes = st.lists(st.tuples(st.integers(0, 2), contents, st.integers(0, 3)), max_size=30)
_numbers = itertools.count()


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A data file that two engines change, as two processes do, and a client of each."""
    data = tmp_path_factory.mktemp("prepared") / "data"
    with contextlib.ExitStack() as stack:
        engines = [
            stack.enter_context(
                inprocess.open_engine(data, concurrency="pessimistic", built_in_indexes="eager")
            )
            for _ in range(2)
        ]
        yield data, [inprocess.Channel(each) for each in engines]


def change(service: service_calls.Service, key: Any, fields: Any, how: int) -> None:
    """Put an entity, or delete it if there are no fields, in one of four ways."""
    mutation = {"delete": key} if fields is None else {"upsert": service.entity(key, **fields)}
    if how == 0:
        service.commit(mutation)
        return
    transaction = service.begin()
    if how > 1:
        service.get(key, transaction=transaction)
    between = [{"upsert": service.entity(key, a=7, b=7)}] if how == 3 else []
    service.commit(*between, mutation, transaction=transaction)


@pytest.mark.slow
@settings(max_examples=40)
@given(changes)
def test_index_entries_follow_every_sequence_of_changes(file: Any, made: Any) -> None:
    data, channels = file
    project = f"p{next(_numbers)}"
    services = [service_calls.Service(channel, project) for channel in channels]
    expected: dict[int, Any] = {}
    for place, (number, fields, how) in enumerate(made):
        service = services[place % 2]
        change(service, service.key("T", number + 1), fields, how)
        expected[number + 1] = fields
    for a in (0, 1, 2, 7):
        matching = [number for number, each in sorted(expected.items()) if each and each["a"] == a]
        assert services[0].names("T", ("a", "=", a)) == matching
    assert not inspection.check(data).problems


def test_a_state_that_was_prepared_is_not_parsed_again(monkeypatch: pytest.MonkeyPatch) -> None:
    entity = SERVICE.entity(SERVICE.key("T", 1), a=1, b=["x", "y"])
    ready = prepared_rows.prepare(entity, HERE)
    stored = row_reader.StoredEntity(1, ready.proto, 1, 1, b"")
    monkeypatch.setattr(row_reader, "parse", lambda _: pytest.fail("parsed"))
    assert prepared_rows.old_state(stored, HERE).values == indexes.indexed_values(entity, HERE)


def test_few_prepared_states_are_remembered() -> None:
    for number in range(3 * prepared_rows._RECENT):
        prepared_rows.prepare(SERVICE.entity(SERVICE.key("T", number + 1), a=number), HERE)
        assert len(prepared_rows._recent) <= prepared_rows._RECENT
    long = prepared_rows.prepare(
        SERVICE.entity(SERVICE.key("T", 1), a="x" * 1500, b="x" * 3000), HERE
    )
    assert long.proto not in prepared_rows._recent
