"""Export and import: every value survives a round trip, and an invalid line stores nothing."""

import json
import math
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from datastore_emulator import errors, inprocess, protobufs
from datastore_emulator.cli import command_line
from datastore_emulator.import_export import json_lines
from emulator.tests.support import service_calls

names = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=5).filter(
    lambda text: not (text.startswith("__") and text.endswith("__"))
)
texts = st.text(st.characters(exclude_categories=["Cs"]))
elements = st.builds(
    lambda kind, name: {"kind": kind} | name,
    names,
    st.one_of(
        st.builds(lambda number: {"id": number}, st.integers(1, 2**63 - 1)),
        st.builds(lambda text: {"name": text}, names),
    ),
)


def key_of(path: list[Any], namespace: str = "n") -> Any:
    key = protobufs.Key()
    key.partition_id.project_id = "p"
    key.partition_id.namespace_id = namespace
    for element in path:
        key.path.add(**element)
    return key


def timestamp(micros: int) -> Any:
    made = protobufs.Value()
    made.timestamp_value.FromMicroseconds(micros)
    return made.timestamp_value


scalars = st.one_of(
    st.just({"null_value": 0}),
    st.builds(lambda given: {"boolean_value": given}, st.booleans()),
    st.builds(lambda given: {"integer_value": given}, st.integers(-(2**63), 2**63 - 1)),
    st.builds(lambda given: {"double_value": given}, st.floats()),
    st.builds(lambda given: {"string_value": given}, texts),
    st.builds(lambda given: {"blob_value": given}, st.binary()),
    st.builds(
        lambda given: {"timestamp_value": timestamp(given)},
        st.integers(-62_135_596_800 * 10**6, 253_402_300_799 * 10**6),
    ),
    st.builds(lambda x, y: {"geo_point_value": {"latitude": x, "longitude": y}},
              st.floats(-90, 90), st.floats(-180, 180)),
    st.builds(lambda path: {"key_value": key_of(path)}, st.lists(elements, min_size=1, max_size=3)),
)  # fmt: skip


@st.composite
def entities(draw: Callable[..., Any], *, depth: int = 0) -> Any:
    entity = protobufs.Entity()
    for name in draw(st.lists(names, max_size=4, unique=True)):
        entity.properties[name].CopyFrom(draw(values(depth=depth)))
    return entity


@st.composite
def values(draw: Callable[..., Any], *, depth: int = 0, in_array: bool = False) -> Any:
    kind = draw(st.integers(0, 9))
    value = protobufs.Value()
    if kind == 0 and depth < 2:
        value.entity_value.CopyFrom(draw(entities(depth=depth + 1)))
    elif kind == 1 and depth < 2 and not in_array:
        value.array_value.SetInParent()
        value.array_value.values.extend(
            draw(st.lists(values(depth=depth, in_array=True), max_size=3))
        )
        value.meaning = draw(st.sampled_from([0, 31]))
        return value
    else:
        value = protobufs.Value(**draw(scalars))
    value.meaning = draw(st.sampled_from([0, 9, 15, 22]))
    value.exclude_from_indexes = draw(st.booleans())
    return value


@pytest.fixture
def engines() -> Iterator[tuple[inprocess.Engine, inprocess.Engine]]:
    with inprocess.open_engine(None) as one, inprocess.open_engine(None) as two:
        yield one, two


def stored(engine: inprocess.Engine) -> list[bytes | None]:
    """Return the stored bytes of all entities."""
    with engine.storage.read() as snapshot:
        return [row[3] for row in snapshot.scan((b"", None), b"", b"\xff", with_entities=True)]


def lines_of(engine: inprocess.Engine, **part: str) -> list[bytes]:
    return b"".join(json_lines.export(engine.storage, json_lines.Selection(**part))).splitlines(
        keepends=True
    )


@given(path=st.lists(elements, min_size=1, max_size=3), entity=entities())
def test_all_stored_data_survives_a_round_trip(
    engines: tuple[inprocess.Engine, inprocess.Engine],
    make_service: type[service_calls.Service],
    path: list[Any],
    entity: Any,
) -> None:
    one, two = engines
    for engine in engines:
        engine.reset()
    entity.key.CopyFrom(key_of(path))
    make_service(inprocess.Channel(one), "p").commit({"upsert": entity})
    exported = lines_of(one)
    assert json_lines.load(two.storage, exported, source="lines") == 1
    assert stored(two) == stored(one) != []


def test_the_form_of_a_line_is_fixed(near: service_calls.Service, engine: inprocess.Engine) -> None:
    near.put(near.key("A", "x", "T", 5, namespace="n"), a=-0.0, b=math.nan, c=b"\0", d="é")
    line = json.loads(lines_of(engine)[0])
    assert sorted(line) == ["createTime", "entity", "updateTime", "version"]
    assert line["entity"] == {
        "key": {
            "partitionId": {"projectId": "test", "namespaceId": "n"},
            "path": [{"kind": "A", "name": "x"}, {"kind": "T", "id": "5"}],
        },
        "properties": {
            "a": {"doubleValue": -0.0},
            "b": {"doubleValue": "NaN"},
            "c": {"blobValue": "AA=="},
            "d": {"stringValue": "é"},
        },
    }


def test_an_import_creates_index_entries_and_overwrites_entities(
    near: service_calls.Service,
    engine: inprocess.Engine,
    engines: tuple[inprocess.Engine, inprocess.Engine],
) -> None:
    near.put(near.key("T", 1), a=1, b=2)
    exported = lines_of(engine)
    near.put(near.key("T", 1), a=7, b=7)
    near.put(near.key("T", 2), a=2, b=2)
    assert json_lines.load(engine.storage, [*exported, b"\n"], source="lines") == 1
    assert near.names(order=["a", "b"]) == [1, 2]
    assert near.names("T", ("a", "=", 7)) == []


def test_a_part_is_selected_by_project_database_namespace_and_kind(
    engine: inprocess.Engine, make_service: type[service_calls.Service]
) -> None:
    for project in ("p", "q"):
        for database in ("", "d"):
            service = make_service(inprocess.Channel(engine), project)
            service.database = database
            for namespace in ("", "n"):
                service.put(service.key("T", 1, namespace=namespace), a=1)
                service.put(service.key("T", 1, "U", 1, namespace=namespace), a=1)
    assert len(lines_of(engine)) == 16
    assert len(lines_of(engine, project="p")) == 8
    assert len(lines_of(engine, project="p", database="")) == 4
    assert len(lines_of(engine, namespace="n", kind="U")) == 4
    assert lines_of(engine, kind="V") == []


GOOD = b'{"key": {"partitionId": {"projectId": "test"}, "path": [{"kind": "T", "id": "1"}]}}\n'


def bad(**changes: Any) -> bytes:
    path = {"kind": "T", "id": "1"} | changes.pop("path", {})
    key = {"partitionId": {"projectId": "test"}, "path": [path]}
    return json.dumps({"key": key} | changes).encode()


@pytest.mark.parametrize(
    "line",
    [b"{", b"[]", b"5", b"null", b'"x"', b"\xff", b"[" * 100_000, b"{}", b'{"entity": 5}',
     b'{"entity": {"key": {"path": [{"kind": "T", "id": "1"}]}}}', bad(unknown=1),
     bad(path={"id": "0"}), bad(path={"kind": "__T__"}), bad(path={"kind": ""}),
     bad(properties={"a": {}}), bad(properties={"__a__": {"nullValue": None}}),
     bad(properties={"a": {"integerValue": "9223372036854775808"}}),
     bad(properties={"a": {"stringValue": "x" * 1501}}), bad(properties={"a": {"stringValue": 5}}),
     bad(properties={"a": {"stringValue": "\ud800"}}),
     b'{"key": {}, "key": {}}', b'{"key": {"path": [{"kind": "T"}]}}', b"9" * 5000],
)  # fmt: skip
def test_a_bad_line_is_named_and_nothing_is_stored(engine: inprocess.Engine, line: bytes) -> None:
    with pytest.raises(errors.InvalidArgument, match=r"^some\.jsonl:3: "):
        json_lines.load(engine.storage, [GOOD, b"\n", line], source="some.jsonl")
    assert stored(engine) == []


def test_with_batches_earlier_commits_stay_and_the_error_says_so(
    engine: inprocess.Engine,
) -> None:
    lines = [GOOD.replace(b'"1"', b'"%d"' % number) for number in range(1, 6)] + [b"{"]
    with pytest.raises(errors.InvalidArgument, match=r"^x:6: .*\(4 entities .* are stored"):
        json_lines.load(engine.storage, lines, source="x", batch=2)
    assert len(stored(engine)) == 4


def test_an_endless_line_is_not_read_into_memory(
    engine: inprocess.Engine, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(json_lines, "MAX_LINE", 1000)
    path = tmp_path / "long"
    path.write_bytes(b"{" * 5000)
    with path.open("rb") as file, pytest.raises(errors.InvalidArgument, match="longer than"):
        json_lines.load(engine.storage, json_lines.read_lines(file), source="long")


def test_export_and_import_move_everything_between_files(
    tmp_path: Path, make_service: type[service_calls.Service], capsys: pytest.CaptureFixture[str]
) -> None:
    one, two, lines = (str(tmp_path / name) for name in ("one", "two", "lines"))
    with inprocess.open_engine(one) as engine:
        service = make_service(inprocess.Channel(engine))
        for number in range(30):
            service.put(service.key("T", number + 1), a=number)
    assert command_line.main(["export", "--data", one, "--kind", "T", lines]) == 0
    assert command_line.main(["import", "--data", two, lines]) == 0
    assert capsys.readouterr().out == f"{two}: 30 entities written\n"
    with inprocess.open_engine(two) as engine:
        assert len(make_service(inprocess.Channel(engine)).names("T", ("a", ">", 9))) == 20


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["export", "--data", "{}/none"], "There is no data file {}/none."),
        (["export", "--data", "{}/data", "{}/lines"], "{}/lines already exists."),
        (
            ["export", "--data", "{}/data", "{}/none/lines"],
            "The folder of {}/none/lines does not exist.",
        ),
        (
            ["backup", "--data", "{}/data", "{}/none/copy"],
            "The folder of {}/none/copy does not exist.",
        ),
        (["import", "--data", "{}/data", "{}/none"], "{}/none: No such file or directory"),
        (["import", "--data", "{}/data", "{}/lines"], "{}/lines:1: The line is not an entity"),
        (["backup", "--data", "{}/none", "{}/copy"], "no data file {}/none"),
        (["restore", "--data", "{}/data", "{}/data"], "{}/data already exists."),
        (["check", "--data", "{}/lines"], "{}/lines"),
    ],
)
def test_a_failing_command_prints_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], text: str
) -> None:
    inprocess.open_engine(tmp_path / "data").close()
    (tmp_path / "lines").write_text("{\n")
    assert command_line.main([each.format(tmp_path) for each in arguments]) == 1
    complaint = capsys.readouterr().err
    assert complaint.count("\n") == 1
    assert text.format(tmp_path) in complaint


@pytest.mark.parametrize(
    ("arguments", "flag"),
    [(["fly"], "COMMAND"), (["import", "--data", "x", "--batch", "0"], "--batch"),
     (["export"], "--data"), (["--port", "65536"], "--port"),
     (["--port", "0", "--clock", "slow"], "--clock"),
     (["--port", "0", "--admin-port", "x"], "--admin-port")],
)  # fmt: skip
def test_a_bad_flag_is_named(
    capsys: pytest.CaptureFixture[str], arguments: list[str], flag: str
) -> None:
    with pytest.raises(SystemExit) as ended:
        command_line.main(arguments)
    assert ended.value.code == 2
    assert flag in capsys.readouterr().err.splitlines()[-1]


def test_backup_restore_compact_and_check_are_commands(
    tmp_path: Path, make_service: type[service_calls.Service], capsys: pytest.CaptureFixture[str]
) -> None:
    data, copy = str(tmp_path / "data"), str(tmp_path / "copy")
    with inprocess.open_engine(data) as engine:
        service = make_service(inprocess.Channel(engine))
        service.put(service.key("T", 1), a=1)
        assert command_line.main(["backup", "--data", data, copy]) == 0
        service.delete(service.key("T", 1))
    assert command_line.main(["compact", "--data", data]) == 0
    assert command_line.main(["restore", "--data", data, "--replace", copy]) == 0
    assert command_line.main(["check", "--data", data]) == 0
    assert "1 entities" in capsys.readouterr().out.splitlines()[-1]
    with inprocess.open_engine(data) as engine:
        service = make_service(inprocess.Channel(engine))
        assert service.get(service.key("T", 1)) == {"a": 1}


# The peak of a program's own memory in KiB. `ru_maxrss` can be that of the process that started it.
PEAK = "next(line.split()[1] for line in open('/proc/self/status') if line.startswith('VmHWM'))"


@pytest.mark.slow
def test_export_and_import_are_programs_whose_memory_stays_flat(
    tmp_path: Path, make_service: type[service_calls.Service]
) -> None:
    data, lines = tmp_path / "data", tmp_path / "lines"
    padding = json.dumps({"stringValue": "x" * 12_000, "excludeFromIndexes": True}).encode()
    with lines.open("wb") as file:
        for number in range(10_000):
            key = GOOD.rstrip()[:-1].replace(b'"1"', b'"%d"' % (number + 1))
            file.write(key + b', "properties": {"p": ' + padding + b"}}\n")
    program = "import sys\nfrom datastore_emulator.cli import command_line\n"
    program += f"status = command_line.main(sys.argv[1:])\nprint({PEAK}, file=sys.stderr)\n"
    peaks = []
    out = tmp_path / "out"
    for arguments in (["import", "--data", data, lines], ["export", "--data", data, out]):
        ran = subprocess.run(
            [sys.executable, "-c", program, *map(str, arguments)],
            check=True, capture_output=True, text=True, timeout=100,
        )  # fmt: skip
        peaks.append(int(ran.stderr.split()[-1]))
    assert out.stat().st_size > 120_000_000
    assert max(peaks) < resource_floor() + 100_000


def resource_floor() -> int:
    """Return the memory in KiB that a process needs just to load the modules."""
    program = "from datastore_emulator.cli import command_line\n"
    program += f"from datastore_emulator.import_export import json_lines\nprint({PEAK})"
    ran = subprocess.run(
        [sys.executable, "-c", program], check=True, capture_output=True, text=True
    )
    return int(ran.stdout)
