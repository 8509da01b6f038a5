"""Messages are sent correctly even if a process is killed or two processes send concurrently."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from comments.events import message_queue, message_sender
from comments.sites import site_settings
from comments.store import connection
from datastore_emulator import inprocess
from tests.support import forked_programs, loopback_servers, programs
from tests.support.outside import webhook_site
from tests.support.threads import sample_threads

SENDING = """
import sys
from datetime import datetime, timedelta
from comments.store import connection
from comments.events import message_sender
from datastore_emulator import inprocess
from tests.support.threads import sample_threads
from tests.support import loopback_servers
from tests.comments.events import test_message_sender_processes

path, *ports = sys.argv[1:]
indexes = test_message_sender_processes.INDEXES
engine = inprocess.open_engine(path, indexes=indexes, concurrency="pessimistic")
store = connection.Store(inprocess.Channel(engine), project="test")
client = loopback_servers.client(*map(int, ports))
message_sender.OUTBOUND.put(store, client)
with store.context():
    print("ready", flush=True)
    sys.stdin.readline()
    message_sender.serve(lambda: sample_threads.START + timedelta(hours=1))
"""
INDEXES = programs.ROOT / "index.yaml"


@pytest.fixture
def shared(tmp_path: Path) -> Iterator[connection.Store]:
    """Open a store in a file that other processes share, and enter its context."""
    path = tmp_path / "store.db"
    with inprocess.open_engine(path, indexes=INDEXES, concurrency="pessimistic") as engine:
        opened = connection.Store(inprocess.Channel(engine), project="test", deadline=60.0)
        with opened.context():
            site_settings.add(
                "demo",
                ["https://a.example"],
                scheme=sample_threads.SETTINGS.scheme,
                now=webhook_site.START,
            )
            yield opened


def _sender(path: Path, told: list[loopback_servers.Receiver]) -> forked_programs.Program:
    ports = [each.port for each in told]
    child = forked_programs.start(SENDING, path / "store.db", *ports)
    assert child.stdout.readline() == "ready\n"
    return child


def _go(child: forked_programs.Program) -> None:
    child.stdin.write("\n")
    child.stdin.flush()


@pytest.mark.embedded
@pytest.mark.slow
def test_another_process_finishes_for_one_killed_between_sending_and_noting(
    shared: connection.Store,
    told: list[loopback_servers.Receiver],
    tmp_path: Path,
    at: webhook_site.Time,
) -> None:
    client = loopback_servers.client(*(each.port for each in told))
    message_sender.OUTBOUND.put(shared, client)
    for number, each in enumerate(told):
        webhook_site.register(f"{number}", each.url, client)
    site = site_settings.get("demo")
    expected = [webhook_site.post(site, f"{n}") for n in range(4)]
    child = _sender(tmp_path, told)

    def kill(_: loopback_servers.Heard) -> None:
        if len(told[0].heard) == 2:
            os.kill(child.pid, signal.SIGKILL)
            # Only the test's own thread may use `child`.
            programs.wait_until(lambda: not Path(f"/proc/{child.pid}").exists())

    told[0].then = kill
    _go(child)
    child.output()
    assert child.returncode == -signal.SIGKILL
    told[0].then = lambda _: None
    # No process sends the dead process's claimed messages until their lease ends.
    message_sender.serve(at)
    assert webhook_site.left() != []
    at.now += message_queue.LEASE
    message_sender.serve(at)
    assert webhook_site.left() == []
    for each in told:
        assert sorted(set(each.ids)) == sorted(expected)
        assert len(each.ids) <= len(expected) + 1
    assert len(told[0].ids) == len(expected) + 1


@pytest.mark.embedded
@pytest.mark.slow
def test_two_concurrent_processes_send_each_message_once(
    shared: connection.Store, told: list[loopback_servers.Receiver], tmp_path: Path
) -> None:
    client = loopback_servers.client(*(each.port for each in told))
    for number, each in enumerate(told):
        webhook_site.register(f"{number}", each.url, client)
    site = site_settings.get("demo")
    expected = [webhook_site.post(site, f"{n}") for n in range(8)]
    children = [_sender(tmp_path, told) for _ in range(2)]
    for child in children:
        _go(child)
    for child in children:
        child.output()
        assert child.returncode == 0
    assert webhook_site.left() == []
    for each in told:
        assert sorted(each.ids) == sorted(expected)
