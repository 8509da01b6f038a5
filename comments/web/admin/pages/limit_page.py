"""What a site asks of those who post, and what it may use on a day: for its owners to settle.

A number that is left empty is the service's. Both are of the site's row, and are kept by the rules
that the command line keeps (`post_limits`, `budgets`).
"""

from datetime import UTC, datetime
from typing import NamedTuple

import flask
import msgspec

from comments.domain import records, roles
from comments.events import audit_log
from comments.sites import budgets, post_limits, site_settings, usage
from comments.web.admin import admin_queries, site_visit
from comments.web.http.decode import forms, query_strings

blueprint = site_visit.blueprint("limits")

_DIGITS = 10  # the rest is out of every range

_ASKED = {
    "proof_of_work": "Tries that a proof of work takes at most, 0 to ask for none",
    "form_seconds": "Seconds that a form is open at least before it is sent",
    "posts_per_network": "Posts of one network within ten minutes, 0 for any number",
    "posts_per_author": "Posts of one known author within ten minutes, 0 for any number",
    "posts_per_thread": "Posts in one thread within ten minutes, 0 for any number",
    "same_texts": "Posts of newcomers with the same text within an hour, 0 for any number",
}


class Used(NamedTuple):
    """What a site used today of one sort: `most` is its budget, 0 for none."""

    what: str
    used: int
    most: int
    standing: str


class _Asked(NamedTuple):
    """A number that is asked of those who post: the site's own, or the service's."""

    name: str
    words: str
    own: int | None
    holds: int
    most: int


def today(site: records.Site, now: datetime) -> list[Used]:
    """What a site used today, and what it may use."""
    limits = {name: (most, standing) for name, _, most, standing in budgets.each(site, now=now)}
    found = []
    for name, used in msgspec.structs.asdict(usage.total(site.id, now=now)).items():
        most, standing = limits.get(name, (0, budgets.Standing.FREE))
        found.append(Used(name, used, most, standing.name.lower() if most else ""))
    return found


@blueprint.get("/limits")
def show(site_id: str) -> flask.Response:
    """The forms."""
    visit = site_visit.enter(site_id, roles.Role.OWNER)
    query_strings.read(admin_queries.Nothing)
    site, holds = visit.site, post_limits.of(visit.site, site_visit.settings())
    return site_visit.page(
        "limits.html",
        visit,
        asked=[
            _Asked(
                name,
                words,
                getattr(site.guard, name),
                getattr(holds, name),
                post_limits.RANGES[name],
            )
            for name, words in _ASKED.items()
        ],
        today=today(site, datetime.now(UTC)),
        most=budgets.MOST,
    )


@blueprint.post("/limits")
def change_guard(site_id: str) -> flask.Response:
    """Change what is asked of those who post."""
    visit = site_visit.enter(site_id, roles.Role.OWNER)
    sent = forms.read(admin_queries.Guard)
    given = msgspec.structs.asdict(sent)
    del given["reason"]
    site_settings.change(
        visit.site.id,
        guard={
            name: admin_queries.number(name, text, _DIGITS) if text else None
            for name, text in given.items()
        },
        noted=_noted(visit, sent.reason),
    )
    return site_visit.done(visit, "limits", "saved")


@blueprint.post("/limits/budget")
def change_budget(site_id: str) -> flask.Response:
    """Change what the site may use on a day, and what happens when it has."""
    visit = site_visit.enter(site_id, roles.Role.OWNER)
    sent = forms.read(admin_queries.Budget)
    numbers = {name: getattr(sent, name) for name in usage.Numbers.__struct_fields__}
    given: dict[str, int | str] = {"then": sent.then}
    given |= {
        name: admin_queries.number(name, text, _DIGITS) if text else 0
        for name, text in numbers.items()
    }
    site_settings.change(visit.site.id, budget=given, noted=_noted(visit, sent.reason))
    return site_visit.done(visit, "limits", "saved")


def _noted(visit: site_visit.Visit, reason: str) -> site_settings.Noted:
    return site_settings.Noted(
        audit_log.Act(visit.account.actor, "set-site", reason), datetime.now(UTC)
    )
