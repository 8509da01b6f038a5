"""The health of the service: what waits to be told, and what was given up; for its owners."""

from datetime import UTC, datetime

import flask

from comments.domain import roles
from comments.events import dead_letters
from comments.web.admin import admin_queries, signed_in
from comments.web.http.decode import forms, query_strings

blueprint = flask.Blueprint("health", __name__, url_prefix="/admin/health")
signed_in.guard(blueprint)


@blueprint.get("")
def show() -> flask.Response:
    """What waits, and the letters that were given up."""
    signed_in.require(roles.Role.OWNER, roles.SERVICE)
    query = query_strings.read(admin_queries.Listing)
    return signed_in.page(
        "admin/health.html",
        waiting=(waiting := dead_letters.waiting(datetime.now(UTC))),
        oldest=_spoken(waiting.oldest),
        most=dead_letters.MOST_COUNTED,
        found=dead_letters.dead(after=query.cursor),
    )


def _spoken(seconds: int) -> str:
    """A while as people say it."""
    for size, name in ((86_400, "days"), (3_600, "hours"), (60, "minutes")):
        if seconds >= 2 * size:
            return f"{seconds // size} {name}"
    return f"{seconds} seconds"


@blueprint.post("/letters")
def settle() -> flask.Response:
    """Have a letter tried again, or forget it."""
    signed_in.require(roles.Role.OWNER, roles.SERVICE)
    sent = forms.read(admin_queries.Letter)
    if sent.act == "revive":
        dead_letters.revive(sent.id, now=datetime.now(UTC))
    else:
        dead_letters.drop(sent.id)
    return signed_in.go("admin/health")
