"""Exports and imports through the admin API: a consistent snapshot, and one commit or no change."""

import json
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from datastore_emulator import errors, inprocess
from datastore_emulator.admin_api import admin_protobufs, operations
from datastore_emulator.import_export import export_files, export_folder
from emulator.tests.support import admin_calls, service_calls
from emulator.tests.support.admin_calls import fill, metadata, whole
from emulator.tests.support.service_calls import Service

FAILED_PRECONDITION = 9


def path_of(folder: Path, url: str) -> Path:
    return folder / url.removeprefix("gs://")


def test_exported_entities_are_imported_unchanged(
    admin: admin_calls.Admin,
    near: service_calls.Service,
    engine: inprocess.Engine,
    folder: Path,
    unindexed: type[service_calls.Unindexed],
) -> None:
    near.put(near.key("P", "x", "T", 1), v=[1, None, b"\xff"], w=unindexed("é"), k=near.key("T", 5))
    fill(near)
    before = whole(engine)
    url = admin.exported("gs://bucket/a/b")
    engine.reset()
    assert admin.loaded(url) == len(before) == 13
    assert whole(engine) == before
    assert near.names("T", ("a", ">", 1)) == [2, 3]
    contents = json.loads(path_of(folder, url).read_text())
    assert (contents["format"], contents["version"], contents["entities"]) == (
        "emulator-export", 1, 13,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("kinds", "namespaces", "found"),
    [
        ([], [], 12),
        (["T"], [], 6),
        ([], ["n"], 6),
        (["T"], [""], 3),
        (["T", "U"], ["", "n"], 12),
        (["T", "None"], ["n", "none"], 3),
    ],
)
def test_a_filter_selects_in_exports_and_imports(
    admin: admin_calls.Admin,
    near: service_calls.Service,
    engine: inprocess.Engine,
    kinds: list[str],
    namespaces: list[str],
    found: int,
) -> None:
    fill(near)
    chosen = {"kinds": kinds, "namespace_ids": namespaces}
    operation = admin.ended(admin.export(entity_filter=chosen))
    assert metadata(operation).progress_entities.work_completed == found
    assert metadata(operation).progress_entities.work_estimated == found
    assert metadata(operation).progress_bytes.work_completed > 0
    url = admin.exported()
    engine.reset()
    admin.loaded(url, entity_filter=chosen)
    assert len(whole(engine)) == found


def test_an_import_cannot_select_what_the_export_left_out(
    admin: admin_calls.Admin, near: service_calls.Service
) -> None:
    fill(near)
    url = admin.exported(entity_filter={"kinds": ["T"], "namespace_ids": ["n"]})
    for wanted in ({"kinds": ["T", "U"]}, {"namespace_ids": [""]}):
        with pytest.raises(errors.FailedPrecondition, match="the export does not contain"):
            admin.load(url, entity_filter=wanted)
    assert admin.loaded(url, entity_filter={"namespace_ids": ["n"]}) == 3


def test_only_the_project_s_default_database_is_exported(
    admin: admin_calls.Admin, near: service_calls.Service, engine: inprocess.Engine
) -> None:
    fill(near)
    other = Service(inprocess.Channel(engine), "other")
    other.put(other.key("T", 9), a=1)
    near.database = "d"
    near.put(near.key("T", 1), a=1)
    operation = admin.ended(admin.export())
    assert metadata(operation).progress_entities.work_completed == 12


def test_an_import_into_another_project_moves_keys_in_properties_too(
    admin: admin_calls.Admin, near: service_calls.Service, engine: inprocess.Engine
) -> None:
    inner = {"key": near.key("T", 2), "list": 1}
    near.put(near.key("T", 1), link=near.key("T", 2), links=[near.key("T", 3)], inner=inner)
    url = admin.exported()
    admin.loaded(url, project="other")
    other = Service(inprocess.Channel(engine), "other")
    found = other.lookup(other.key("T", 1)).found[0].entity
    named = {found.key.partition_id.project_id}
    for value in (
        found.properties["link"],
        found.properties["links"].array_value.values[0],
        found.properties["inner"].entity_value.properties["key"],
    ):
        named.add(value.key_value.partition_id.project_id)
    assert named == {"other"}
    assert near.get(near.key("T", 1))["link"].partition_id.project_id == "test"


def test_an_export_has_the_state_at_its_call(
    admin: admin_calls.Admin,
    near: service_calls.Service,
    engine: inprocess.Engine,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    fill(near)
    before = whole(engine)
    may_run = threading.Event()
    run = operations.Operations._run

    def held(self: operations.Operations, *arguments: Any) -> None:
        assert may_run.wait(60)
        run(self, *arguments)

    monkeypatch.setattr(operations.Operations, "_run", held)
    operation = admin.export()
    near.put(near.key("T", 1), a=99)
    near.delete(near.key("T", 2))
    may_run.set()
    admin.ended(operation)
    monkeypatch.undo()
    engine.reset()
    admin.loaded(unpacked(admin, operation))
    assert whole(engine) == before


def unpacked(admin: admin_calls.Admin, operation: Any) -> str:
    response = admin_protobufs.ExportEntitiesResponse()
    assert admin.call("GetOperation", name=operation.name).response.Unpack(response)
    return response.output_url


@pytest.mark.parametrize(
    "damage",
    [
        lambda text: text[: text.index(b"\n") + 1],
        lambda text: text.replace(b'"1"', b'"4"', 1),
        lambda text: text + text[: text.index(b"\n") + 1],
        lambda text: text[:-1],
        lambda _: b"",
        lambda text: text[:100] + b"\xff" + text[101:],
    ],
    ids=["cut", "changed", "doubled", "without its end", "empty", "not UTF-8"],
)
def test_a_damaged_export_is_refused_and_nothing_is_stored(
    admin: admin_calls.Admin,
    near: service_calls.Service,
    engine: inprocess.Engine,
    folder: Path,
    damage: Callable[..., Any],
) -> None:
    fill(near)
    url = admin.exported()
    data = path_of(folder, url).with_name("entities.jsonl")
    data.write_bytes(damage(data.read_bytes()))
    engine.reset()
    operation = admin.ended(admin.load(url))
    assert operation.error.code in (FAILED_PRECONDITION, 3)
    assert operation.error.message
    assert whole(engine) == []


def test_an_export_without_its_entities_is_refused(
    admin: admin_calls.Admin, near: service_calls.Service, engine: inprocess.Engine, folder: Path
) -> None:
    fill(near)
    url = admin.exported()
    path_of(folder, url).with_name("entities.jsonl").unlink()
    operation = admin.ended(admin.load(url))
    assert "entities.jsonl is missing" in operation.error.message


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b"[]", b'{"format": "other"}', b'{"format": "emulator-export", "version": 2}',
     b'{"format": "emulator-export", "version": 1, "project": 5}', b"[" * 100_000, b"\xff"],
)  # fmt: skip
def test_an_invalid_metadata_file_is_refused_at_once(
    admin: admin_calls.Admin, near: service_calls.Service, folder: Path, content: bytes
) -> None:
    url = admin.exported()
    path_of(folder, url).write_bytes(content)
    with pytest.raises(errors.InvalidArgument, match="is not the metadata of an export"):
        admin.load(url)


def test_a_missing_or_invalid_export_is_refused_at_once(
    admin: admin_calls.Admin, folder: Path
) -> None:
    with pytest.raises(errors.InvalidArgument, match="must be the output_url of an export"):
        admin.load("gs://bucket/x")
    with pytest.raises(errors.NotFound, match="no export exists"):
        admin.load(f"gs://bucket/x{export_files.SUFFIX}")
    folder.mkdir()
    os.mkfifo(folder / f"pipe{export_files.SUFFIX}")
    with pytest.raises(errors.FailedPrecondition):
        admin.load(f"gs://pipe{export_files.SUFFIX}")


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"entity_filter": {"kinds": [""]}}, "entity_filter.kinds"),
        ({"entity_filter": {"kinds": ["__kind__"]}}, "entity_filter.kinds"),
        ({"entity_filter": {"kinds": ["T", "T"]}}, "contains a duplicate"),
        ({"entity_filter": {"namespace_ids": ["a b"]}}, "a b"),
        ({"entity_filter": {"namespace_ids": ["", ""]}}, "contains a duplicate"),
        ({"labels": {str(n): "" for n in range(65)}}, "labels"),
        ({"labels": {"a": "b" * 64}}, "labels"),
        ({"project": ""}, "project"),
        ({"project": "no/project"}, "project"),
        ({"labels": {"a": "b" * 1_100_000}}, "larger than"),
    ],
)
def test_a_wrong_request_starts_nothing(
    admin: admin_calls.Admin, folder: Path, fields: dict[str, Any], text: str
) -> None:
    with pytest.raises(errors.InvalidArgument, match=text):
        admin.export(**fields)
    assert not folder.exists()


def test_exports_and_imports_are_billed(
    admin: admin_calls.Admin, near: service_calls.Service, engine: inprocess.Engine
) -> None:
    fill(near)
    with engine.meter.listen() as cost:
        url = admin.exported(entity_filter={"kinds": ["T"]})
        admin.loaded(url)
    assert (cost.reads, cost.writes) == (6, 6)


def test_the_export_files_module_can_read_an_export(
    admin: admin_calls.Admin, near: service_calls.Service, folder: Path
) -> None:
    fill(near)
    url = admin.exported()
    contents = export_folder.Folder(folder).find(url, "input_url").contents
    assert (contents.project, contents.kinds, contents.namespaces) == ("test", (), ())
    assert contents.read_time.endswith("+00:00")
