"""Whom a site asks outside about its comments: for its owners.

What is secret goes in and never comes out, but for a secret that is made here: the page that
answers shows it once.
"""

from datetime import UTC, datetime

import flask

from comments import (
    advisers,
    audit,
    consulting,
    datastore,
    errors,
    opinions,
    outbound,
    roles,
    sites,
    turnstiles,
)
from comments.web import forms, queries
from comments.web.desk import asked, visits

blueprint = visits.blueprint("advisers")


@blueprint.get("/advisers")
def show(site_id: str) -> flask.Response:
    """Who is asked, and the forms."""
    visit = visits.enter(site_id, roles.Role.OWNER)
    queries.read(asked.Nothing)
    return _page(visit)


@blueprint.post("/advisers")
def change(site_id: str) -> flask.Response:
    """Ask somebody, on other terms, or no more."""
    visit = visits.enter(site_id, roles.Role.OWNER)
    sent, site = forms.read(asked.Adviser), visit.site.id
    by = advisers.By(visit.account.actor, datetime.now(UTC), visits.settings(), sent.reason)
    if sent.act == "remove":
        advisers.remove(site, sent.name, by)
        return _page(visit, said=f"{opinions.LABELS[sent.name]} is asked no more.")
    terms = advisers.Terms(bool(sent.holds), bool(sent.shows), bool(sent.everybody))
    made = ""
    if sent.act == "rotate":
        if sent.name != opinions.WEBHOOK:
            raise errors.BadInput("act", "is for a service of the site's own")
        made = advisers.rotate(site, by, keeps_old=True)
    elif sent.name == opinions.AKISMET:
        advisers.set_akismet(site, sent.key.strip(), terms, by, _client())
    else:
        made = advisers.set_webhook(site, sent.url, terms, by, _client())
    return _page(visit, said="It is set.", made=made)


@blueprint.post("/turnstile")
def change_turnstile(site_id: str) -> flask.Response:
    """Ask Turnstile about those who post, otherwise, or no more."""
    visit = visits.enter(site_id, roles.Role.OWNER)
    sent, site, now = forms.read(asked.Turnstile), visit.site.id, datetime.now(UTC)
    noted = sites.Noted(audit.Act(visit.account.actor, "set-site", sent.reason), now)
    if sent.act == "remove":
        turnstiles.remove(site, noted=noted)
        return _page(visit, said="Turnstile is asked no more.")
    given = turnstiles.Given(sent.key.strip(), sent.secret.strip(), refuses=bool(sent.refuses))
    turnstiles.set_up(site, given, settings=visits.settings(), now=now, noted=noted)
    return _page(visit, said="It is set.")


def _client() -> outbound.Client:
    return datastore.kept(consulting.OUTBOUND, lambda: outbound.Client(consulting.LIMITS))


def _page(visit: visits.Visit, said: str = "", made: str = "") -> flask.Response:
    found = {each.name: each for each in advisers.every(visit.site.id)}
    return visits.page(
        "advisers.html",
        visit,
        advisers=found,
        turnstile=sites.get(visit.site.id).turnstile,
        terms={name: opinions.terms_in_words(each) for name, each in found.items()},
        said=said,
        made=made,
    )
