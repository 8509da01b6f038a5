"""The settings of a site: what it is, for its owners; and how it is moderated."""

from datetime import UTC, datetime

import flask

from comments import audit, policies, records, roles, rulebook, sites
from comments.web import forms, queries
from comments.web.desk import asked, visits

blueprint = visits.blueprint("settings")


@blueprint.get("/settings")
def show(site_id: str) -> flask.Response:
    """The forms."""
    visit = visits.enter(site_id, roles.Role.OWNER)
    queries.read(asked.Nothing)
    return visits.page(
        "settings.html",
        visit,
        book=rulebook.read(visit.site.id),
        policies=list(records.Policy),
        longest_cdn=sites.LONGEST_CDN,
        longest_freshness=sites.LONGEST_FRESHNESS,
    )


@blueprint.post("/settings/policy")
def change_policy(site_id: str) -> flask.Response:
    """Change how the site is moderated."""
    visit = visits.enter(site_id, roles.Role.OWNER)
    sent = forms.read(asked.Policy)
    policies.set_policy(
        visit.site.id,
        visit.account.actor,
        now=datetime.now(UTC),
        policy=sent.policy,
        close_after=asked.number("close_after", sent.close_after),
        reports=asked.number("reports", sent.reports),
        reason=sent.reason,
    )
    return visits.done(visit, "settings", "saved")


@blueprint.post("/settings")
def change(site_id: str) -> flask.Response:
    """Change what the site is, by the rules that the command line keeps."""
    visit = visits.enter(site_id, roles.Role.OWNER)
    sent = forms.read(asked.Site)
    act = audit.Act(visit.account.actor, "set-site", sent.reason)
    sites.change(
        visit.site.id,
        origins=asked.several(sent.origins),
        query_keys=asked.several(sent.query_keys),
        keep_trailing_slash=bool(sent.keep_trailing_slash),
        cdn_seconds=asked.number("cdn_seconds", sent.cdn_seconds),
        freshness=asked.number("freshness", sent.freshness),
        filed=asked.phrases(sent.categories),
        moderators=asked.several(sent.moderators),
        noted=sites.Noted(act, datetime.now(UTC)),
    )
    return visits.done(visit, "settings", "saved")
