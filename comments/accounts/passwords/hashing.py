"""Passwords: how they are hashed, and that a wrong name costs what a wrong password does.

Owns the parameters of argon2id and what a password may be. Hashes carry their parameters, so these
may be raised at any time; what was hashed with others is hashed anew when its owner signs in.

argon2 and the list of common passwords are imported where they are used: most processes never
check a password.
"""

import functools
import threading
import unicodedata
from typing import TYPE_CHECKING

from comments import errors

if TYPE_CHECKING:
    import argon2

SHORTEST, LONGEST = 10, 200  # characters
# OWASP's second choice of equal strength, because memory is scarce on App Engine's small classes.
_KIB, _PASSES, _LANES = 19 * 1024, 2, 1
# How many are hashed at once in a process: 38 MiB, however many people sign in.
_turns = threading.BoundedSemaphore(2)


def check(password: str, *own: str) -> str:
    """Return a password that its owner may choose.

    `own` holds what others know of the owner: the sign-in name, the mail address. Upper and lower
    case make no difference, nor do the forms in which a keyboard may send a letter (NFKC).

    Raises:
        errors.BadInput: it is too short, too long, one of `own`, or common.
    """
    if not SHORTEST <= len(password) <= LONGEST:
        raise errors.BadInput("password", "wrong-length", minimum=SHORTEST, maximum=LONGEST)
    plain = _plain(password)
    if plain in {_plain(each) for each in own}:
        raise errors.BadInput("password", "password-is-login")
    if plain in _common():
        raise errors.BadInput("password", "common-password")
    return password


def hashed(password: str) -> str:
    """The hash of a password, with its parameters and salt."""
    with _turns:
        return hasher().hash(_bytes(password))


def matches(stored: str, password: str) -> bool:
    """Whether a password is the one of a hash. An empty hash is matched by none, as slowly."""
    import argon2  # noqa: PLC0415 - see the module

    tried = stored or _nobodys(hasher())
    try:
        with _turns:
            hasher().verify(tried, _bytes(password[: LONGEST + 1]))
    except (argon2.exceptions.VerificationError, argon2.exceptions.InvalidHashError):
        return False
    return bool(stored)


def is_outdated(stored: str) -> bool:
    """Whether a hash was made with other parameters than are used now."""
    return hasher().check_needs_rehash(stored)


def _plain(text: str) -> str:
    return unicodedata.normalize("NFKC", text).strip().casefold()


@functools.cache
def _common() -> frozenset[str]:
    """The common passwords, in lower case.

    zxcvbn lists the 30,000 most common passwords, and leaves those out that it lists as a word or a
    name, so its other lists count too. Reading them takes 31 ms.
    """
    from zxcvbn import frequency_lists as lists  # type: ignore[import-untyped]  # noqa: PLC0415

    return frozenset().union(*lists.FREQUENCY_LISTS.values())


def _bytes(password: str) -> bytes:
    # Keyboards send one letter in several forms (NIST SP 800-63B asks for NFKC).
    return unicodedata.normalize("NFKC", password).encode(errors="surrogatepass")


@functools.cache
def hasher() -> "argon2.PasswordHasher":
    """What hashes every password; tests put a weaker one in its place."""
    import argon2  # noqa: PLC0415 - see the module

    return argon2.PasswordHasher(time_cost=_PASSES, memory_cost=_KIB, parallelism=_LANES)


@functools.cache
def _nobodys(hasher: "argon2.PasswordHasher") -> str:
    """A hash of nobody's: to check a password of an unknown name costs what any check does."""
    return hasher.hash(_bytes("nobody has this password"))
