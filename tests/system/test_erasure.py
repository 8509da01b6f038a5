"""Retracted texts disappear immediately from every response and soon from every stored byte.

Two real processes have shown the text in every format and have cached it. The store is a file. The
tests search the store's rows and bytes for the plain text and its compressed forms.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest

from comments.domain import records
from comments.domain.records import Policy, Status, Verb
from comments.events import dispatcher
from comments.moderation import decisions
from comments.moderation.policy import policy_changes
from comments.posting import own_comment
from comments.reading.compaction import compactor
from comments.reading.materialized import view_cache
from comments.sites import site_settings
from comments.store import connection, ownership, reads, transactions
from comments.store.models import comment_rows
from comments.transfer import personal_data
from comments.upkeep import background_worker, scheduler, wiring
from datastore_emulator import data_files, inprocess
from tests.support import forked_programs, programs
from tests.support.histories import counter_oracle
from tests.support.threads import compaction, reader_processes, sample_threads, sample_votes

pytestmark = [pytest.mark.slow, pytest.mark.embedded]

SCHEME = sample_threads.SETTINGS.scheme
NAME = records.ThreadName("demo", "page")
INDEXES = programs.ROOT / "index.yaml"
CANARY = "quetzalcoatlus"
ADDRESS = "archaeopteryx"
ADA = records.Actor("cli", "Ada")
AGE = 1.5  # Seconds for which these processes may use a directory

# This program reads lists of paths and prints their responses, one list per line.
READING = """
import json
import sys
from comments import app, config
from comments.store import connection
from comments.reading.materialized import view_cache
from datastore_emulator import inprocess
from tests.system import test_erasure

view_cache.CACHE_MAX_AGE = test_erasure.AGE
with inprocess.open_engine(sys.argv[1], indexes=test_erasure.INDEXES, history=0) as engine:
    store = connection.Store(inprocess.Channel(engine), project="test")
    client = app.create_app(config.Settings(secret="a secret of the tests"), store).test_client()
    for line in sys.stdin:
        answers = [client.get(path) for path in json.loads(line)]
        print(json.dumps([[each.status_code, each.text] for each in answers]), flush=True)
"""


class Process:
    """A separate process that answers requests."""

    def __init__(self, path: Path) -> None:
        self.child = forked_programs.start(READING, path)

    def answers(self, paths: list[str]) -> list[str]:
        self.child.stdin.write(json.dumps(paths) + "\n")
        self.child.stdin.flush()
        found = json.loads(self.child.stdout.readline())
        assert {status for status, _ in found} <= {200, 404}
        return [text for _, text in found]

    def end(self) -> None:
        self.child.output()
        assert self.child.returncode == 0


class Processes:
    """Two processes that answer requests."""

    def __init__(self, path: Path) -> None:
        self.all = [Process(path), Process(path)]

    def showing(self, paths: list[str]) -> list[list[str]]:
        """Return, for each process, the paths with responses that contain the text."""
        answers = [process.answers(paths) for process in self.all]
        return [
            [path for path, text in zip(paths, texts, strict=True) if CANARY in text]
            for texts in answers
        ]


class Clock:
    """A clock for the engine's commits, which the test advances."""

    def __init__(self) -> None:
        self.now = 1_800_000_000.0

    def __call__(self) -> float:
        self.now += 0.001
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    (tmp_path / "data").mkdir()
    return tmp_path / "data" / "store.db"


@pytest.fixture
def processes(path: Path, said: list[records.Comment]) -> Iterator[Processes]:
    made = Processes(path)
    yield made
    for process in made.all:
        process.end()


@pytest.fixture
def entered(path: Path, clock: Clock) -> Iterator[connection.Store]:
    """Open a store in a file as the product does."""
    with inprocess.open_engine(
        path, indexes=INDEXES, concurrency="pessimistic", history=0, clock=clock
    ) as engine:
        store = connection.Store(inprocess.Channel(engine), project="test")
        with store.context():
            yield store


@pytest.fixture
def said(entered: connection.Store, monkeypatch: pytest.MonkeyPatch) -> list[records.Comment]:
    """Post three comments to erase: in a bucket that `best` shows, in the tail, in the delta."""
    compaction.small_buckets(monkeypatch)
    site = site_settings.add("demo", ["https://a.example"], scheme=SCHEME, now=sample_threads.START)
    rows = sample_threads.grow(site, {f"{n}": {f"{n}.1": {}} for n in range(6)})
    ann = records.Author("Ann", id="g:ann")
    said = [sample_threads.post(site, f"{CANARY} in a bucket", rows["0"].id, author=ann)]
    _vote(rows["0"])
    compaction.whole(NAME)
    for text in ("the tail", "a row"):
        said.append(sample_threads.post(site, f"{CANARY} in {text}", author=ann))
        if text == "the tail":
            compaction.whole(NAME)
    return said


def _vote(row: records.Comment) -> None:
    def body() -> None:
        stored = reads.get(comment_rows.comment_key(row.id))
        stored.up += 3
        stored.revision += 1
        stored.unfolded = True
        transactions.apply(ownership.Writes("tree", put=(stored,)))

    transactions.transaction(body)


def _paths(said: list[records.Comment]) -> list[str]:
    """Return the paths that can show a comment's text."""
    page = "/api/v1/sites/demo/comments?thread=page"
    paths = [f"{page}&order={order}" for order in ("thread", "recent", "best", "oldest", "newest")]
    paths += [f"{page}&parent=root", f"{page}&limit=200", "/embed/demo?thread=page"]
    paths += ["/embed/demo/fragment?thread=page"]
    for row in said:
        paths += [f"/api/v1/comments/{row.id}", f"/api/v1/comments/{row.id}/replies"]
        paths += [f"{page}&around={quote(row.id)}"]
    return paths


def _stored_forms() -> set[bytes]:
    """Return the stored blobs that contain the text."""
    return {
        bytes(blob)
        for kind in ("Bucket", "BucketDirectory", "Ranking")
        for message in reads.fetch(reads.Query(kind))
        if CANARY.encode() in reader_processes.decompressed(message)
        for blob in reader_processes.blobs(message)
        if blob
    }


def _files_with(path: Path, forms: set[bytes], text: bytes = CANARY.encode()) -> set[str]:
    """Return the files that contain one of these forms or the text itself."""
    wanted = {text, *(form[8:40] for form in forms)}
    return {
        each.name
        for each in path.parent.rglob("*")
        if each.is_file() and any(form in each.read_bytes() for form in wanted)
    }


@pytest.mark.parametrize("verb", ["edit", "retract"])
def test_a_retracted_text_leaves_every_response_and_then_every_byte(
    path: Path, clock: Clock, said: list[records.Comment], processes: "Processes", verb: str
) -> None:
    paths = _paths(said)
    # Request each path twice: with cold caches and from the caches. The comments have no replies.
    shown = [path for path in paths if not path.endswith("/replies")]
    assert processes.showing(paths) == processes.showing(paths) == [shown, shown]
    forms = _stored_forms()
    assert len(forms) > 1
    assert _files_with(path, forms)

    for row in said:
        _take_back(row, verb)
    assert processes.showing(paths) == [[], []]
    keeper = scheduler.Scheduler()
    keeper.round([NAME])
    assert processes.showing(paths) == [[], []]
    _let_age_pass()
    for switched in keeper.uncleared_compactions:
        compactor.clear(switched.result, switched.orphans)
    sample_votes.count_waiting()
    assert scheduler.find_due_work() == []
    assert processes.showing(paths) == processes.showing(paths) == [[], []]
    assert _stored_forms() == set()
    assert _rows_with_the_text() == set()

    clock.now += data_files.LOG_SECONDS
    assert scheduler.find_due_work() == []  # Any request makes the engine empty its log
    assert _files_with(path, forms) == set()


def test_an_erased_text_is_in_no_file_and_an_address_never_was(
    path: Path, clock: Clock, entered: connection.Store
) -> None:
    site = site_settings.add("demo", ["https://a.example"], scheme=SCHEME, now=sample_threads.START)
    eve = records.Author("Eve", email=f"{ADDRESS}@example.org", id="g:eve")
    title = f"{CANARY} as a title"
    policy_changes.set_policy("demo", ADA, now=sample_threads.START, policy=Policy.ALL)
    held = [sample_threads.post(site, f"{CANARY} {n}", author=eve, title=title) for n in range(3)]
    decisions.decide("demo", held[0].id, Verb.APPROVE, ADA, now=sample_threads.START)
    decisions.decide("demo", held[1].id, Verb.SPAM, ADA, now=sample_threads.START)
    compaction.whole(NAME)
    assert held[2].status is Status.PENDING
    assert _files_with(path, set())
    assert _files_with(path, set(), ADDRESS.encode()) == set()

    personal_data.erase("g:eve", now=sample_threads.START)
    keeper = scheduler.Scheduler(clock=lambda: clock.now)
    keeper.round([NAME])
    dispatcher.deliver(counter_oracle.events(), now=sample_threads.START, handlers=wiring.HANDLERS)
    # A worker would compact within seconds, and each of its sweeps sends a request to the engine.
    assert data_files.LOG_SECONDS + background_worker.SWEEP_EVERY < 120 - 10
    clock.now += data_files.LOG_SECONDS
    keeper.sweep()
    assert _files_with(path, set()) == set()
    # The text also disappears from buckets once no process can read the old buckets.
    clock.now += compactor.GRACE
    keeper.round(scheduler.find_due_work())
    assert _rows_with_the_text() == set()
    assert _stored_forms() == set()


def _rows_with_the_text() -> set[str]:
    return {
        kind
        for kind in ("Comment", "Thread", "Site", "Bucket", "BucketDirectory", "Ranking")
        for message in reads.fetch(reads.Query(kind))
        if CANARY.encode() in message.SerializeToString()
    }


def _take_back(row: records.Comment, verb: str) -> None:
    if verb == "retract":
        own_comment.retract(
            row.id, author_id=row.author.id, revision=None, now=sample_threads.START
        )
        return
    own_comment.edit(
        row.id,
        author_id=row.author.id,
        body="nothing",
        revision=None,
        settings=sample_threads.SETTINGS,
        now=sample_threads.START,
    )


def _let_age_pass() -> None:
    since = view_cache.seconds()
    programs.wait_until(lambda: view_cache.seconds() - since > AGE)
