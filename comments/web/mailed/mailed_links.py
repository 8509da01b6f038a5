"""What the pages for mailed links about subscriptions and held comments have in common.

Opening a link changes nothing, because mail scanners follow every link. Only pressing a button has
an effect: the button posts a form token, which is valid for half an hour (`form_tokens`). The pages
use no cookies: anyone who has the link may use it. Comments and titles are shown as plain text.
"""

from typing import Annotated, NamedTuple

import flask
import msgspec

from comments import errors
from comments.notifications import form_tokens
from comments.web.http import context, problems
from comments.web.http.decode import forms, parameters, query_strings
from comments.web.rendering.page_text import text as t

_HEADERS = {
    # The URL contains the link's key, which must not reach other pages or search engines.
    "Referrer-Policy": "no-referrer",
    "X-Robots-Tag": "noindex",
    "Cache-Control": "no-store",
    "Content-Security-Policy": (
        "default-src 'none'; style-src 'self'; img-src 'self'; base-uri 'none'; "
        "form-action 'self'; frame-ancestors 'none'"
    ),
}
_LINK_PROBLEMS = {"link-used": "embed.link-used", "page-expired": "embed.page-expired"}


class LinkQuery(parameters.Request, frozen=True):
    """The query in a link from a mail."""

    token: Annotated[str, msgspec.Meta(min_length=1, max_length=8_000)]


class LinkForm(parameters.Request, frozen=True):
    """The form on a page that a mail links to (`form_tokens`)."""

    token: Annotated[str, msgspec.Meta(min_length=1, max_length=16_000)]


class Button(NamedTuple):
    """A form with one button that posts the page's form token to `action`.

    `share` is the label of a checkbox in the form; with "", there is no checkbox.
    """

    label: str
    action: str
    share: str = ""


def blueprint(name: str, path: str) -> flask.Blueprint:
    """Create a blueprint for the pages below a path."""
    made = flask.Blueprint(name, __name__, url_prefix=path)
    made.after_request(_close)
    made.register_error_handler(Exception, _error_page)
    return made


def opened_link() -> str:
    """Return the link that opened the page."""
    return query_strings.read(LinkQuery).token


def posted_link(purpose: str) -> str:
    """Return the link of the page on which the button was pressed."""
    query_strings.read(parameters.NoQuery)
    token = forms.read(LinkForm).token
    return form_tokens.read(token, purpose, context.settings().secret, now=context.now())


def page(
    heading: str, text: str, *buttons: Button, purpose: str = "", **values: object
) -> flask.Response:
    """Show a page whose buttons post a form token for `purpose`."""
    token = ""
    if buttons:
        secret = context.settings().secret
        token = form_tokens.make(opened_link(), purpose, secret, now=context.now())
    made = flask.render_template(
        "public/mailed_link.html",
        heading=heading,
        text=text,
        buttons=buttons,
        form_token=token,
        # The path is relative because a proxy may add a path prefix.
        root="../" * (flask.request.path.count("/") - 1),
        **values,
    )
    return flask.Response(made, content_type="text/html; charset=utf-8")


def _close(response: flask.Response) -> flask.Response:
    response.headers.update(_HEADERS)
    return response


def _error_page(error: Exception) -> flask.Response:
    def show(problem: problems.Problem) -> flask.Response:
        text = problem.detail
        if isinstance(error, errors.BadLink):
            text = t(_LINK_PROBLEMS.get(problem.code, "embed.bad-link"))
        if isinstance(error, errors.RevisionMismatch):
            text = t("embed.decide-changed")
        return page(t("embed.failed"), text)

    return problems.page(error, show)
