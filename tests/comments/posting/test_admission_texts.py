"""Limits and rules count how often a network or an author sends the same text."""

from datetime import UTC, datetime
from typing import Any

import pytest

from comments import config
from comments.domain import records
from comments.moderation.policy import policy_changes
from comments.moderation.policy.rules import Action, Rule
from comments.store import connection, reads
from comments.web.api.callers import api_tokens
from tests.support.people import account_holders, api_requests, proof_solver
from tests.support.people.post_times import LONG, Moment, codes
from tests.support.people.proof_solver import post


@pytest.mark.parametrize("again", [LONG, LONG.upper(), f"  {LONG.replace(' ', '  ')}"])
def test_a_network_may_post_a_text_once_an_hour(door: Any, moment: Moment, again: str) -> None:
    client = door(same_texts=3)
    assert codes(post(client, LONG), post(client, again)) == [201, "duplicate"]
    moment.pass_by(minutes=61)
    assert codes(post(client, again)) == [201]


def test_short_texts_may_be_repeated(door: Any) -> None:
    client = door(same_texts=1)
    assert codes(*(post(client, "Thank you very much!") for _ in range(4))) == [201] * 4


def test_guests_of_many_networks_may_post_a_text_a_few_times(door: Any, moment: Moment) -> None:
    client = door(same_texts=2)
    answers = [post(client, LONG, peer=f"198.51.100.{n}") for n in range(4)]
    assert codes(*answers) == [201, 201, "duplicate", "duplicate"]
    moment.pass_by(minutes=61)
    assert codes(post(client, LONG, peer="198.51.100.9")) == [201]


def test_a_known_author_may_post_a_text_once_across_networks(door: Any) -> None:
    client = door(same_texts=5)
    token = api_requests.answer(post(client))["token"]
    answers = [post(client, LONG, token=token, peer=f"198.51.100.{n}") for n in range(2)]
    assert codes(*answers) == [201, "duplicate"]


def test_a_text_sent_too_often_is_held_from_any_sender(
    door: Any, open_store: connection.Store, moment: Moment
) -> None:
    client = door(same_texts=0)
    token = api_requests.answer(post(client, "first"))["token"]
    with open_store.context():
        rule = Rule(id="r", action=Action.HOLD, repeated=2)
        policy_changes.put_rule("demo", rule, records.Actor("cli", "Ada"), now=moment.at)
    sent = [
        post(client, body, peer=f"198.51.100.{place}", token=token if place % 2 else None)
        for place, body in enumerate(["Buy!", "buy", " BUY ", "sell", "b.u.y"])
    ]
    assert [each.status_code for each in sent] == [201, 201, 202, 201, 202]
    # A retried request is the same post, so it is not counted again.
    again = [post(client, "Buy", key="k", peer="198.51.100.9") for _ in range(2)]
    assert [each.status_code for each in again] == [202, 202]
    moment.pass_by(hours=22)
    assert post(client, "buy", peer="198.51.100.8").status_code == 202
    moment.pass_by(hours=3)
    assert post(client, "buy", token=None).status_code == 201


@pytest.mark.slow
def test_a_counted_text_stores_little(door: Any, open_store: connection.Store) -> None:
    client = door(proof_of_work=1, same_texts=3)
    with open_store.context():
        rule = Rule(id="r", action=Action.HOLD, repeated=1_000)
        policy_changes.put_rule("demo", rule, records.Actor("cli", "Ada"), now=datetime.now(UTC))
    for place in range(80):
        answer = post(client, "+1", proof=proof_solver.proof(client), peer=f"198.51.100.{place}")
        assert answer.status_code == 201
    with open_store.context():
        rows = list(reads.fetch(reads.Query("RateBucket")))
    counted = [row for row in rows if row.key.path[-1].name.startswith("texts/")]
    assert [row.properties["count"].integer_value for row in counted] == [80]
    assert len(counted[0].properties["recent"].blob_value) <= 28 * 65


def test_repeated_texts_are_counted_per_network_for_guests_and_per_account_for_members(
    door: Any, open_store: connection.Store, settings: config.Settings, site: records.Site
) -> None:
    client = door(posts_per_network=2, posts_per_author=2, same_texts=2)
    with open_store.context():
        rule = Rule(id="r", action=Action.HOLD, repeated=1_000)
        policy_changes.put_rule("demo", rule, records.Actor("cli", "Ada"), now=datetime.now(UTC))
        account = account_holders.account("bob", password="")
    member = api_tokens.sign(
        api_tokens.Member(site.id, account.id, account.epoch), secret=settings.secret
    )
    guest = api_tokens.sign(api_tokens.Guest(site.id, "g:known"), secret=settings.secret)
    peers = [f"198.51.100.{n}" for n in range(3)]
    # If a guest posts from several networks, posts count for each network, and equal texts count
    # across all networks.
    assert codes(*(post(client, LONG, token=guest, peer=peer) for peer in peers)) == [
        201,
        201,
        "duplicate",
    ]
    assert codes(*(post(client, token=guest, peer="203.0.113.1") for _ in range(3))) == [
        201,
        201,
        "too-many-posts",
    ]
    # Members are counted across networks; guests on the same network do not affect their count.
    sent = [post(client, "Hello!", token=member, peer="203.0.113.1") for _ in range(2)]
    sent.append(post(client, "Hello!", token=member, peer="203.0.113.2"))
    assert codes(*sent) == [201, 201, "too-many-posts"]
