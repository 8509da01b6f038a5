"""Pass a claim from a window of this service, through a code, to the page that opened the window.

The steps of the exchange:

1. The page generates and keeps a verifier (256 random bits), and opens the window with a challenge,
   which is the verifier's SHA-256 digest (as in RFC 7636).
2. When the person has confirmed in the window, the service makes a code for the challenge and
   shows it in the window.
3. The page gets the code from the window or from the person, who types it. The page then exchanges
   the code and the verifier for what the code's content allows.

No token appears in an address, a message or the window. A person who sees the code lacks the
verifier; a person who knows the challenge has neither the code nor the verifier.

A code belongs to one purpose, one site and one page's verifier. It can be used once, within `TERM`,
and is void after a few wrong guesses (`typed_codes`). A challenge never gets a second code.
"""

import base64
import hashlib
import re
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import NamedTuple, TypeVar

from comments import errors
from comments.accounts import reader_accounts
from comments.accounts.links import one_time_links, typed_codes
from comments.domain.crypto import keyed_hashes
from comments.store import transactions

T = TypeVar("T")

TERM = timedelta(minutes=5)
_CHALLENGE = re.compile(r"[A-Za-z0-9_-]{43}")
_VERIFIER = re.compile(r"[A-Za-z0-9._~-]{43,128}")


class Claim(NamedTuple):
    """What a window code allows on a site. The format of `content` depends on the purpose."""

    purpose: one_time_links.LinkPurpose
    site: str
    content: str


class PresentedCode(NamedTuple):
    """What a page presents to redeem a window code: its verifier, and the code from the window."""

    verifier: str
    code: str


def check_challenge(challenge: str) -> str:
    """Check a page's challenge.

    Raises:
        errors.BadInput: the challenge is not a SHA-256 digest in base64url.
    """
    if not _CHALLENGE.fullmatch(challenge):
        raise errors.BadInput("challenge", "bad-challenge")
    return challenge


def issue(claim: Claim, challenge: str, *, secret: str, now: datetime) -> str:
    """Make a window code for a page's challenge. Return its code as two groups of four characters.

    Raises:
        errors.Conflict: the challenge has already had a window code.
    """
    token, *before = _tokens(challenge, secret)
    made = typed_codes.new_code()
    digest = typed_codes.digest(token, made, secret)
    content = typed_codes.CodedContent(claim.site, claim.content, digest).text

    def body() -> None:
        there = one_time_links.content_of(token, secret)
        if there not in {None, content} or any(
            one_time_links.content_of(earlier, secret) for earlier in before
        ):
            raise errors.Conflict("voucher-exists")
        issued = one_time_links.issue_writes(
            token, claim.purpose, content, secret, now=now, term=TERM
        )
        transactions.apply(issued)

    transactions.transaction(body)
    return typed_codes.in_groups(made)


def redeem(
    purpose: one_time_links.LinkPurpose,
    site: str,
    shown: PresentedCode,
    act: Callable[[str], T],
    *,
    secret: str,
    now: datetime,
) -> T:
    """Use a page's code, and return the result of `act` (`typed_codes.redeem`).

    Raises:
        reader_accounts.Refused: the verifier is malformed, or see `typed_codes.redeem`.
    """
    tokens = _tokens(_challenge_of(shown.verifier), secret)
    token = next(
        (
            candidate
            for candidate in tokens
            if one_time_links.content_of(candidate, secret) is not None
        ),
        tokens[0],
    )
    return typed_codes.redeem(token, purpose, site, shown.code, act, secret=secret, now=now)


def _challenge_of(verifier: str) -> str:
    if not _VERIFIER.fullmatch(verifier):
        raise reader_accounts.Refused("bad-verifier")
    digest = hashlib.sha256(verifier.encode()).digest()
    return base64.urlsafe_b64encode(digest).decode().rstrip("=")


def _tokens(challenge: str, secret: str) -> list[str]:
    """Return the possible tokens of a challenge's link. A new link gets the first token.

    The tokens are keyed hashes, so no one can choose a challenge that matches another link.
    """
    made = keyed_hashes.every(secret, "voucher", challenge)
    return [base64.urlsafe_b64encode(digest).decode().rstrip("=") for digest in made]
