"""Claims about who may post: each rule, repeats, and what it costs."""

import dataclasses
import itertools
from datetime import UTC, datetime, timedelta
from typing import Any

import flask
import pytest
from flask.testing import FlaskClient

from comments import (
    admission,
    config,
    datastore,
    limits,
    policies,
    records,
    sites,
    sorthash,
    tallies,
)
from comments import (
    app as wiring,
)
from comments.rules import Action, Rule
from comments.web import api as web_api
from comments.web import session
from emulator import faults, inprocess, testing
from tests.comments import callers, calls, entrants
from tests.comments.entrants import post

LONG = "A text that is long enough to be told from others."
NUMBERS = itertools.count()


class Moment:
    """The time, as a test sets it."""

    def __init__(self) -> None:
        self.at = datetime.fromisoformat("2026-01-02T03:04:05+00:00")

    def now(self, zone: object) -> datetime:
        del zone
        return self.at

    def pass_by(self, **span: float) -> None:
        self.at += timedelta(**span)


@pytest.fixture
def moment(monkeypatch: pytest.MonkeyPatch) -> Moment:
    moment = Moment()
    monkeypatch.setattr(web_api, "datetime", moment)
    return moment


def _client(
    store: datastore.Store, settings: config.Settings, site: records.Site, **rules: int
) -> FlaskClient:
    del site
    app: flask.Flask = wiring.create_app(dataclasses.replace(settings, **rules), store)
    return app.test_client()


@pytest.fixture
def door(open_store: datastore.Store, settings: config.Settings, site: records.Site) -> Any:
    """Makes a client of a service with these rules."""
    return lambda **rules: _client(open_store, settings, site, **rules)


def codes(*answers: Any) -> list[object]:
    return [
        each.status_code if each.status_code == 201 else each.get_json()["code"] for each in answers
    ]


def stored(store: datastore.Store) -> int:
    return calls.stored(store, "Comment")


def test_a_network_posts_as_often_as_it_may_and_then_waits(door: Any, moment: Moment) -> None:
    client = door(posts_per_network=2)
    assert codes(post(client), post(client)) == [201, 201]
    moment.pass_by(minutes=1)
    refused = post(client)
    assert codes(refused, post(client, peer="192.0.2.2")) == ["too-many-posts", 201]
    assert refused.headers["Retry-After"] == str(9 * 60)
    assert "try again in 9 min" in refused.get_json()["detail"]
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
        client.post(calls.THREAD, json=sent, headers={name: f"198.51.100.{n}"}) for n in range(3)
    ]
    assert codes(*answers) == [201, "too-many-posts", "too-many-posts"]


def test_behind_a_trusted_proxy_each_caller_is_counted(door: Any) -> None:
    client = door(posts_per_network=1, proxies=1)
    sent = {"name": "Ann", "body": "Hello"}
    chains = ("203.0.113.1", "9.9.9.9, 203.0.113.1", "203.0.113.2")
    answers = [
        client.post(calls.THREAD, json=sent, headers={"X-Forwarded-For": chain}) for chain in chains
    ]
    assert codes(*answers) == [201, "too-many-posts", 201]


def test_an_author_posts_as_often_as_he_may_from_wherever(door: Any, moment: Moment) -> None:
    client = door(posts_per_author=2)
    token = calls.answer(post(client))["token"]
    peers = itertools.count(1)
    answers = [post(client, token=token, peer=f"198.51.100.{next(peers)}") for _ in range(3)]
    assert codes(*answers) == [201, 201, "too-many-posts"]
    assert "from you" in answers[2].get_json()["detail"]
    assert codes(post(client)) == [201]
    moment.pass_by(minutes=10)
    assert codes(post(client, token=token)) == [201]


def test_a_thread_is_posted_to_as_often_as_it_may_be(door: Any, moment: Moment) -> None:
    client = door(posts_per_thread=2)
    assert codes(post(client), post(client, peer="192.0.2.2")) == [201, 201]
    moment.pass_by(minutes=4)
    refused = post(client, peer="192.0.2.3")
    assert codes(refused) == ["too-many-posts"]
    assert refused.headers["Retry-After"] == "360"
    elsewhere = client.post(calls.THREAD + "-2", json={"name": "Ann", "body": "Hello"})
    moment.pass_by(minutes=6)
    assert codes(elsewhere, post(client)) == [201, 201]


def test_a_spread_thread_takes_as_many_in_all(
    door: Any, open_store: datastore.Store, site: records.Site
) -> None:
    client = door(posts_per_thread=16)
    parents = [calls.answer(post(client))["comment"]["id"] for _ in range(2)]
    with open_store.context():
        tallies.spread(records.ThreadName(site.id, "t"), 4)
    answers = [post(client, parent=parents[n % 2]) for n in range(40)]
    accepted = codes(*answers).count(201)
    # One process meets one of four rows here: its part, of which two are used.
    assert 2 <= accepted < 16 - 2
    assert set(codes(*answers)) == {201, "too-many-posts"}


def test_a_site_has_rules_of_its_own(
    door: Any, open_store: datastore.Store, site: records.Site
) -> None:
    with open_store.context():
        sites.change(site.id, guard={"posts_per_network": 1, "same_texts": 0})
    client = door(posts_per_network=5, same_texts=1)
    assert codes(post(client, LONG), post(client, LONG)) == [201, "too-many-posts"]
    with open_store.context():
        sites.change(site.id, guard={"posts_per_network": None})
    assert codes(post(client, LONG)) == [201]


@pytest.mark.parametrize("again", [LONG, LONG.upper(), f"  {LONG.replace(' ', '  ')}"])
def test_a_network_says_the_same_once_an_hour(door: Any, moment: Moment, again: str) -> None:
    client = door(same_texts=3)
    assert codes(post(client, LONG), post(client, again)) == [201, "duplicate"]
    moment.pass_by(minutes=61)
    assert codes(post(client, again)) == [201]


def test_short_texts_are_said_again_and_again(door: Any) -> None:
    client = door(same_texts=1)
    assert codes(*(post(client, "Thank you very much!") for _ in range(4))) == [201] * 4


def test_newcomers_of_many_networks_say_the_same_a_few_times(door: Any, moment: Moment) -> None:
    client = door(same_texts=2)
    answers = [post(client, LONG, peer=f"198.51.100.{n}") for n in range(4)]
    assert codes(*answers) == [201, 201, "duplicate", "duplicate"]
    moment.pass_by(minutes=61)
    assert codes(post(client, LONG, peer="198.51.100.9")) == [201]


def test_a_known_author_says_the_same_once_from_wherever(door: Any) -> None:
    client = door(same_texts=5)
    token = calls.answer(post(client))["token"]
    answers = [post(client, LONG, token=token, peer=f"198.51.100.{n}") for n in range(2)]
    assert codes(*answers) == [201, "duplicate"]


RULES = {
    "posts_per_network": 1,
    "posts_per_author": 1,
    "posts_per_thread": 1,
    "same_texts": 1,
}


@pytest.mark.parametrize("body", [LONG, "Short"])
@pytest.mark.parametrize("later", [0, 59, 300])
def test_a_repeat_of_what_was_accepted_is_free(
    door: Any, open_store: datastore.Store, moment: Moment, body: str, later: int
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


def test_another_text_under_a_key_is_still_told_so(door: Any) -> None:
    client = door(**RULES)
    post(client, key="the-key")
    assert calls.refused(post(client, "Other", key="the-key"), 409) == "idempotency-key-reused"


def test_what_is_refused_as_input_is_not_charged(door: Any) -> None:
    client = door(posts_per_network=1)
    assert post(client, "").status_code == 400
    assert codes(post(client)) == [201]


def test_what_is_refused_at_the_door_leaves_nothing(
    door: Any, engine: inprocess.Engine, open_store: datastore.Store
) -> None:
    client = door(**RULES, proof_of_work=10)
    given = entrants.proof(client)
    post(client, proof=given)
    before = {kind: calls.stored(open_store, kind) for kind in ("Comment", "RateBucket", "Event")}
    with testing.meter(engine) as cost:
        for more in ({}, {"proof": "x"}, {"proof": given}, {"subject": "Buy"}):
            assert post(client, **more).status_code == 403
        assert post(client, proof=entrants.proof(client)).status_code == 429
    assert (cost.writes, cost.deletes) == (0, 0)
    assert before == {kind: calls.stored(open_store, kind) for kind in before}


@pytest.mark.parametrize("is_known", [False, True])
def test_admission_takes_two_reads_and_two_writes(
    door: Any,
    engine: inprocess.Engine,
    *,
    is_known: bool,
) -> None:
    everything = dict.fromkeys(RULES, 50) | {"proof_of_work": 10}
    plain, guarded = door(), door(**everything)
    given = entrants.proof(guarded)
    # Also so that the site and its rules are known from here on.
    newcomer = calls.answer(post(plain))["token"]
    token = newcomer if is_known else None

    def cost(client: FlaskClient, **more: object) -> tuple[int, int]:
        with testing.meter(engine) as spent:
            assert codes(post(client, f"{LONG} {next(NUMBERS)}", token=token, **more)) == [201]
        return spent.reads + spent.small, spent.writes

    bare, full = cost(plain), cost(guarded, proof=given)
    assert [b - a for a, b in zip(bare, full, strict=True)] == [2, 2]
    assert full[0] - 2 <= 5
    assert full[1] - 2 <= 5


def test_a_text_that_comes_too_often_is_held_whoever_sends_it(
    door: Any, open_store: datastore.Store, moment: Moment
) -> None:
    client = door(same_texts=0)
    token = calls.answer(post(client, "first"))["token"]
    with open_store.context():
        rule = Rule(id="r", action=Action.HOLD, repeated=2)
        policies.put_rule("demo", rule, records.Actor("cli", "Ada"), now=moment.at)
    sent = [
        post(client, body, peer=f"198.51.100.{place}", token=token if place % 2 else None)
        for place, body in enumerate(["Buy!", "buy", " BUY ", "sell", "b.u.y"])
    ]
    assert [each.status_code for each in sent] == [201, 201, 202, 201, 202]
    # A repeat is the same post, and is not counted again.
    again = [post(client, "Buy", key="k", peer="198.51.100.9") for _ in range(2)]
    assert [each.status_code for each in again] == [202, 202]
    moment.pass_by(hours=22)
    assert post(client, "buy", peer="198.51.100.8").status_code == 202
    moment.pass_by(hours=3)
    assert post(client, "buy", token=None).status_code == 201


def test_a_text_that_is_only_counted_leaves_little_behind(
    door: Any, open_store: datastore.Store
) -> None:
    client = door(proof_of_work=1, same_texts=3)
    with open_store.context():
        rule = Rule(id="r", action=Action.HOLD, repeated=1_000)
        policies.put_rule("demo", rule, records.Actor("cli", "Ada"), now=datetime.now(UTC))
    for place in range(80):
        answer = post(client, "+1", proof=entrants.proof(client), peer=f"198.51.100.{place}")
        assert answer.status_code == 201
    with open_store.context():
        rows = list(datastore.fetch(datastore.Query("RateBucket")))
    counted = [row for row in rows if row.key.path[-1].name.startswith("texts/")]
    assert [row.properties["count"].integer_value for row in counted] == [80]
    assert len(counted[0].properties["recent"].blob_value) <= 28 * 65


def test_where_texts_are_counted_a_guest_is_a_newcomer_and_a_member_is_his_account(
    door: Any, open_store: datastore.Store, settings: config.Settings, site: records.Site
) -> None:
    client = door(posts_per_network=2, posts_per_author=2, same_texts=2)
    with open_store.context():
        rule = Rule(id="r", action=Action.HOLD, repeated=1_000)
        policies.put_rule("demo", rule, records.Actor("cli", "Ada"), now=datetime.now(UTC))
        account = callers.account("bob", password="")
    member = session.sign_member(
        session.Member(site.id, account.id, account.epoch), secret=settings.secret
    )
    guest = session.sign(session.Guest(site.id, "g:known"), secret=settings.secret)
    peers = [f"198.51.100.{n}" for n in range(3)]
    # A guest from several networks: each is counted, and his text as anybody's.
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
    # A member is counted wherever he is, and his network's neighbours do not keep him out.
    sent = [post(client, "Hello!", token=member, peer="203.0.113.1") for _ in range(2)]
    sent.append(post(client, "Hello!", token=member, peer="203.0.113.2"))
    assert codes(*sent) == [201, 201, "too-many-posts"]


def test_who_has_signed_in_proves_nothing_and_is_counted_all_the_same(
    door: Any, open_store: datastore.Store, settings: config.Settings, site: records.Site
) -> None:
    client = door(proof_of_work=10, form_seconds=3, posts_per_author=2)
    with open_store.context():
        account = callers.account("bob", password="")
    member = session.Member(site.id, account.id, account.epoch)
    token = session.sign_member(member, secret=settings.secret)
    guest = session.sign(session.Guest(site.id, "g:known"), secret=settings.secret)
    answers = [post(client, f"{LONG} {n}", token=token) for n in range(3)]
    assert codes(*answers, post(client, token=guest)) == [
        201,
        201,
        "too-many-posts",
        "proof-required",
    ]
    assert codes(post(client, token=token, subject="Buy")) == ["not-accepted"]


def test_to_ask_for_a_challenge_writes_nothing_and_is_kept_by_nobody(
    door: Any, engine: inprocess.Engine
) -> None:
    client = door(proof_of_work=10)
    client.get(entrants.CHALLENGE)
    with testing.meter(engine) as cost:
        response = client.get(entrants.CHALLENGE)
    assert (cost.reads, cost.writes) == (0, 0)
    assert response.headers["Cache-Control"] == "no-store"
    assert calls.answer(response)["maxnumber"] == 10


def test_a_proof_is_good_once(door: Any) -> None:
    client = door(proof_of_work=100)
    given = entrants.proof(client)
    assert codes(post(client, proof=given)) == [201]
    elsewhere = [post(client, proof=given, peer=peer) for peer in ("192.0.2.1", "198.51.100.1")]
    assert codes(*elsewhere) == ["proof-spent"] * 2
    assert codes(post(client, proof=entrants.proof(client))) == [201]


def test_a_proof_stays_spent_as_long_as_it_would_be_good(door: Any, moment: Moment) -> None:
    client = door(proof_of_work=100)
    given = entrants.proof(client)
    post(client, proof=given)
    moment.pass_by(minutes=59)
    assert codes(post(client, proof=given)) == ["proof-spent"]
    moment.pass_by(minutes=2)
    assert codes(post(client, proof=given)) == ["proof-expired"]


def test_who_asked_for_a_challenge_is_charged_wherever_it_is_used(door: Any) -> None:
    """A telephone's address changes; a bot asks for its challenges from somewhere."""
    client = door(proof_of_work=10, posts_per_network=2)
    given = [entrants.proof(client) for _ in range(3)]
    answers = [post(client, proof=each, peer=f"198.51.100.{n}") for n, each in enumerate(given)]
    assert codes(*answers) == [201, 201, "too-many-posts"]


def test_a_repeat_with_a_proof_that_is_spent_or_old_is_the_same_comment(
    door: Any, open_store: datastore.Store, moment: Moment
) -> None:
    client = door(proof_of_work=10, form_seconds=3, **RULES)
    given = entrants.proof(client)
    moment.pass_by(seconds=3)
    assert codes(post(client, proof=given, key="the-key")) == [201]
    for _ in range(2):
        assert codes(post(client, proof=given, key="the-key")) == [201]
        assert codes(post(client, key="the-key")) == [201]
        moment.pass_by(hours=2)
    assert stored(open_store) == 1


def test_a_form_that_is_sent_at_once_is_a_bots(door: Any, moment: Moment) -> None:
    client = door(proof_of_work=10, form_seconds=3)
    given = entrants.proof(client)
    moment.pass_by(seconds=2)
    refused = post(client, proof=given)
    assert (codes(refused), refused.headers["Retry-After"]) == (["too-fast"], "1")
    moment.pass_by(seconds=1)
    assert codes(post(client, proof=given)) == [201]


def test_a_proof_is_of_one_site(door: Any, open_store: datastore.Store) -> None:
    with open_store.context():
        sites.add("other", ["http://o.example"], scheme=sorthash.Scheme(), now=Moment().at)
    client = door(proof_of_work=10)
    other = calls.answer(client.get("/api/v1/sites/other/challenge"))
    assert codes(post(client, proof=entrants.solved(other))) == ["proof-invalid"]
    assert client.get("/api/v1/sites/nowhere/challenge").status_code == 404


def test_without_a_proof_or_in_the_honeypot_nothing_is_stored(
    door: Any, open_store: datastore.Store
) -> None:
    client = door(proof_of_work=10)
    assert calls.refused(post(client), 403) == "proof-required"
    trapped = post(client, proof=entrants.proof(client), subject="Buy")
    assert calls.refused(trapped, 403) == "not-accepted"
    assert stored(open_store) == 0


def test_while_many_ask_challenges_are_harder(door: Any) -> None:
    client = door(proof_of_work=10)
    hardness = [calls.answer(client.get(entrants.CHALLENGE))["maxnumber"] for _ in range(130)]
    assert hardness[:60] == [10] * 60
    assert hardness[60:120] == [20] * 60
    assert hardness[120:] == [40] * 10


def test_a_store_that_fails_admits_nobody(
    door: Any,
    engine: inprocess.Engine,
    open_store: datastore.Store,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    client = door(posts_per_network=5)
    assert codes(post(client)) == [201]
    monkeypatch.setattr(admission, "PATIENCE", 0.2)
    rules = [{"rpc": "Commit", "status": "UNAVAILABLE"}]
    engine.install_faults(faults.Plan.parse({"seed": 1, "rules": rules}))
    refused = post(client)
    assert calls.refused(refused, 503) == "overloaded"
    assert refused.headers["Retry-After"]
    engine.install_faults(None)
    assert stored(open_store) == 1
    assert codes(post(client)) == [201]


def test_an_answer_that_is_lost_charges_once(
    door: Any, engine: inprocess.Engine, brief_doubt: None
) -> None:
    client = door(posts_per_network=2)
    rules = [{"rpc": "Commit", "call": 1, "when": "after", "status": "UNAVAILABLE"}]
    engine.install_faults(faults.Plan.parse({"seed": 1, "rules": rules}))
    assert codes(post(client)) == [201]
    engine.install_faults(None)
    assert codes(post(client), post(client)) == [201, "too-many-posts"]


def test_old_buckets_are_deleted_and_young_ones_stay(
    door: Any, open_store: datastore.Store, moment: Moment
) -> None:
    client = door(posts_per_network=1, same_texts=1)
    post(client, LONG)
    moment.pass_by(hours=3)
    post(client, f"{LONG} Again.", peer="198.51.100.1")
    with open_store.context():
        assert limits.expire(moment.at - timedelta(hours=3)) == 0
        assert limits.expire(moment.at) == 2
        assert limits.expire(moment.at) == 0
    assert calls.stored(open_store, "RateBucket") == 2
    assert codes(post(client, peer="198.51.100.1"), post(client)) == ["too-many-posts", 201]


def test_nothing_of_an_address_or_a_text_is_in_the_store(
    door: Any, open_store: datastore.Store
) -> None:
    client = door(**RULES, proof_of_work=10)
    assert codes(post(client, LONG, proof=entrants.proof(client), peer="203.0.113.77")) == [201]
    with open_store.context():
        rows = list(datastore.fetch(datastore.Query("RateBucket")))
    said = b"".join(row.SerializeToString() for row in rows)
    assert len(rows) == 2
    for telling in (b"203.0.113", b"long enough", b"LONG ENOUGH", b"Ann"):
        assert telling not in said
