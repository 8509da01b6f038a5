"""Secret rotation: the uses of the service's current and previous secrets (pure).

Everything new is signed, encrypted and looked up under `SECRET`. Values made under `SECRET_OLD` are
also accepted until they expire, so a secret can be changed while people are signed in.
docs/secrets.md lists every use. A plain string is a secret without a previous one.
"""

from typing import Self


class Secret(str):
    """A secret along with the secret that it replaced. Used as a string, it is the new one."""

    __slots__ = ("old",)
    old: str

    def __new__(cls, text: str, old: str = "") -> Self:
        made = super().__new__(cls, text)
        made.old = old
        return made


def accepted(secret: str) -> tuple[str, ...]:
    """Return the accepted secrets, the current one first."""
    old = secret.old if isinstance(secret, Secret) else ""
    return (secret, old) if old and old != secret else (secret,)
