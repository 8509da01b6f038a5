"""The pages that subscription mail links to: confirm and unsubscribe.

Invariants:

1. Opening a link changes nothing, because mail scanners follow every link. Only pressing a button
   has an effect: it posts a form token that is valid for half an hour (`form_tokens`).
2. The exception is the one-click unsubscribe request (RFC 8058). Mail programs send a POST to the
   link itself, so that request needs no form token.
3. The pages use no cookies: anyone who has the link may use it.
4. The title of the thread is the only user input on these pages, and it is shown as plain text.
"""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import NamedTuple

import flask

from comments import errors
from comments.domain import decoders
from comments.notifications import double_opt_in, form_tokens
from comments.web.http import context, problems, request_shapes, response_shapes
from comments.web.http.decode import forms, query_strings
from comments.web.http.page_text import text as t

blueprint = flask.Blueprint("subscriptions", __name__, url_prefix="/subscriptions")

_POLICY = (
    "default-src 'none'; style-src 'self'; img-src 'self'; base-uri 'none'; form-action 'self'; "
    "frame-ancestors 'none'"
)

_LINK_PROBLEMS = {"link-used": "embed.link-used", "page-expired": "embed.page-expired"}


class _Button(NamedTuple):
    """A form with one button that posts a form token to `action`.

    `share` is the label of a checkbox in the form, "" for none.
    """

    label: str
    action: str
    form_token: str
    share: str = ""


@blueprint.get("/confirm")
def ask_to_confirm() -> flask.Response:
    """Show a button and a description of the mail to which the reader would subscribe."""
    now = datetime.now(UTC)
    request = double_opt_in.unused_request_of(_link(), secret=context.settings().secret, now=now)
    share = t("embed.subscribe-share", site=request.site) if request.thread else ""
    return _page(
        t("embed.subscribe-title", site=request.site),
        t("embed.subscribe-question"),
        _Button(t("embed.subscribe-confirm"), "confirm", _form_token("confirm"), share),
        request=request,
    )


@blueprint.post("/confirm")
def confirm() -> flask.Response:
    """Subscribe."""
    query_strings.read(request_shapes.NoQuery)
    sent = forms.read(request_shapes.ConfirmationForm)
    secret, now = context.settings().secret, datetime.now(UTC)
    link = form_tokens.read(sent.token, "confirm", secret, now=now)
    request = double_opt_in.confirm(link, secret=secret, now=now, shares=bool(sent.share))
    return _page(
        t("embed.subscribed-title"),
        t("embed.subscribed"),
        request=request,
        note=t("embed.subscribed-end"),
    )


@blueprint.get("/unsubscribe")
def ask_to_unsubscribe() -> flask.Response:
    """Show two buttons: one ends the subscription of this mail, and the other ends all mail.

    If the owner of the site may see the address, a third button withdraws this.
    """
    site = double_opt_in.sharing_site(_link(), context.settings().secret)
    form_token = _form_token("unsubscribe")
    share = _Button(t("embed.unshare", site=site), "unsubscribe/address", form_token)
    return _page(
        t("embed.unsubscribe-title"),
        t("embed.unsubscribe-question"),
        _Button(t("embed.unsubscribe-one"), "unsubscribe", form_token),
        _Button(t("embed.unsubscribe-all"), "unsubscribe/all", form_token),
        *([share] if site else []),
    )


@blueprint.post("/unsubscribe")
def unsubscribe() -> flask.Response:
    """End the subscription that sent a mail. Repeating the request changes nothing.

    Mail programs send this POST to the link itself (RFC 8058). The button on the page posts a form
    token.
    """
    link = _link() if flask.request.query_string else _posted("unsubscribe")
    return _ended(double_opt_in.unsubscribe, link, t("embed.unsubscribed-one"))


@blueprint.post("/unsubscribe/all")
def unsubscribe_from_everything() -> flask.Response:
    """Unsubscribe from everything and erase the address."""
    link = _posted("unsubscribe")
    end = double_opt_in.unsubscribe_from_everything
    return _ended(end, link, t("embed.unsubscribed-all"))


@blueprint.post("/unsubscribe/address")
def unshare() -> flask.Response:
    """Hide the address from the owner of the site; the subscription continues."""
    double_opt_in.unshare(_posted("unsubscribe"), context.settings().secret)
    return _page(t("embed.unshared-title"), t("embed.unshared"))


def _ended(end: Callable[..., None], link: str, text: str) -> flask.Response:
    end(link, context.settings().secret, now=datetime.now(UTC))
    return _page(t("embed.unsubscribed-title"), text)


@blueprint.after_request
def _close(response: flask.Response) -> flask.Response:
    # The URL contains the link's key, which must not reach other pages or search engines.
    response.headers["Referrer-Policy"] = "no-referrer"
    response.headers["X-Robots-Tag"] = "noindex"
    response.headers["Cache-Control"] = "no-store"
    response.headers["Content-Security-Policy"] = _POLICY
    return response


@blueprint.errorhandler(Exception)
def _refused(error: Exception) -> flask.Response:
    """Answer with a page that shows the content of the API's problem document."""
    answer = problems.answer(error)
    problem = decoders.json(response_shapes.Problem).decode(answer.data)
    text = problem.detail
    if isinstance(error, errors.BadLink):
        text = t(_LINK_PROBLEMS.get(problem.code, "embed.bad-link"))
    response = _page(t("embed.failed"), text)
    response.status_code = answer.status_code
    for name, value in answer.headers:
        if name.lower() not in {"content-type", "content-length"}:
            response.headers[name] = value
    return response


def _link() -> str:
    return query_strings.read(request_shapes.LinkQuery).token


def _form_token(purpose: str) -> str:
    return form_tokens.make(_link(), purpose, context.settings().secret, now=datetime.now(UTC))


def _posted(purpose: str) -> str:
    """Return the link of the page that contained the pressed button."""
    query_strings.read(request_shapes.NoQuery)
    token = forms.read(request_shapes.LinkForm).token
    return form_tokens.read(token, purpose, context.settings().secret, now=datetime.now(UTC))


def _page(
    heading: str,
    text: str,
    *buttons: _Button,
    request: double_opt_in.SubscriptionRequest | None = None,
    note: str = "",
) -> flask.Response:
    # The path is relative because a proxy may add a path prefix.
    up = "../" * (flask.request.path.count("/") - 1)
    made = flask.render_template(
        "public/subscription.html",
        heading=heading,
        text=text,
        things=() if request is None else double_opt_in.things(request),
        title="" if request is None else double_opt_in.title_of(request),
        note=note,
        buttons=buttons,
        root=up,
    )
    return flask.Response(made, content_type="text/html; charset=utf-8")
