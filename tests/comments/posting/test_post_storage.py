"""A post is admitted and stored in one transaction; a post refused afterwards is still counted."""

import re
import signal
from pathlib import Path
from typing import Any

import grpc
import pytest

from comments.domain import records
from comments.domain.records import Policy
from comments.limits import rate_limits
from comments.moderation.policy import policy_changes
from comments.moderation.policy.rules import Action, Rule
from comments.sites import site_settings
from comments.store import connection, reads
from comments.upkeep.integrity import repair
from datastore_emulator import faults, inprocess, testing
from tests.support import forked_programs, prepared_stores, programs
from tests.support.people import api_requests, proof_solver
from tests.support.people.post_times import LONG, RULES, Moment, codes, counted
from tests.support.people.proof_solver import post
from tests.support.store_interceptors import TRANSIENT, Calls, Faults
from tests.support.threads import sample_threads

INDEXES = programs.ROOT / "index.yaml"
KINDS = ("Comment", "Event", "Thread", "Counter", "Participation")


def stored_kinds(store: connection.Store) -> dict[str, int]:
    return {kind: api_requests.stored(store, kind) for kind in KINDS}


@pytest.mark.embedded  # Emulators get more calls
@pytest.mark.parametrize("is_reply", [False, True])
def test_a_guarded_post_takes_one_look_up_and_one_commit(
    door: Any, calls: Calls, *, is_reply: bool
) -> None:
    client = door(**dict.fromkeys(RULES, 50), proof_of_work=2)
    first = api_requests.answer(post(client, proof=proof_solver.proof(client)))
    more = {"parent": first["comment"]["id"]} if is_reply else {}
    given = proof_solver.proof(client)
    calls.names.clear()
    assert codes(post(client, LONG, proof=given, **more)) == [201]
    assert calls.names == ["Lookup", "Commit"]


@pytest.mark.parametrize(
    ("case", "code"),
    [
        ("parent", "parent-not-found"),
        ("full", "too-many-posts"),
        ("rule", "comment-refused"),
        ("banned", "author-banned"),
        ("policy", "thread-closed"),
    ],
)
def test_a_post_that_is_refused_after_admission_is_counted(
    door: Any, open_store: connection.Store, case: str, code: str
) -> None:
    client = door(posts_per_network=2, posts_per_thread=1 if case == "full" else 0)
    first = api_requests.answer(post(client))
    with open_store.context():
        _moderate(case)
    before = stored_kinds(open_store)
    more = {"parent": "a" * 26} if case == "parent" else {}
    assert codes(post(client, "A casino", token=first["token"], **more)) == [code]
    assert (counted(open_store), stored_kinds(open_store)) == (2, before)
    assert codes(post(client)) == ["too-many-posts"]


def _moderate(case: str) -> None:
    ada, now = sample_threads.ADA, sample_threads.START
    if case == "rule":
        refusing = Rule(id="plain", action=Action.REJECT, words=("casino",))
        policy_changes.put_rule("demo", refusing, ada, now=now)
    if case == "banned":
        (row,) = reads.fetch(reads.Query("Comment"))
        policy_changes.ban("demo", row.properties["author_id"].string_value, ada, now=now)
    if case == "policy":
        policy_changes.set_policy("demo", ada, now=now, policy=Policy.CLOSED)


def test_a_post_with_a_used_key_and_another_text_is_not_counted_again(
    door: Any, open_store: connection.Store
) -> None:
    client = door(posts_per_network=2)
    answers = [post(client, key="first"), post(client, "Other", key="first")]
    assert codes(*answers) == [201, "idempotency-key-reused"]
    assert counted(open_store) == 1


@pytest.mark.parametrize("status", TRANSIENT[:2])
@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("is_refused", [False, True])
def test_a_lost_commit_counts_once(
    door: Any,
    faults: Faults,
    open_store: connection.Store,
    when: str,
    status: grpc.StatusCode,
    *,
    is_refused: bool,
) -> None:
    client = door(posts_per_network=9, posts_per_thread=9)
    more = {"parent": "a" * 26} if is_refused else {}
    faults.lose("Commit", when, status)
    assert codes(post(client, LONG, **more)) == ["parent-not-found" if is_refused else 201]
    assert counted(open_store) == 1
    assert api_requests.stored(open_store, "Comment") == (0 if is_refused else 1)
    assert api_requests.stored(open_store, "Event") == (0 if is_refused else 1)


def test_a_lost_commit_counts_once_even_if_its_marks_are_gone(
    door: Any, faults: Faults, open_store: connection.Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A row remembers only a limited number of posts; here, none."""
    monkeypatch.setattr(rate_limits, "_FEW", 0)
    client = door(posts_per_network=9)
    faults.lose("Commit", "after", grpc.StatusCode.UNAVAILABLE)
    assert codes(post(client)) == [201]
    assert counted(open_store) == 1


def test_a_spent_proof_stays_spent_if_the_post_was_refused(door: Any) -> None:
    client = door(posts_per_network=9, proof_of_work=2)
    given = proof_solver.proof(client)
    answers = [post(client, proof=given, parent="a" * 26), post(client, proof=given)]
    assert codes(*answers) == ["parent-not-found", "proof-spent"]


def test_a_reply_that_joins_another_thread_is_admitted_once(
    door: Any, open_store: connection.Store
) -> None:
    client = door(posts_per_network=9, proof_of_work=2)
    with open_store.context():
        other = sample_threads.post(site_settings.get("demo"), "one", thread="other")
    before = counted(open_store)
    for key in (None, "the-key", "the-key"):
        given = proof_solver.proof(client)
        assert codes(post(client, parent=other.id, proof=given, key=key)) == [201]
    assert counted(open_store) == before + 2
    assert api_requests.stored(open_store, "Comment") == 3
    assert api_requests.stored(open_store, "Thread") == 1


def test_a_retry_of_a_refused_post_is_admitted_and_not_counted_again(
    door: Any, open_store: connection.Store
) -> None:
    client = door(posts_per_network=1)
    again = [post(client, parent="a" * 26, key="the-key") for _ in range(3)]
    assert codes(*again) == ["parent-not-found"] * 3
    assert counted(open_store) == 1
    assert codes(post(client)) == ["too-many-posts"]


def test_an_outage_stores_and_counts_nothing(
    door: Any,
    engine: inprocess.Engine,
    open_store: connection.Store,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    client = door(**dict.fromkeys(RULES, 5))
    rules = [{"rpc": "Commit", "status": "UNAVAILABLE"}]
    engine.install_faults(faults.Plan.parse({"seed": 1, "rules": rules}))
    monkeypatch.setattr("comments.posting.admission.PATIENCE", 0.2)
    assert api_requests.refused(post(client, LONG), 503) == "overloaded"
    engine.install_faults(None)
    assert set(stored_kinds(open_store).values()) == {0}
    assert counted(open_store) == 0


def test_a_flood_of_refused_posts_reads_only_the_rows_of_admission(
    door: Any, engine: inprocess.Engine, moment: Moment
) -> None:
    client = door(posts_per_network=1)
    assert codes(post(client), post(client)) == [201, "too-many-posts"]
    with testing.meter(engine) as cost:
        assert codes(post(client)) == ["too-many-posts"]
    assert (cost.reads, cost.writes) == (1, 0)
    moment.pass_by(minutes=10)
    assert codes(post(client)) == [201]


POSTING = """
import dataclasses, itertools, json, sys, threading
from comments import app
from comments.posting import admission, post_storage
from comments.store import connection
from datastore_emulator import inprocess
from datastore_emulator import faults
from tests.support.threads import sample_threads
from tests.support.people import proof_solver

path, indexes, label, point, call = *sys.argv[1:5], int(sys.argv[5])
admission.PATIENCE = 60.0  # the machine may be busy with everything else
engine = inprocess.open_engine(path, indexes=indexes, concurrency="pessimistic")
store = connection.Store(inprocess.Channel(engine), project="test", deadline=60.0)
limits = {"posts_per_network": 10_000, "same_texts": 2}
made = app.create_app(dataclasses.replace(sample_threads.SETTINGS, **limits), store)
engine.install_faults(
    faults.Plan.parse({"rules": [{"point": point, "call": call, "kill": True}]})
)

stored_alone = post_storage._store_all

def run(posts, turn):
    sys.stdout.write(f"batch {len(posts)}\\n")
    return stored_alone(posts, turn)

post_storage._store_all = run

def work(number):
    client = made.test_client()
    for count in itertools.count():
        more = {"parent": "a" * 26} if count % 4 == 3 else {}
        text = f"A text that is long enough to be told from others: {label} {number} {count}"
        answer = proof_solver.post(client, text, **more)
        assert answer.status_code == (404 if more else 201), answer.get_json()
        sys.stdout.write(f"{answer.status_code}\\n")
        sys.stdout.flush()

for number in range(4):
    threading.Thread(target=work, args=(number,)).start()
"""


@pytest.mark.slow
@pytest.mark.embedded
@pytest.mark.parametrize("point", sorted(faults.POINTS))
def test_a_process_killed_at_a_point_has_counted_each_stored_post(
    tmp_path: Path, point: str
) -> None:
    """Every fourth post answers a missing comment, so only its counts are stored."""
    path = tmp_path / "store.db"
    with inprocess.open_engine(path, indexes=INDEXES, concurrency="pessimistic") as engine:
        store = connection.Store(inprocess.Channel(engine), project="test")
        with store.context():
            prepared_stores.demo()
    posted = refused = largest = 0
    for number, call in enumerate([7, 60]):
        arguments = (path, INDEXES, number, point, call)
        status, output = forked_programs.run(POSTING, *arguments, seconds=3 * programs.PATIENCE)
        assert status == -signal.SIGKILL
        posted += output.count("201\n")
        refused += output.count("404\n")
        largest = max([largest, *map(int, re.findall(r"batch (\d)", output))])
        with inprocess.open_engine(path, indexes=INDEXES, concurrency="pessimistic") as engine:
            store = connection.Store(inprocess.Channel(engine), project="test")
            stored, attempts = api_requests.stored(store, "Comment"), counted(store)
            # Each thread of each killed process may have had one post without an answer.
            assert posted <= stored <= posted + 4 * (number + 1)
            assert stored + refused <= attempts <= posted + refused + 4 * (number + 1)
            assert api_requests.stored(store, "Event") == stored
            with store.context():
                name = records.ThreadName("demo", "t")
                assert repair.find_problems(sample_threads.SETTINGS.scheme, name) == []
    assert largest > 1
