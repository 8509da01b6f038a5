"""The page to which a sign-in mail links: a button that shows a code.

The link's key follows the "#". Opening the page therefore does not send the key to the server, and
changes nothing. No session is required: anyone who has the link may see the code.
"""

import flask

from comments import errors
from comments.accounts.links import email_login
from comments.web.http import context
from comments.web.http.decode import forms
from comments.web.rendering import page_text
from comments.web.sign_in import account_forms, signed_in

blueprint = flask.Blueprint("codes", __name__, url_prefix="/sign-in")
signed_in.protect(blueprint)


@blueprint.get("")
def ask() -> flask.Response:
    """Show the button."""
    return signed_in.page("admin/code.html")


@blueprint.post("")
@signed_in.open_to_all
def show() -> flask.Response:
    """Show the code."""
    token = forms.read(account_forms.OneTimeLinkForm).token
    try:
        code = email_login.code(token, secret=context.settings().secret, now=context.now())
    except errors.BadLink as error:
        problem = page_text.text("embed.code-used")
        return signed_in.page("admin/code.html", status=signed_in.status_of(error), problem=problem)
    return signed_in.page("admin/code.html", code=code)
