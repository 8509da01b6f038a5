"""Secret rotation: the uses of the service's current and previous secrets (pure).

The service signs, encrypts and looks up all new values with `SECRET`. The service also accepts
values that were made with `SECRET_OLD` until they expire, so the owner can change the secret while
people are signed in. docs/secrets.md lists every use. A plain string is a secret without a previous
secret.
"""

from typing import Self


class Secret(str):
    """A secret, together with the secret that it replaced.

    As a string, a `Secret` is the new secret.
    """

    __slots__ = ("old",)
    old: str

    def __new__(cls, text: str, old: str = "") -> Self:
        made = super().__new__(cls, text)
        made.old = old
        return made


def accepted_secrets(secret: str) -> tuple[str, ...]:
    """Return the accepted secrets, starting with the current secret."""
    old = secret.old if isinstance(secret, Secret) else ""
    return (secret, old) if old and old != secret else (secret,)
