"""Test what `doctor` finds in services that are sound, and in services that are not."""

import contextlib
import dataclasses
import os
import re
import shutil
import socket
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

import embedded_engine
from comments import app as apps
from comments import config
from comments.cli import command_table
from comments.domain import records
from comments.events import message_queue
from comments.store import connection, transactions
from comments.store.folder import server_address
from comments.upkeep import service_checks
from comments.upkeep.backups import nightly_backup
from tests.support import api_fuzzing, loopback_servers, optional_tools, prepared_stores
from tests.support.outside import mail_server
from tests.support.threads import sample_threads

pytestmark = pytest.mark.embedded

SETTINGS = dataclasses.replace(sample_threads.SETTINGS, secret="a secret of the tests, long enough")
# What the command found, by subject: the levels and the sentences.
Found = dict[str, list[tuple[str, str]]]
Run = Callable[..., Found]
Serve = Callable[..., contextlib.AbstractContextManager[str]]


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder with the site "demo"."""
    folder = tmp_path_factory.mktemp("prepared") / "data"
    folder.mkdir(mode=0o700)
    files = embedded_engine.DataFiles()
    with files.open_store(folder / "flatthread.db", SETTINGS) as store, store.context():
        prepared_stores.demo()
    (folder / "secret").write_text(SETTINGS.secret)
    (folder / "secret").chmod(0o600)
    return folder


@pytest.fixture
def data(prepared: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(prepared, tmp_path / "data"))


@pytest.fixture
def run(data: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Run]:
    """Return a function that runs the command with settings, and checks its exit status."""
    files = embedded_engine.DataFiles()
    with contextlib.ExitStack() as stack:

        def opened(
            *, creates: bool, backs_up: bool = True
        ) -> tuple[config.Settings, connection.Store]:
            settings = config.load(creates=creates)
            return settings, stack.enter_context(files.open_store(settings.data_file, settings))

        def ran(**settings: str) -> Found:
            for name, value in {"FLATTHREAD_DATA": str(data), **settings}.items():
                monkeypatch.setenv(name, value)
            app = command_table.create_app(opened, lambda: files)
            done = app.test_cli_runner().invoke(args=["doctor"])
            found: Found = {}
            for line in done.stdout.splitlines():
                level, subject, said = line.split(maxsplit=2)
                found.setdefault(subject, []).append((level, said))
            is_wrong = any(level == "wrong" for each in found.values() for level, _ in each)
            assert done.exit_code == is_wrong, done.output
            return found

        yield ran


@pytest.fixture
def serving(open_store: connection.Store, site: records.Site) -> Serve:
    """Return a function that serves a site of the same name, with settings, at an address."""

    def served(**changes: Any) -> contextlib.AbstractContextManager[str]:
        settings = dataclasses.replace(SETTINGS, **changes)
        return api_fuzzing.served(apps.create_app(settings, open_store))

    return served


def wrong(found: Found, subject: str) -> str:
    """Return the only sentence about what is wrong, which is about `subject`."""
    ((where, said),) = (
        (each, said) for each in found for level, said in found[each] if level == "wrong"
    )
    assert where == subject, said
    return said


def test_a_sound_service_has_nothing_wrong(
    run: Run, data: Path, serving: Serve, tmp_path: Path
) -> None:
    settings = dataclasses.replace(SETTINGS, data_dir=data, backup_dir=tmp_path / "backups")
    (tmp_path / "backups").mkdir()
    assert nightly_backup.make(settings, embedded_engine.DataFiles(), now=datetime.now(UTC))
    with serving() as url, mail_server.serving() as box:
        server_address.note(data, f"{url}/")
        found = run(
            PUBLIC_URL=url,
            BACKUP_DIR=str(tmp_path / "backups"),
            SMTP_URL=f"smtp+plain://127.0.0.1:{box.port}",
            MAIL_FROM=mail_server.SENDER,
        )
    assert found.pop("owner")[0][0] == "warning"
    assert {level for each in found.values() for level, _ in each} == {"ok"}
    assert set(found) == {
        "settings", "disk", "mail", "store", "clock", "deliveries", "backups", "address"
    }  # fmt: skip
    assert box.taken == []


def test_a_new_service_gets_advice_but_nothing_is_wrong(run: Run) -> None:
    found = run()
    advised = {each for each in found if ("warning" in dict(found[each]))}
    assert advised == {"owner", "backups", "address"}


@pytest.mark.parametrize(
    ("subject", "settings", "said"),
    [
        ("settings", {"MAX_BODY": "none"}, "MAX_BODY must be a whole number"),
        ("store", {"FLATTHREAD_DATA": "nowhere"}, "There is no store in .*nowhere"),
        ("store", {"SORT_HASH_LEVELS": "3"}, "SORT_HASH_LEVELS is 3, but site demo has 8 levels"),
        ("backups", {"BACKUP_DIR": "."}, "The last nightly backup is overdue"),
        ("address", {"PUBLIC_URL": "http://comments.invalid"}, "begins with http:.*|its name has"),
        (
            "address",
            {"PUBLIC_URL": "https://comments.invalid"},
            "TRUSTED_PROXIES is 0|its name has",
        ),
    ],
)
def test_wrong_settings_are_found(
    run: Run, subject: str, settings: dict[str, str], said: str
) -> None:
    found = run(**settings)
    assert all(re.search(said, each) for level, each in found[subject] if level == "wrong")
    assert "wrong" in dict(found[subject])


def test_a_secret_that_others_can_read_is_found(run: Run, data: Path) -> None:
    (data / "secret").chmod(0o644)
    assert f"Run: chmod 600 {data}/secret" in wrong(run(), "disk")


def test_a_damaged_data_file_is_found(run: Run, data: Path) -> None:
    (data / "flatthread.db").write_bytes(b"no data file at all" * 1_000)
    assert "flatthread.db" in wrong(run(), "store")


def test_a_clock_behind_the_data_is_found(run: Run, data: Path) -> None:
    later = time.time() + 3600
    os.utime(data / "flatthread.db", (later, later))
    assert "but the data was changed at" in wrong(run(), "clock")


def test_a_full_disk_causes_a_warning(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service_checks, "_SPARE", 1 << 80)
    ((level, said),) = run()["disk"]
    assert (level, "make space" in said) == ("warning", True)


def test_another_users_data_is_not_opened(run: Run, data: Path) -> None:
    optional_tools.root()
    os.chown(data, 1, -1)
    assert "as in: sudo -u daemon flatthread doctor" in wrong(run(), "disk")


def test_a_mail_server_that_does_not_answer_is_found(run: Run) -> None:
    with loopback_servers.unused_port() as port:
        found = run(
            SMTP_URL=f"smtp+plain://127.0.0.1:{port}",
            MAIL_FROM=mail_server.SENDER,
            PUBLIC_URL=f"http://127.0.0.1:{port}",
        )
    assert "Connection refused" in dict(found["mail"])["wrong"]


def test_an_address_without_a_server_is_found(run: Run) -> None:
    with loopback_servers.unused_port() as port:
        found = run(PUBLIC_URL=f"http://127.0.0.1:{port}")
    assert "does not answer: Connection refused" in wrong(found, "address")


def test_an_untrusted_certificate_is_found(run: Run) -> None:
    with loopback_servers.receiver(certificate="localhost") as server:
        found = run(PUBLIC_URL=f"https://localhost:{server.port}", TRUSTED_PROXIES="1")
    assert "its certificate is not valid" in wrong(found, "address")


def test_a_server_that_does_not_pass_on_requests_is_found(run: Run) -> None:
    with loopback_servers.receiver() as server:
        server.status = 502
        found = run(PUBLIC_URL=f"http://127.0.0.1:{server.port}")
    assert "/healthz answers 502" in wrong(found, "address")


@pytest.mark.parametrize("secret", ["another secret of another service", None])
def test_another_service_is_found(run: Run, serving: Serve, secret: str | None) -> None:
    other = serving(secret=secret) if secret else loopback_servers.receiver()
    with other as at:
        url = at if isinstance(at, str) else f"http://127.0.0.1:{at.port}"
        found = run(PUBLIC_URL=url)
    assert "Another service answers at" in wrong(found, "address")


def test_too_many_trusted_proxies_are_found(run: Run, serving: Serve) -> None:
    with serving(trusted_proxies=1) as url:
        found = run(PUBLIC_URL=url, TRUSTED_PROXIES="1")
    assert "TRUSTED_PROXIES is 1, which is too many" in wrong(found, "address")


def test_a_clock_that_differs_from_the_proxys_is_found(run: Run) -> None:
    past = datetime.now(UTC) - timedelta(minutes=5)

    def talk(connection: socket.socket, _over: object) -> None:
        connection.recv(4096)
        date = past.strftime("%a, %d %b %Y %H:%M:%S GMT")
        connection.sendall(f"HTTP/1.0 200 OK\r\nDate: {date}\r\n\r\n".encode())

    with loopback_servers.peer(talk) as port:
        found = run(PUBLIC_URL=f"http://127.0.0.1:{port}")
    assert f"answered at {past:%Y-%m-%d %H:%M:%S}" in found["clock"][-1][1]


def test_dead_letters_and_old_deliveries_cause_warnings(run: Run, data: Path) -> None:
    at = datetime.now(UTC) - timedelta(hours=2)
    rows = message_queue.new_rows("event.1", ["hook/demo/a", "hook/demo/b"], "{}", at=at)
    files = embedded_engine.DataFiles()
    with files.open_store(data / "flatthread.db", SETTINGS) as store, store.context():
        transactions.transaction(lambda: transactions.apply(message_queue.writes(rows)))
        message_queue.give_up(rows[0].key.id(), "answered 410")
    (letters, oldest) = run()["deliveries"]
    assert letters == ("warning", "1 dead letter. Run: flatthread delivery dead")
    assert oldest[0] == "warning"
    assert oldest[1].startswith("The oldest waits for 120 minutes.")
