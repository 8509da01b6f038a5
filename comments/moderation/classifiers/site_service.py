"""Ask a site's own service for a verdict about a comment.

This module owns the format of questions and answers. A question is sent like a webhook
(`webhooks`), with an id and signatures of the same form. The service can answer immediately, in the
body of its response. The service can also answer later, in a request that it signs in the same way
with the same secret.

Invariant: A question contains no mail address, network or author id
(test_classifier_requests.py::test_a_request_contains_what_moderators_see_and_nothing_about_the_sender).

The name of a question (`name`) includes a digest that is made with a secret key. The name
identifies one text of one comment, and only a service that received the question can know it.
"""

import hmac
from datetime import datetime

import msgspec

from comments import errors
from comments.domain import outcomes, records
from comments.domain.crypto import keyed_hashes, secret_rotation
from comments.domain.moderation import classifier_verdicts
from comments.events import safe_http, webhooks

_LATER = 202
_PURPOSE = "question"


class _Author(msgspec.Struct, frozen=True):
    name: str
    website: str
    guest: bool


class _Comment(msgspec.Struct, frozen=True):
    id: str
    revision: int
    parent: str | None
    author: _Author
    text: str
    html: str
    status: records.Status
    created: datetime
    edited: datetime | None


class _Asked(msgspec.Struct, frozen=True):
    question: str
    site: str
    thread: str
    title: str
    url: str
    comment: _Comment


class _Message(msgspec.Struct, frozen=True):
    type: str
    timestamp: datetime
    data: _Asked


def name(site: str, comment_id: str, revision: int, secret: str) -> str:
    """Return the name of the question about a comment's text at one revision."""
    digest = keyed_hashes.keyed_digest(secret, _PURPOSE, site, comment_id, f"{revision}")
    return f"{comment_id}.{revision}.{keyed_hashes.text(digest)}"


def parse_name(text: str, site: str, secret: str) -> tuple[str, int]:
    """Return the comment id and the revision from the name of a question.

    Raises:
        errors.NotFound: no such question was sent to this site's service.
    """
    comment_id, _, rest = text.partition(".")
    number = rest.partition(".")[0]
    is_number = number.isascii() and number.isdecimal() and len(number) < 10  # noqa: PLR2004
    revision = int(number) if is_number else 0
    made = [
        name(site, comment_id, revision, accepted)
        for accepted in secret_rotation.accepted_secrets(secret)
    ]
    if not any(hmac.compare_digest(candidate.encode(), text.encode()) for candidate in made):
        raise errors.NotFound("question", text[:100])
    return comment_id, revision


def body(
    question: str,
    comment: records.Comment,
    thread: records.Thread | None,
    *,
    is_guest: bool,
    at: datetime,
) -> bytes:
    """Encode a question as JSON."""
    title, url = (thread.title, thread.url) if thread else ("", "")
    shown = _Comment(
        id=comment.id,
        revision=comment.revision,
        parent=comment.parent,
        author=_Author(comment.author.name, comment.author.website, is_guest),
        text=comment.body,
        html=comment.html,
        status=comment.status,
        created=comment.created,
        edited=comment.edited,
    )
    asked = _Asked(question, comment.site, comment.thread, title, url, shown)
    return msgspec.json.encode(_Message("comment.review", at, asked))


def ask(
    client: safe_http.HttpClient, hook: webhooks.Hook, event: str, payload: bytes, *, now: datetime
) -> classifier_verdicts.RequestResult:
    """Send a question once.

    Status 202 means that the service will answer later; any other 2xx response contains the answer.
    """
    outcome, answer = webhooks.ask(client, hook, f"{event}.review", payload, now=now)
    if outcome.end is not outcomes.End.DELIVERED or answer is None or answer.status == _LATER:
        return classifier_verdicts.RequestResult(outcome)
    if answer.is_cut:
        return classifier_verdicts.RequestResult(
            outcomes.Outcome(outcomes.End.RETRY, "the answer is too long")
        )
    try:
        return classifier_verdicts.RequestResult(outcome, classifier_verdicts.read(answer.body))
    except errors.BadInput:
        return classifier_verdicts.RequestResult(
            outcomes.Outcome(outcomes.End.RETRY, "the answer is not valid")
        )
