"""Admission limits posts per network, author and thread, accepts retries, and has a fixed cost."""

import itertools
from datetime import timedelta
from typing import Any

import pytest
from flask.testing import FlaskClient

from comments.domain import records
from comments.limits import rate_limits
from comments.posting import admission
from comments.sites import site_settings
from comments.store import connection, reads
from datastore_emulator import faults, inprocess, testing
from tests.support.people import api_requests, proof_solver
from tests.support.people.post_times import LONG, RULES, Moment, codes
from tests.support.people.proof_solver import post

NUMBERS = itertools.count()


def stored(store: connection.Store) -> int:
    return api_requests.stored(store, "Comment")


def test_a_network_at_its_limit_must_wait(door: Any, moment: Moment) -> None:
    client = door(posts_per_network=2)
    assert codes(post(client), post(client)) == [201, 201]
    moment.pass_by(minutes=1)
    refused = post(client)
    assert codes(refused, post(client, peer="192.0.2.2")) == ["too-many-posts", 201]
    assert refused.headers["Retry-After"] == str(9 * 60)
    assert refused.get_json()["detail"] == "You're posting too fast. Try again in 9 minutes."
    moment.pass_by(minutes=9)
    assert codes(post(client), post(client), post(client)) == [201, 201, "too-many-posts"]


def test_all_addresses_of_an_ipv6_customer_are_one_network(door: Any) -> None:
    client = door(posts_per_network=1)
    peers = ("2001:db8:1:2::1", "2001:db8:1:2:ffff::9", "2001:db8:1:3::1", "::ffff:192.0.2.1")
    answers = [post(client, peer=peer) for peer in (*peers, "192.0.2.1")]
    assert codes(*answers) == [201, "too-many-posts", 201, 201, "too-many-posts"]


@pytest.mark.parametrize(
    "name",
    ["X-Forwarded-For", "X-Real-IP", "CF-Connecting-IP", "Forwarded", "X-Appengine-User-IP"],
)
def test_headers_that_name_another_client_change_nothing(door: Any, name: str) -> None:
    client = door(posts_per_network=1)
    sent = {"name": "Ann", "body": "Hello"}
    answers = [
        client.post(api_requests.THREAD, json=sent, headers={name: f"198.51.100.{n}"})
        for n in range(3)
    ]
    assert codes(*answers) == [201, "too-many-posts", "too-many-posts"]


def test_behind_a_trusted_proxy_each_caller_is_counted(door: Any) -> None:
    client = door(posts_per_network=1, trusted_proxies=1)
    sent = {"name": "Ann", "body": "Hello"}
    chains = ("203.0.113.1", "9.9.9.9, 203.0.113.1", "203.0.113.2")
    answers = [
        client.post(api_requests.THREAD, json=sent, headers={"X-Forwarded-For": chain})
        for chain in chains
    ]
    assert codes(*answers) == [201, "too-many-posts", 201]


def test_an_author_is_limited_across_networks(door: Any, moment: Moment) -> None:
    client = door(posts_per_author=2)
    token = api_requests.answer(post(client))["token"]
    peers = itertools.count(1)
    answers = [post(client, token=token, peer=f"198.51.100.{next(peers)}") for _ in range(3)]
    assert codes(*answers) == [201, 201, "too-many-posts"]

    assert codes(post(client)) == [201]
    moment.pass_by(minutes=10)
    assert codes(post(client, token=token)) == [201]


def test_a_thread_is_limited_across_networks(door: Any, moment: Moment) -> None:
    client = door(posts_per_thread=2)
    assert codes(post(client), post(client, peer="192.0.2.2")) == [201, 201]
    moment.pass_by(minutes=4)
    refused = post(client, peer="192.0.2.3")
    assert codes(refused) == ["too-many-posts"]
    assert refused.headers["Retry-After"] == "360"
    elsewhere = client.post(api_requests.THREAD + "-2", json={"name": "Ann", "body": "Hello"})
    moment.pass_by(minutes=6)
    assert codes(elsewhere, post(client)) == [201, 201]


def test_a_site_may_have_its_own_limits(
    door: Any, open_store: connection.Store, site: records.Site
) -> None:
    with open_store.context():
        site_settings.change(site.id, guard={"posts_per_network": 1, "same_texts": 0})
    client = door(posts_per_network=5, same_texts=1)
    assert codes(post(client, LONG), post(client, LONG)) == [201, "too-many-posts"]
    with open_store.context():
        site_settings.change(site.id, guard={"posts_per_network": None})
    assert codes(post(client, LONG)) == [201]


@pytest.mark.parametrize("body", [LONG, "Short"])
@pytest.mark.parametrize("later", [0, 59, 300])
def test_a_repeat_of_an_accepted_post_is_free(
    door: Any, open_store: connection.Store, moment: Moment, body: str, later: int
) -> None:
    client = door(**RULES)
    first = post(client, body, key="the-key")
    moment.pass_by(minutes=later)
    again = [post(client, body, key="the-key") for _ in range(3)]
    assert codes(first, *again) == [201] * 4
    assert {each.headers.get("Idempotent-Replayed") for each in again} == {"true"}
    assert stored(open_store) == 1


def test_a_repeat_within_the_hour_is_not_charged(
    door: Any, engine: inprocess.Engine, moment: Moment
) -> None:
    client = door(posts_per_network=2)
    post(client, key="the-key")
    for _ in range(3):
        with testing.meter(engine) as cost:
            post(client, key="the-key")
        assert (cost.writes, cost.deletes) == (0, 0)
    assert codes(post(client), post(client)) == [201, "too-many-posts"]


def test_another_text_under_the_same_key_is_a_conflict(door: Any) -> None:
    client = door(**RULES)
    post(client, key="the-key")
    assert (
        api_requests.refused(post(client, "Other", key="the-key"), 409) == "idempotency-key-reused"
    )


def test_invalid_input_is_not_charged(door: Any) -> None:
    client = door(posts_per_network=1)
    assert post(client, "").status_code == 400
    assert codes(post(client)) == [201]


def test_a_refused_post_stores_nothing(
    door: Any, engine: inprocess.Engine, open_store: connection.Store
) -> None:
    client = door(**RULES, proof_of_work=10)
    given = proof_solver.proof(client)
    post(client, proof=given)
    before = {
        kind: api_requests.stored(open_store, kind) for kind in ("Comment", "RateBucket", "Event")
    }
    with testing.meter(engine) as cost:
        for more in ({}, {"proof": "x"}, {"proof": given}, {"subject": "Buy"}):
            assert post(client, **more).status_code == 403
        assert post(client, proof=proof_solver.proof(client)).status_code == 429
    assert (cost.writes, cost.deletes) == (0, 0)
    assert before == {kind: api_requests.stored(open_store, kind) for kind in before}


@pytest.mark.parametrize("is_known", [False, True])
def test_admission_takes_two_reads_and_two_writes(
    door: Any,
    engine: inprocess.Engine,
    *,
    is_known: bool,
) -> None:
    everything = dict.fromkeys(RULES, 50) | {"proof_of_work": 10}
    plain, guarded = door(), door(**everything)
    given = proof_solver.proof(guarded)
    # This post also caches the site and its rules.
    newcomer = api_requests.answer(post(plain))["token"]
    token = newcomer if is_known else None

    def cost(client: FlaskClient, **more: Any) -> tuple[int, int]:
        with testing.meter(engine) as spent:
            assert codes(post(client, f"{LONG} {next(NUMBERS)}", token=token, **more)) == [201]
        return spent.reads + spent.small, spent.writes

    bare, full = cost(plain), cost(guarded, proof=given)
    assert [b - a for a, b in zip(bare, full, strict=True)] == [2, 2]
    assert full[0] - 2 <= 5
    assert full[1] - 2 <= 5


def test_a_failing_store_admits_nobody(
    door: Any,
    engine: inprocess.Engine,
    open_store: connection.Store,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    client = door(posts_per_network=5)
    assert codes(post(client)) == [201]
    monkeypatch.setattr(admission, "PATIENCE", 0.2)
    rules = [{"rpc": "Commit", "status": "UNAVAILABLE"}]
    engine.install_faults(faults.Plan.parse({"seed": 1, "rules": rules}))
    refused = post(client)
    assert api_requests.refused(refused, 503) == "overloaded"
    assert refused.headers["Retry-After"]
    engine.install_faults(None)
    assert stored(open_store) == 1
    assert codes(post(client)) == [201]


def test_a_post_whose_answer_is_lost_is_charged_once(
    door: Any, engine: inprocess.Engine, brief_doubt: None
) -> None:
    client = door(posts_per_network=2)
    rules = [{"rpc": "Commit", "call": 1, "when": "after", "status": "UNAVAILABLE"}]
    engine.install_faults(faults.Plan.parse({"seed": 1, "rules": rules}))
    assert codes(post(client)) == [201]
    engine.install_faults(None)
    assert codes(post(client), post(client)) == [201, "too-many-posts"]


def test_old_rate_buckets_are_deleted_and_recent_ones_stay(
    door: Any, open_store: connection.Store, moment: Moment
) -> None:
    client = door(posts_per_network=1, same_texts=1)
    post(client, LONG)
    moment.pass_by(hours=3)
    post(client, f"{LONG} Again.", peer="198.51.100.1")
    with open_store.context():
        assert rate_limits.expire(moment.at - timedelta(hours=3)) == 0
        assert rate_limits.expire(moment.at) == 2
        assert rate_limits.expire(moment.at) == 0
    assert api_requests.stored(open_store, "RateBucket") == 2
    assert codes(post(client, peer="198.51.100.1"), post(client)) == ["too-many-posts", 201]


def test_no_part_of_an_address_or_a_text_is_stored(door: Any, open_store: connection.Store) -> None:
    client = door(**RULES, proof_of_work=10)
    assert codes(post(client, LONG, proof=proof_solver.proof(client), peer="203.0.113.77")) == [201]
    with open_store.context():
        rows = list(reads.fetch(reads.Query("RateBucket")))
    said = b"".join(row.SerializeToString() for row in rows)
    assert len(rows) == 2
    for telling in (b"203.0.113", b"long enough", b"LONG ENOUGH", b"Ann"):
        assert telling not in said
