"""Hash and check passwords.

Owns the parameters of argon2id and the rules for passwords. Each hash contains its parameters, so
the parameters can be raised at any time; an older hash is renewed when its owner signs in.

The functions that use argon2 or the list of common passwords also import them, because most
processes never check a password.

Checking a password takes as long for an unknown name as for a known one.
"""

import functools
import threading
import unicodedata
from typing import TYPE_CHECKING

from comments import errors

if TYPE_CHECKING:
    import argon2

SHORTEST, LONGEST = 10, 200  # In characters.
# OWASP recommends several settings of equal strength. The setting used here needs less memory than
# the first of OWASP's settings, because memory is scarce on App Engine's small instance classes.
_KIB, _PASSES, _LANES = 19 * 1024, 2, 1
# A process computes at most two hashes at a time, which limits their memory to 38 MiB.
_turns = threading.BoundedSemaphore(2)


def check(password: str, *own: str) -> str:
    """Check a new password and return it.

    `own` contains what others know about the owner: the sign-in name and the mail address. The
    comparison ignores case and the different encodings of a letter (NFKC).

    Raises:
        errors.BadInput: the password is too short, too long, one of `own`, or common.
    """
    if not SHORTEST <= len(password) <= LONGEST:
        raise errors.BadInput("password", "wrong-length", minimum=SHORTEST, maximum=LONGEST)
    plain = _plain(password)
    if plain in {_plain(text) for text in own}:
        raise errors.BadInput("password", "password-is-login")
    if plain in _common():
        raise errors.BadInput("password", "common-password")
    return password


def hash_password(password: str) -> str:
    """Hash a password. The hash contains its parameters and salt."""
    with _turns:
        return hasher().hash(_bytes(password))


def matches(stored: str, password: str) -> bool:
    """Return whether a password matches a hash.

    An empty hash never matches, but checking it takes as long as checking any other hash.
    """
    import argon2  # noqa: PLC0415 - see the module

    tried = stored or _nobodys(hasher())
    try:
        with _turns:
            hasher().verify(tried, _bytes(password[: LONGEST + 1]))
    except (argon2.exceptions.VerificationError, argon2.exceptions.InvalidHashError):
        return False
    return bool(stored)


def is_outdated(stored: str) -> bool:
    """Return whether a hash was made with parameters other than the current ones."""
    return hasher().check_needs_rehash(stored)


def _plain(text: str) -> str:
    return unicodedata.normalize("NFKC", text).strip().casefold()


@functools.cache
def _common() -> frozenset[str]:
    """Return the common passwords, in lower case. Loading the passwords takes 31 ms."""
    # zxcvbn's list of the 30,000 most common passwords omits passwords that are in its lists of
    # words and names, so use all lists.
    from zxcvbn import frequency_lists as lists  # type: ignore[import-untyped]  # noqa: PLC0415

    return frozenset().union(*lists.FREQUENCY_LISTS.values())


def _bytes(password: str) -> bytes:
    # Keyboards may encode the same letter in different ways (NIST SP 800-63B recommends NFKC).
    return unicodedata.normalize("NFKC", password).encode(errors="surrogatepass")


@functools.cache
def hasher() -> "argon2.PasswordHasher":
    """Return the hasher for all passwords; tests replace it with a weaker one."""
    import argon2  # noqa: PLC0415 - see the module

    return argon2.PasswordHasher(time_cost=_PASSES, memory_cost=_KIB, parallelism=_LANES)


@functools.cache
def _nobodys(hasher: "argon2.PasswordHasher") -> str:
    """Return the hash against which a password for an unknown name is checked."""
    return hasher.hash(_bytes("nobody has this password"))
