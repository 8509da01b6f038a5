"""Moderate the site "demo" with policies and rules: set rules, post, edit, and read statuses.

All steps run inside the store's context, at one fixed time, and with one moderator.
"""

from typing import Any

from comments.domain import records
from comments.domain.records import Policy, Verb
from comments.events import dispatcher
from comments.moderation import decisions
from comments.moderation.policy import policy_changes
from comments.moderation.policy.rules import Action, Rule
from comments.posting import own_comment
from comments.upkeep import wiring
from tests.support import stored_state
from tests.support.threads import sample_threads

ADA = records.Actor("cli", "Ada")
NAME = records.ThreadName("demo", "page")
NOW = sample_threads.START


def policy(policy: Policy | None = None, **more: Any) -> None:
    policy_changes.set_policy("demo", ADA, now=NOW, policy=policy, **more)


def rule(action: Action = Action.HOLD, **conditions: Any) -> None:
    policy_changes.put_rule("demo", Rule(id="r", action=action, **conditions), ADA, now=NOW)


def post(site: records.Site, body: str, author: str = "ann", **more: Any) -> records.Comment:
    who = records.Author(author, id=f"g:{author}" if author else "")
    return sample_threads.post(site, body, more.pop("parent", None), author=who, **more)


def edit(row: records.Comment, body: str) -> records.Comment:
    return own_comment.edit(
        row.id, author_id=row.author.id, body=body, revision=None,
        settings=sample_threads.SETTINGS, now=NOW,
    )  # fmt: skip


def settle() -> None:
    events = [stored_state.name_of(each) for each in stored_state.rows("Event")]
    dispatcher.deliver(events, now=NOW, handlers=wiring.HANDLERS)


def approve(row: records.Comment) -> None:
    decisions.decide("demo", row.id, Verb.APPROVE, ADA, now=NOW)
    settle()


def case(row: records.Comment) -> records.Case:
    return decisions.case("demo", row.id)
