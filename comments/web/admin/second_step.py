"""The form for an authenticator's code, which completes a sign-in through a provider.

The admin console and the window for moderators show the same form (`admin/second_step.html`), with
a different target and different hidden fields.
"""

from collections.abc import Mapping
from datetime import UTC, datetime

import flask

from comments.accounts import sessions
from comments.accounts.oidc import linking
from comments.accounts.passwords import password_login
from comments.web.admin import labels, signed_in
from comments.web.http import context

_DESK: Mapping[str, object] = {}


def form(
    token: str, values: Mapping[str, object] = _DESK, *, status: int = 200, problem: str = ""
) -> flask.Response:
    """Show the form. `token` identifies the login flow; `values` are those of its template."""
    return signed_in.page(
        "admin/second_step.html", status=status, token=token, problem=problem, **values
    )


def finish(
    token: str, code: str, values: Mapping[str, object] = _DESK
) -> sessions.Session | flask.Response:
    """Begin a session, or show the form again if the code is wrong."""
    try:
        return linking.finish(
            token,
            code,
            browser=signed_in.cookie(),
            network=context.network(),
            secret=context.settings().secret,
            now=datetime.now(UTC),
        )
    except password_login.Wrong as error:
        problem = labels.text("admin.second-step-wrong")
        return form(token, values, status=signed_in.status_of(error), problem=problem)
