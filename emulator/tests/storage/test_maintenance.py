"""Backup, restore, compaction and inspection, on files in use and with kills at every step."""

import contextlib
import shutil
import signal
import sqlite3
import threading
from pathlib import Path
from typing import Any

import pytest

from datastore_emulator import errors, inprocess
from datastore_emulator.storage import inspection, maintenance
from emulator.tests.support import service_calls
from emulator.tests.support.service_calls import assert_refused
from tests.support import forked_programs

FORMAT_1 = Path(__file__).with_name("format1.sql")

# Runs a function of `maintenance` and kills itself at the n-th system call that changes a folder.
KILLED = """
import os, signal, sys
from datastore_emulator.storage import maintenance
left = int(sys.argv[1])

def watch(event, arguments):
    global left
    if event in ("os.link", "os.rename", "os.remove", "sqlite3.connect"):
        left -= 1
        if not left:
            os.kill(os.getpid(), signal.SIGKILL)

sys.addaudithook(watch)
exec(sys.argv[2])
"""


def opened(
    path: Path, make_service: type[service_calls.Service], **options: Any
) -> tuple[inprocess.Engine, service_calls.Service]:
    engine = inprocess.open_engine(path, **options)
    return engine, make_service(inprocess.Channel(engine))


@pytest.fixture
def filled(tmp_path: Path, make_service: type[service_calls.Service], index_yaml: Path) -> Path:
    """Return a file with 30 entities, of which some were changed or deleted."""
    path = tmp_path / "data"
    engine, service = opened(path, make_service, indexes=index_yaml, durability="fast")
    with engine:
        for n in range(1, 41):
            service.put(service.key("T", n), a=n, tag=["x", "y"], c=n % 3)
        for n in range(31, 41):
            service.delete(service.key("T", n))
        service.put(service.key("T", 1), a=100)
    return path


def changed(path: Path, *statements: str) -> None:
    with contextlib.closing(sqlite3.connect(path)) as connection, connection:
        for statement in statements:
            connection.execute(statement)


def entities(path: Path, make_service: type[service_calls.Service]) -> list[Any]:
    engine, service = opened(path, make_service, durability="fast")
    with engine:
        return service.names("T", order=["a"])


def killed_at(step: int, call: str) -> bool:
    status, _ = forked_programs.run(KILLED, step, call)
    assert status in (0, -signal.SIGKILL)
    return status != 0


def test_a_backup_is_one_complete_file(
    filled: Path, tmp_path: Path, make_service: type[service_calls.Service]
) -> None:
    copied = maintenance.backup(filled, tmp_path / "copy")
    assert copied.entities == 30
    assert copied.size == (tmp_path / "copy").stat().st_size
    assert sorted(each.name for each in tmp_path.iterdir()) == [
        "copy",
        "data",
        "data-turn",
        "index.yaml",
    ]
    assert entities(tmp_path / "copy", make_service) == entities(filled, make_service)


def test_a_backup_of_a_busy_file_has_one_moment(
    tmp_path: Path, make_service: type[service_calls.Service]
) -> None:
    engine, service = opened(tmp_path / "data", make_service, durability="fast")
    service.put(service.key("T", 1_000), a=0)
    stop = threading.Event()

    def write() -> None:
        n = 0
        while not stop.is_set():
            n += 1
            halves = (service.entity(service.key(kind, n), a=n) for kind in ("left", "right"))
            service.commit(*({"upsert": half} for half in halves))

    writer = threading.Thread(target=write)
    writer.start()
    try:
        for number in range(5):
            maintenance.backup(tmp_path / "data", tmp_path / f"copy{number}")
    finally:
        stop.set()
        writer.join()
        engine.close()
    for number in range(5):
        engine, service = opened(tmp_path / f"copy{number}", make_service)
        with engine:
            assert service.names("left") == service.names("right")
        assert not inspection.check(tmp_path / f"copy{number}").wrong


def test_a_backup_overwrites_nothing(filled: Path, tmp_path: Path) -> None:
    (tmp_path / "copy").write_text("mine")
    with pytest.raises(errors.AlreadyExists, match="copy"):
        maintenance.backup(filled, tmp_path / "copy")
    assert (tmp_path / "copy").read_text() == "mine"


def test_other_files_are_not_backed_up(tmp_path: Path) -> None:
    with pytest.raises(errors.FailedPrecondition, match="no data file"):
        maintenance.backup(tmp_path / "missing", tmp_path / "copy")
    changed(tmp_path / "other", "CREATE TABLE other (x)")
    with pytest.raises(errors.FailedPrecondition, match="another program"):
        maintenance.backup(tmp_path / "other", tmp_path / "copy")
    (tmp_path / "empty").touch()
    inprocess.open_engine(tmp_path / "data").close()
    with pytest.raises(errors.FailedPrecondition, match="empty"):
        maintenance.backup(tmp_path / "empty", tmp_path / "copy")
    with pytest.raises(errors.FailedPrecondition, match="nowhere"):
        maintenance.backup(tmp_path / "data", tmp_path / "nowhere" / "copy")
    assert sorted(each.name for each in tmp_path.iterdir()) == [
        "data",
        "data-turn",
        "empty",
        "other",
    ]


def test_a_damaged_file_is_not_backed_up(filled: Path, tmp_path: Path) -> None:
    damage_pages(filled)
    with pytest.raises(errors.Damaged):
        maintenance.backup(filled, tmp_path / "copy")
    assert not (tmp_path / "copy").exists()


def damage_pages(path: Path) -> None:
    """Overwrite the second half of every page except the first."""
    content = bytearray(path.read_bytes())
    for start in range(4096, len(content), 4096):
        content[start + 8 : start + 2048] = b"\xa5" * 2040
    path.write_bytes(content)


def test_a_restored_backup_has_its_data(
    filled: Path, tmp_path: Path, make_service: type[service_calls.Service]
) -> None:
    maintenance.backup(filled, tmp_path / "copy")
    now = 4_000_000_000_000_000
    maintenance.restore(tmp_path / "copy", tmp_path / "new", now=now)
    assert entities(tmp_path / "new", make_service) == entities(filled, make_service)
    assert not inspection.check(tmp_path / "new").wrong


def test_ids_handed_out_after_the_backup_are_not_reused_after_the_restore(
    tmp_path: Path, make_service: type[service_calls.Service]
) -> None:
    clock = lambda: 1_800_000_000.0  # noqa: E731 - a clock is any callable
    engine, service = opened(tmp_path / "data", make_service, clock=clock)
    wanted = [service.key("T")] * 300
    service.call("AllocateIds", keys=wanted)
    maintenance.backup(tmp_path / "data", tmp_path / "copy")
    lost = {key.path[0].id for key in service.call("AllocateIds", keys=wanted).keys}
    engine.close()
    again = []
    for later in (1, 2):
        now = (1_800_000_000 + later) * 1_000_000
        maintenance.restore(tmp_path / "copy", tmp_path / "data", now=now, replace=True)
        engine, service = opened(tmp_path / "data", make_service, clock=clock)
        with engine:
            again += [key.path[0].id for key in service.call("AllocateIds", keys=wanted).keys]
    assert lost.isdisjoint(again)
    assert len(set(again)) == 600


def test_a_restored_file_cannot_be_read_at_lost_moments(
    filled: Path,
    tmp_path: Path,
    make_service: type[service_calls.Service],
) -> None:
    maintenance.backup(filled, tmp_path / "copy")
    now = 4_000_000_000_000_000
    maintenance.restore(tmp_path / "copy", filled, now=now, replace=True)
    engine, service = opened(filled, make_service, clock=lambda: now / 1e6 + 1)
    with engine, assert_refused("INVALID_ARGUMENT", "history of this data file"):
        service.get(service.key("T", 1), read_time={"seconds": now // 1_000_000 - 1})


def test_a_backup_of_format_1_is_restored_in_the_current_format(
    tmp_path: Path, make_service: type[service_calls.Service]
) -> None:
    with contextlib.closing(sqlite3.connect(tmp_path / "old")) as connection:
        connection.executescript(FORMAT_1.read_text(encoding="utf-8"))
    maintenance.backup(tmp_path / "old", tmp_path / "copy")
    maintenance.restore(tmp_path / "copy", tmp_path / "data", now=1_900_000_000_000_000)
    assert entities(tmp_path / "data", make_service) == ["two", 1]


def test_a_restore_overwrites_only_with_replace(
    filled: Path, tmp_path: Path, make_service: type[service_calls.Service]
) -> None:
    maintenance.backup(filled, tmp_path / "copy")
    engine, service = opened(filled, make_service)
    with engine:
        service.put(service.key("T", 99), a=1)
    with pytest.raises(errors.AlreadyExists):
        maintenance.restore(tmp_path / "copy", filled, now=1)
    assert 99 in entities(filled, make_service)
    maintenance.restore(tmp_path / "copy", filled, now=1, replace=True)
    assert 99 not in entities(filled, make_service)


def test_a_file_in_use_is_not_replaced(
    filled: Path, tmp_path: Path, make_service: type[service_calls.Service]
) -> None:
    maintenance.backup(filled, tmp_path / "copy")
    engine, service = opened(filled, make_service)
    with engine:
        with pytest.raises(errors.Unavailable, match="in use"):
            maintenance.restore(tmp_path / "copy", filled, now=1, replace=True)
        service.put(service.key("T", 99), a=0)
    assert 99 in entities(filled, make_service)


def test_a_damaged_file_is_replaced(
    filled: Path, tmp_path: Path, make_service: type[service_calls.Service]
) -> None:
    maintenance.backup(filled, tmp_path / "copy")
    filled.write_bytes(b"rubbish" * 1000)
    maintenance.restore(tmp_path / "copy", filled, now=1, replace=True)
    assert len(entities(filled, make_service)) == 30


def test_the_log_of_a_lost_file_is_not_applied_to_the_restored_one(
    filled: Path, tmp_path: Path, make_service: type[service_calls.Service]
) -> None:
    maintenance.backup(filled, tmp_path / "copy")
    engine, service = opened(filled, make_service)
    service.put(service.key("T", 99), a=1)
    shutil.copy(f"{filled}-wal", tmp_path / "kept")
    engine.close()
    filled.unlink()
    shutil.copy(tmp_path / "kept", f"{filled}-wal")
    maintenance.restore(tmp_path / "copy", filled, now=1)
    assert 99 not in entities(filled, make_service)
    assert not inspection.check(filled).wrong


def test_an_installed_copy_replaces_a_file_that_keeps_another_name(
    filled: Path, tmp_path: Path, make_service: type[service_calls.Service]
) -> None:
    maintenance.backup(filled, tmp_path / "copy")
    engine, service = opened(filled, make_service)
    with engine:
        service.put(service.key("T", 99), a=1)
    (tmp_path / "taken").touch()
    with pytest.raises(errors.AlreadyExists, match="taken"):
        maintenance.install(tmp_path / "copy", filled, now=1, kept=tmp_path / "taken")
    copied = maintenance.install(tmp_path / "copy", filled, now=1, kept=tmp_path / "kept")
    assert copied.entities == 30
    assert not (tmp_path / "copy").exists()
    assert 99 not in entities(filled, make_service)
    assert 99 in entities(tmp_path / "kept", make_service)
    for each in (filled, tmp_path / "kept"):
        assert not inspection.check(each).wrong


def test_a_damaged_file_is_replaced_and_kept(filled: Path, tmp_path: Path) -> None:
    maintenance.backup(filled, tmp_path / "copy")
    filled.write_bytes(b"rubbish" * 1000)
    Path(f"{filled}-journal").write_bytes(b"journal")
    maintenance.install(tmp_path / "copy", filled, now=1, kept=tmp_path / "kept")
    assert (tmp_path / "kept").read_bytes() == b"rubbish" * 1000
    assert not Path(f"{filled}-journal").exists()
    assert not inspection.check(filled).wrong


def test_a_damaged_copy_is_not_installed(filled: Path, tmp_path: Path) -> None:
    before = filled.read_bytes()
    (tmp_path / "copy").write_bytes(b"rubbish" * 1000)
    with pytest.raises(errors.Damaged):
        maintenance.install(tmp_path / "copy", filled, now=1, kept=tmp_path / "kept")
    with pytest.raises(errors.FailedPrecondition, match="no data file"):
        maintenance.install(tmp_path / "missing", filled, now=1, kept=tmp_path / "kept")
    assert filled.read_bytes() == before
    assert not (tmp_path / "kept").exists()


def test_only_an_open_file_is_in_use(
    filled: Path, tmp_path: Path, make_service: type[service_calls.Service]
) -> None:
    (tmp_path / "damaged").write_bytes(b"rubbish" * 1000)
    for each in (filled, tmp_path / "damaged", tmp_path / "missing"):
        maintenance.check_is_unused(each)
    assert (tmp_path / "damaged").read_bytes() == b"rubbish" * 1000
    assert not (tmp_path / "missing").exists()
    engine, service = opened(filled, make_service)
    with engine:
        with pytest.raises(errors.Unavailable, match="in use"):
            maintenance.check_is_unused(filled)
        service.put(service.key("T", 99), a=0)
    assert 99 in entities(filled, make_service)


def test_compaction_returns_the_space_of_deleted_data(
    tmp_path: Path,
    make_service: type[service_calls.Service],
    unindexed: type[service_calls.Unindexed],
) -> None:
    clock = lambda: 1_800_000_000.0  # noqa: E731 - a clock is any callable
    engine, service = opened(tmp_path / "data", make_service, clock=clock, durability="fast")
    for n in range(1, 200):
        service.put(service.key("T", n), a=n, text=unindexed("x" * 4000))
    for n in range(3, 200):
        service.delete(service.key("T", n))
    now = 1_800_004_000_000_000
    compacted = maintenance.compact(tmp_path / "data", now=now)
    assert compacted.after < compacted.before / 4
    assert service.names(order=["a"]) == [1, 2]
    service.put(service.key("T", 3), a=3)
    engine.close()
    assert not inspection.check(tmp_path / "data").wrong


def test_compact_and_check_need_an_existing_file(tmp_path: Path) -> None:
    with pytest.raises(errors.FailedPrecondition, match="no data file"):
        maintenance.compact(tmp_path / "missing", now=1)
    with pytest.raises(errors.FailedPrecondition, match="no data file"):
        inspection.check(tmp_path / "missing")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("step", range(1, 6))
def test_a_killed_backup_leaves_no_copy_or_a_complete_one(
    filled: Path, tmp_path: Path, step: int
) -> None:
    call = f"maintenance.backup({str(filled)!r}, {str(tmp_path / 'copy')!r})"
    was_killed = killed_at(step, call)
    if was_killed and not (tmp_path / "copy").exists():
        maintenance.backup(filled, tmp_path / "copy")
    report = inspection.check(tmp_path / "copy")
    assert (report.entities, report.wrong) == (30, 0)


@pytest.mark.parametrize("step", range(1, 9))
def test_a_killed_restore_leaves_the_old_file_or_the_new_one(
    filled: Path, tmp_path: Path, make_service: type[service_calls.Service], step: int
) -> None:
    maintenance.backup(filled, tmp_path / "copy")
    engine, service = opened(filled, make_service)
    with engine:
        service.put(service.key("T", 99), a=1)
    call = f"maintenance.restore({str(tmp_path / 'copy')!r}, {str(filled)!r}, now=1, replace=True)"
    was_killed = killed_at(step, call)
    report = inspection.check(filled)
    assert report.entities in ((30, 31) if was_killed else (30,))
    assert report.wrong == 0


def test_an_intact_file_has_no_problems_while_it_is_written(
    filled: Path, make_service: type[service_calls.Service]
) -> None:
    engine, service = opened(filled, make_service)
    with engine:
        service.put(service.key("T", 1), a=5)
        report = inspection.check(filled)
    assert report.problems == []
    assert (report.entities, report.revisions) == (30, 12)
    with contextlib.closing(sqlite3.connect(filled)) as connection:
        stored = connection.execute("SELECT count(*) FROM index_entries").fetchone()
    assert stored == (report.entries,)
    assert "30 entities" in str(report)


@pytest.mark.parametrize(
    ("damage", "problem"),
    [
        ("UPDATE entities SET crc = crc + 1 WHERE id = 3", "does not match its stored checksum"),
        ("UPDATE entities SET meta = X'00' WHERE id = 3", "does not match its times"),
        ("UPDATE entities SET key = X'00010001000110' WHERE id = 3", "entity 3 "),
        ("UPDATE entities SET proto = X'ff' WHERE id = 3", "entity 3 cannot be read"),
        ("UPDATE entities SET version = version * 2 WHERE id = 3", "newer than the last commit"),
        ("DELETE FROM index_entries WHERE entity_id = 3 AND index_id = 2", "is missing"),
        ("UPDATE index_entries SET entity_id = 4 WHERE entity_id = 3", "is wrong"),
        ("DELETE FROM entities WHERE id = 3", "belong to an existing entity"),
        ("UPDATE history SET until = 0 WHERE id = 1", "revision 1 has no valid period"),
        ("UPDATE history SET proto = X'ff' WHERE id = 1", "revision 1 cannot be read"),
    ],
)
def test_the_check_finds_each_kind_of_damage(filled: Path, damage: str, problem: str) -> None:
    changed(filled, damage)
    report = inspection.check(filled)
    assert report.wrong
    assert problem in str(report)


def test_the_check_finds_damaged_pages(filled: Path) -> None:
    damage_pages(filled)
    assert inspection.check(filled).wrong


def test_the_check_limits_the_listed_problems(
    filled: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inspection, "MAX_LISTED", 2)
    changed(filled, "UPDATE entities SET crc = 1")
    report = inspection.check(filled)
    assert report.wrong == 30
    assert len(report.problems) == 2


def test_a_file_of_an_old_format_is_refused_by_the_check(tmp_path: Path) -> None:
    with contextlib.closing(sqlite3.connect(tmp_path / "old")) as connection:
        connection.executescript(FORMAT_1.read_text(encoding="utf-8"))
    with pytest.raises(errors.FailedPrecondition, match="format"):
        inspection.check(tmp_path / "old")
