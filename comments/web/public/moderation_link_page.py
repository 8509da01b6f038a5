"""The page that the mail about a held comment links to: the comment and three buttons.

Invariants:

1. Opening a link changes nothing, because mail scanners follow every link. Only pressing a button
   has an effect: it posts a form token that is valid for half an hour (`form_tokens`).
2. A button has no effect if the comment has changed since the mail was sent.
3. The page uses no cookies: anyone who has the link may decide.
4. The comment is shown as plain text.
"""

from datetime import UTC, datetime

import flask

from comments import errors
from comments.domain import decoders, records
from comments.notifications import form_tokens, moderation_links
from comments.web.http import context, problems, request_shapes, response_shapes
from comments.web.http.decode import forms, query_strings
from comments.web.http.page_text import text as t

blueprint = flask.Blueprint("warrants", __name__, url_prefix="/decisions")

_POLICY = (
    "default-src 'none'; style-src 'self'; img-src 'self'; base-uri 'none'; form-action 'self'; "
    "frame-ancestors 'none'"
)


@blueprint.get("")
def look() -> flask.Response:
    """Show the comment and the buttons."""
    link = query_strings.read(request_shapes.LinkQuery).token
    warrant = _read(link)
    found = moderation_links.case(warrant)
    if not moderation_links.is_current(warrant, found):
        return _page(t("embed.decide-changed-title"), t("embed.decide-changed"))
    reason = t("embed.decide-held", reason=found.why) if found.why else ""
    heading = t("embed.decide-title", site=warrant.site)
    return _page(heading, reason, found.comment, _form_token(link))


@blueprint.post("/approve")
def approve() -> flask.Response:
    """Publish the comment."""
    return _decided(records.Verb.APPROVE, t("embed.decided-approve"))


@blueprint.post("/reject")
def reject() -> flask.Response:
    """Reject the comment."""
    return _decided(records.Verb.REJECT, t("embed.decided-reject"))


@blueprint.post("/spam")
def spam() -> flask.Response:
    """Reject the comment as spam."""
    return _decided(records.Verb.SPAM, t("embed.decided-spam"))


def _decided(verb: records.Verb, text: str) -> flask.Response:
    moderation_links.act(_posted(), verb, now=datetime.now(UTC))
    return _page(t("embed.decided-title"), text)


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
        is_page = error.code == "page-expired"
        text = t("embed.page-expired" if is_page else "embed.bad-link")
    if isinstance(error, errors.RevisionMismatch):
        text = t("embed.decide-changed")
    response = _page(t("embed.failed"), text)
    response.status_code = answer.status_code
    for name, value in answer.headers:
        if name.lower() not in {"content-type", "content-length"}:
            response.headers[name] = value
    return response


def _posted() -> moderation_links.ModerationLink:
    """Return the link of the page that contained the pressed button."""
    query_strings.read(request_shapes.NoQuery)
    token = forms.read(request_shapes.LinkForm).token
    secret = context.settings().secret
    return _read(form_tokens.read(token, "decide", secret, now=datetime.now(UTC)))


def _read(link: str) -> moderation_links.ModerationLink:
    return moderation_links.read(link, secret=context.settings().secret, now=datetime.now(UTC))


def _form_token(link: str) -> str:
    return form_tokens.make(link, "decide", context.settings().secret, now=datetime.now(UTC))


def _page(
    heading: str, text: str, comment: records.Comment | None = None, form_token: str = ""
) -> flask.Response:
    made = flask.render_template(
        "public/decision.html",
        heading=heading,
        text=text,
        comment=comment,
        verbs=moderation_links.VERBS if form_token else (),
        form_token=form_token,
        # The path is relative because a proxy may add a path prefix.
        root="../" * (flask.request.path.count("/") - 1),
    )
    return flask.Response(made, content_type="text/html; charset=utf-8")
