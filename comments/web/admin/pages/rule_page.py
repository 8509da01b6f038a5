"""The rules of a site: a list, a form for one rule, and a dry run of that rule."""

import flask
import msgspec

from comments import errors
from comments.moderation.policy import dry_run, policy_changes, rulebook, rules
from comments.web.admin import site_visit
from comments.web.admin.form_types import form_fields, settings_forms
from comments.web.rendering import labels

blueprint = site_visit.blueprint("rules")

_MOST_TRIED = 1_000  # The maximum number of comments in a dry run.
_SHOWN = 100  # Maximum number of matches that the page shows.


@blueprint.page("/rules", settings_forms.RuleQuery)
def show(visit: site_visit.Visit, query: settings_forms.RuleQuery) -> flask.Response:
    """Show the rules, and a form for one of them or for a new rule."""
    book = rulebook.from_store(visit.site.id)
    chosen = next((rule for rule in book.rules if rule.id == query.rule), None)
    if query.rule and chosen is None:
        raise errors.NotFound("rule", query.rule)
    return _page(visit, book, chosen)


@blueprint.form("/rules", settings_forms.RuleForm)
def save(visit: site_visit.Visit, sent: settings_forms.RuleForm) -> flask.Response:
    """Test a rule on recent comments, or save it."""
    rule = _rule(sent, rulebook.from_store(visit.site.id))
    if sent.act == "try":
        last = form_fields.number("last", sent.last)
        if last > _MOST_TRIED:
            raise errors.BadInput("last", "out-of-range", minimum=1, maximum=_MOST_TRIED)
        report = dry_run.try_rules(visit.site.id, [rule], last=last)
        return _page(visit, rulebook.from_store(visit.site.id), rule, sent, report)
    rules.check(rule)
    policy_changes.put_rule(
        visit.site.id, rule, visit.account.actor, now=visit.now, reason=sent.reason
    )
    return site_visit.redirect_with_notice(visit, "rules", "saved")


@blueprint.form("/rules/remove", settings_forms.RuleRemovalForm)
def remove(visit: site_visit.Visit, sent: settings_forms.RuleRemovalForm) -> flask.Response:
    """Remove a rule."""
    policy_changes.remove_rule(
        visit.site.id, sent.id, visit.account.actor, now=visit.now, reason=sent.reason
    )
    return site_visit.redirect_with_notice(visit, "rules", "removed")


def _page(
    visit: site_visit.Visit,
    book: rulebook.Rulebook,
    chosen: rules.Rule | None,
    sent: settings_forms.RuleForm | None = None,
    report: dry_run.DryRunReport | None = None,
) -> flask.Response:
    return site_visit.page(
        "rules.html",
        visit,
        book=book,
        chosen=chosen,
        sent=sent,
        report=report,
        shown=_SHOWN,
        most_tried=_MOST_TRIED,
        actions=list(rules.Action),
        conditions=labels.conditions,
    )


def _rule(sent: settings_forms.RuleForm, book: rulebook.Rulebook) -> rules.Rule:
    name = sent.id.strip() or policy_changes.new_rule_id()
    new = rules.Rule(id=name, action=sent.action, is_on=bool(sent.is_on))
    stored = next((rule for rule in book.rules if rule.id == name), new)
    return msgspec.structs.replace(
        stored,
        action=sent.action,
        **sent.parse(
            words=form_fields.phrases,
            names=form_fields.phrases,
            websites=form_fields.several,
            hosts=form_fields.several,
            scripts=form_fields.several,
            networks=form_fields.several,
        ),
        **sent.numbers("links", "approved_under", "repeated", "younger_than", empty=None),
        **sent.boxes("is_on"),
    )


blueprint.show_again(show)
