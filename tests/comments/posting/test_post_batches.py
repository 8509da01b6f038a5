"""Posts that are stored together have the same effect as posts that are stored one after another.

Each history is run twice: in batches, and one by one in a second store. All answers and all stored
rows are equal, whatever some of the posts are refused for, and however often a commit fails.
"""

import dataclasses
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import timedelta
from typing import Any, NamedTuple
from unittest import mock

import grpc
import pytest
from flask.testing import FlaskClient
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from comments import errors
from comments.domain import records
from comments.domain.ids import sorthash
from comments.domain.moderation import classifier_verdicts
from comments.limits.site_request import SiteRequest
from comments.moderation.policy import policy_changes
from comments.moderation.policy.rules import Action, Rule
from comments.posting import admission, new_comment, post_storage
from comments.store import batches, connection, reads
from comments.store.models import comment_rows
from comments.tree.counters import sharding
from comments.tree.lists import ordered_query
from comments.upkeep.integrity import repair
from comments.web.api.callers import api_tokens
from datastore_emulator import inprocess, testing
from tests.support import prepared_stores, stored_state
from tests.support.people import api_requests, proof_solver
from tests.support.people.post_times import LONG, codes, counted
from tests.support.store_interceptors import Commits, InterceptorSlot, error
from tests.support.threads import sample_threads

PATIENCE = 60.0
RULES = dataclasses.replace(
    sample_threads.SETTINGS,
    posts_per_network=6,
    posts_per_author=3,
    posts_per_thread=9,
    same_texts=2,
)
KINDS = ("Comment", "Thread", "Counter", "Participation", "Event", "RateBucket", "Job")
# `came_from` is encrypted with a random number. A reply alone leaves `active` as it is for some
# time (`activity.PACE`), but a batch stores the reply's time if another comment writes the row.
OPEN = {"came_from", "active"}
TEXTS = ("Short", "casino", "spam", "A text that is long enough to be told from others.")


class Said(NamedTuple):
    """A post. `to` is the number of an earlier post that it answers; -1 for a missing comment."""

    author: str
    text: str
    to: int | None
    network: str
    key: int
    title: str


class _Captured(Exception):
    """A post is ready to be stored."""


class _Capture(batches.Batches[Any, Any]):
    """A replacement for the batches that keeps the posts."""

    def __init__(self) -> None:
        super().__init__(1, 1)
        self.ready: list[admission.PreparedPost] = []

    def run(self, line: str, item: Any, work: Any, *, key: str, size: int) -> Any:
        del line, work, key, size
        self.ready.append(item)
        raise _Captured


class Twin:
    """A store with a site, in which posts are prepared first and stored later."""

    def __init__(self, store: connection.Store, commits: Commits) -> None:
        self.store, self.commits = store, commits
        self.site = sample_threads.shaped(prepared_stores.demo(), sorthash.Scheme("012", 1, 2))
        refusing = Rule(id="no", action=Action.REJECT, words=("casino",))
        # The rule does not apply to authors with an approved comment in the thread.
        holding = Rule(id="hold", action=Action.HOLD, words=("spam",), approved_under=1)
        for each in (refusing, holding):
            policy_changes.put_rule("demo", each, sample_threads.ADA, now=sample_threads.START)
        self.ids: list[str] = []
        self.results: list[object] = []
        self._moments = 0

    def send(self, posts: Sequence[Said], together: int, faults: Sequence[str]) -> None:
        """Prepare some posts, and store this many at a time."""
        ready = [self._ready(each) for each in posts]
        self.commits.plan = list(faults)
        for first in range(0, len(ready), together):
            with connection.within(20.0):
                found = post_storage._store(ready[first : first + together], has_run=False)
            self.results += [_answer(each) for each in found]
        self.commits.plan = []
        self.ids += [each.draft.id for each in ready]

    def _ready(self, said: Said) -> admission.PreparedPost:
        self._moments += 1
        now = sample_threads.START + timedelta(seconds=self._moments)
        above = None
        if said.to is not None:
            above = self.ids[said.to % len(self.ids)] if said.to >= 0 and self.ids else "a" * 26
        author = records.Author("Ann", id=said.author)
        sent = admission.Submission(
            "page", above, author, said.text, title=said.title, key=f"{said.key:016}"
        )
        sender = classifier_verdicts.Sender(said.network)
        admission._REFUSED.forget(self.store)
        kept = post_storage._BATCHES.of(self.store)
        capture = _Capture()
        post_storage._BATCHES.put(self.store, capture)
        try:
            new_comment.post(sent, SiteRequest(self.site, RULES, now, sender))
        except _Captured:
            return capture.ready[0]
        finally:
            post_storage._BATCHES.put(self.store, kept)
        raise AssertionError("the post was refused before it could be stored")

    def rows(self) -> dict[str, dict[str, str]]:
        """Return all stored rows."""
        return {
            f"{kind} {message.key.path[-1].name}": {
                name: str(value) for name, value in message.properties.items() if name not in OPEN
            }
            for kind in KINDS
            for message in reads.fetch(reads.Query(kind))
        }


def _answer(result: Any) -> object:
    if isinstance(result, errors.CodedError):
        return result.code, result.params
    return result.is_new, result.event, _place(result.comment)


def _place(comment: records.Comment) -> object:
    return comment.id, comment.sort_hash, comment.number, comment.status, comment.slug


def _code(answer: Any, faults: Sequence[str]) -> object:
    is_refused = isinstance(answer[0], str)
    return "refused" if is_refused and "after" in faults else answer


@contextmanager
def twin() -> Iterator[Twin]:
    commits = Commits()
    with prepared_stores.opened(None) as engine:
        store = connection.Store(inprocess.Channel(engine, commits), project="test")
        with store.context():
            yield Twin(store, commits)


posts = st.lists(
    st.builds(
        Said,
        author=st.sampled_from(["g:ann", "g:bob", "g:cay"]),
        text=st.sampled_from(TEXTS),
        to=st.none() | st.integers(-1, 8),
        network=st.sampled_from(["192.0.2.1", "192.0.2.1", "198.51.100.1"]),
        key=st.integers(0, 40),
        title=st.sampled_from(["", "A title"]),
    ),
    min_size=1,
    max_size=8,
    # The line never puts two posts with one id into a batch.
    unique_by=lambda said: (said.author, said.key),
)


@pytest.mark.slow
@pytest.mark.embedded
@given(
    rounds=st.lists(posts, min_size=1, max_size=3),
    faults=st.lists(st.sampled_from(["before", "after"]), max_size=2),
)
@hypothesis_settings(max_examples=15, deadline=None)
def test_batches_have_the_effect_of_single_posts(
    rounds: list[list[Said]], faults: list[str]
) -> None:
    with twin() as apart:
        for each in rounds:
            apart.send(each, 1, ())
        expected, answers = apart.rows(), apart.results
    # A failed commit would spread the thread's counters.
    with twin() as joint, mock.patch.object(sharding, "spread"):
        for each in rounds:
            joint.send(each, len(each), faults)
        # After a lost commit, a refused post is checked again, when the later posts of its batch
        # are stored. Another check may then be the first that fails.
        assert [_code(each, faults) for each in joint.results] == [
            _code(each, faults) for each in answers
        ]
        assert joint.rows() == expected
        name = records.ThreadName("demo", "page")
        assert repair.find_problems(joint.site.scheme, name) == []


class Hold:
    """An interceptor that holds the first commit of a comment until the test lets it go on.

    `refused` is a text: a commit that contains it fails permanently. `lost` is the number of later
    commits whose answers are lost.
    """

    def __init__(self) -> None:
        self.is_held = True
        self.began, self.goes_on = threading.Event(), threading.Event()
        self.commits: list[int] = []
        self.refused = b""
        self.lost = 0

    def __call__(self, method: str, request: Any, proceed: Any) -> Any:
        written = request.mutations if method == "Commit" else ()
        if all(step.kind != "Comment" for each in written for step in each.insert.key.path):
            return proceed()
        if not self.began.is_set():
            self.began.set()
            assert self.goes_on.wait(PATIENCE)
            return proceed()
        inserted = [each.insert for each in request.mutations if each.HasField("insert")]
        self.commits.append(len(inserted))
        if self.refused and any(self.refused in each.SerializeToString() for each in inserted):
            raise error(grpc.StatusCode.INVALID_ARGUMENT)
        answer = proceed()
        if self.lost:
            self.lost -= 1
            raise error(grpc.StatusCode.UNAVAILABLE)
        return answer


@pytest.fixture
def hold(interceptor: InterceptorSlot) -> Hold:
    return interceptor.use(Hold())


def together(
    client: Callable[[], FlaskClient], hold: Hold, store: connection.Store, sent: Sequence[Any]
) -> list[Any]:
    """Post once, and let the other posts wait for the first one's commit."""
    lines = post_storage._BATCHES.of(store)._lines

    def send(more: dict[str, Any]) -> Any:
        return proof_solver.post(client(), **more)

    with ThreadPoolExecutor(len(sent) + 1) as pool:
        first = pool.submit(send, {})
        assert hold.began.wait(PATIENCE)
        others = []
        for number, each in enumerate(sent):
            others.append(pool.submit(send, each))
            for _ in range(int(PATIENCE / 0.005)):
                if len(next(iter(lines.values()))) == number + 1 or others[-1].done():
                    break
                threading.Event().wait(0.005)
        hold.goes_on.set()
        assert first.result(PATIENCE).status_code == 201
        return [each.result(PATIENCE) for each in others]


@pytest.fixture
def opened(door: Any, hold: Hold) -> Callable[[], FlaskClient]:
    """Return a function that makes clients of one service with limits."""
    app = door(posts_per_network=20, posts_per_thread=20, same_texts=2).application
    made: Callable[[], FlaskClient] = app.test_client
    return made


def test_posts_that_wait_for_one_thread_share_a_commit(
    opened: Any, hold: Hold, open_store: connection.Store
) -> None:
    answers = together(opened, hold, open_store, [{"body": f"text {n}"} for n in range(6)])
    assert codes(*answers) == [201] * 6
    assert hold.commits == [6]
    with open_store.context():
        rows = ordered_query.thread(records.ThreadName("demo", "t"))
        assert [row.body for row in rows] == ["Hello", *(f"text {n}" for n in range(6))]
        stored_state.assert_sums(is_delivered=False)


def test_what_replies_in_one_batch_cost(
    door: Any, engine: inprocess.Engine, hold: Hold, open_store: connection.Store
) -> None:
    """docs/costs.md has these numbers."""
    app = door().application
    together(app.test_client, hold, open_store, [])
    with open_store.context():
        (parent,) = reads.fetch(reads.Query("Comment", keys_only=True))
    hold.began.clear()
    hold.goes_on.clear()
    reply = {"parent": parent.key.path[-1].name}
    with testing.meter(engine) as cost:
        answers = together(app.test_client, hold, open_store, [reply] * 6)
    assert codes(*answers) == [201] * 6
    # The first post is a root.
    assert (cost.reads - 3, cost.writes - 5) == (6 + 3, 3 * 6 + 2)


def test_bad_posts_in_a_batch_harm_no_good_one(
    opened: Any, hold: Hold, open_store: connection.Store
) -> None:
    sent = [{}, {"parent": "a" * 26}, {"body": LONG}, {"body": LONG}, {}]
    answers = together(opened, hold, open_store, sent)
    assert codes(*answers) == [201, "parent-not-found", 201, "duplicate", 201]
    assert hold.commits == [3]


def test_an_entity_that_the_store_refuses_harms_only_its_own_post(
    opened: Any, hold: Hold, open_store: connection.Store
) -> None:
    hold.refused = b"refuse me"
    sent = [{"body": "one"}, {"body": "refuse me"}, {"body": "two"}]
    answers = together(opened, hold, open_store, sent)
    assert codes(*answers) == [201, "overloaded", 201]
    assert hold.commits == [3, 1, 1, 1]
    assert api_requests.stored(open_store, "Comment") == 3


def test_a_batch_whose_answer_is_lost_is_stored_once(
    opened: Any, hold: Hold, open_store: connection.Store
) -> None:
    hold.lost = 1
    sent = [{"body": "one"}, {"parent": "a" * 26}, {"body": "two"}]
    assert codes(*together(opened, hold, open_store, sent)) == [201, "parent-not-found", 201]
    assert hold.commits == [2]
    assert api_requests.stored(open_store, "Comment") == 3
    assert counted(open_store) == 4


def test_a_repeated_request_is_never_in_the_batch_of_the_first(
    opened: Any, hold: Hold, open_store: connection.Store
) -> None:
    answers = together(opened, hold, open_store, [{"key": "one"}] * 3)
    assert codes(*answers) == [201] * 3
    assert [each.headers.get("Idempotent-Replayed") for each in answers] == [None, "true", "true"]
    assert len({api_requests.answer(each)["comment"]["id"] for each in answers}) == 1
    assert api_requests.stored(open_store, "Comment") == 2
    assert counted(open_store) == 2


def test_a_limit_is_exact_within_a_batch(
    door: Any, hold: Hold, open_store: connection.Store
) -> None:
    app = door(posts_per_network=4).application
    sent = [{}] * 4 + [{"peer": "198.51.100.1"}] * 5
    answers = together(app.test_client, hold, open_store, sent)
    assert codes(*answers[:4]) == [201] * 3 + ["too-many-posts"]
    assert codes(*answers[4:]) == [201] * 4 + ["too-many-posts"]
    assert counted(open_store) == 8


def test_a_post_that_is_refused_last_of_all_uses_no_number(
    door: Any, hold: Hold, open_store: connection.Store
) -> None:
    """The thread's limit is the last check."""
    app = door(posts_per_thread=3).application
    answers = together(app.test_client, hold, open_store, [{}] * 4)
    assert codes(*answers) == [201] * 2 + ["too-many-posts"] * 2
    with open_store.context():
        assert reads.get(comment_rows.thread_key(records.ThreadName("demo", "t"))).child_count == 3


def test_an_author_is_known_to_the_next_post_of_a_batch(
    door: Any, hold: Hold, open_store: connection.Store
) -> None:
    app = door().application
    guest = api_tokens.Guest("demo", "g:known")
    token = api_tokens.sign(guest, secret=sample_threads.SETTINGS.secret)
    with open_store.context():
        holding = Rule(id="hold", action=Action.HOLD, words=("spam",), approved_under=1)
        policy_changes.put_rule("demo", holding, sample_threads.ADA, now=sample_threads.START)
    sent = [{"body": text, "token": token} for text in ("a spam", "fine", "more spam")]
    answers = together(app.test_client, hold, open_store, sent)
    assert [each.status_code for each in answers] == [202, 201, 201]
