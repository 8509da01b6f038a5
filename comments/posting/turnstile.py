"""Turnstile: whether Cloudflare's check believes the browser that somebody posts from.

Owns the one question there is, `siteverify`, and what counts as a yes. It is asked while a reader
waits, so it has a short time and no second attempt.

What must stay true:

- A token is good for one post: Cloudflare takes each once. A repeat of the same post is known to it
  by the post's id.
- It was given on a page of the site, for a comment: `hostname` and `action` say so, or it is none.
- Nothing of the reader is sent but the token: not his address, which Cloudflare can do without.
- Who cannot be asked has not said no: what follows then is the site's to say (`Answer.UNKNOWN`).
"""

import enum
import hashlib
import uuid
from collections.abc import Collection
from typing import NamedTuple
from urllib.parse import urlencode

import msgspec

from comments import errors
from comments.events import safe_http
from comments.store import per_process

ADDRESS = "https://challenges.cloudflare.com/turnstile/v0/siteverify"
ACTION = "comment"
LONGEST_TOKEN = 2_048
LIMITS = safe_http.Limits(connect=2.0, total=2.0, answer=8 * 1024)
OUTBOUND = per_process.PerProcess(lambda: safe_http.Client(LIMITS))
_HEADERS = {
    "Content-Type": "application/x-www-form-urlencoded",
    "User-Agent": "Flatthread",
}
# What is wrong with a token. Anything else is wrong with us, or with the service.
_TOKENS_FAULT = {"missing-input-response", "invalid-input-response", "timeout-or-duplicate"}
_OK, _SERVER_FAULT = 200, 500


class Answer(enum.Enum):
    """Whether a post may come from this browser."""

    YES = enum.auto()
    NO = enum.auto()
    UNKNOWN = enum.auto()


class Account(NamedTuple):
    """Where it is asked, with which secret, and for pages of which hosts."""

    url: str
    secret: str
    hosts: Collection[str]


class _Said(msgspec.Struct, frozen=True):
    success: bool
    hostname: str = ""
    action: str = ""
    codes: list[str] = msgspec.field(name="error-codes", default_factory=list)


def verify(client: safe_http.Client, account: Account, token: str, post: str) -> Answer:
    """Ask whether a token is good for a post, whose id `post` is. Never within a transaction."""
    form = {
        "secret": account.secret,
        "response": token,
        "idempotency_key": str(uuid.UUID(bytes=hashlib.sha256(post.encode()).digest()[:16])),
    }
    try:
        body = urlencode(form).encode()
        answer = client.send("POST", account.url, body=body, headers=_HEADERS)
    except (errors.Unreachable, errors.UnsafeAddress):
        return Answer.UNKNOWN
    if answer.is_cut or answer.status >= _SERVER_FAULT:
        return Answer.UNKNOWN
    try:
        said = msgspec.json.decode(answer.body, type=_Said)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return Answer.UNKNOWN
    return _judged(said, answer.status, account.hosts)


def digest(token: str) -> bytes:
    """What a token that was used is known by here."""
    return hashlib.sha256(token.encode()).digest()[:8]


def _judged(said: _Said, status: int, hosts: Collection[str]) -> Answer:
    if said.success and status == _OK:
        is_ours = said.hostname.lower() in hosts and said.action == ACTION
        return Answer.YES if is_ours else Answer.NO
    if not said.success and _TOKENS_FAULT.intersection(said.codes):
        return Answer.NO
    return Answer.UNKNOWN
