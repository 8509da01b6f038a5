"""Automatic indexes: every query is served, and index.yaml gains entries and keeps its content."""

import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from datastore_emulator import errors, inprocess
from datastore_emulator.encoding import index_yaml, indexes
from datastore_emulator.execution import automatic_indexes
from emulator.tests.support import service_calls
from emulator.tests.support.service_calls import assert_refused

AB = indexes.Index("T", (("a", False), ("b", True)))
ABOVE = indexes.Index("T", (("a", False),), has_ancestor=True)
BY_HAND = b"""# Ours: \xc3\xa9t\xc3\xa9, and odd   spacing stays.\r
indexes:
  - kind: T   # by hand
    ancestor: yes
    properties:
      - {name: a, direction: asc}
"""


@pytest.fixture
def yaml(tmp_path: Path) -> Path:
    return tmp_path / "index.yaml"


@pytest.fixture(params=["optimistic", "pessimistic"])
def concurrency(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
def open_auto(tmp_path: Path, yaml: Path, concurrency: Any) -> Iterator[Callable[..., Any]]:
    opened = []

    def open_it() -> inprocess.Engine:
        engine = inprocess.open_engine(
            tmp_path / "data",
            auto_indexes=automatic_indexes.AutomaticIndexes(yaml),
            concurrency=concurrency,
        )
        opened.append(engine)
        return engine

    yield open_it
    for engine in opened:
        engine.close()


@pytest.fixture
def service(
    open_auto: Callable[..., Any], make_service: type[service_calls.Service]
) -> service_calls.Service:
    service = make_service(inprocess.Channel(open_auto()))
    for number in range(4):
        service.put(service.key("T", number + 1), a=number % 2, b=number)
    return service


def test_a_query_without_an_index_is_served_and_index_yaml_names_it(
    service: service_calls.Service, yaml: Path
) -> None:
    assert service.names("T", ("a", "=", 1), order=["-b"]) == [4, 2]
    assert automatic_indexes.read_file(yaml) == (AB,)
    assert automatic_indexes.MARKER in yaml.read_text()
    written = yaml.read_bytes()
    service.put(service.key("T", 9), a=1, b=9)
    assert service.names("T", ("a", "=", 1), order=["-b"]) == [9, 4, 2]
    assert yaml.read_bytes() == written


def test_entries_removed_from_index_yaml_come_back_when_needed(
    service: service_calls.Service,
    open_auto: Callable[..., Any],
    make_service: type[service_calls.Service],
    yaml: Path,
) -> None:
    service.names("T", ("a", "=", 1), order=["-b"])
    yaml.unlink()
    again = make_service(inprocess.Channel(open_auto()))
    assert not yaml.exists()
    assert again.names("T", ("a", "=", 1), order=["-b"]) == [4, 2]
    assert automatic_indexes.read_file(yaml) == (AB,)


def test_a_count_without_an_index_is_served_too(service: service_calls.Service, yaml: Path) -> None:
    assert service.count(service.query("T", ("a", "=", 1), order=["-b"]), None) == [2]
    assert automatic_indexes.read_file(yaml) == (AB,)


def test_strict_engines_name_the_index_and_define_nothing(
    tmp_path: Path, make_service: type[service_calls.Service]
) -> None:
    with inprocess.open_engine(tmp_path / "data") as engine:
        service = make_service(inprocess.Channel(engine))
        for _ in range(2):
            with assert_refused("FAILED_PRECONDITION", "recommended index is:\n- kind: T\n"):
                service.names("T", ("a", "=", 1), order=["-b"])


def test_a_transaction_with_reads_is_served_if_nothing_changed(
    service: service_calls.Service,
) -> None:
    transaction = service.begin()
    assert service.get(service.key("T", 1), transaction=transaction) == {"a": 0, "b": 0}
    found = service.names("T", ("a", "=", 1), order=["-b"], transaction=transaction)
    assert found == [4, 2]
    service.commit({"delete": service.key("T", 4)}, transaction=transaction)
    assert service.names("T", ("a", "=", 1), order=["-b"]) == [2]


def test_a_transaction_with_an_older_snapshot_is_served_at_its_moment(
    service: service_calls.Service,
) -> None:
    transaction = service.begin(read_only={})
    service.get(service.key("T", 1), transaction=transaction)
    service.put(service.key("T", 2), a=1, b=77)
    assert service.names("T", ("a", "=", 1), order=["-b"], transaction=transaction) == [4, 2]
    again = service.begin(read_only={})
    assert service.names("T", ("a", "=", 1), order=["-b"], transaction=again) == [2, 4]


def test_a_transaction_with_an_older_snapshot_is_aborted_once_without_history(
    make_service: type[service_calls.Service],
) -> None:
    with inprocess.open_engine(
        None, auto_indexes=automatic_indexes.AutomaticIndexes(), history=0
    ) as engine:
        service = make_service(inprocess.Channel(engine))
        service.put(service.key("T", 2), a=1, b=1)
        transaction = service.begin(read_only={})
        service.get(service.key("T", 1), transaction=transaction)
        service.put(service.key("T", 2), a=1, b=77)
        with assert_refused("ABORTED", "Run the transaction again"):
            service.names("T", ("a", "=", 1), order=["-b"], transaction=transaction)
        service.rollback(transaction)
        again = service.begin(read_only={})
        assert service.names("T", ("a", "=", 1), order=["-b"], transaction=again) == [2]


def test_filling_an_index_aborts_no_transaction(service: service_calls.Service) -> None:
    transaction = service.begin()
    assert service.names("T", ("a", "=", 1), transaction=transaction) == [2, 4]
    assert service.names("T", ("a", "=", 1), order=["-b"]) == [4, 2]
    service.commit({"delete": service.key("T", 1)}, transaction=transaction)


def test_the_content_above_the_marker_stays_byte_for_byte(yaml: Path) -> None:
    yaml.write_bytes(BY_HAND)
    yaml.chmod(0o640)
    automatic_indexes.add(yaml, [ABOVE])
    assert yaml.read_bytes() == BY_HAND
    automatic_indexes.add(yaml, [AB, ABOVE])
    automatic_indexes.add(yaml, [indexes.Index("U", (("x", False), ("y", False)))])
    written = yaml.read_bytes()
    assert written.startswith(BY_HAND)
    assert written.count(automatic_indexes.MARKER.encode()) == 1
    assert [index.kind for index in automatic_indexes.read_file(yaml)] == ["T", "T", "U"]
    assert yaml.stat().st_mode & 0o777 == 0o640
    assert [each.name for each in yaml.parent.iterdir()] == ["index.yaml"]


@pytest.mark.parametrize("text", ["", "\n", "# only words", "indexes:", "indexes:\n\n", "---\n"])
def test_any_file_without_entries_can_be_added_to(yaml: Path, text: str) -> None:
    yaml.write_text(text)
    automatic_indexes.add(yaml, [AB])
    assert yaml.read_text().startswith(text)
    assert automatic_indexes.read_file(yaml) == (AB,)


@pytest.mark.parametrize(
    "content",
    [b"indexes: []\n", b"indexes:\n- kind: T\n  properties:\n  - name: a\n  - name: c\nother: 1\n",
     b"a: [", b"\xff"],
)  # fmt: skip
def test_a_file_that_cannot_be_added_to_is_left_alone_and_the_query_is_served(
    service: service_calls.Service, yaml: Path, content: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    yaml.write_bytes(content)
    with pytest.raises(errors.InvalidArgument, match=r"index\.yaml"):
        automatic_indexes.add(yaml, [AB])
    assert service.names("T", ("a", "=", 1), order=["-b"]) == [4, 2]
    assert yaml.read_bytes() == content
    assert "was not updated" in caplog.text


def test_a_symbolic_link_stays_a_link(yaml: Path, tmp_path: Path) -> None:
    (tmp_path / "real.yaml").write_bytes(BY_HAND)
    yaml.symlink_to("real.yaml")
    automatic_indexes.add(yaml, [AB])
    assert yaml.is_symlink()
    assert (tmp_path / "real.yaml").read_bytes().startswith(BY_HAND)


def test_without_a_path_the_data_file_keeps_the_index(
    tmp_path: Path, make_service: type[service_calls.Service]
) -> None:
    for auto in (automatic_indexes.AutomaticIndexes(), None):
        with inprocess.open_engine(tmp_path / "data", auto_indexes=auto) as engine:
            service = make_service(inprocess.Channel(engine))
            assert service.names("T", ("a", "=", 1), order=["-b"]) == []
    assert not (tmp_path / "index.yaml").exists()


def test_threads_that_need_indexes_at_once_lose_none(
    open_auto: Callable[..., Any], make_service: type[service_calls.Service], yaml: Path
) -> None:
    engine = open_auto()
    together = threading.Barrier(6)
    refusals = []

    def run(number: int) -> None:
        service = make_service(inprocess.Channel(engine))
        together.wait()
        try:
            for other in range(3):
                service.names("T", (f"p{number % 3}", "=", 1), order=[f"q{other}"])
        except grpc.RpcError as refusal:
            refusals.append(refusal)

    threads = [threading.Thread(target=run, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert refusals == []
    assert len(automatic_indexes.read_file(yaml)) == 9


def test_processes_that_add_to_one_file_lose_nothing(yaml: Path) -> None:
    yaml.write_bytes(BY_HAND)
    program = (
        "import sys\nfrom datastore_emulator.encoding import indexes\n"
        "from datastore_emulator.execution import automatic_indexes\n"
        "for n in range(20):\n"
        "    made = indexes.Index(sys.argv[2], ((f'a{n}', False), ('b', True)))\n"
        "    automatic_indexes.add(sys.argv[1], [made])"
    )
    children = [
        subprocess.Popen([sys.executable, "-c", program, str(yaml), kind]) for kind in ("A", "B")
    ]
    assert [child.wait() for child in children] == [0, 0]
    assert len(automatic_indexes.read_file(yaml)) == 41
    assert yaml.read_bytes().startswith(BY_HAND)


names = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=8)


@given(kind=names, properties=st.lists(st.tuples(names, st.booleans()), min_size=2, max_size=3))
def test_an_index_with_any_names_survives_yaml(
    kind: str, properties: list[tuple[str, bool]]
) -> None:
    index = indexes.Index(kind, tuple(properties))
    text = f"indexes:\n{index_yaml.entry(index)}"
    if "__key__" not in [name for name, _ in properties]:
        assert index_yaml.parse(text, "index.yaml") == (index,)


@pytest.mark.parametrize(
    "name", ["yes", "Null", "1", "a: b", "#x", "- y", "é", "\U0001f600", "\x85"]
)
def test_names_that_yaml_reads_as_something_else_are_quoted(name: str) -> None:
    index = indexes.Index(name, ((name, False), ("b", False)))
    assert index_yaml.parse(f"indexes:\n{index_yaml.entry(index)}", "index.yaml") == (index,)
