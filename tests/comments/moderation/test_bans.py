"""A ban refuses or hides the right authors until it ends, and it hides the right comments."""

from datetime import timedelta
from typing import Any

import pytest

from comments import errors
from comments.domain import records
from comments.domain.records import Status, Verb
from comments.moderation import decisions
from comments.moderation.policy import policy_changes, rulebook
from comments.posting import own_comment
from tests.support.threads import moderated_site, sample_threads

pytestmark = pytest.mark.usefixtures("store", "site")


def test_a_banned_author_cannot_post_and_may_retract(site: records.Site) -> None:
    row = moderated_site.post(site, "text")
    policy_changes.ban(
        "demo",
        "g:ann",
        moderated_site.ADA,
        now=moderated_site.NOW,
        until=moderated_site.NOW + timedelta(days=1),
    )
    for act in (
        lambda: moderated_site.post(site, "more"),
        lambda: moderated_site.edit(row, "other"),
    ):
        with pytest.raises(errors.Forbidden) as refused:
            act()
        assert refused.value.code == "author-banned"
    moderated_site.post(site, "another's", "bob")
    moderated_site.post(site, "when it is over", now=moderated_site.NOW + timedelta(days=1))
    own_comment.retract(row.id, author_id="g:ann", revision=None, now=moderated_site.NOW)
    policy_changes.unban("demo", "g:ann", moderated_site.ADA, now=moderated_site.NOW)
    moderated_site.post(site, "again")
    with pytest.raises(errors.NotFound):
        policy_changes.unban("demo", "g:ann", moderated_site.ADA, now=moderated_site.NOW)


def test_a_shadow_banned_comment_is_visible_only_to_its_author(site: records.Site) -> None:
    policy_changes.ban("demo", "g:ann", moderated_site.ADA, now=moderated_site.NOW, is_shadow=True)
    row = moderated_site.post(site, "text")
    assert row.status is Status.SHADOWED
    assert sample_threads.listed(site) == []
    assert decisions.own_comments(moderated_site.NAME, "g:ann") == [row]
    assert (
        decisions.own_comments(moderated_site.NAME, "g:bob")
        == decisions.own_comments(moderated_site.NAME, "")
        == []
    )


def test_a_ban_may_hide_earlier_comments_and_its_undo_shows_them_again(site: records.Site) -> None:
    rows = [moderated_site.post(site, f"{n}", thread=f"t{n % 2}") for n in range(5)]
    spam = rows[0]
    decisions.decide("demo", spam.id, Verb.SPAM, moderated_site.ADA, now=moderated_site.NOW)
    moderated_site.post(site, "another's", "bob", thread="t0")
    assert (
        len(
            decisions.decide_all(
                "demo", "g:ann", Verb.HIDE, moderated_site.ADA, now=moderated_site.NOW
            )
        )
        == 4
    )
    assert sample_threads.listed(site, "t0") == ["another's"]
    assert sample_threads.listed(site, "t1") == []
    assert (
        len(
            decisions.decide_all(
                "demo", "g:ann", Verb.RESTORE, moderated_site.ADA, now=moderated_site.NOW
            )
        )
        == 4
    )
    assert sample_threads.listed(site, "t1") == ["1", "3"]
    assert moderated_site.case(spam).comment.status is Status.SPAM
    assert (
        decisions.decide_all("demo", "", Verb.HIDE, moderated_site.ADA, now=moderated_site.NOW)
        == []
    )
    assert (
        decisions.decide_all(
            "other", "g:ann", Verb.HIDE, moderated_site.ADA, now=moderated_site.NOW
        )
        == []
    )


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"author": ""}, "author"),
        ({"author": "ann"}, "author"),
        ({"author": "x" * 201}, "author"),
        ({"until": moderated_site.NOW}, "until"),
    ],
)
def test_a_contradictory_ban_is_refused(given: dict[str, Any], field: str) -> None:
    with pytest.raises(errors.BadInput) as refused:
        policy_changes.ban(
            "demo",
            **{"author": "g:ann", "actor": moderated_site.ADA, "now": moderated_site.NOW, **given},
        )
    assert refused.value.field == field


def test_expired_bans_leave_the_rulebook(site: records.Site) -> None:
    policy_changes.ban(
        "demo",
        "g:ann",
        moderated_site.ADA,
        now=moderated_site.NOW,
        until=moderated_site.NOW + timedelta(days=1),
    )
    policy_changes.ban(
        "demo", "g:bob", moderated_site.ADA, now=moderated_site.NOW + timedelta(days=2)
    )
    assert [each.author for each in rulebook.from_store("demo").bans] == ["g:bob"]
