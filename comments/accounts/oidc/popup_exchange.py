"""Exchange a code from the sign-in pop-up for a token on the reader's page.

The steps of the exchange:

1. The page generates and keeps a verifier (256 random bits), and opens the pop-up with a challenge,
   which is the verifier's SHA-256 digest (as in RFC 7636).
2. When the provider redirects back to this service, the service makes a voucher for the challenge
   and shows the voucher's code in the pop-up.
3. The page gets the code from the pop-up or from the reader, who types it. The page then exchanges
   the code and the verifier for a token.

No token appears in an address, a message or the pop-up. A person who sees the code lacks the
verifier; a person who knows the challenge has neither the code nor the verifier.

Invariants:

1. A voucher belongs to one site and one page's verifier. The voucher can be used once, within
   `TERM`.
2. A voucher is void after `TRIES` wrong codes. Wrong codes are counted in the transaction that
   compares the code, so concurrent guesses all count.
3. A challenge never gets a second voucher.
4. A reader's account is found only by issuer and `sub`. If the account does not exist, the exchange
   creates it.
"""

import base64
import hashlib
import re
import secrets
from datetime import datetime, timedelta

import msgspec

from comments import errors
from comments.accounts import accounts, one_time_links, reader_accounts
from comments.accounts.oidc import oidc_client
from comments.domain.crypto import encryption, keyed_hashes
from comments.domain.text import cleaning
from comments.store import transactions

TERM = timedelta(minutes=5)
TRIES = 5
_PURPOSE = "voucher"
_CODE = "voucher code"
_CODE_LETTERS = 8  # 40 bits, like a code in `email_login`
_CHALLENGE = re.compile(r"[A-Za-z0-9_-]{43}")
_VERIFIER = re.compile(r"[A-Za-z0-9._~-]{43,128}")


class _Voucher(msgspec.Struct, frozen=True):
    """The content of the ticket: site, encrypted person, digest of the code, guesses so far."""

    site: str
    person: str
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


def issue(
    person: oidc_client.ProviderUser, site: str, challenge: str, *, secret: str, now: datetime
) -> str:
    """Make a voucher for a page's challenge. Return its code as two groups of four characters.

    Raises:
        errors.Conflict: the challenge has already had a voucher.
    """
    token, *before = _tokens(challenge, secret)
    made = keyed_hashes.text(secrets.token_bytes(16))[:_CODE_LETTERS]
    who = encryption.seal(msgspec.json.encode(person).decode(), _PURPOSE, secret, now=now)
    content = _text(_Voucher(site, who, _digest(token, made, secret)))

    def body() -> None:
        there = one_time_links.held(token, secret)
        if there not in {None, content} or any(
            one_time_links.held(each, secret) for each in before
        ):
            raise errors.Conflict("voucher-exists")
        ticket = one_time_links.OneTimeLink(one_time_links.LinkPurpose.VOUCHER, content)
        transactions.apply(one_time_links.issuing(token, ticket, secret, now=now, term=TERM))

    transactions.transaction(body)
    return f"{made[:4]} {made[4:]}"


def redeem(
    verifier: str, given: str, name: str, site: str, *, secret: str, now: datetime
) -> accounts.Account:
    """Return the account of the reader who has the verifier and the code.

    If there is no account yet, create one. Readers choose their display name; if `name` is empty,
    they keep their current name or get the name from the provider. An account with a role keeps its
    name.

    Raises:
        reader_accounts.Refused: the code does not match this verifier and site, has been used or
            has expired, or there were too many guesses.
        errors.BadInput: the name is not valid, or missing.
    """
    name = cleaning.clean_name(name) if name.strip() else ""
    tokens, attempt = _tokens(_challenge_of(verifier), secret), one_time_links.new_token()
    token = next(
        (each for each in tokens if one_time_links.held(each, secret) is not None), tokens[0]
    )
    plain = given.replace(" ", "").replace("-", "").lower()

    def body() -> reader_accounts.Reader | None:
        try:
            content, used = one_time_links.using(
                token, one_time_links.LinkPurpose.VOUCHER, attempt, secret, now=now
            )
        except errors.BadLink as error:
            raise reader_accounts.Refused("code-expired") from error
        voucher = msgspec.json.decode(content, type=_Voucher)
        if voucher.site != site or voucher.tries >= TRIES:
            raise reader_accounts.Refused("too-many-guesses")
        if not keyed_hashes.is_one(voucher.code, secret, _CODE, token, plain):
            counted = msgspec.structs.replace(voucher, tries=voucher.tries + 1)
            transactions.apply(one_time_links.holding(token, _text(counted), secret))
            return None
        reader = _reader(voucher, name, secret, now)
        transactions.apply(used)
        return reader

    reader = transactions.transaction(body)
    if reader is None:
        raise reader_accounts.Refused("wrong-code")
    found = accounts.by_identity(reader.identity, secret)
    if found is not None and found.grants:
        return found
    return reader_accounts.sign_in(reader, secret=secret, now=now)


def _reader(voucher: _Voucher, name: str, secret: str, now: datetime) -> reader_accounts.Reader:
    """Return a voucher's reader, in the transaction that uses the voucher."""
    text = encryption.unseal(voucher.person, _PURPOSE, secret, now=now)
    person = msgspec.json.decode(text, type=oidc_client.ProviderUser)
    found = accounts.by_identity(person.identity, secret)
    called = name or (found.name if found else person.name)
    if not called:
        raise errors.BadInput("name", "required")
    return reader_accounts.Reader(person.identity, called)


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
