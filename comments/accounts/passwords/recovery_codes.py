"""Make and check recovery codes, each of which replaces one code of a lost authenticator.

An account stores a password hash of each code, and "" for a used code. The first digit of a code is
the position of its hash, so checking a code computes one hash. The hashes do not depend on
`SECRET`, so the codes also help after a change of `SECRET` that made the authenticator unreadable.

Codes consist of digits because the fields for codes open the numeric keyboard of phones. A code has
40 random bits. Sign-in attempts are limited, and the hash is slow (`hashing`).
"""

import re
import secrets
from collections.abc import Sequence

from comments.accounts.passwords import hashing

COUNT = 10  # One for each first digit
_DIGITS = 12
_CODE = re.compile("[0-9]{13}")


def make() -> list[str]:
    """Return new codes."""
    return [f"{place}{secrets.randbelow(10**_DIGITS):0{_DIGITS}}" for place in range(COUNT)]


def hash_all(codes: Sequence[str]) -> list[str]:
    """Return the hashes of new codes, for storage."""
    return [hashing.hash_password(code) for code in codes]


def in_groups(code: str) -> str:
    """Return a code as it is shown. `without` ignores the spaces."""
    return " ".join((code[0], code[1:5], code[5:9], code[9:]))


def without(stored: Sequence[str], given: str) -> list[str] | None:
    """Return the stored hashes after the use of a code, or None if the code is not valid."""
    code = given.replace(" ", "")
    if not _CODE.fullmatch(code):
        return None
    place = int(code[0])
    if place >= len(stored) or not hashing.matches(stored[place], code):
        return None
    return [*stored[:place], "", *stored[place + 1 :]]
