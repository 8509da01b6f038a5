"""The declared counters of a site, for its owners: their numbers, and forms to add and remove them.

The page does the same as the command `counter`. The request that declares a counter also counts the
existing comments if there are at most `_MOST_AT_ONCE`. For larger sites, and after a failure, the
background worker does this within `declared_backfill.PATIENCE`.
"""

import contextlib
from datetime import timedelta

import flask

from comments import errors
from comments.domain import records
from comments.domain.counters import declared_counters
from comments.domain.moderation import roles
from comments.tree.counters import totals
from comments.tree.counters.declared import declarations, declared_backfill, declared_reports
from comments.web.admin import site_visit
from comments.web.admin.form_types import form_fields, site_forms
from comments.web.rendering import labels

blueprint = site_visit.owner_blueprint("counters")

_MOST_AT_ONCE = 2_000
_PAGE = 100  # Numbers per page


@blueprint.page("/counters", site_forms.CounterQuery)
def show(visit: site_visit.Visit, query: site_forms.CounterQuery) -> flask.Response:
    """Show the counters, and the numbers of one of them."""
    return _page(visit, query)


@blueprint.form("/counters", site_forms.CounterForm)
def declare(visit: site_visit.Visit, sent: site_forms.CounterForm) -> flask.Response:
    """Show what a counter would cost, or declare it, in place of one with the same name."""
    site = visit.site.id
    keys = [key for key in declared_counters.CounterKey if getattr(sent, key)]
    name, where = sent.name.strip(), form_fields.phrases(sent.where)
    declared = declared_counters.declare(name, where, keys, sent.sum)
    if sent.act == "cost":
        return _page(visit, cost=declared_reports.cost(site, declared), sent=sent)
    store = declarations.change if sent.act == "change" else declarations.add
    store(site, declared, now=visit.now)
    _count_existing(site)
    return _page(visit, said=labels.text("admin.counters-saved", name=name))


@blueprint.form("/counters/remove", site_forms.CounterRemovalForm)
def remove(visit: site_visit.Visit, sent: site_forms.CounterRemovalForm) -> flask.Response:
    """Remove a counter and its numbers."""
    name = sent.name
    declarations.remove(visit.site.id, name, now=visit.now)
    _count_existing(visit.site.id)
    return _page(visit, said=labels.text("admin.counters-removed", name=name))


def _count_existing(site: str) -> None:
    numbers = totals.of_site(site)
    if sum(numbers.get(status, 0) for status in records.Status) <= _MOST_AT_ONCE:
        with contextlib.suppress(errors.Overloaded):  # The background worker continues.
            declared_backfill.complete(site)


def _page(
    visit: site_visit.Visit,
    query: site_forms.CounterQuery | None = None,
    *,
    said: str = "",
    cost: declared_reports.CounterCost | None = None,
    sent: site_forms.CounterForm | None = None,
) -> flask.Response:
    site, counter, numbers = visit.site.id, None, None
    if query is not None and query.name:
        counter = declarations.counter(site, query.name)
        numbers = declared_reports.lines(site, counter, after=query.cursor, limit=_PAGE)
    return site_visit.page(
        "counters.html",
        visit,
        counters=declarations.of_site(site).counters,
        counter=counter,
        numbers=numbers,
        keys=list(declared_counters.CounterKey),
        values=list(declared_counters.VALUES),
        fields=", ".join(declared_counters.FIELDS),
        minutes=declared_backfill.PATIENCE // timedelta(minutes=1),
        said=said,
        cost=cost,
        sent=sent,
    )


def _show_refused(site_id: str) -> flask.Response:
    return _page(site_visit.enter(site_id, roles.Role.OWNER))


blueprint.show_again(_show_refused)
