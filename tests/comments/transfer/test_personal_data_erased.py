"""After an erasure, no file and no response contains any of the author's data.

The tests search the bytes of the store's file and its log for plain and compressed data. A process
that showed all of the data before is still running.
"""

import json
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace

import pytest

from comments import app as apps
from comments import config
from comments.domain import records
from comments.domain.crypto import encryption
from comments.domain.records import Verb
from comments.limits import rate_limits
from comments.limits.site_request import SiteRequest
from comments.moderation import decisions, reports
from comments.notifications import double_opt_in, subscriptions
from comments.posting import admission, cast_vote, file_report, new_comment, own_comment
from comments.reading.materialized import view_cache
from comments.sites import site_settings
from comments.store import reads
from comments.transfer import personal_data
from comments.upkeep import scheduler, wiring
from datastore_emulator import data_files, inprocess
from datastore_emulator.transactions import shared_lock_files
from tests.conftest import ROOT
from tests.support import datastores, programs
from tests.support.histories import counter_oracle
from tests.support.people import account_holders
from tests.support.people.account_holders import SECRET, here
from tests.support.threads import reader_processes, sample_threads

SETTINGS = config.Settings(secret=SECRET)
NAME = records.ThreadName("demo", "page")
ADA = records.Actor("cli", "Ada")
ADDRESS = "zebedee@mail.example"
WORDS = ("quetzalcoatlus", "Zebedee", ADDRESS, "zebedee-home.example", "zebedees-login")
SHOWING = (
    "/api/v1/sites/demo/comments?thread=page", "/embed/demo?thread=page", "/feeds/demo",
    "/api/v1/sites/demo/comments?thread=page&limit=all", "/feeds/demo/thread?thread=page",
    "/api/v1/sites/demo/comments?thread=page&order=newest", "/api/v1/sites/demo/authors",
)  # fmt: skip


AGE = 0.3  # Seconds for which processes may use a cached directory


def _let_age_pass(_grace: float) -> None:
    """Wait until processes must read the directory again."""
    since = view_cache.seconds()
    programs.wait_until(lambda: view_cache.seconds() - since > AGE)


class Clock:
    """A clock for the engine's commits, which the test advances."""

    now = 1_800_000_000.0

    def __call__(self) -> float:
        self.now += 0.001
        return self.now


class ServiceOnDisk:
    """A file with every kind of an author's personal data, and a process that shows the data."""

    def __init__(self, path: Path, engine: inprocess.Engine, clock: Clock) -> None:
        self.path, self.engine, self.clock = path, engine, clock
        self.store = datastores.Embedded(engine).connect()
        self.client = apps.create_app(SETTINGS, self.store).test_client()

    def fill(self) -> None:
        site = site_settings.add(
            "demo", ["https://a.example"], scheme=SETTINGS.scheme, now=sample_threads.START
        )
        self.account = account_holders.account("zebedees-login", password="", mail=ADDRESS)
        self.author = self.account.author
        account_holders.session(self.account.id)
        other = self.say(site, "somebody else's", author=records.Author("Bob", id="g:bob"))
        shown = self.say(site, "quetzalcoatlus shown", other.id)
        self.say(site, "an answer", shown.id, author=records.Author("Bob", id="g:bob"))
        for verb in (Verb.HOLD, Verb.SPAM, Verb.REJECT, Verb.HIDE):
            row = self.say(site, f"quetzalcoatlus to {verb}")
            decisions.decide("demo", row.id, verb, ADA, now=here())
        edited = self.say(site, "quetzalcoatlus before")
        own_comment.edit(
            edited.id, author_id=self.author, body="quetzalcoatlus after", revision=None,
            settings=SETTINGS, now=here(),
        )  # fmt: skip
        hers = sample_threads.request(settings=SETTINGS, now=here(), network="192.0.2.1")
        bobs = sample_threads.request(settings=SETTINGS, now=here(), network="192.0.2.2")
        cast_vote.vote(other.id, self.author, 1, hers)
        cast_vote.vote(shown.id, "g:bob", 1, bobs)
        file_report.report(other.id, reports.Reason.SPAM, hers, author=self.author)
        address = encryption.seal(ADDRESS, "address", SECRET, now=here())
        wanted = subscriptions.SubscriptionTarget("demo", "", self.author, replies=True)
        subscriptions.subscribe(
            double_opt_in.subscriber_of(ADDRESS, SECRET), address, wanted, now=here()
        )
        self.settle()

    def say(
        self, site: records.Site, body: str, parent: str | None = None, **more: records.Author
    ) -> records.Comment:
        home = "https://zebedee-home.example/"
        author = more.get("author") or records.Author("Zebedee", home, ADDRESS, self.author)
        draft = admission.Submission("page", parent, author, body)
        return new_comment.post(draft, SiteRequest(site, SETTINGS, here())).comment

    def settle(self) -> None:
        """Deliver, count and compact until nothing is due."""
        made = scheduler.Scheduler(handlers=wiring.handlers(SETTINGS))
        for _ in range(2):
            while events := counter_oracle.events():
                made.deliver(events)
            for each in cast_vote.waiting_comments(here() + timedelta(minutes=5)):
                cast_vote.count(each.id, now=here() + timedelta(minutes=5))
        scheduler.compact_whole([NAME], wait=_let_age_pass)

    def shown(self) -> set[str]:
        """Return where each of the author's words is still shown."""
        texts = {path: self.client.get(path).text for path in SHOWING}
        return {f"{path}: {word}" for path in texts for word in WORDS if word in texts[path]}

    def stored_forms(self) -> set[bytes]:
        """Return the stored blobs that contain any of the author's words."""
        return {
            bytes(blob)
            for kind in ("Bucket", "BucketDirectory", "Ranking")
            for message in reads.fetch(reads.Query(kind))
            if any(word.encode() in reader_processes.decompressed(message) for word in WORDS)
            for blob in reader_processes.blobs(message)
            if blob
        }

    def in_files(self, forms: set[bytes]) -> set[str]:
        """Return the author's words, ids and blobs found in each file."""
        wanted = {word.encode() for word in (*WORDS, self.account.id)}
        wanted |= {form[8:40] for form in forms if len(form) > 40}
        return {
            f"{each.name}: {word[:30]!r}"
            for each in self.path.parent.rglob("*")
            if each.is_file()
            for word in wanted
            if word in each.read_bytes()
        }

    def pass_by(self) -> None:
        """Let the engine empty its log and its lock files, as it normally does within a minute."""
        self.clock.now += data_files.LOG_SECONDS
        assert self.client.get("/healthz").status_code == 200
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(shared_lock_files, "_SECONDS", 0)
            limit = rate_limits.Limit("tests", 1, timedelta(hours=1))
            rate_limits.take(limit, "somebody", SECRET, now=here())


@pytest.fixture
def on_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ServiceOnDisk]:
    monkeypatch.setattr(view_cache, "CACHE_MAX_AGE", AGE)
    (tmp_path / "data").mkdir()
    path, clock = tmp_path / "data" / "store.db", Clock()
    with inprocess.open_engine(
        path, indexes=ROOT / "index.yaml", concurrency="pessimistic", history=0, clock=clock
    ) as engine:
        made = ServiceOnDisk(path, engine, clock)
        with made.store.context():
            made.fill()
            yield made


@pytest.mark.embedded
def test_after_an_erasure_no_byte_and_no_page_contains_the_authors_data(
    on_disk: ServiceOnDisk,
) -> None:
    assert len(on_disk.shown()) > len(SHOWING)
    forms = on_disk.stored_forms()
    assert forms
    assert len({found.partition(": ")[2] for found in on_disk.in_files(forms)}) > len(WORDS)
    before = json.loads(on_disk.client.get(SHOWING[0]).text)["comments"]

    done = SimpleNamespace(is_done=False)
    while not done.is_done:
        done = personal_data.erase(on_disk.author, now=here())  # type: ignore[assignment]
    assert on_disk.shown() == set()
    on_disk.settle()
    on_disk.pass_by()
    assert on_disk.stored_forms() == set()
    assert on_disk.in_files(forms) == set()
    assert on_disk.shown() == set()

    # Other authors' comments keep their places; a tombstone replaces the erased comment.
    after = json.loads(on_disk.client.get(SHOWING[0]).text)["comments"]
    places = {each["id"]: each for each in before}
    assert [each["status"] for each in after] == ["approved", "removed", "approved"]
    for each in after:
        was = places[each["id"]]
        assert (each["slug"], each["parent"], each["created"]) == (
            was["slug"], was["parent"], was["created"],
        )  # fmt: skip
    told = personal_data.export(
        on_disk.author, secret=sample_threads.SETTINGS.secret, now=sample_threads.START
    )
    assert (told.account, told.comments, told.votes, told.mailed) == (None, [], {}, 0)
