"""Claims about bans: who is refused or not seen, until when, and what is hidden with one."""

from datetime import timedelta
from typing import Any

import pytest

from comments import errors
from comments.domain import records
from comments.domain.records import Status, Verb
from comments.moderation import decisions, policy_changes, rulebook
from comments.posting import submission
from tests import trees
from tests.comments import ruled

pytestmark = pytest.mark.usefixtures("store", "site")


def test_a_banned_author_writes_nothing_and_may_take_back(site: records.Site) -> None:
    row = ruled.post(site, "text")
    policy_changes.ban(
        "demo", "g:ann", ruled.ADA, now=ruled.NOW, until=ruled.NOW + timedelta(days=1)
    )
    for act in (lambda: ruled.post(site, "more"), lambda: ruled.edit(row, "other")):
        with pytest.raises(errors.Forbidden) as refused:
            act()
        assert refused.value.code == "author-banned"
    ruled.post(site, "another's", "bob")
    ruled.post(site, "when it is over", now=ruled.NOW + timedelta(days=1))
    submission.retract(row.id, author_id="g:ann", revision=None, now=ruled.NOW)
    policy_changes.unban("demo", "g:ann", ruled.ADA, now=ruled.NOW)
    ruled.post(site, "again")
    with pytest.raises(errors.NotFound):
        policy_changes.unban("demo", "g:ann", ruled.ADA, now=ruled.NOW)


def test_a_shadow_ban_is_seen_by_nobody_but_its_author(site: records.Site) -> None:
    policy_changes.ban("demo", "g:ann", ruled.ADA, now=ruled.NOW, is_shadow=True)
    row = ruled.post(site, "text")
    assert row.status is Status.SHADOWED
    assert trees.listed(site) == []
    assert decisions.own_held(ruled.NAME, "g:ann") == [row]
    assert decisions.own_held(ruled.NAME, "g:bob") == decisions.own_held(ruled.NAME, "") == []


def test_a_ban_may_hide_what_was_written_and_its_undo_brings_that_back(site: records.Site) -> None:
    rows = [ruled.post(site, f"{n}", thread=f"t{n % 2}") for n in range(5)]
    spam = rows[0]
    decisions.decide("demo", spam.id, Verb.SPAM, ruled.ADA, now=ruled.NOW)
    ruled.post(site, "another's", "bob", thread="t0")
    assert len(decisions.hide_all("demo", "g:ann", ruled.ADA, now=ruled.NOW)) == 4
    assert trees.listed(site, "t0") == ["another's"]
    assert trees.listed(site, "t1") == []
    assert len(decisions.restore_all("demo", "g:ann", ruled.ADA, now=ruled.NOW)) == 4
    assert trees.listed(site, "t1") == ["1", "3"]
    assert ruled.case(spam).comment.status is Status.SPAM
    assert decisions.hide_all("demo", "", ruled.ADA, now=ruled.NOW) == []
    assert decisions.hide_all("other", "g:ann", ruled.ADA, now=ruled.NOW) == []


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"author": ""}, "author"),
        ({"author": "ann"}, "author"),
        ({"author": "x" * 201}, "author"),
        ({"until": ruled.NOW}, "until"),
    ],
)
def test_a_ban_that_cannot_be_meant_is_refused(given: dict[str, Any], field: str) -> None:
    with pytest.raises(errors.BadInput) as refused:
        policy_changes.ban(
            "demo", **{"author": "g:ann", "actor": ruled.ADA, "now": ruled.NOW, **given}
        )
    assert refused.value.field == field


def test_bans_that_are_over_leave_the_book(site: records.Site) -> None:
    policy_changes.ban(
        "demo", "g:ann", ruled.ADA, now=ruled.NOW, until=ruled.NOW + timedelta(days=1)
    )
    policy_changes.ban("demo", "g:bob", ruled.ADA, now=ruled.NOW + timedelta(days=2))
    assert [each.author for each in rulebook.read("demo").bans] == ["g:bob"]
