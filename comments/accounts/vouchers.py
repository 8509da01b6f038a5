"""Vouchers: how a reader whom a provider named comes to a token on the page where he reads.

Owns the way from the window that came back from the provider to the page that opened it:

1. the page makes a verifier, 256 random bits that it keeps, and opens the window with a challenge:
   the verifier's SHA-256 (as in RFC 7636)
2. the window, back from the provider, makes a voucher under that challenge and shows its code
3. the page gets the code, told by the window or typed by the reader, and changes code and verifier
   together for a token

So no token is in an address, a message or a window of ours; who sees the code lacks the verifier,
and who knows the challenge has neither.

What must stay true:

- A voucher is of one site and one page's verifier, is used once, within `TERM`, and is void after
  `TRIES` wrong codes, which are counted in the transaction that compares: of many at once none is
  free. A challenge has one voucher, ever.
- An account of a reader is led to by issuer and `sub` alone, and made by the exchange.
"""

import base64
import hashlib
import re
import secrets
from datetime import datetime, timedelta

import msgspec

from comments import datastore, digests, errors, rendering, sealed
from comments.accounts import openid, people, readers, tickets

TERM = timedelta(minutes=5)
TRIES = 5
_PURPOSE = "voucher"
_CODE = "voucher code"
_CODE_LETTERS = 8  # 40 bits, as in `entering`
_CHALLENGE = re.compile(r"[A-Za-z0-9_-]{43}")
_VERIFIER = re.compile(r"[A-Za-z0-9._~-]{43,128}")


class _Voucher(msgspec.Struct, frozen=True):
    """What the ticket holds: the site, who it is, sealed, the code's digest, guesses so far."""

    site: str
    person: str
    code: str
    tries: int = 0


def checked_challenge(challenge: str) -> str:
    """The challenge of a page.

    Raises:
        errors.BadInput: it is no SHA-256 in base64url.
    """
    if not _CHALLENGE.fullmatch(challenge):
        raise errors.BadInput("challenge", "is no SHA-256 in base64url")
    return challenge


def issue(person: openid.Person, site: str, challenge: str, *, secret: str, now: datetime) -> str:
    """Make a voucher for the page that a challenge is of; its code, in groups of four.

    Raises:
        errors.Conflict: the challenge had one.
    """
    token, *before = _tokens(challenge, secret)
    made = digests.text(secrets.token_bytes(16))[:_CODE_LETTERS]
    who = sealed.seal(msgspec.json.encode(person).decode(), _PURPOSE, secret, now=now)
    content = _text(_Voucher(site, who, _digest(token, made, secret)))

    def body() -> None:
        there = tickets.held(token, secret)
        if there not in {None, content} or any(tickets.held(each, secret) for each in before):
            raise errors.Conflict("this window was used: begin again", code="voucher-exists")
        ticket = tickets.Ticket(tickets.Purpose.VOUCHER, content)
        datastore.apply(tickets.issuing(token, ticket, secret, now=now, term=TERM))

    datastore.transaction(body)
    return f"{made[:4]} {made[4:]}"


def redeem(
    verifier: str, given: str, name: str, site: str, *, secret: str, now: datetime
) -> people.Account:
    """The account of whoever holds the verifier and the code; made with his first visit.

    A name is a reader's own to choose. Without one he keeps the name he has, or gets the one that
    the provider tells. Somebody with a role keeps his.

    Raises:
        readers.Refused: the code is not the one of this verifier and site, or was used, or is too
            old, or was guessed at too often.
        errors.BadInput: the name cannot be one, or there is none.
    """
    name = rendering.clean_name(name) if name.strip() else ""
    tokens, attempt = _tokens(_challenge_of(verifier), secret), tickets.new_token()
    token = next((each for each in tokens if tickets.held(each, secret) is not None), tokens[0])
    plain = given.replace(" ", "").replace("-", "").lower()

    def body() -> readers.Reader | None:
        try:
            content, used = tickets.using(token, tickets.Purpose.VOUCHER, attempt, secret, now=now)
        except errors.BadLink as error:
            raise readers.Refused("this code was used, or is too old") from error
        voucher = msgspec.json.decode(content, type=_Voucher)
        if voucher.site != site or voucher.tries >= TRIES:
            raise readers.Refused("this code was guessed at too often, or is of another site")
        if not digests.is_one(voucher.code, secret, _CODE, token, plain):
            counted = msgspec.structs.replace(voucher, tries=voucher.tries + 1)
            datastore.apply(tickets.holding(token, _text(counted), secret))
            return None
        reader = _reader(voucher, name, secret, now)
        datastore.apply(used)
        return reader

    reader = datastore.transaction(body)
    if reader is None:
        raise readers.Refused("this is not the code", code="wrong-code")
    found = people.find(reader.identity, secret)
    if found is not None and found.grants:
        return found
    return readers.enter(reader, secret=secret, now=now)


def _reader(voucher: _Voucher, name: str, secret: str, now: datetime) -> readers.Reader:
    """Who it is and what he is called; in the transaction that uses the voucher up."""
    text = sealed.unseal(voucher.person, _PURPOSE, secret, now=now)
    person = msgspec.json.decode(text, type=openid.Person)
    found = people.find(person.identity, secret)
    called = name or (found.name if found else person.name)
    if not called:
        raise errors.BadInput("name", "is empty, and the provider tells none")
    return readers.Reader(person.identity, called)


def _challenge_of(verifier: str) -> str:
    if not _VERIFIER.fullmatch(verifier):
        raise readers.Refused("this is no verifier")
    digest = hashlib.sha256(verifier.encode()).digest()
    return base64.urlsafe_b64encode(digest).decode().rstrip("=")


def _tokens(challenge: str, secret: str) -> list[str]:
    """The tokens that the ticket may have, that of a new one first.

    Nobody can name the ticket of anything else by a challenge.
    """
    made = digests.every(secret, "voucher", challenge)
    return [base64.urlsafe_b64encode(each).decode().rstrip("=") for each in made]


def _digest(token: str, made: str, secret: str) -> str:
    return digests.text(digests.keyed(secret, _CODE, token, made))


def _text(voucher: _Voucher) -> str:
    return msgspec.json.encode(voucher).decode()
