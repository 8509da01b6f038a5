"""Test which posts need a proof of work and how often each proof is valid."""

from typing import Any

import pytest

from comments import config
from comments.accounts import accounts
from comments.domain import records
from comments.domain.ids import sorthash
from comments.domain.records import Policy
from comments.moderation.policy import policy_changes
from comments.sites import site_settings
from comments.store import connection
from comments.web.api.callers import api_tokens
from datastore_emulator import inprocess, testing
from tests.support.people import account_holders, api_requests, proof_solver
from tests.support.people.post_times import LONG, RULES, Moment, codes
from tests.support.people.proof_solver import post
from tests.support.threads import moderated_site


def stored(store: connection.Store) -> int:
    return api_requests.stored(store, "Comment")


def test_a_member_needs_no_proof_and_is_limited_all_the_same(
    door: Any, open_store: connection.Store, settings: config.Settings, site: records.Site
) -> None:
    client = door(proof_of_work=10, form_seconds=3, posts_per_author=2)
    with open_store.context():
        account = account_holders.account("bob", password="")
    member = api_tokens.Member(site.id, account.id, account.epoch)
    token = api_tokens.sign(member, secret=settings.secret)
    guest = api_tokens.sign(api_tokens.Guest(site.id, "g:known"), secret=settings.secret)
    answers = [post(client, f"{LONG} {n}", token=token) for n in range(3)]
    assert codes(*answers, post(client, token=guest)) == [
        201,
        201,
        "too-many-posts",
        "proof-required",
    ]
    assert codes(post(client, token=token, subject="Buy")) == ["not-accepted"]


@pytest.mark.parametrize("end", ["demotion", "ban"])
def test_only_a_role_on_this_site_publishes_comments_at_once(
    door: Any, open_store: connection.Store, settings: config.Settings, site: records.Site, end: str
) -> None:
    client = door()

    def send(account: accounts.Account) -> int:
        member = api_tokens.Member(site.id, account.id, account.epoch)
        return post(client, token=api_tokens.sign(member, secret=settings.secret)).status_code

    with open_store.context():
        moderated_site.policy(Policy.ALL)
        bob = account_holders.account("bob", account_holders.moderator("blog"))
        ann = account_holders.account("ann", account_holders.moderator())
    assert [send(bob), send(ann)] == [202, 201]
    with open_store.context():
        if end == "demotion":
            ann = accounts.grant(ann.id, None, site.id, account_holders.cause())
        else:
            policy_changes.ban(site.id, ann.author, moderated_site.ADA, now=moderated_site.NOW)
    assert send(ann) == (202 if end == "demotion" else 403)


def test_a_challenge_writes_nothing_and_is_not_cacheable(
    door: Any, engine: inprocess.Engine
) -> None:
    client = door(proof_of_work=10)
    client.get(proof_solver.CHALLENGE)
    with testing.meter(engine) as cost:
        response = client.get(proof_solver.CHALLENGE)
    assert (cost.reads, cost.writes) == (0, 0)
    assert response.headers["Cache-Control"] == "no-store"
    assert api_requests.answer(response)["maxnumber"] == 10


def test_a_proof_is_valid_once(door: Any) -> None:
    client = door(proof_of_work=100)
    given = proof_solver.proof(client)
    assert codes(post(client, proof=given)) == [201]
    elsewhere = [post(client, proof=given, peer=peer) for peer in ("192.0.2.1", "198.51.100.1")]
    assert codes(*elsewhere) == ["proof-spent"] * 2
    assert codes(post(client, proof=proof_solver.proof(client))) == [201]


def test_a_proof_stays_spent_as_long_as_it_would_be_valid(door: Any, moment: Moment) -> None:
    client = door(proof_of_work=100)
    given = proof_solver.proof(client)
    post(client, proof=given)
    moment.pass_by(minutes=59)
    assert codes(post(client, proof=given)) == ["proof-spent"]
    moment.pass_by(minutes=2)
    assert codes(post(client, proof=given)) == ["proof-expired"]


def test_the_network_that_requested_a_challenge_is_charged_wherever_it_is_used(door: Any) -> None:
    """A phone's address may change, and a bot may use challenges from a different network."""
    client = door(proof_of_work=10, posts_per_network=2)
    given = [proof_solver.proof(client) for _ in range(3)]
    answers = [post(client, proof=each, peer=f"198.51.100.{n}") for n, each in enumerate(given)]
    assert codes(*answers) == [201, 201, "too-many-posts"]


def test_a_repeat_with_a_spent_or_expired_proof_is_the_same_comment(
    door: Any, open_store: connection.Store, moment: Moment
) -> None:
    client = door(proof_of_work=10, form_seconds=3, **RULES)
    given = proof_solver.proof(client)
    moment.pass_by(seconds=3)
    assert codes(post(client, proof=given, key="the-key")) == [201]
    for _ in range(2):
        assert codes(post(client, proof=given, key="the-key")) == [201]
        assert codes(post(client, key="the-key")) == [201]
        moment.pass_by(hours=2)
    assert stored(open_store) == 1


def test_a_form_that_is_sent_too_fast_is_refused(door: Any, moment: Moment) -> None:
    client = door(proof_of_work=10, form_seconds=3)
    given = proof_solver.proof(client)
    moment.pass_by(seconds=2)
    refused = post(client, proof=given)
    assert (codes(refused), refused.headers["Retry-After"]) == (["too-fast"], "1")
    moment.pass_by(seconds=1)
    assert codes(post(client, proof=given)) == [201]


def test_a_proof_is_valid_for_one_site(door: Any, open_store: connection.Store) -> None:
    with open_store.context():
        site_settings.add("other", ["http://o.example"], scheme=sorthash.Scheme(), now=Moment().at)
    client = door(proof_of_work=10)
    other = api_requests.answer(client.get("/api/v1/sites/other/challenge"))
    assert codes(post(client, proof=proof_solver.solved(other))) == ["proof-invalid"]
    assert client.get("/api/v1/sites/nowhere/challenge").status_code == 404


def test_a_post_without_a_proof_or_with_a_filled_honeypot_stores_nothing(
    door: Any, open_store: connection.Store
) -> None:
    client = door(proof_of_work=10)
    assert api_requests.refused(post(client), 403) == "proof-required"
    trapped = post(client, proof=proof_solver.proof(client), subject="Buy")
    assert api_requests.refused(trapped, 403) == "not-accepted"
    assert stored(open_store) == 0


def test_challenges_are_harder_while_demand_is_high(door: Any) -> None:
    client = door(proof_of_work=10)
    hardness = [
        api_requests.answer(client.get(proof_solver.CHALLENGE))["maxnumber"] for _ in range(130)
    ]
    assert hardness[:60] == [10] * 60
    assert hardness[60:120] == [20] * 60
    assert hardness[120:] == [40] * 10
