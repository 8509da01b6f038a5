"""Test which calls other than posts need a proof of work, how difficult it is, and its purpose."""

from datetime import timedelta
from typing import Any

import pytest
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from comments import config
from comments.domain import records
from comments.moderation import reports
from comments.store import connection
from comments.web.api.callers import api_tokens
from tests.support.people import account_holders, api_requests, proof_solver
from tests.support.people.post_times import Moment
from tests.support.threads import sample_votes

WORK = 50


def _proof(client: FlaskClient, purpose: str, peer: str = "192.0.2.1") -> str:
    url = f"{proof_solver.CHALLENGE}?purpose={purpose}"
    return proof_solver.solved(
        api_requests.answer(client.get(url, environ_base={"REMOTE_ADDR": peer}))
    )


def _vote(
    client: FlaskClient, comment: str, proof: str = "", token: str = "", peer: str = "192.0.2.1"
) -> TestResponse:
    return client.put(
        f"{api_requests.ONE}{comment}/vote",
        json={"value": 1, **({"proof": proof} if proof else {})},
        headers={"Authorization": f"Bearer {token}"} if token else {},
        environ_base={"REMOTE_ADDR": peer},
    )


def _report(
    client: FlaskClient, comment: str, proof: str = "", token: str = "", peer: str = "192.0.2.1"
) -> TestResponse:
    return client.post(
        f"{api_requests.ONE}{comment}/report",
        json={"reason": "spam", **({"proof": proof} if proof else {})},
        headers={"Authorization": f"Bearer {token}"} if token else {},
        environ_base={"REMOTE_ADDR": peer},
    )


def _posted(client: FlaskClient) -> dict[str, Any]:
    return api_requests.answer(proof_solver.post(client, proof=proof_solver.proof(client)))


def _cast(store: connection.Store) -> int:
    with store.context():
        return sum(map(len, sample_votes.cast().values()))


@pytest.mark.parametrize(("send", "purpose"), [(_vote, "vote"), (_report, "report")])
def test_an_anonymous_caller_needs_a_proof_and_gets_its_url(
    door: Any, send: Any, purpose: str
) -> None:
    client = door(proof_of_work=WORK)
    comment = _posted(client)["comment"]["id"]
    answer = send(client, comment)
    assert api_requests.refused(answer, 403) == "proof-required"
    assert f"/api/v1/sites/demo/challenge?purpose={purpose}" in answer.get_json()["detail"]
    assert send(client, comment, _proof(client, purpose)).status_code < 300


@pytest.mark.parametrize("send", [_vote, _report])
def test_if_posts_need_no_proof_nothing_else_does(door: Any, send: Any) -> None:
    client = door(proof_of_work=0)
    comment = api_requests.post(client)["comment"]["id"]
    assert send(client, comment).status_code < 300


@pytest.mark.parametrize("send", [_vote, _report])
def test_a_token_replaces_the_proof(
    door: Any, send: Any, open_store: connection.Store, settings: config.Settings
) -> None:
    client = door(proof_of_work=WORK)
    comment = _posted(client)["comment"]["id"]
    voted = api_requests.answer(_vote(client, comment, _proof(client, "vote")))
    with open_store.context():
        account = account_holders.account("bob", password="")
    member = api_tokens.Member("demo", account.id, account.epoch)
    signed_in = api_tokens.sign(member, secret=settings.secret)
    for token in (voted["token"], signed_in):
        assert send(client, comment, token=token).status_code < 300


@pytest.mark.parametrize("send", [_vote, _report])
def test_an_invalid_token_does_not_replace_a_proof(door: Any, send: Any) -> None:
    client = door(proof_of_work=WORK)
    comment = _posted(client)["comment"]["id"]
    assert send(client, comment, token="nothing").status_code == 401


def test_a_light_proof_is_a_fifth_of_a_posts_and_has_no_wait(door: Any) -> None:
    client = door(proof_of_work=WORK, form_seconds=3)
    asked = [
        api_requests.answer(client.get(f"{proof_solver.CHALLENGE}{query}"))
        for query in ("", "?purpose=post", "?purpose=vote", "?purpose=report")
    ]
    assert [(each["maxnumber"], each["wait"]) for each in asked] == [(50, 3)] * 2 + [(10, 0)] * 2
    api_requests.refused(client.get(f"{proof_solver.CHALLENGE}?purpose=fun"), 400, "purpose")


def test_a_proof_is_valid_only_for_its_purpose(door: Any) -> None:
    client = door(proof_of_work=WORK)
    comment = _posted(client)["comment"]["id"]
    answers = [
        proof_solver.post(client, proof=_proof(client, "vote")),
        proof_solver.post(client, proof=_proof(client, "report")),
        _vote(client, comment, _proof(client, "post")),
        _vote(client, comment, _proof(client, "report")),
        _report(client, comment, _proof(client, "vote")),
        _report(client, comment, _proof(client, "post")),
    ]
    assert [api_requests.refused(each, 403) for each in answers] == ["proof-invalid"] * 6


def test_one_proof_is_one_voter_however_often_and_from_wherever_it_is_sent(
    door: Any, open_store: connection.Store
) -> None:
    client = door(proof_of_work=WORK)
    comment = _posted(client)["comment"]["id"]
    proof = _proof(client, "vote")
    for number in range(4):
        assert _vote(client, comment, proof, peer=f"198.51.{number}.1").status_code == 200
    assert _cast(open_store) == 1
    assert _vote(client, comment, _proof(client, "vote")).status_code == 200
    assert _cast(open_store) == 2


def test_one_proof_is_one_reporter(door: Any, open_store: connection.Store) -> None:
    client = door(proof_of_work=WORK)
    comment = _posted(client)["comment"]["id"]
    proof = _proof(client, "report")
    for number in range(4):
        assert _report(client, comment, proof, peer=f"198.{number}.2.1").status_code == 202
    with open_store.context():
        assert reports.of([comment])[comment].open == 1


def test_a_proof_expires(door: Any, moment: Moment) -> None:
    client = door(proof_of_work=WORK)
    comment = _posted(client)["comment"]["id"]
    proof = _proof(client, "vote")
    moment.at += timedelta(hours=1)
    assert api_requests.refused(_vote(client, comment, proof), 403) == "proof-expired"


def test_voters_do_not_make_posting_harder(door: Any) -> None:
    client = door(proof_of_work=WORK)
    found = [
        api_requests.answer(client.get(f"{proof_solver.CHALLENGE}?purpose=vote"))["maxnumber"]
        for _ in range(70)
    ]
    assert (found[0], found[-1]) == (10, 20)
    assert api_requests.answer(client.get(proof_solver.CHALLENGE))["maxnumber"] == WORK


def test_posts_from_many_64s_are_charged_to_the_wider_networks_of_their_challenges(
    door: Any, site: records.Site
) -> None:
    """A challenge counts for the network that requested it, even if a different network uses it."""
    del site
    client = door(proof_of_work=1, posts_per_network=1)

    def codes(peers: list[str]) -> list[object]:
        found: list[object] = []
        for number, peer in enumerate(peers):
            asked = client.get(proof_solver.CHALLENGE, environ_base={"REMOTE_ADDR": peer})
            proof = proof_solver.solved(api_requests.answer(asked))
            answer = proof_solver.post(
                client, f"{peer} says something long", proof=proof, peer=f"203.0.113.{number}"
            )
            found.append(answer.get_json().get("code", answer.status_code))
        return found

    of_one_56 = [f"2001:db8:0:{number:x}::1" for number in range(6)]
    assert codes(of_one_56) == [201] * 4 + ["too-many-posts"] * 2
    others = [f"2001:db8:0:{256 * number:x}::1" for number in range(1, 16)]
    assert codes(others) == [201] * 12 + ["too-many-posts"] * 3
    assert codes(["2001:db8:1::1"]) == [201]
