"""The health of the service: what waits to be told, and what was given up; for its owners."""

from datetime import UTC, datetime

import flask

from comments import postroom, roles
from comments.web import callers, forms, queries
from comments.web.desk import asked

blueprint = flask.Blueprint("health", __name__, url_prefix="/admin/health")
callers.guard(blueprint)


@blueprint.get("")
def show() -> flask.Response:
    """What waits, and the letters that were given up."""
    callers.require(roles.Role.OWNER, roles.SERVICE)
    query = queries.read(asked.Listing)
    return callers.page(
        "admin/health.html",
        waiting=postroom.waiting(datetime.now(UTC)),
        most=postroom.MOST_COUNTED,
        found=postroom.dead(after=query.cursor),
    )


@blueprint.post("/letters")
def settle() -> flask.Response:
    """Have a letter tried again, or forget it."""
    callers.require(roles.Role.OWNER, roles.SERVICE)
    sent = forms.read(asked.Letter)
    if sent.act == "revive":
        postroom.revive(sent.id, now=datetime.now(UTC))
    else:
        postroom.drop(sent.id)
    return callers.go("admin/health")
