"""The page that the mail of a held comment leads to: what it says, and three buttons.

To open a link changes nothing: mail scanners follow every one. Only the POST of a button acts, with
a slip that is good for half an hour (`form_tokens`), and only on the comment as the mail showed it.
There are no cookies, and who holds the link is who may.
What a stranger wrote is shown as text.
"""

from datetime import UTC, datetime

import flask
import msgspec

from comments import errors
from comments.domain import records
from comments.notifications import form_tokens, moderation_links
from comments.web.http import context, problems, request_shapes, response_shapes
from comments.web.http.decode import forms, query_strings

blueprint = flask.Blueprint("warrants", __name__, url_prefix="/decisions")

_POLICY = (
    "default-src 'none'; style-src 'self'; img-src 'self'; base-uri 'none'; form-action 'self'; "
    "frame-ancestors 'none'"
)
_LABELS = {
    records.Verb.APPROVE: "Approve",
    records.Verb.REJECT: "Reject",
    records.Verb.SPAM: "It is spam",
}


@blueprint.get("")
def look() -> flask.Response:
    """The comment, and what may be done to it."""
    link = query_strings.read(request_shapes.LinkQuery).token
    warrant = _read(link)
    found = moderation_links.case(warrant)
    if not moderation_links.stands(warrant, found):
        return _page("This is not as you were told", "It was edited or decided since the mail.")
    why = f"Held: {found.why}." if found.why else ""
    return _page(f"A comment on {warrant.site} waits", why, found.comment, _slip(link))


@blueprint.post("/approve")
def approve() -> flask.Response:
    """Show it to readers."""
    return _decided(records.Verb.APPROVE, "Readers see it now.")


@blueprint.post("/reject")
def reject() -> flask.Response:
    """Refuse it."""
    return _decided(records.Verb.REJECT, "Nobody sees it.")


@blueprint.post("/spam")
def spam() -> flask.Response:
    """Refuse it as spam."""
    return _decided(records.Verb.SPAM, "Nobody sees it.")


def _decided(verb: records.Verb, text: str) -> flask.Response:
    moderation_links.act(_posted(), verb, now=datetime.now(UTC))
    return _page("Done", text)


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
    text = problem.detail
    if isinstance(error, errors.BadLink):
        text = "This link is damaged, or too old."
        if error.code == "page-expired":
            text = "This page was open for too long. Open the link in the mail again."
    if isinstance(error, errors.RevisionMismatch):
        text = "The comment was edited or decided since the mail."
    response = _page("That did not work", text)
    response.status_code = told.status_code
    for name, value in told.headers:
        if name.lower() not in {"content-type", "content-length"}:
            response.headers[name] = value
    return response


def _posted() -> moderation_links.ModerationLink:
    """What the link says whose page's button was pressed."""
    query_strings.read(request_shapes.NoQuery)
    slip = forms.read(request_shapes.Slip).token
    secret = context.settings().secret
    return _read(form_tokens.read(slip, "decide", secret, now=datetime.now(UTC)))


def _read(link: str) -> moderation_links.ModerationLink:
    return moderation_links.read(link, secret=context.settings().secret, now=datetime.now(UTC))


def _slip(link: str) -> str:
    return form_tokens.make(link, "decide", context.settings().secret, now=datetime.now(UTC))


def _page(
    heading: str, text: str, comment: records.Comment | None = None, slip: str = ""
) -> flask.Response:
    made = flask.render_template(
        "public/decision.html",
        heading=heading,
        text=text,
        comment=comment,
        labels=_LABELS if slip else {},
        slip=slip,
        # Relative, so that it holds wherever a proxy has put the service.
        root="../" * (flask.request.path.count("/") - 1),
    )
    return flask.Response(made, content_type="text/html; charset=utf-8")
