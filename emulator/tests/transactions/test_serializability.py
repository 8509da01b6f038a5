"""No anomaly is possible in either mode, between threads or between processes on one file.

Two clients use one data file. For threads, both clients use the same engine; for processes, the
second client uses a server on the same file. If an outside change commits first, the transaction
that has read the data is ABORTED. Otherwise, the change waits until that transaction has committed.
"""

import fcntl
import itertools
import random
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent import futures
from pathlib import Path
from typing import Any

import grpc
import pytest

from datastore_emulator import inprocess
from datastore_emulator.transactions import lock_table, shared_lock_files
from emulator.tests import conftest
from emulator.tests.support import service_calls
from tests.support import programs

MODES = ("optimistic", "pessimistic")
PLACES = list(itertools.product(("threads", "processes"), MODES))


@pytest.fixture(scope="module")
def indexes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("serializability") / "index.yaml"
    path.write_text(conftest.INDEXES)
    return path


@pytest.fixture(
    scope="module",
    params=PLACES,
    ids="-".join,
)
def file(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, indexes: Path
) -> Iterator["File"]:
    """One data file: its mode, the channels of two clients, and the folder of locks."""
    where, mode = request.param
    data = tmp_path_factory.mktemp("serializability") / "data"
    with inprocess.open_engine(data, indexes=indexes, concurrency=mode) as engine:
        channel = inprocess.Channel(engine)
        if where == "threads":
            yield File(mode, (channel, channel), data)
            return
        with (
            conftest.serving("--data", data, "--concurrency", mode) as (address, _),
            grpc.insecure_channel(address) as other,
        ):
            yield File(mode, (channel, other), data)


class File:
    def __init__(self, mode: str, channels: tuple[Any, ...], data: Path) -> None:
        self.mode = mode
        self.channels = channels
        self.locks = data.with_name(f"{data.name}-locks")

    def waiting(self) -> int:
        """Return the number of waiting requests in all processes."""
        return sum(
            bool(holder.awaited) for table in self.tables() for holder in table.holders.values()
        )

    def tables(self) -> list[lock_table.LockTable]:
        found = []
        with (self.locks / "gate").open("rb") as gate:
            # Take a turn, as processes do, because a file is incomplete while it is being
            # rewritten.
            fcntl.flock(gate, fcntl.LOCK_EX)
            for path in self.locks.iterdir():
                if path.name != "gate":
                    peer = shared_lock_files.Peer(path)
                    peer.catch_up()
                    peer.close()
                    found.append(peer.table)
        return found


_projects = itertools.count()


@pytest.fixture
def clients(file: File) -> list[service_calls.Service]:
    """Two clients for a project that no other test uses."""
    project = f"project{next(_projects)}"
    return [service_calls.Service(channel, project) for channel in file.channels]


@pytest.fixture
def service(clients: list[service_calls.Service]) -> service_calls.Service:
    return clients[0]


@pytest.fixture
def accounts(service: service_calls.Service) -> list[Any]:
    keys = [service.key("T", name) for name in ("a", "b")]
    for key in keys:
        service.put(key, a=1, b=0, tag="x")
    return keys


@pytest.fixture
def outside(file: File) -> Iterator[Callable[..., Any]]:
    """Run a function in a thread; return when it has finished or waits for a lock."""
    with futures.ThreadPoolExecutor(4) as executor:

        def submit(
            function: Callable[..., Any], *arguments: Any, **named: Any
        ) -> futures.Future[Any]:
            before = file.waiting() if file.mode == "pessimistic" else 0
            future = executor.submit(function, *arguments, **named)
            programs.wait_until(
                lambda: future.done() or (file.mode == "pessimistic" and file.waiting() > before),
                "the call is done or waits",
            )
            return future

        yield submit


def status(function: Callable[..., Any], *arguments: Any, **named: bytes) -> str:
    try:
        function(*arguments, **named)
    except grpc.RpcError as error:
        return error.code().name
    return "OK"


def set_to(service: service_calls.Service, key: Any, **properties: int) -> dict[str, Any]:
    return {"upsert": service.entity(key, **properties)}


def end_of(
    transaction: bytes, service: service_calls.Service, change: futures.Future[Any]
) -> tuple[bool, str]:
    """Commit a transaction's write.

    The commit may succeed only if the outside change comes after it.
    """
    was_first = change.done()
    write = set_to(service, service.key("T", "result"), a=100)
    outcome = status(service.commit, write, transaction=transaction)
    change.result(60)
    return was_first, outcome


def assert_serializable(file: File, ended: tuple[bool, str]) -> None:
    expected = {"optimistic": (True, "ABORTED"), "pessimistic": (False, "OK")}
    assert ended == expected[file.mode]


@pytest.mark.parametrize("written", [(0, 0), (0, 1)], ids=["lost update", "write skew"])
def test_write_skew_between_two_accounts_is_impossible(
    clients: list[service_calls.Service],
    accounts: list[Any],
    outside: Callable[..., Any],
    written: tuple[int, int],
) -> None:
    begun = [client.begin() for client in clients]
    for client, transaction in zip(clients, begun, strict=True):
        assert len(client.lookup(*accounts, transaction=transaction).found) == 2
    commits = [
        outside(
            status, client.commit, set_to(client, accounts[place], a=7), transaction=transaction
        )
        for client, transaction, place in zip(clients, begun, written, strict=True)
    ]
    assert sorted(commit.result(60) for commit in commits) == ["ABORTED", "OK"]


def test_read_skew(
    file: File,
    clients: list[service_calls.Service],
    accounts: list[Any],
    outside: Callable[..., Any],
) -> None:
    service, other = clients
    transaction = service.begin()
    assert service.get(accounts[0], transaction=transaction)["a"] == 1
    change = outside(other.commit, *(set_to(other, key, a=9) for key in accounts))
    # A change after the snapshot is either invisible or ends the transaction.
    assert service.names("T", ("a", "=", 9), transaction=transaction) == []
    assert service.get(accounts[1], transaction=transaction)["a"] == 1
    assert_serializable(file, end_of(transaction, service, change))


QUERIES = {
    "plain": lambda service: service.query("T", ("a", "=", 1)),
    "inequality": lambda service: service.query("T", ("a", ">=", 1)),
    "whole kind": lambda service: service.query("T"),
    "merge join": lambda service: service.query("T", ("a", "=", 1), ("b", "=", 0)),
    "keys-only": lambda service: service.query("T", ("a", "=", 1), keys_only=True),
    "projection": lambda service: service.query("T", projection=["a"]),
    "in": lambda service: service.query("T", ("a", "in", [1, 2])),
    "not equal": lambda service: service.query("T", ("a", "!=", 5)),
    "skipped": lambda service: service.query("T", ("a", "=", 1), offset=10),
    "composite": lambda service: service.query("T", order=["-a", "b"]),
    "ancestor": lambda service: service.query(
        "T", ("__key__", "under", service.key("T", "a")), order=["-a"]
    ),
    "kindless": lambda service: service.query(None),
    "kindless keys-only": lambda service: service.query(None, keys_only=True),
}
READS = QUERIES | {
    f"count of {name}": query for name, query in QUERIES.items() if "key" not in name
}


def read(service: service_calls.Service, name: str, transaction: bytes) -> list[Any]:
    query = READS[name](service)
    if name.startswith("count"):
        return service.count(query, None, transaction=transaction)
    return service.results(query, transaction=transaction)


# What a query locks does not depend on the process that asks for it.
BETWEEN_PROCESSES = {"plain", "merge join", "composite", "kindless keys-only", "count of plain"}


def in_places(changes: Iterable[tuple[str, ...]]) -> pytest.MarkDecorator:
    """Test each query between threads, and some of them between processes."""
    cases = [
        (place, *change)
        for place, change in itertools.product(PLACES, changes)
        if place[0] == "threads" or change[0] in BETWEEN_PROCESSES
    ]
    names = ("file", "name", "how")[: len(cases[0])]
    return pytest.mark.parametrize(names, cases, indirect=["file"], ids=_shown)


def _shown(value: str | tuple[str, ...]) -> str:
    return value if isinstance(value, str) else "-".join(value)


@in_places((name,) for name in READS)
def test_phantom(
    file: File,
    clients: list[service_calls.Service],
    accounts: list[Any],
    outside: Callable[..., Any],
    name: str,
) -> None:
    service, other = clients
    transaction = service.begin()
    read(service, name, transaction)
    phantom = other.key("T", "a", "T", "child")
    change = outside(other.put, phantom, a=1, b=0, tag="x")
    assert_serializable(file, end_of(transaction, service, change))


VANISHING = [
    (name, how)
    for name, how in itertools.product(READS, ("delete", "move"))
    # Neither change affects the result of the ancestor query, and a changed property does not
    # affect a count.
    if "ancestor" not in name and (name, how) != ("count of whole kind", "move")
]


@in_places(VANISHING)
def test_result_that_vanishes(
    file: File,
    clients: list[service_calls.Service],
    accounts: list[Any],
    outside: Callable[..., Any],
    name: str,
    how: str,
) -> None:
    service, other = clients
    transaction = service.begin()
    read(service, name, transaction)
    if how == "delete":
        change = outside(other.delete, accounts[1])
    else:
        change = outside(other.put, accounts[1], a=5, b=1)
    assert_serializable(file, end_of(transaction, service, change))


def test_insert_of_what_was_found_missing(
    file: File, clients: list[service_calls.Service], outside: Callable[..., Any]
) -> None:
    service, other = clients
    key = service.key("T", "missing")
    transaction = service.begin()
    assert service.get(key, transaction=transaction) is None
    change = outside(other.put, key, a=1)
    assert_serializable(file, end_of(transaction, service, change))


def test_unread_entities_can_be_changed(
    clients: list[service_calls.Service], accounts: list[Any]
) -> None:
    service, other = clients
    transaction = service.begin()
    service.get(accounts[0], transaction=transaction)
    service.names("T", ("a", "=", 1), limit=1, transaction=transaction)
    service.names("T", ("a", "<", 1), keys_only=True, transaction=transaction)
    other.put(service.key("T", "z"), a=1)
    other.put(accounts[1], a=1, b=5)
    service.commit(set_to(service, accounts[0], a=5), transaction=transaction)


ACCOUNTS, TOTAL = 6, 600


class Worker:
    """Moves money between accounts, and records its reads and writes."""

    def __init__(self, service: service_calls.Service, seed: int) -> None:
        self.service = service
        self.random = random.Random(seed)
        self.committed = []  # Tuples (version, {key: amount} read, {key: amount} written).
        self.looked = []  # Tuples (version of the snapshot, {key: amount}).

    def run(self, transactions: int) -> None:
        for _ in range(transactions):
            act = self.random.choice((self.transfer, self.transfer, self.collect, self.look))
            try:
                act()
            except grpc.RpcError as error:
                if error.code() is not grpc.StatusCode.ABORTED:
                    raise

    def amounts(self, found: Any) -> dict[int, int]:
        return {service_calls.last(each.entity.key): self.amount(each.entity) for each in found}

    def amount(self, entity: Any) -> int:
        return entity.properties["amount"].integer_value

    def transfer(self) -> None:
        """Move money between two accounts, which the worker reads separately."""
        service, transaction = self.service, self.service.begin()
        seen = {}
        for number in self.random.sample(range(1, ACCOUNTS + 1), 2):
            found = service.lookup(service.key("A", number), transaction=transaction).found
            seen |= self.amounts(found)
        (one, had), (other, got) = seen.items()
        amount = self.random.randint(0, had)
        self.commit(transaction, seen, {one: had - amount, other: got + amount})

    def collect(self) -> None:
        """Find accounts with a query, and move the richest account's surplus to the poorest one."""
        service, transaction = self.service, self.service.begin()
        query = service.query("A", ("amount", ">", 120))
        rich = self.amounts(service.results(query, transaction=transaction))
        poor = self.amounts(service.results(service.query("A"), transaction=transaction))
        seen = poor | rich
        low, high = min(seen, key=seen.__getitem__), max(seen, key=seen.__getitem__)
        if low != high:
            written = {low: seen[low] + 10, high: seen[high] - 10}
            self.commit(transaction, seen, written)
        else:
            # Otherwise, its locks on all accounts would block the other workers.
            service.rollback(transaction)

    def look(self) -> None:
        transaction = self.service.begin(read_only={})
        batch = self.service.batch(self.service.query("A"), transaction=transaction)
        self.service.rollback(transaction)
        self.looked.append((batch.snapshot_version, self.amounts(batch.entity_results)))

    def commit(self, transaction: bytes, seen: dict[int, int], written: dict[int, int]) -> None:
        service = self.service
        changes = [
            set_to(service, service.key("A", number), amount=amount)
            for number, amount in written.items()
        ]
        answer = service.commit(*changes, transaction=transaction)
        self.committed.append((answer.mutation_results[0].version, seen, written))


def test_random_transactions_have_a_serial_order(clients: list[service_calls.Service]) -> None:
    service = clients[0]
    state = dict.fromkeys(range(1, ACCOUNTS + 1), TOTAL // ACCOUNTS)
    service.commit(
        *(set_to(service, service.key("A", number), amount=state[number]) for number in state)
    )
    workers = [Worker(client, seed) for seed, client in enumerate(clients * 2)]
    with futures.ThreadPoolExecutor(len(workers)) as executor:
        for run in [executor.submit(worker.run, 40) for worker in workers]:
            run.result(120)
    history = sorted(
        (each for worker in workers for each in worker.committed), key=lambda each: each[0]
    )
    assert len(history) > 10
    states = {0: dict(state)}
    for version, seen, written in history:
        assert seen == {number: state[number] for number in seen}, version
        state |= written
        states[version] = dict(state)
    assert sum(state.values()) == TOTAL
    for version, seen in (each for worker in workers for each in worker.looked):
        assert seen == states[max(each for each in states if each <= version)]


def test_counting_between_two_clients_loses_nothing(clients: list[service_calls.Service]) -> None:
    key = clients[0].key("T", "counter")
    clients[0].put(key, n=0)

    def count(client: service_calls.Service) -> None:
        for _ in range(10):
            while status(increment, client) != "OK":
                pass

    def increment(client: service_calls.Service) -> None:
        transaction = client.begin()
        number = client.get(key, transaction=transaction)["n"]
        client.commit(set_to(client, key, n=number + 1), transaction=transaction)

    threads = [threading.Thread(target=count, args=(client,)) for client in clients * 2]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert clients[0].get(key) == {"n": 40}
