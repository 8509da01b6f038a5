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
        waiting=(waiting := postroom.waiting(datetime.now(UTC))),
        oldest=_spoken(waiting.oldest),
        most=postroom.MOST_COUNTED,
        found=postroom.dead(after=query.cursor),
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
    callers.require(roles.Role.OWNER, roles.SERVICE)
    sent = forms.read(asked.Letter)
    if sent.act == "revive":
        postroom.revive(sent.id, now=datetime.now(UTC))
    else:
        postroom.drop(sent.id)
    return callers.go("admin/health")
