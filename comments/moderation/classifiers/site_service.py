"""Reviews: a site's own service is asked what should become of a comment, and says so.

Owns the question and the ways to answer it. The question is a message as webhooks are (`webhooks`),
with an id and signatures of the same form. It is answered at once, in the body of the answer, or
later by a request of the service's own, signed in the same way by the same secret.

What must stay true:

- A question holds what a moderator sees of a comment: no mail address, no network, no author's id.
- The name of a question (`name`) is made with a key of ours: an answer that names it is about this
  text of this comment, and whoever was not asked cannot name one.
"""

import hmac
from datetime import datetime

import msgspec

from comments import errors
from comments.domain import classifier_verdicts, outcomes, records
from comments.domain.crypto import keyed_hashes, secret_rotation
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
    """What a question about the text of a revision is called."""
    digest = keyed_hashes.keyed(secret, _PURPOSE, site, comment_id, f"{revision}")
    return f"{comment_id}.{revision}.{keyed_hashes.text(digest)}"


def named(text: str, site: str, secret: str) -> tuple[str, int]:
    """The comment and the revision that a question is about.

    Raises:
        errors.NotFound: it is none that was put to this site.
    """
    comment_id, _, rest = text.partition(".")
    number = rest.partition(".")[0]
    is_number = number.isascii() and number.isdecimal() and len(number) < 10  # noqa: PLR2004
    revision = int(number) if is_number else 0
    made = [name(site, comment_id, revision, each) for each in secret_rotation.accepted(secret)]
    if not any(hmac.compare_digest(each.encode(), text.encode()) for each in made):
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
    """The JSON of a question."""
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
    client: safe_http.Client, hook: webhooks.Hook, event: str, payload: bytes, *, now: datetime
) -> classifier_verdicts.Heard:
    """Put a question once.

    An answer of 202 says that the opinion comes later; any other of 2xx holds it.
    """
    outcome, answer = webhooks.ask(client, hook, f"{event}.review", payload, now=now)
    if outcome.end is not outcomes.End.DELIVERED or answer is None or answer.status == _LATER:
        return classifier_verdicts.Heard(outcome)
    if answer.is_cut:
        return classifier_verdicts.Heard(outcomes.Outcome(outcomes.End.RETRY, "said too much"))
    try:
        return classifier_verdicts.Heard(outcome, classifier_verdicts.read(answer.body))
    except errors.BadInput:
        return classifier_verdicts.Heard(
            outcomes.Outcome(outcomes.End.RETRY, "said nothing we understand")
        )
