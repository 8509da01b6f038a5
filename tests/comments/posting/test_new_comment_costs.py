"""Each post has the documented cost with every combination of a site's protections."""

import dataclasses
import itertools
from datetime import UTC, datetime, timedelta

import pytest

from comments import app as apps
from comments import config
from comments.domain import records
from comments.domain.ids import sorthash
from comments.domain.records import Policy
from comments.limits import usage
from comments.moderation.policy import policy_changes, rulebook
from comments.moderation.policy.rules import Action, Rule
from comments.sites import site_settings
from comments.store import connection
from comments.web.api.callers import api_tokens
from datastore_emulator import inprocess, testing
from tests.support.people import account_holders, api_requests, proof_solver
from tests.support.people.proof_solver import post
from tests.support.threads import sample_threads

pytestmark = pytest.mark.usefixtures("one_day")

NUMBERS = itertools.count()
LIMITS = ("posts_per_network", "posts_per_author", "posts_per_thread", "same_texts")
TEXT = "A text that matches no rule, from any sender, number {}."


TEMPTING = "A casino that matches a rule, from any sender, number {}."


@pytest.mark.parametrize(
    ("place", "who", "rule", "policy", "repeated"),
    [  # Every pair of two values
        ("root", "newcomer", False, Policy.OFF, False),
        ("root", "guest", True, Policy.FIRST, True),
        ("root", "member", False, Policy.FIRST, True),
        ("reply", "newcomer", True, Policy.FIRST, False),
        ("reply", "guest", False, Policy.OFF, True),
        ("reply", "member", True, Policy.OFF, False),
        ("deepest", "newcomer", True, Policy.OFF, True),
        ("deepest", "guest", False, Policy.FIRST, False),
        ("deepest", "member", True, Policy.FIRST, False),
        ("deepest", "member", False, Policy.OFF, False),
    ],
)
def test_what_a_post_costs_with_everything_on(
    engine: inprocess.Engine,
    open_store: connection.Store,
    site: records.Site,
    settings: config.Settings,
    *,
    place: str,
    who: str,
    rule: bool,
    policy: Policy,
    repeated: bool,
) -> None:
    """docs/spam.md lists the costs. Proofs, limits, a ban and a budget are always enabled.

    For any caller, the admission transaction needs two reads and two writes. The transaction that
    stores the comment needs its usual calls, plus one read if only the number of approved comments
    decides.
    """
    everything = dict.fromkeys(LIMITS, 500) | {"proof_of_work": 2}
    with open_store.context():
        sample_threads.shaped(site, sorthash.Scheme(levels=2))
    shallow = dataclasses.replace(settings, **everything)  # type: ignore[arg-type]
    client = apps.create_app(shallow, open_store).test_client()
    first = api_requests.answer(post(client, "root", proof=proof_solver.proof(client)))
    below = api_requests.answer(
        post(client, "below", proof=proof_solver.proof(client), parent=first["comment"]["id"])
    )
    parent = {"root": None, "reply": first, "deepest": below}[place]
    with open_store.context():
        account = account_holders.account(
            "bob", password="", now=datetime.now(UTC) - timedelta(days=9)
        )
        member = api_tokens.Member(site.id, account.id, account.epoch)
        guest = api_tokens.Guest(site.id, "g:known")
        token = {
            "newcomer": None,
            "guest": api_tokens.sign(guest, secret=settings.secret),
            "member": api_tokens.sign(member, secret=settings.secret),
        }[who]
        site_settings.change(site.id, budget={"posts": 1_000, "reads": 1_000_000})
        _moderate(policy, rule=rule, repeated=repeated)
        usage.total(site.id, now=datetime.now(UTC))
    more = {} if parent is None else {"parent": parent["comment"]["id"]}
    given = "" if who == "member" else proof_solver.proof(client)
    text = TEMPTING if rule else TEXT
    client.get("/api/v1/sites/demo/comments?thread=t")  # Caches the site and its rules
    with open_store.context():
        rulebook.current(site.id)
        counts = {"root": (3, 5), "reply": (4, 5), "deepest": (5, 5)}[place]
        asks = who != "newcomer" and (rule or policy is Policy.FIRST)
        expected = (
            2 + counts[0] + asks + (who == "member"), 2 + counts[1],
        )  # fmt: skip
    with testing.meter(engine) as cost:
        answer = post(client, text.format(next(NUMBERS)), token=token, proof=given, **more)
    assert answer.status_code == (202 if policy is Policy.FIRST or rule else 201), answer.text
    assert (cost.reads, cost.writes) == expected


@pytest.mark.parametrize("proof_of_work", [0, 2])
def test_what_a_post_without_javascript_costs(
    engine: inprocess.Engine,
    open_store: connection.Store,
    site: records.Site,
    settings: config.Settings,
    proof_of_work: int,
) -> None:
    """docs/spam.md lists the costs: one more read and write on a site that requires a proof."""
    everything = dict.fromkeys(LIMITS, 500) | {"proof_of_work": proof_of_work}
    client = apps.create_app(dataclasses.replace(settings, **everything), open_store).test_client()  # type: ignore[arg-type]
    with open_store.context():
        site_settings.change(site.id, options={"forms": True})
        rulebook.current(site.id)
    page = "/embed/demo?thread=t"
    form = {"name": "Ann", "body": TEXT.format(next(NUMBERS)), "key": "0" * 32}
    client.get(page)  # Caches the site
    with testing.meter(engine) as cost:
        answer = client.post(page, data=form, environ_base={"REMOTE_ADDR": "192.0.2.1"})
    assert answer.status_code == 303
    more = int(proof_of_work > 0)
    assert (cost.reads, cost.writes) == (2 + 5 + more, 2 + 5 + more)


def _moderate(policy: Policy, *, rule: bool, repeated: bool) -> None:
    """Set a site's policy, a rule of every kind, and a ban."""
    ada, now = records.Actor("cli", "Ada"), datetime.now(UTC)
    policy_changes.set_policy("demo", ada, now=now, policy=policy)
    policy_changes.ban("demo", "g:eve", ada, now=now)
    plain = Rule(
        id="plain", action=Action.HOLD, words=("viagra",), scripts=("cyrillic",), younger_than=3,
        networks=("203.0.113.0/24",), repeated=50 if repeated else None,
    )  # fmt: skip
    policy_changes.put_rule("demo", plain, ada, now=now)
    if rule:
        asks = Rule(id="asks", action=Action.HOLD, words=("casino",), approved_under=3)
        policy_changes.put_rule("demo", asks, ada, now=now)
