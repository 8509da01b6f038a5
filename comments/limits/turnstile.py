"""Verify Turnstile tokens, with which Cloudflare vouches for the browser that sends a post.

Owns the request to `siteverify` and the interpretation of its response. The reader waits for the
response, so the time limit is short and a failed request is not retried.

A token is valid for one post, because Cloudflare accepts each token once. The request contains an
idempotency key derived from the post's id, so Cloudflare accepts the token again for the same post.
A token is accepted only if `hostname` and `action` in the response show that the token was issued
for a comment on a page of the site. If the request fails, the answer is `TurnstileAnswer.UNKNOWN`,
not NO; the site's settings decide whether the post is then held or refused. The token is the only
data about the reader that Cloudflare gets. The API also accepts the reader's IP address, but the
address is optional and is not sent.
"""

import enum
import hashlib
import logging
import uuid
from collections.abc import Collection
from typing import NamedTuple
from urllib.parse import urlencode, urlsplit

import msgspec

from comments import errors
from comments.domain import decoders, records
from comments.domain.crypto import encryption
from comments.events import safe_http
from comments.limits.site_request import SiteRequest
from comments.store.memory import per_process

PURPOSE = "turnstile"  # Encryption purpose of a site's Turnstile secret.
ADDRESS = "https://challenges.cloudflare.com/turnstile/v0/siteverify"
ACTION = "comment"
LONGEST_TOKEN = 2_048
LIMITS = safe_http.RequestLimits(connect=2.0, total=2.0, answer=8 * 1024)
OUTBOUND = per_process.PerProcess(lambda: safe_http.HttpClient(LIMITS))
_HEADERS = {
    "Content-Type": "application/x-www-form-urlencoded",
    "User-Agent": "Flatthread",
}
# Error codes for a bad token. Any other error code means that this server or Turnstile is at fault.
_TOKENS_FAULT = {"missing-input-response", "invalid-input-response", "timeout-or-duplicate"}
_log = logging.getLogger("flatthread")
_OK, _SERVER_FAULT = 200, 500


class TurnstileAnswer(enum.Enum):
    """Turnstile's answer about a token: valid, not valid, or unknown."""

    YES = enum.auto()
    NO = enum.auto()
    UNKNOWN = enum.auto()


class TurnstileAccount(NamedTuple):
    """The verification URL, the site's secret key, and the host names of the site's pages."""

    url: str
    secret: str
    hosts: Collection[str]


class _Verdict(msgspec.Struct, frozen=True):
    success: bool
    hostname: str = ""
    action: str = ""
    codes: list[str] = msgspec.field(name="error-codes", default_factory=list)


def check(asked: records.Turnstile, request: SiteRequest, post: str, token: str) -> TurnstileAnswer:
    """Verify a Turnstile token. Return YES or UNKNOWN.

    Raises:
        errors.Forbidden: the token is missing or not valid for this site.
    """
    site = request.site
    if not token:
        raise errors.Forbidden("turnstile-required")
    try:
        shared = encryption.unseal(asked.secret, PURPOSE, request.settings.secret, now=request.now)
    except errors.BadLink:
        _log.error("The Turnstile secret of site %s cannot be decrypted; set it again", site.id)
        return TurnstileAnswer.UNKNOWN
    hosts = {urlsplit(origin).hostname or "" for origin in site.origins}
    where = TurnstileAccount(asked.url or ADDRESS, shared, hosts)
    answer = verify(OUTBOUND.get(), where, token, post)
    if answer is TurnstileAnswer.NO:
        raise errors.Forbidden("turnstile-refused")
    return answer


def verify(
    client: safe_http.HttpClient, account: TurnstileAccount, token: str, post: str
) -> TurnstileAnswer:
    """Verify the token sent with a post, given the post's id. Do not call this in a transaction."""
    form = {
        "secret": account.secret,
        "response": token,
        "idempotency_key": str(uuid.UUID(bytes=hashlib.sha256(post.encode()).digest()[:16])),
    }
    try:
        body = urlencode(form).encode()
        answer = client.send("POST", account.url, body=body, headers=_HEADERS)
    except (errors.Unreachable, errors.UnsafeAddress):
        return TurnstileAnswer.UNKNOWN
    if answer.is_cut or answer.status >= _SERVER_FAULT:
        return TurnstileAnswer.UNKNOWN
    try:
        verdict = decoders.decode(answer.body, _Verdict)
    except msgspec.DecodeError:
        return TurnstileAnswer.UNKNOWN
    return _judge(verdict, answer.status, account.hosts)


def digest(token: str) -> bytes:
    """Return the digest that recognizes a used token."""
    return hashlib.sha256(token.encode()).digest()[:8]


def _judge(said: _Verdict, status: int, hosts: Collection[str]) -> TurnstileAnswer:
    if said.success and status == _OK:
        is_ours = said.hostname.lower() in hosts and said.action == ACTION
        return TurnstileAnswer.YES if is_ours else TurnstileAnswer.NO
    if not said.success and _TOKENS_FAULT.intersection(said.codes):
        return TurnstileAnswer.NO
    return TurnstileAnswer.UNKNOWN
