"""The rules of a site: what there is, a form for one, and what that would have done (dry run)."""

from datetime import UTC, datetime

import flask

from comments import errors, policies, rehearsal, rulebook, rules
from comments.web import forms, queries
from comments.web.desk import asked, rows, visits

blueprint = visits.blueprint("rules")

_MOST_TRIED = 1_000  # comments that a dry run from a page looks at
_SHOWN = 100


@blueprint.get("/rules")
def show(site_id: str) -> flask.Response:
    """The rules, and the form: with one of them, or empty."""
    visit = visits.enter(site_id)
    query = queries.read(asked.Rules)
    book = rulebook.read(visit.site.id)
    chosen = next((rule for rule in book.rules if rule.id == query.rule), None)
    if query.rule and chosen is None:
        raise errors.NotFound("rule", query.rule)
    return _page(visit, book, chosen)


@blueprint.post("/rules")
def put(site_id: str) -> flask.Response:
    """Try a rule on what was written, or keep it."""
    visit = visits.enter(site_id)
    sent = forms.read(asked.Rule)
    rule = _rule(sent)
    if sent.act == "try":
        last = asked.number("last", sent.last)
        if last > _MOST_TRIED:
            raise errors.BadInput("last", f"is 1 to {_MOST_TRIED}")
        report = rehearsal.rehearse(visit.site.id, [rule], last=last)
        return _page(visit, rulebook.read(visit.site.id), rule, sent, report)
    rules.check(rule)
    policies.put_rule(
        visit.site.id, rule, visit.account.actor, now=datetime.now(UTC), reason=sent.reason
    )
    return visits.done(visit, "rules", "saved")


@blueprint.post("/rules/remove")
def remove(site_id: str) -> flask.Response:
    """Remove a rule."""
    visit = visits.enter(site_id)
    sent = forms.read(asked.Removal)
    policies.remove_rule(
        visit.site.id, sent.id, visit.account.actor, now=datetime.now(UTC), reason=sent.reason
    )
    return visits.done(visit, "rules", "removed")


def _page(
    visit: visits.Visit,
    book: rulebook.Book,
    chosen: rules.Rule | None,
    sent: asked.Rule | None = None,
    report: rehearsal.Report | None = None,
) -> flask.Response:
    return visits.page(
        "rules.html",
        visit,
        book=book,
        chosen=chosen,
        sent=sent,
        report=report,
        shown=_SHOWN,
        actions=list(rules.Action),
        said=rows.rule_in_words,
    )


def _rule(sent: asked.Rule) -> rules.Rule:
    def count(field: str, text: str) -> int | None:
        return asked.number(field, text) if text else None

    return rules.Rule(
        id=sent.id.strip() or policies.new_rule_id(),
        action=sent.action,
        words=asked.phrases(sent.words),
        names=asked.phrases(sent.names),
        websites=asked.several(sent.websites),
        hosts=asked.several(sent.hosts),
        scripts=asked.several(sent.scripts),
        networks=asked.several(sent.networks),
        links=count("links", sent.links),
        approved_under=count("approved_under", sent.approved_under),
        repeated=count("repeated", sent.repeated),
        younger_than=count("younger_than", sent.younger_than),
        is_on=bool(sent.is_on),
    )
