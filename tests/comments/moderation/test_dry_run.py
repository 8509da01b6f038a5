"""A dry run reports what a rule would do and changes nothing."""

import hashlib
from datetime import timedelta
from typing import Any

import pytest

from comments import errors
from comments.domain import records
from comments.domain.ids import author_ids
from comments.domain.records import Status, Verb
from comments.events import dispatcher
from comments.moderation import decisions
from comments.moderation.policy import dry_run
from comments.moderation.policy.rules import Action, Rule
from comments.store import connection
from comments.upkeep import wiring
from datastore_emulator import inprocess, testing
from tests.support import optional_tools, stored_state
from tests.support.html import embedded_threads
from tests.support.people import account_holders
from tests.support.threads import sample_threads

ADA = records.Actor("cli", "Ada")
NOW = sample_threads.START


def _rule(action: Action = Action.HOLD, **conditions: Any) -> Rule:
    return Rule(id="r", action=action, **conditions)


def _hash() -> str:
    """Return a digest of everything stored."""
    found = hashlib.sha256()
    for kind in stored_state.kind_names():
        rows = sorted(
            each.SerializeToString(deterministic=True) for each in stored_state.rows(kind)
        )
        for row in rows:
            found.update(kind.encode() + row)
    return found.hexdigest()


def _found(rules: list[Rule], **more: Any) -> list[str]:
    report = dry_run.try_rules("demo", rules, **more)
    return [match.comment.body for match in report.matches]


@pytest.fixture(autouse=True)
def _entered(store: connection.Store, site: records.Site) -> None:
    """Run all these tests inside a store with the site "demo"."""


def _grow(site: records.Site) -> list[records.Comment]:
    return [
        sample_threads.post(site, body, now=NOW + timedelta(hours=hour), thread=f"t{hour % 3}")
        for hour, body in enumerate(["a casino", "fine", "CASINO", "Buy now", "buy, now!", "end"])
    ]


def test_a_dry_run_reports_matching_comments_and_changes_nothing(
    site: records.Site, engine: inprocess.Engine
) -> None:
    rows = _grow(site)
    decisions.decide("demo", rows[0].id, Verb.SPAM, ADA, now=NOW)
    before = _hash()
    with testing.meter(engine) as cost:
        report = dry_run.try_rules("demo", [_rule(Action.SPAM, words=("casino",))])
    assert (cost.writes, cost.deletes) == (0, 0)
    assert _hash() == before
    assert [match.comment.id for match in report.matches] == [rows[2].id, rows[0].id]
    assert report.looked_at == 6
    for match in report.matches:
        found = match.ruling
        assert (found.status, found.rule) == (Status.SPAM, "rule:r")
        assert found.why == 'the text contains "casino"'


def test_a_dry_run_checks_the_newest_comments_except_retracted_ones(site: records.Site) -> None:
    rows = _grow(site)
    sample_threads.retract(rows[2])
    rule = _rule(words=("casino", "fine", "buy", "end"))
    assert _found([rule], last=3) == ["end", "buy, now!", "Buy now"]
    assert _found([rule]) == ["end", "buy, now!", "Buy now", "fine", "a casino"]
    with pytest.raises(errors.BadInput):
        dry_run.try_rules("demo", [rule], last=10_001)
    with pytest.raises(errors.BadInput):
        dry_run.try_rules("demo", [_rule()])
    assert dry_run.try_rules("other", [rule]).looked_at == 0


def test_a_dry_run_uses_the_counters_known_now(site: records.Site) -> None:
    _grow(site)
    known = [
        sample_threads.post(site, f"known {n}", author=sample_threads.author("ann"))
        for n in range(3)
    ]
    dispatcher.deliver(
        [stored_state.name_of(each) for each in stored_state.rows("Event")],
        now=NOW,
        handlers=wiring.HANDLERS,
    )
    assert _found([_rule(repeated=1)]) == ["buy, now!"]
    assert known[0].body not in _found([_rule(approved_under=2)])
    assert known[0].body in _found([_rule(approved_under=3)])
    assert _found([_rule(networks=("0.0.0.0/0", "::/0"))]) == []


def test_an_authors_age_is_the_age_at_the_time_of_the_comment(
    site: records.Site,
) -> None:
    account = account_holders.account("bob", password="", now=NOW)
    authors = {
        "guest": author_ids.guest("a" * 26, NOW), "member": account.author, "import": "i:x",
    }  # fmt: skip
    for name, author in authors.items():
        for days in (1, 3):
            who = records.Author(name, id=author)
            sample_threads.post(site, f"{name} {days}", author=who, now=NOW + timedelta(days=days))
    sample_threads.post(site, "removed", author=records.Author("gone", id="a:gone"))
    assert set(_found([_rule(younger_than=3)])) == {"member 1", "guest 1"}
    assert _found([_rule(younger_than=1)]) == []


@pytest.mark.slow
def test_a_dry_run_over_a_real_export_changes_nothing(open_store: connection.Store) -> None:
    embedded_threads.imported(open_store, optional_tools.real_export("disqus/benbalter-1145.xml"))
    before = _hash()
    report = dry_run.try_rules("demo", [_rule(links=0)], last=10_000)
    assert report.looked_at > 1_000
    assert 0 < len(report.matches) < report.looked_at
    assert _hash() == before
