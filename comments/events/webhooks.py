"""Webhooks: signed messages about comments, sent to an address that the site's owner registered.

The messages follow the conventions of Standard Webhooks (standardwebhooks.com). The headers are
`webhook-id`, `webhook-timestamp` in seconds, and `webhook-signature`. The signature header contains
`v1,` and the base64 of HMAC-SHA256 over `id.timestamp.body`, once for each secret.

Invariant: A message contains only what the public sees of a comment when the message is sent, so a
message about a retracted comment contains none of its text
(test_webhooks.py::test_the_message_of_a_retracted_comment_has_no_content).

A *chat* (Slack, Discord or Telegram) gets text instead of signed JSON (`chat_body`). The secret of
a chat is in its address.

The message id is derived from the event's id, so a receiver recognizes a message that arrives
twice. A later attempt has the same id but a new timestamp and signature. While a secret is being
rotated, messages are signed with both the old and the new secret, so the receiver can switch at any
time.
"""

import base64
import binascii
import dataclasses
import enum
import hashlib
import hmac
import re
from collections.abc import Mapping, Sequence
from datetime import datetime

import msgspec

from comments import errors
from comments.domain import outcomes, presentation, records
from comments.domain.languages import error_texts
from comments.events import safe_http

_PREFIX = "whsec_"
_MARKDOWN = re.compile(r"[\\*_~`|<>#\[\]()-]")  # Characters with a meaning in Discord's Markdown.
_SUPPRESS_EMBEDS = 4
CHAT_HEADERS = {"Content-Type": "application/json", "User-Agent": "Flatthread"}
_SHORTEST_KEY, _LONGEST_KEY = 24, 64  # In bytes, as the conventions require.
_MOST_SECRETS = 2  # The current secret and the previous one.
_GONE = 410
_LONGEST_PAUSE = 24 * 60 * 60
_TOLERANCE = 300  # Maximum difference in seconds between two clocks, including the transport time.
_LONGEST_MOMENT = 12  # Maximum number of digits.


class Type(enum.StrEnum):
    """The kinds of changes, with the names that receivers see."""

    POSTED = "comment.posted"
    EDITED = "comment.edited"
    RETRACTED = "comment.retracted"
    HELD = "comment.held"


PUBLIC_TYPES = (Type.POSTED, Type.EDITED, Type.RETRACTED)
CHAT_TYPES = (Type.POSTED, Type.HELD)  # The default for chats.


class MessageForm(enum.StrEnum):
    """The forms of messages: signed JSON, or text for a chat."""

    FLATTHREAD = "flatthread"
    SLACK = "slack"
    DISCORD = "discord"
    TELEGRAM = "telegram"


@dataclasses.dataclass(frozen=True, slots=True)
class Hook:
    """A webhook's address, and its signing secrets, newest first.

    Raises:
        errors.BadInput: there is no secret, there are more than two, or one is malformed.
    """

    url: str
    secrets: tuple[str, ...]

    def __post_init__(self) -> None:
        if not 1 <= len(self.secrets) <= _MOST_SECRETS:
            raise errors.BadInput("secrets", "too-many-items", limit=_MOST_SECRETS)
        for secret in self.secrets:
            _key(secret)


class _CommentData(msgspec.Struct, frozen=True):
    site: str
    thread: str
    title: str
    url: str
    comment: presentation.PublicComment


class _Message(msgspec.Struct, frozen=True):
    type: Type
    timestamp: datetime
    data: _CommentData


def secret(key: bytes) -> str:
    """Encode 24 to 64 random bytes as a secret, in the form that owners see."""
    if not _SHORTEST_KEY <= len(key) <= _LONGEST_KEY:
        raise errors.BadInput("secret", "bad-secret", minimum=_SHORTEST_KEY, maximum=_LONGEST_KEY)
    return _PREFIX + base64.b64encode(key).decode()


def body(
    type_: Type, at: datetime, comment: records.Comment, thread: records.Thread | None
) -> bytes:
    """Encode a message as JSON: the change, its time, and the comment as the public sees it now."""
    title, url = (thread.title, thread.url) if thread else ("", "")
    shown = thread.shown_id if thread else comment.thread
    data = _CommentData(comment.site, shown, title, url, presentation.comment(comment))
    return msgspec.json.encode(_Message(type_, at, data))


def test_body(site: str, at: datetime) -> bytes:
    """Return the test message that an owner requested, as JSON."""
    return msgspec.json.encode({"type": "test", "timestamp": at, "data": {"site": site}})


def escape(form: MessageForm, text: str) -> str:
    """Escape people's words, so that a chat shows them as they are."""
    if form is MessageForm.SLACK:
        return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return _MARKDOWN.sub(r"\\\g<0>", text) if form is MessageForm.DISCORD else text


def chat_body(form: MessageForm, chat: str, text: str) -> bytes:
    """Encode a text for a chat as JSON. It mentions nobody and shows no previews of links.

    Telegram needs the id of the chat, and shows the text as it is because `parse_mode` is absent.
    """
    bodies: dict[MessageForm, dict[str, object]] = {
        MessageForm.SLACK: {"text": text},
        MessageForm.DISCORD: {
            "content": text,
            "allowed_mentions": {"parse": []},
            "flags": _SUPPRESS_EMBEDS,
        },
        MessageForm.TELEGRAM: {
            "chat_id": chat,
            "text": text,
            "link_preview_options": {"is_disabled": True},
        },
    }
    return msgspec.json.encode(bodies[form])


def headers(hook: Hook, event: str, payload: bytes, *, now: datetime) -> dict[str, str]:
    """Return a message's headers: its id, its timestamp, and one signature per secret."""
    # A full stop separates the parts of the signed text, so the id must not contain a full stop.
    message = f"msg_{event.replace('.', '_')}"
    timestamp = str(int(now.timestamp()))
    signed = f"{message}.{timestamp}.".encode() + payload
    return {
        "Content-Type": "application/json",
        "User-Agent": "Flatthread",
        "webhook-id": message,
        "webhook-timestamp": timestamp,
        "webhook-signature": " ".join(_signature(secret, signed) for secret in hook.secrets),
    }


def send(
    client: safe_http.HttpClient, hook: Hook, event: str, payload: bytes, *, now: datetime
) -> outcomes.Outcome:
    """Deliver a message to a hook once.

    A 2xx status means that the message was delivered, and 410 that the hook wants no more messages.

    Other failures are retried, because the owner may fix them. If the address is unsafe
    (`errors.UnsafeAddress`), nothing is retried.
    """
    return ask(client, hook, event, payload, now=now)[0]


def ask(
    client: safe_http.HttpClient, hook: Hook, event: str, payload: bytes, *, now: datetime
) -> tuple[outcomes.Outcome, safe_http.HttpResponse | None]:
    """Deliver a message to a hook once; return the outcome and the response, if any."""
    return post(client, hook.url, payload, headers(hook, event, payload, now=now))


def post(
    client: safe_http.HttpClient, url: str, payload: bytes, plain: Mapping[str, str]
) -> tuple[outcomes.Outcome, safe_http.HttpResponse | None]:
    """Post to an address once; return the outcome and the response, if any."""
    try:
        answer = client.send("POST", url, body=payload, headers=plain)
    except (errors.UnsafeAddress, errors.Unreachable) as error:
        is_worth_it = isinstance(error, errors.Unreachable)
        end = outcomes.End.RETRY if is_worth_it else outcomes.End.GIVE_UP
        # Make the reason a phrase, such as "answered 500" or "example.com did not answer".
        return outcomes.Outcome(end, error_texts.sentence(error).removesuffix(".")), None
    return outcome_of(answer), answer


def outcome_of(answer: safe_http.HttpResponse) -> outcomes.Outcome:
    """Derive the outcome of an attempt from the status of the response."""
    reason = f"answered {answer.status}"
    if 200 <= answer.status < 300:  # noqa: PLR2004 - success, in HTTP
        return outcomes.Outcome(outcomes.End.DELIVERED, reason)
    if answer.status == _GONE:
        return outcomes.Outcome(outcomes.End.GIVE_UP, reason)
    return outcomes.Outcome(outcomes.End.RETRY, reason, _pause(answer.headers.get("retry-after")))


def is_signed(
    secrets: Sequence[str], sent: Mapping[str, str], payload: bytes, *, now: datetime
) -> bool:
    """Return whether an incoming message has a recent signature made with one of these secrets.

    Headers and signed text have the same form as those of outgoing messages.
    """
    name, moment = sent.get("webhook-id", ""), sent.get("webhook-timestamp", "")
    is_moment = moment.isascii() and moment.isdecimal() and len(moment) <= _LONGEST_MOMENT
    if not (name and is_moment and abs(now.timestamp() - int(moment)) <= _TOLERANCE):
        return False
    signed = f"{name}.{moment}.".encode() + payload
    given = sent.get("webhook-signature", "").split()[: 2 * _MOST_SECRETS]
    return any(
        hmac.compare_digest(_signature(secret, signed).encode(), one.encode())
        for secret in secrets
        for one in given
    )


def _key(text: str) -> bytes:
    problem = errors.BadInput("secrets", "bad-secret", minimum=_SHORTEST_KEY, maximum=_LONGEST_KEY)
    if not text.startswith(_PREFIX):
        raise problem
    try:
        key = base64.b64decode(text.removeprefix(_PREFIX), validate=True)
    except (binascii.Error, ValueError) as error:
        raise problem from error
    if not _SHORTEST_KEY <= len(key) <= _LONGEST_KEY:
        raise problem
    return key


def _signature(text: str, signed: bytes) -> str:
    digest = hmac.digest(_key(text), signed, hashlib.sha256)
    return f"v1,{base64.b64encode(digest).decode()}"


def _pause(asked: str | None) -> int | None:
    """Return how many seconds a peer asks to wait; None if it does not ask or gives a date."""
    if not asked or not asked.isascii() or not asked.isdecimal():
        return None
    return min(int(asked[:9]), _LONGEST_PAUSE)
