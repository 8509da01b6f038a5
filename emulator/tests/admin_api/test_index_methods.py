"""Composite indexes in the admin API."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from datastore_emulator import errors, inprocess
from datastore_emulator.admin_api import admin_protobufs
from datastore_emulator.encoding import indexes
from datastore_emulator.execution import automatic_indexes
from emulator.tests.support import admin_calls, service_calls
from emulator.tests.support.admin_calls import Admin, metadata
from emulator.tests.support.service_calls import Service, assert_refused

WANTED = {
    "kind": "T", "ancestor": 1,
    "properties": [{"name": "x", "direction": 1}, {"name": "y", "direction": 2}],
}  # fmt: skip
INDEX = indexes.Index("T", (("x", False), ("y", True)))


def listed(admin: admin_calls.Admin, **fields: Any) -> Any:
    return admin.call("ListIndexes", project_id="test", **fields)


@pytest.fixture
def admin(engine: inprocess.Engine) -> admin_calls.Admin:
    return Admin(engine)


@pytest.fixture
def make_admin(tmp_path: Path) -> Iterator[Callable[..., Any]]:
    """Create an emulator that defines missing indexes in an index.yaml or in the data file."""
    opened = []

    def make(*, has_file: bool) -> tuple[admin_calls.Admin, service_calls.Service]:
        path = tmp_path / "index.yaml" if has_file else None
        engine = inprocess.open_engine(None, auto_indexes=automatic_indexes.AutomaticIndexes(path))
        opened.append(engine)
        return Admin(engine), Service(inprocess.Channel(engine))

    yield make
    for engine in opened:
        engine.close()


def test_every_composite_index_is_listed_ready_and_found_by_its_id(
    admin: admin_calls.Admin, engine: inprocess.Engine
) -> None:
    found = listed(admin).indexes
    with engine.storage.read() as snapshot:
        assert len(found) == len(snapshot.definitions.composites) == 7
    shapes = set()
    for each in found:
        assert (each.project_id, each.kind, each.state) == ("test", "T", 2)
        asked = {"project_id": "test", "index_id": each.index_id}
        assert admin.call("GetIndex", **asked) == each
        shapes.add((each.ancestor, tuple((p.name, p.direction) for p in each.properties)))
    assert (1, (("a", 2), ("b", 1))) in shapes
    assert (2, (("a", 2),)) in shapes
    assert (1, (("__key__", 2),)) in shapes
    assert (1, (("a", 1), ("__key__", 2))) in shapes
    assert len(shapes) == 7


def test_ids_depend_only_on_the_definitions(admin: admin_calls.Admin) -> None:
    """Clients store index ids, so a definition has the same id in every file and process."""
    ids = {each.index_id for each in listed(admin, filter="ancestor=ALL_ANCESTORS").indexes}
    assert ids == {"ME3ugZQXf6MptbVu"}


def test_indexes_come_in_pages_and_by_filter(admin: admin_calls.Admin) -> None:
    ids = [each.index_id for each in listed(admin).indexes]
    assert ids == sorted(ids)
    paged, token = [], ""
    while True:
        response = listed(admin, page_size=3, page_token=token)
        paged += [each.index_id for each in response.indexes]
        token = response.next_page_token
        if not token:
            break
    assert paged == ids
    assert len(listed(admin, filter="state=READY AND kind=T").indexes) == 7
    assert len(listed(admin, filter="kind=U").indexes) == 0
    for wrong in ({"filter": "size=1"}, {"page_size": -1}, {"page_token": "?"}):
        with pytest.raises(errors.InvalidArgument):
            listed(admin, **wrong)
    with pytest.raises(errors.InvalidArgument, match="project"):
        admin.call("ListIndexes")


@pytest.mark.parametrize("has_file", [True, False])
def test_a_created_index_serves_queries_and_is_in_index_yaml(
    make_admin: Callable[..., Any], tmp_path: Path, has_file: bool
) -> None:
    admin, service = make_admin(has_file=has_file)
    service.put(service.key("T", 1), x=1, y=2)
    operation = admin.ended(admin.call("CreateIndex", project_id="test", index=WANTED))
    made = admin_protobufs.Index()
    assert operation.response.Unpack(made)
    assert metadata(operation).index_id == made.index_id
    assert (made.state, [each.name for each in made.properties]) == (2, ["x", "y"])
    admin.api._engine.auto_indexes = None  # Strict from here on
    assert service.names("T", ("x", "=", 1), order=["-y"]) == [1]
    if has_file:
        assert automatic_indexes.read_file(tmp_path / "index.yaml") == (INDEX,)


def test_an_index_that_exists_is_not_created_again(make_admin: Callable[..., Any]) -> None:
    admin, _ = make_admin(has_file=False)
    admin.ended(admin.call("CreateIndex", project_id="test", index=WANTED))
    with pytest.raises(errors.AlreadyExists):
        admin.call("CreateIndex", project_id="test", index=WANTED)


def test_a_deleted_index_serves_no_query(make_admin: Callable[..., Any]) -> None:
    admin, service = make_admin(has_file=False)
    service.put(service.key("T", 1), x=1, y=2)
    admin.ended(admin.call("CreateIndex", project_id="test", index=WANTED))
    (index,) = listed(admin).indexes
    admin.ended(admin.call("DeleteIndex", project_id="test", index_id=index.index_id))
    assert not listed(admin).indexes
    admin.api._engine.auto_indexes = None  # Strict from here on
    with assert_refused("FAILED_PRECONDITION", "no matching index"):
        service.names("T", ("x", "=", 1), order=["-y"])
    with pytest.raises(errors.NotFound):
        admin.call("DeleteIndex", project_id="test", index_id=index.index_id)


def test_an_index_in_index_yaml_can_only_be_removed_there(
    admin: admin_calls.Admin, make_admin: Callable[..., Any]
) -> None:
    with pytest.raises(errors.FailedPrecondition, match="name: x"):
        admin.call("CreateIndex", project_id="test", index=WANTED)
    for each in (admin, make_admin(has_file=True)[0]):
        if each is not admin:
            each.ended(each.call("CreateIndex", project_id="test", index=WANTED))
        index_id = listed(each).indexes[0].index_id
        with pytest.raises(errors.FailedPrecondition, match="Remove this entry"):
            each.call("DeleteIndex", project_id="test", index_id=index_id)


@pytest.mark.parametrize(
    "change",
    [
        {"kind": ""},
        {"kind": "__kind__"},
        {"ancestor": 0},
        {"properties": []},
        {"properties": [{"name": "x", "direction": 1}]},
        {"properties": [{"name": "x", "direction": 1}, {"name": "__key__", "direction": 1}]},
        {"properties": [{"name": "x", "direction": 1}, {"name": "x", "direction": 2}]},
        {"properties": [{"name": "__key__", "direction": 1}, {"name": "x", "direction": 2}]},
        {"properties": [{"name": "x"}, {"name": "y", "direction": 2}]},
        {"properties": [{"name": "", "direction": 1}, {"name": "y", "direction": 2}]},
        {"properties": [{"name": f"p{n}", "direction": 1} for n in range(101)]},
    ],
    ids=str,
)
def test_an_invalid_composite_index_is_refused(
    make_admin: Callable[..., Any], change: dict[str, Any]
) -> None:
    admin, _ = make_admin(has_file=False)
    with pytest.raises(errors.InvalidArgument):
        admin.call("CreateIndex", project_id="test", index=WANTED | change)
