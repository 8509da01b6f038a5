"""The service's secret and the one before it: what is made with which, and accepted (pure).

Everything new is signed, sealed and looked up under `SECRET`. What was made under `SECRET_OLD` is
accepted as well, until it expires, so a secret can be changed while people are signed in.
docs/secrets.md lists every use. A plain text is a secret that replaced none.
"""

from typing import Self


class Secret(str):
    """A secret that knows which one it replaced. Wherever a secret is used it is the new one."""

    __slots__ = ("old",)
    old: str

    def __new__(cls, text: str, old: str = "") -> Self:
        """Make a secret; `old` is empty if it replaced none."""
        made = super().__new__(cls, text)
        made.old = old
        return made


def accepted(secret: str) -> tuple[str, ...]:
    """Return the secrets under which something may have been made, the current one first."""
    old = secret.old if isinstance(secret, Secret) else ""
    return (secret, old) if old and old != secret else (secret,)
