"""Bans of a site: who may not write there, and the form that settles it on an author's page."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import flask

from comments import banning, moderation, policies
from comments.web import forms, queries
from comments.web.desk import asked, visits

blueprint = visits.blueprint("bans")

_SAID = {"ban": "banned", "unban": "lifted", "restore": "restored"}
_ROUNDS = 10  # of a hundred comments each: what is more is done by pressing the button again


@blueprint.post("/bans")
def settle(site_id: str) -> flask.Response:
    """Ban an author or lift his ban, with what he wrote if that is wished; or bring that back."""
    visit = visits.enter(site_id)
    author = queries.read(asked.Author).id
    sent, now = forms.read(asked.Ban), datetime.now(UTC)
    site, actor = visit.site.id, visit.account.actor
    if sent.act == "ban":
        days = asked.number("days", sent.days) if sent.days else 0
        network = asked.number("network_days", sent.network_days) if sent.network_days else None
        banning.ban(
            site, author, banning.Wanted(network, bool(sent.mailbox)), actor,
            secret=visits.settings().secret, now=now, is_shadow=bool(sent.shadow),
            until=now + timedelta(days=days) if sent.days else None, reason=sent.reason,
        )  # fmt: skip
        each = moderation.hide_all
    else:
        if sent.act == "unban":
            policies.unban(site, author, actor, now=now, reason=sent.reason)
        each = moderation.restore_all
    if sent.hide or sent.act == "restore":
        _rounds(lambda: each(site, author, actor, now=now, reason=sent.reason))
    return visits.done(visit, f"author?{visits.query(id=author)}", _SAID[sent.act])


def _rounds(step: Callable[[], list[moderation.Outcome]]) -> None:
    for _ in range(_ROUNDS):
        outcomes = step()
        if len(outcomes) < moderation.MOST_AT_ONCE or all(each.code for each in outcomes):
            return
