"""Codes that people type: the short half of a one-time link. The long half is its token.

Invariant: Wrong codes are counted in the transaction that compares the code, so concurrent guesses
all count (test_email_login.py::test_concurrent_guesses_are_counted_one_by_one).

A code is valid once, for one site, and only with its link's token. The link is void after `TRIES`
wrong codes.
"""

import secrets
from collections.abc import Callable
from datetime import datetime
from typing import TypeVar

import msgspec

from comments import errors
from comments.accounts import reader_accounts
from comments.accounts.links import one_time_links
from comments.domain import decoders
from comments.domain.crypto import keyed_hashes
from comments.store import transactions

T = TypeVar("T")

TRIES = 5
_LETTERS = 8  # 40 bits
_PURPOSE = "typed code"


class CodedContent(msgspec.Struct, frozen=True):
    """The content of a link with a code: site, content, digest of the code, guesses so far."""

    site: str = ""  # Links of older releases have none of these fields
    content: str = ""
    code: str = ""
    tries: int = 0

    @property
    def text(self) -> str:
        return msgspec.json.encode(self).decode()


def new_code() -> str:
    """Make a random code."""
    return keyed_hashes.text(secrets.token_bytes(16))[:_LETTERS]


def in_groups(code: str) -> str:
    """Return a code as two groups of four characters."""
    return f"{code[:4]} {code[4:]}"


def digest(token: str, code: str, secret: str) -> str:
    """Return the digest of a code for a token, as `CodedContent` stores it."""
    return keyed_hashes.text(keyed_hashes.keyed_digest(secret, _PURPOSE, token, code))


def decode(content: str) -> CodedContent:
    """Decode a link's content."""
    return decoders.json(CodedContent).decode(content)


def redeem(  # noqa: PLR0913 - the link, the code, and what they allow
    token: str,
    purpose: one_time_links.LinkPurpose,
    site: str,
    given: str,
    act: Callable[[str], T],
    *,
    secret: str,
    now: datetime,
) -> T:
    """Use a link with its code, and return the result of `act`.

    `act` gets the link's content. It runs in the transaction that uses the link, perhaps more than
    once; if it raises an error, the link stays unused.

    Raises:
        reader_accounts.Refused: the code does not match this token and site, has been used or has
            expired, or there were too many guesses.
    """
    attempt, plain = one_time_links.new_token(), given.replace(" ", "").replace("-", "").lower()

    def body() -> tuple[T] | None:
        try:
            content, used = one_time_links.use_writes(token, purpose, attempt, secret, now=now)
        except errors.BadLink as error:
            raise reader_accounts.Refused("code-expired") from error
        coded = decode(content)
        if coded.site != site or coded.tries >= TRIES:
            raise reader_accounts.Refused("too-many-guesses")
        if not keyed_hashes.is_one(coded.code, secret, _PURPOSE, token, plain):
            counted = msgspec.structs.replace(coded, tries=coded.tries + 1)
            transactions.apply(one_time_links.content_writes(token, counted.text, secret))
            return None
        done = act(coded.content)
        transactions.apply(used)
        return (done,)

    result = transactions.transaction(body)
    if result is None:
        raise reader_accounts.Refused("wrong-code")
    return result[0]
