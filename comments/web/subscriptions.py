"""The pages that links in mail lead to: confirm, and unsubscribe.

To open a link changes nothing: mail scanners follow every one. A page shows a button, and only its
POST acts. The POST to unsubscribe is also what mail programs send by themselves (RFC 8058), so it
asks for nothing but the link. There are no cookies, and who holds the link is who may.

Nothing on these pages is a stranger's word but the title of the thread, as text.
"""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import NamedTuple

import flask
import msgspec

from comments import consent, errors
from comments.web import context, queries, responses, shapes
from comments.web import errors as web_errors

blueprint = flask.Blueprint(
    "subscriptions", __name__, url_prefix="/subscriptions", template_folder="templates"
)

_POLICY = (
    "default-src 'none'; style-src 'self'; img-src 'self'; base-uri 'none'; form-action 'self'; "
    "frame-ancestors 'none'"
)


class _Button(NamedTuple):
    """A form of one button: what it says, and where its POST goes."""

    label: str
    action: str


@blueprint.get("/confirm")
def ask_to_confirm() -> flask.Response:
    """What would be subscribed to, and a button."""
    request = consent.request_of(_token(), secret=context.settings().secret, now=datetime.now(UTC))
    return _page(
        f"Mail about comments on {request.site}",
        "Shall we tell this address of:",
        request,
        _Button("Yes, send me mail", "confirm"),
    )


@blueprint.post("/confirm")
def confirm() -> flask.Response:
    """Subscribe."""
    request = consent.confirm(_token(), secret=context.settings().secret, now=datetime.now(UTC))
    return _page(
        "You will get mail",
        "You are told of these. Every mail has a link that ends it.",
        request,
    )


@blueprint.get("/unsubscribe")
def ask_to_unsubscribe() -> flask.Response:
    """Two buttons: for what the mail was about, and for everything."""
    consent.ending_of(_token(), context.settings().secret)
    return _page(
        "No more mail",
        "Which mail shall end?",
        None,
        _Button("Mail like this one", "unsubscribe"),
        _Button("All mail to this address", "unsubscribe/all"),
    )


@blueprint.post("/unsubscribe")
def unsubscribe() -> flask.Response:
    """End what a mail was about, however often it is asked."""
    return _ended(consent.end, "You get no more mail like that one.")


@blueprint.post("/unsubscribe/all")
def unsubscribe_from_everything() -> flask.Response:
    """End everything, and erase the address."""
    return _ended(consent.end_all, "You get no more mail, and your address is erased.")


def _ended(end: Callable[..., None], text: str) -> flask.Response:
    end(_token(), context.settings().secret, now=datetime.now(UTC))
    return _page("Done", text, None)


@blueprint.after_request
def _close(response: flask.Response) -> flask.Response:
    # The address of such a page is a key: it goes to no other page and no search engine.
    response.headers["Referrer-Policy"] = "no-referrer"
    response.headers["X-Robots-Tag"] = "noindex"
    response.headers["Content-Security-Policy"] = _POLICY
    return response


@blueprint.errorhandler(Exception)
def _refused(error: Exception) -> flask.Response:
    """The API's answer to an error, as a page."""
    told = web_errors.answer(error)
    problem = msgspec.json.decode(told.data, type=responses.Problem)
    is_link = isinstance(error, errors.BadLink)
    text = "This link is damaged, or too old." if is_link else problem.detail
    response = _page("That did not work", text, None)
    response.status_code = told.status_code
    for name, value in told.headers:
        if name.lower() not in {"content-type", "content-length"}:
            response.headers[name] = value
    return response


def _token() -> str:
    return queries.read(shapes.LinkQuery).token


def _page(
    heading: str, text: str, wanted: consent.Request | None, *buttons: _Button
) -> flask.Response:
    # Relative, so that it holds wherever a proxy has put the service.
    up = "../" * (flask.request.path.count("/") - 1)
    made = flask.render_template(
        "subscription.html",
        heading=heading,
        text=text,
        things=() if wanted is None else consent.things(wanted),
        title="" if wanted is None else consent.title_of(wanted),
        buttons=buttons,
        token=flask.request.args.get("token", ""),
        root=up,
    )
    return flask.Response(made, content_type="text/html; charset=utf-8")
