"""The status of the service, for its owners: findings, pending deliveries and dead letters.

The page shows the findings of `doctor`. Only after a click does it ask the mail server and
PUBLIC_URL, because these may be slow to answer.
"""

import functools
import itertools

import flask

from comments.events import dead_letters
from comments.upkeep import service_checks
from comments.web.admin import site_visit
from comments.web.admin.form_types import form_fields, site_forms
from comments.web.http import context
from comments.web.rendering import labels
from comments.web.sign_in import signed_in

blueprint = site_visit.service_blueprint("health", "health")

# Time units and their lengths in seconds.
_UNITS = (
    (86_400, "admin.health-days"),
    (3_600, "admin.health-hours"),
    (60, "admin.health-minutes"),
)


@blueprint.page("", form_fields.ListingQuery)
def show(_owner: object, query: form_fields.ListingQuery) -> flask.Response:
    """Show the findings about this machine and its store, and the dead letters."""
    return _page(query.cursor, connects=False)


@blueprint.form("/check")
def check(_owner: object, _sent: object) -> flask.Response:
    """Show all findings, including those about mail and the address."""
    return _page("", connects=True)


def _page(cursor: str, *, connects: bool) -> flask.Response:
    settings, now = context.settings(), context.now()
    findings = [
        *service_checks.machine_findings(settings),
        *service_checks.store_findings(settings, now, connects=connects),
    ]
    return signed_in.page(
        "admin/health.html",
        findings=findings,
        is_complete=connects,
        waiting=_waiting_lines(dead_letters.count_waiting(now)),
        found=dead_letters.dead(after=cursor),
    )


def _waiting_lines(found: dead_letters.Waiting) -> list[str]:
    def count_text(key: str, more: str, count: int) -> str:
        return labels.text(more if count == dead_letters.MOST_COUNTED else key, count=count)

    lines = [
        count_text("admin.health-events", "admin.health-events-more", found.events),
        count_text("admin.health-messages", "admin.health-messages-more", found.messages),
    ]
    if found.events or found.messages:
        lines.append(labels.text("admin.health-oldest", age=_age(found.oldest)))
    return lines


def _age(seconds: int) -> str:
    """Format a duration in the largest unit that fits into it at least twice."""
    for size, unit in _UNITS:
        if seconds >= 2 * size:
            return labels.text(unit, count=seconds // size)
    return labels.text("admin.health-seconds", count=seconds)


@blueprint.form("/letters", site_forms.DeadLetterForm)
def settle(_owner: object, sent: site_forms.DeadLetterForm) -> flask.Response:
    """Retry or discard a dead letter, or up to `dead_letters.MOST_SETTLED` of them."""
    revive = functools.partial(dead_letters.revive, now=context.now())
    verb = revive if sent.act.startswith("revive") else dead_letters.drop
    if sent.act.endswith("-all"):
        ids = itertools.islice(dead_letters.dead_ids(), dead_letters.MOST_SETTLED)
        dead_letters.settle_all(ids, verb)
    else:
        verb(form_fields.require("id", sent.id))
    return signed_in.redirect_to("admin/health")
