"""The status of the service, for its owners: pending deliveries and dead letters."""

from datetime import UTC, datetime

import flask

from comments.domain import roles
from comments.events import dead_letters
from comments.web.admin import admin_queries, labels, signed_in
from comments.web.http.decode import forms, query_strings

blueprint = flask.Blueprint("health", __name__, url_prefix="/admin/health")
signed_in.guard(blueprint)


@blueprint.get("")
def show() -> flask.Response:
    """Show the number of pending deliveries, and the dead letters."""
    signed_in.require(roles.Role.OWNER, roles.SERVICE)
    query = query_strings.read(admin_queries.Listing)
    return signed_in.page(
        "admin/health.html",
        waiting=_waiting(dead_letters.waiting(datetime.now(UTC))),
        found=dead_letters.dead(after=query.cursor),
    )


def _waiting(found: dead_letters.Waiting) -> list[str]:
    def counted(kind: str, count: int) -> str:
        is_more = count == dead_letters.MOST_COUNTED
        return labels.text(f"health-{kind}-more" if is_more else f"health-{kind}", count=count)

    return [
        counted("events", found.events),
        counted("messages", found.messages),
        labels.text("health-oldest", age=_age(found.oldest)),
    ]


def _age(seconds: int) -> str:
    """Return a duration in its largest unit of which there are at least two."""
    for size, unit in ((86_400, "days"), (3_600, "hours"), (60, "minutes")):
        if seconds >= 2 * size:
            return labels.text(f"health-{unit}", count=seconds // size)
    return labels.text("health-seconds", count=seconds)


@blueprint.post("/letters")
def settle() -> flask.Response:
    """Retry or discard a dead letter."""
    signed_in.require(roles.Role.OWNER, roles.SERVICE)
    sent = forms.read(admin_queries.Letter)
    if sent.act == "revive":
        dead_letters.revive(sent.id, now=datetime.now(UTC))
    else:
        dead_letters.drop(sent.id)
    return signed_in.go("admin/health")
