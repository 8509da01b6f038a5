"""Authors learn how long they can edit; voters learn what the scores of a page lack."""

import random
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from flask.testing import FlaskClient

from comments.domain import records
from comments.domain.records import Policy, Verb
from comments.moderation import decisions
from comments.moderation.policy import policy_changes
from comments.posting import cast_vote
from comments.store import connection, reads
from comments.tree import votes
from comments.web.api import moderation_calls
from datastore_emulator import inprocess, testing
from tests.support import datastores
from tests.support.people.api_requests import ONE, THREAD, answer, bearer, post, refused
from tests.support.people.post_times import Moment
from tests.support.threads import cache_twins, sample_threads, sample_votes

HELD = "/api/v1/sites/demo/held?thread=t"
VOTES = "/api/v1/sites/demo/votes?thread=t"
WINDOW = timedelta(seconds=sample_threads.SETTINGS.edit_window)
ADA = records.Actor("cli", "Ada")

# --- The edit window --------------------


@pytest.fixture
def clock(moment: Moment, monkeypatch: pytest.MonkeyPatch) -> Moment:
    """The clock of all calls about own comments."""
    monkeypatch.setattr(moderation_calls, "datetime", moment)
    return moment


def _until(comment: dict[str, Any]) -> datetime | None:
    found = comment["editable_until"]
    return found and datetime.fromisoformat(found)


def test_an_edit_is_possible_until_the_time_that_the_answers_say(
    client: FlaskClient, clock: Moment
) -> None:
    posted = post(client)
    end = clock.at + WINDOW
    assert _until(posted["comment"]) == end
    one, mine = ONE + posted["comment"]["id"], bearer(posted)
    (held,) = answer(client.get(HELD, headers=mine))["comments"]
    assert _until(held) == end
    clock.at = end
    edited = answer(client.patch(one, json={"body": "in time"}, headers=mine))
    assert _until(edited["comment"]) == end
    clock.pass_by(microseconds=1)
    code = refused(client.patch(one, json={"body": "late"}, headers=mine), 403)
    assert code == "edit-window-over"
    (held,) = answer(client.get(HELD, headers=mine))["comments"]
    assert held["editable_until"] is None


def test_a_held_comment_has_an_edit_window_too(
    client: FlaskClient, open_store: connection.Store, clock: Moment
) -> None:
    with open_store.context():
        policy_changes.set_policy("demo", ADA, now=clock.at, policy=Policy.ALL)
    found = client.post(THREAD, json={"name": "Ann", "body": "Hello"})
    assert found.status_code == 202
    assert _until(answer(found)["comment"]) == clock.at + WINDOW


def test_a_retracted_comment_and_those_of_others_have_none(
    client: FlaskClient, clock: Moment
) -> None:
    posted = post(client)
    (row,) = answer(client.get(THREAD))["comments"]
    assert "editable_until" not in row
    one = ONE + posted["comment"]["id"]
    assert "editable_until" not in answer(client.get(one))["comment"]
    gone = answer(client.delete(one, headers=bearer(posted)))["comment"]
    assert gone["editable_until"] is None


def test_a_repeat_from_elsewhere_does_not_say_it(
    client: FlaskClient, clock: Moment, site: records.Site
) -> None:
    sent, key = {"name": "Ann", "body": "Hello"}, {"Idempotency-Key": "0123456789abcdef"}
    client.post(THREAD, json=sent, headers=key)
    clock.pass_by(hours=2)
    elsewhere = {"REMOTE_ADDR": "198.51.100.7"}
    again = answer(client.post(THREAD, json=sent, headers=key, environ_overrides=elsewhere))
    assert again["comment"]["editable_until"] is None
    assert "token" not in again


# --- Votes that are not counted yet --------------------


class Voters:
    """Three voters on two comments of a thread, and the true sums of their votes."""

    def __init__(self, client: FlaskClient, store: connection.Store) -> None:
        self.client, self.store = client, store
        self.ids = [post(client, body=f"text {n}")["comment"]["id"] for n in range(2)]
        self.tokens: list[dict[str, str]] = []
        for number in range(3):
            first = client.put(
                f"{ONE}{self.ids[0]}/vote", json={"value": 1},
                environ_overrides={"REMOTE_ADDR": f"192.0.2.{number}"},
            )  # fmt: skip
            self.tokens.append(bearer(answer(first)))
        self.cast = {(number, self.ids[0]): 1 for number in range(3)}

    def vote(self, voter: int, comment: str, value: int) -> None:
        one, token = f"{ONE}{comment}/vote", self.tokens[voter]
        if value:
            answer(self.client.put(one, json={"value": value}, headers=token))
        else:
            answer(self.client.delete(one, headers=token))
        self.cast[voter, comment] = value

    def count(self) -> None:
        with self.store.context():
            sample_votes.count_waiting(datetime.now(UTC) + timedelta(days=1))

    def check(self, voter: int) -> dict[str, int]:
        """Check what a voter sees after a reload; return what the scores lack."""
        page = answer(self.client.get(THREAD))["comments"]
        found = answer(self.client.get(VOTES, headers=self.tokens[voter]))
        assert found["votes"] == {
            comment: value for (who, comment), value in self.cast.items() if who == voter and value
        }
        lacking: dict[str, int] = found["uncounted"]
        for row in page:
            true = sum(value for (_, comment), value in self.cast.items() if comment == row["id"])
            assert row["score"] + lacking.get(row["id"], 0) == true
        assert 0 not in lacking.values()
        return lacking


@pytest.fixture
def voters(client: FlaskClient, open_store: connection.Store) -> Voters:
    return Voters(client, open_store)


def test_a_reload_shows_votes_that_are_not_counted_yet(voters: Voters) -> None:
    first, second = voters.ids
    assert voters.check(0) == {first: 3}
    voters.count()
    assert voters.check(0) == {}
    voters.vote(0, first, -1)
    voters.vote(1, second, 1)
    assert voters.check(0) == voters.check(1) == {first: -2, second: 1}
    voters.vote(0, first, 0)  # Withdrawn, but the counted vote is still in the score
    assert voters.check(0) == {first: -1, second: 1}
    voters.vote(0, first, 1)
    assert voters.check(0) == {second: 1}
    voters.count()
    assert voters.check(0) == {}


@pytest.mark.parametrize("seed", range(5))
def test_scores_and_what_they_lack_are_the_true_sums(voters: Voters, seed: int) -> None:
    chance = random.Random(seed)
    for _ in range(25):
        if chance.random() < 0.2:
            voters.count()
        else:
            comment = chance.choice(voters.ids)
            voters.vote(chance.randrange(3), comment, chance.choice((1, -1, 0)))
        voters.check(chance.randrange(3))


def test_imported_votes_are_not_lacking(
    client: FlaskClient, open_store: connection.Store, voters: Voters, site: records.Site
) -> None:
    with open_store.context():
        name = sample_threads.name_of(site, "t")
        node = sample_threads.node("imported")
        sample_threads.store_imported(name, records.ImportedComment(**_fields(node), up=9, down=2))
        comment = next(row for row in _rows(client) if row["score"] == 7)
    answer(client.put(f"{ONE}{comment['id']}/vote", json={"value": 1}, headers=voters.tokens[0]))
    found = answer(client.get(VOTES, headers=voters.tokens[0]))
    assert found["uncounted"][comment["id"]] == 1


def _fields(node: records.ImportedComment) -> dict[str, Any]:
    names = [each for each in node.__struct_fields__ if each not in {"up", "down"}]
    return {name: getattr(node, name) for name in names}


def _rows(client: FlaskClient) -> list[dict[str, Any]]:
    return list(answer(client.get(THREAD))["comments"])


def test_comments_that_nobody_sees_lack_nothing(
    client: FlaskClient, open_store: connection.Store, voters: Voters
) -> None:
    with open_store.context():
        decisions.decide("demo", voters.ids[0], Verb.HIDE, ADA, now=sample_threads.START)
    assert answer(client.get(VOTES, headers=voters.tokens[0]))["uncounted"] == {}


def test_only_so_many_comments_are_looked_at_and_own_votes_first(
    client: FlaskClient, voters: Voters, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cast_vote, "MOST_UNCOUNTED", 1)
    voters.count()
    for comment in voters.ids:
        voters.vote(1, comment, -1)
    voters.vote(2, voters.ids[1], -1)
    voters.vote(0, voters.ids[0], 0)
    found = answer(client.get(VOTES, headers=voters.tokens[2]))["uncounted"]
    assert len(found) == 1
    more = answer(client.get(f"{VOTES}&limit=1", headers=voters.tokens[2]))
    later = client.get(f"{VOTES}&cursor={more['cursor']}", headers=voters.tokens[2])
    assert answer(later)["uncounted"] == {}


def test_votes_that_are_counted_cost_no_reads(
    engine: inprocess.Engine, voters: Voters, settings: Any
) -> None:
    voters.count()
    process = cache_twins.Process(datastores.Embedded(engine), settings)
    process.client.get(VOTES, headers=voters.tokens[0])
    with testing.meter(engine) as cost:
        assert process.client.get(VOTES, headers=voters.tokens[0]).status_code == 200
    assert cost.reads == 1  # The vote on the first comment
    with process.store.context():
        assert not votes.waiting_comments(records.ThreadName("demo", "t"))
        assert len(list(reads.fetch(reads.Query("Vote", keys_only=True)))) == 3
