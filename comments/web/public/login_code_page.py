"""The page that the link of a sign-in mail leads to: a button, and behind it a code.

To open it changes nothing, and tells us nothing: the link's key stands behind its "#". Nobody is
signed in here; who holds the link is who may see the code.
"""

from datetime import UTC, datetime

import flask

from comments import errors
from comments.accounts import email_login
from comments.web.admin import signed_in
from comments.web.http import context, request_shapes
from comments.web.http.decode import forms

blueprint = flask.Blueprint("codes", __name__, url_prefix="/sign-in")
signed_in.guard(blueprint)


@blueprint.get("")
def ask() -> flask.Response:
    """The button."""
    return signed_in.page("admin/code.html")


@blueprint.post("")
@signed_in.open_to_all
def show() -> flask.Response:
    """The code."""
    token = forms.read(request_shapes.Ticket).token
    try:
        code = email_login.code(token, secret=context.settings().secret, now=datetime.now(UTC))
    except errors.BadLink as error:
        said = "This link was used, or is too old: ask for a new one."
        return signed_in.page("admin/code.html", status=signed_in.status_of(error), problem=said)
    return signed_in.page("admin/code.html", code=code)
