"""The post limits and the daily budget of a site, for owners.

If a field is empty, the service's default applies. The values are stored in the site's entity. The
checks are the same as on the command line (`post_limits`, `budgets`).
"""

from datetime import datetime
from typing import NamedTuple

import flask
import msgspec

from comments.domain import records
from comments.limits import budgets, post_limits, usage
from comments.sites import site_settings
from comments.web.admin import site_visit
from comments.web.admin.form_types import settings_forms

blueprint = site_visit.owner_blueprint("limits")

_DIGITS = 10  # A number with more digits exceeds all maximums.
_POST_LIMITS = settings_forms.PostLimitsForm.__struct_fields__[:-1]  # The last field is the reason.


class Used(NamedTuple):
    """Today's usage of one resource. `most` is the budget for this resource; 0 means unlimited."""

    what: str
    used: int
    most: int
    standing: str


class _LimitRow(NamedTuple):
    """A post limit: the site's own value or None, the effective value, and the maximum."""

    name: str
    own: int | None
    holds: int
    most: int


def today(site: records.Site, now: datetime) -> list[Used]:
    """Return today's usage of a site, and its budgets."""
    limits = {name: (most, standing) for name, _, most, standing in budgets.each(site, now=now)}
    lines = []
    for name, used in msgspec.structs.asdict(usage.total(site.id, now=now)).items():
        most, standing = limits.get(name, (0, budgets.BudgetLevel.FREE))
        lines.append(Used(name, used, most, standing.name.lower() if most else ""))
    return lines


@blueprint.page("/limits")
def show(visit: site_visit.Visit, _query: object) -> flask.Response:
    """Show the forms."""
    site, holds = visit.site, post_limits.of(visit.site, site_visit.settings())
    return site_visit.page(
        "limits.html",
        visit,
        asked=[
            _LimitRow(
                name,
                getattr(site.guard, name),
                getattr(holds, name),
                post_limits.RANGES[name],
            )
            for name in _POST_LIMITS
        ],
        today=today(site, visit.now),
        most=budgets.MOST,
    )


@blueprint.form("/limits", settings_forms.PostLimitsForm)
def change_post_limits(
    visit: site_visit.Visit, sent: settings_forms.PostLimitsForm
) -> flask.Response:
    """Change the post limits."""
    site_settings.change(
        visit.site.id,
        guard=sent.numbers(*_POST_LIMITS, empty=None, digits=_DIGITS),
        noted=site_visit.audit_entry(visit, sent.reason),
    )
    return site_visit.redirect_with_notice(visit, "limits", "saved-posting")


@blueprint.form("/limits/budget", settings_forms.BudgetForm)
def change_budget(visit: site_visit.Visit, sent: settings_forms.BudgetForm) -> flask.Response:
    """Change the daily budget, and the action to take when it is used up."""
    names = usage.UsageAmounts.__struct_fields__
    given = sent.parse(then=str) | sent.numbers(*names, empty=0, digits=_DIGITS)
    site_settings.change(
        visit.site.id, budget=given, noted=site_visit.audit_entry(visit, sent.reason)
    )
    return site_visit.redirect_with_notice(visit, "limits", "saved-budget")


blueprint.show_again(show)
