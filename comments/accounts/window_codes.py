"""Pass a claim from a window of this service to the page that opened the window, by a code.

The steps of the exchange:

1. The page generates and keeps a verifier (256 random bits), and opens the window with a challenge,
   which is the verifier's SHA-256 digest (as in RFC 7636).
2. When the person has confirmed in the window, the service makes a voucher for the challenge and
   shows the voucher's code in the window.
3. The page gets the code from the window or from the person, who types it. The page then exchanges
   the code and the verifier for what the voucher's content allows.

No token appears in an address, a message or the window. A person who sees the code lacks the
verifier; a person who knows the challenge has neither the code nor the verifier.

Invariants:

1. A voucher belongs to one purpose, one site and one page's verifier. The voucher can be used once,
   within `TERM`.
2. A voucher is void after `TRIES` wrong codes. Wrong codes are counted in the transaction that
   compares the code, so concurrent guesses all count.
3. A challenge never gets a second voucher.
"""

import base64
import hashlib
import re
import secrets
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import NamedTuple, TypeVar

import msgspec

from comments import errors
from comments.accounts import one_time_links, reader_accounts
from comments.domain import decoders
from comments.domain.crypto import keyed_hashes
from comments.store import transactions

T = TypeVar("T")

TERM = timedelta(minutes=5)
TRIES = 5
_CODE = "voucher code"
_CODE_LETTERS = 8  # 40 bits, like a code in `email_login`
_CHALLENGE = re.compile(r"[A-Za-z0-9_-]{43}")
_VERIFIER = re.compile(r"[A-Za-z0-9._~-]{43,128}")


class Claim(NamedTuple):
    """What a voucher allows on a site. The format of `content` depends on the purpose."""

    purpose: one_time_links.LinkPurpose
    site: str
    content: str


class PresentedCode(NamedTuple):
    """What a page presents to redeem a voucher: its verifier, and the code from the window."""

    verifier: str
    code: str


class _Voucher(msgspec.Struct, frozen=True):
    """The content of the ticket: site, content, digest of the code, guesses so far."""

    site: str
    content: str = msgspec.field(name="person")
    code: str
    tries: int = 0


def checked_challenge(challenge: str) -> str:
    """Check a page's challenge.

    Raises:
        errors.BadInput: the challenge is not a SHA-256 digest in base64url.
    """
    if not _CHALLENGE.fullmatch(challenge):
        raise errors.BadInput("challenge", "bad-challenge")
    return challenge


def issue(claim: Claim, challenge: str, *, secret: str, now: datetime) -> str:
    """Make a voucher for a page's challenge. Return its code as two groups of four characters.

    Raises:
        errors.Conflict: the challenge has already had a voucher.
    """
    token, *before = _tokens(challenge, secret)
    made = keyed_hashes.text(secrets.token_bytes(16))[:_CODE_LETTERS]
    content = _text(_Voucher(claim.site, claim.content, _digest(token, made, secret)))

    def body() -> None:
        there = one_time_links.held(token, secret)
        if there not in {None, content} or any(
            one_time_links.held(each, secret) for each in before
        ):
            raise errors.Conflict("voucher-exists")
        ticket = one_time_links.OneTimeLink(claim.purpose, content)
        transactions.apply(one_time_links.issuing(token, ticket, secret, now=now, term=TERM))

    transactions.transaction(body)
    return f"{made[:4]} {made[4:]}"


def redeem(
    purpose: one_time_links.LinkPurpose,
    site: str,
    shown: PresentedCode,
    act: Callable[[str], T],
    *,
    secret: str,
    now: datetime,
) -> T:
    """Use a voucher, and return the result of `act`.

    `act` gets the voucher's content. It runs in the transaction that uses the voucher, perhaps more
    than once; if it raises an error, the voucher stays unused.

    Raises:
        reader_accounts.Refused: the code does not match this verifier and site, has been used or
            has expired, or there were too many guesses.
    """
    tokens, attempt = _tokens(_challenge_of(shown.verifier), secret), one_time_links.new_token()
    token = next(
        (each for each in tokens if one_time_links.held(each, secret) is not None), tokens[0]
    )
    plain = shown.code.replace(" ", "").replace("-", "").lower()

    def body() -> tuple[T] | None:
        try:
            content, used = one_time_links.using(token, purpose, attempt, secret, now=now)
        except errors.BadLink as error:
            raise reader_accounts.Refused("code-expired") from error
        voucher = decoders.json(_Voucher).decode(content)
        if voucher.site != site or voucher.tries >= TRIES:
            raise reader_accounts.Refused("too-many-guesses")
        if not keyed_hashes.is_one(voucher.code, secret, _CODE, token, plain):
            counted = msgspec.structs.replace(voucher, tries=voucher.tries + 1)
            transactions.apply(one_time_links.holding(token, _text(counted), secret))
            return None
        done = act(voucher.content)
        transactions.apply(used)
        return (done,)

    found = transactions.transaction(body)
    if found is None:
        raise reader_accounts.Refused("wrong-code")
    return found[0]


def _challenge_of(verifier: str) -> str:
    if not _VERIFIER.fullmatch(verifier):
        raise reader_accounts.Refused("bad-verifier")
    digest = hashlib.sha256(verifier.encode()).digest()
    return base64.urlsafe_b64encode(digest).decode().rstrip("=")


def _tokens(challenge: str, secret: str) -> list[str]:
    """Return the possible tokens of a challenge's ticket. A new ticket gets the first token.

    The tokens are keyed hashes, so no one can choose a challenge that matches another ticket.
    """
    made = keyed_hashes.every(secret, "voucher", challenge)
    return [base64.urlsafe_b64encode(each).decode().rstrip("=") for each in made]


def _digest(token: str, made: str, secret: str) -> str:
    return keyed_hashes.text(keyed_hashes.keyed(secret, _CODE, token, made))


def _text(voucher: _Voucher) -> str:
    return msgspec.json.encode(voucher).decode()
