"""The page that the link of a sign-in mail leads to: a button, and behind it a code.

To open it changes nothing, and tells us nothing: the link's key stands behind its "#". Nobody is
signed in here; who holds the link is who may see the code.
"""

from datetime import UTC, datetime

import flask

from comments import entering, errors
from comments.web import callers, context, forms, shapes

blueprint = flask.Blueprint("codes", __name__, url_prefix="/sign-in", template_folder="templates")
callers.guard(blueprint)


@blueprint.get("")
def ask() -> flask.Response:
    """The button."""
    return callers.page("admin/code.html")


@blueprint.post("")
@callers.open_to_all
def show() -> flask.Response:
    """The code."""
    token = forms.read(shapes.Ticket).token
    try:
        code = entering.code(token, secret=context.settings().secret, now=datetime.now(UTC))
    except errors.BadLink as error:
        said = "This link was used, or is too old: ask for a new one."
        return callers.page("admin/code.html", status=callers.status_of(error), problem=said)
    return callers.page("admin/code.html", code=code)
