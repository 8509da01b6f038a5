"""The pages that links in mail lead to: confirm, and unsubscribe.

To open a link changes nothing: mail scanners follow every one. A page shows a button, and only its
POST acts, with a slip that is good for half an hour (`form_tokens`). Mail programs post to the link
to unsubscribe by themselves (RFC 8058), so that asks for nothing but the link. There are no
cookies, and who holds the link is who may.

Nothing on these pages is a stranger's word but the title of the thread, as text.
"""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import NamedTuple

import flask
import msgspec

from comments import errors
from comments.notifications import double_opt_in, form_tokens
from comments.web.http import context, problems, request_shapes, response_shapes
from comments.web.http.decode import forms, query_strings

blueprint = flask.Blueprint("subscriptions", __name__, url_prefix="/subscriptions")

_POLICY = (
    "default-src 'none'; style-src 'self'; img-src 'self'; base-uri 'none'; form-action 'self'; "
    "frame-ancestors 'none'"
)

_LINKS = {
    "link-used": "This link was used already. If you pressed the button twice, you are subscribed.",
    "page-expired": "This page was open for too long. Open the link in the mail again.",
}


class _Button(NamedTuple):
    """A form of one button: what it says, where its POST goes, and what it posts."""

    label: str
    action: str
    slip: str


@blueprint.get("/confirm")
def ask_to_confirm() -> flask.Response:
    """What would be subscribed to, and a button."""
    now = datetime.now(UTC)
    request = double_opt_in.unused_request_of(_link(), secret=context.settings().secret, now=now)
    return _page(
        f"Mail about comments on {request.site}",
        "Shall we tell this address of:",
        request,
        _Button("Yes, send me mail", "confirm", _slip("confirm")),
    )


@blueprint.post("/confirm")
def confirm() -> flask.Response:
    """Subscribe."""
    link = _posted("confirm")
    request = double_opt_in.confirm(link, secret=context.settings().secret, now=datetime.now(UTC))
    return _page(
        "You will get mail",
        "You are told of these. Every mail has a link that ends it.",
        request,
    )


@blueprint.get("/unsubscribe")
def ask_to_unsubscribe() -> flask.Response:
    """Two buttons: for what the mail was about, and for everything."""
    double_opt_in.unsubscription_of(_link(), context.settings().secret)
    slip = _slip("unsubscribe")
    return _page(
        "No more mail",
        "Which mail shall end?",
        None,
        _Button("Mail like this one", "unsubscribe", slip),
        _Button("All mail to this address", "unsubscribe/all", slip),
    )


@blueprint.post("/unsubscribe")
def unsubscribe() -> flask.Response:
    """End what a mail was about, however often it is asked.

    Mail programs post to the link itself (RFC 8058); the page's button posts a slip.
    """
    link = _link() if flask.request.query_string else _posted("unsubscribe")
    return _ended(double_opt_in.unsubscribe, link, "You get no more mail like that one.")


@blueprint.post("/unsubscribe/all")
def unsubscribe_from_everything() -> flask.Response:
    """End everything, and erase the address."""
    link = _posted("unsubscribe")
    return _ended(
        double_opt_in.unsubscribe_from_everything,
        link,
        "You get no more mail, and your address is erased.",
    )


def _ended(end: Callable[..., None], link: str, text: str) -> flask.Response:
    end(link, context.settings().secret, now=datetime.now(UTC))
    return _page("Done", text, None)


@blueprint.after_request
def _close(response: flask.Response) -> flask.Response:
    # The address of such a page is a key: it goes to no other page and no search engine.
    response.headers["Referrer-Policy"] = "no-referrer"
    response.headers["X-Robots-Tag"] = "noindex"
    response.headers["Cache-Control"] = "no-store"
    response.headers["Content-Security-Policy"] = _POLICY
    return response


@blueprint.errorhandler(Exception)
def _refused(error: Exception) -> flask.Response:
    """The API's answer to an error, as a page."""
    told = problems.answer(error)
    problem = msgspec.json.decode(told.data, type=response_shapes.Problem)
    is_link = isinstance(error, errors.BadLink)
    text = _LINKS.get(problem.code, "This link is damaged, or too old.")
    response = _page("That did not work", text if is_link else problem.detail, None)
    response.status_code = told.status_code
    for name, value in told.headers:
        if name.lower() not in {"content-type", "content-length"}:
            response.headers[name] = value
    return response


def _link() -> str:
    return query_strings.read(request_shapes.LinkQuery).token


def _slip(purpose: str) -> str:
    return form_tokens.make(_link(), purpose, context.settings().secret, now=datetime.now(UTC))


def _posted(purpose: str) -> str:
    """The link whose page's button was pressed."""
    query_strings.read(request_shapes.NoQuery)
    slip = forms.read(request_shapes.Slip).token
    return form_tokens.read(slip, purpose, context.settings().secret, now=datetime.now(UTC))


def _page(
    heading: str, text: str, wanted: double_opt_in.Request | None, *buttons: _Button
) -> flask.Response:
    # Relative, so that it holds wherever a proxy has put the service.
    up = "../" * (flask.request.path.count("/") - 1)
    made = flask.render_template(
        "public/subscription.html",
        heading=heading,
        text=text,
        things=() if wanted is None else double_opt_in.things(wanted),
        title="" if wanted is None else double_opt_in.title_of(wanted),
        buttons=buttons,
        root=up,
    )
    return flask.Response(made, content_type="text/html; charset=utf-8")
