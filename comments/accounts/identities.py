"""What leads to an account: a sign-in name, a confirmed mail address, somebody at a provider.

Owns the form of an Identity's key, which is stored for ever:

    "{provider}:{subject}"   login, first: as it is; else 128 bits of a keyed digest, base32

Providers are `login`, `mail`, `first` (whoever owned this service first) and those of readers,
"site/{site id}" and "oidc/{issuer}". No address and no provider's id is stored as it is. Two
subjects never lead to one key, and no subject is empty: what a provider leaves out is nobody.
"""

import re
from typing import NamedTuple

from comments import errors
from comments.domain.crypto import keyed_hashes
from comments.domain.text import mail_addresses

LOGIN, MAIL, FIRST = "login", "mail", "first"
# Not personal, and still to be found when the secret has changed.
_PLAIN = {LOGIN, FIRST}
_LOGIN = re.compile(r"[a-z0-9][a-z0-9._-]{0,62}")
_LONGEST_SUBJECT = 1_000


class Identity(NamedTuple):
    """Somebody, as a provider knows him."""

    provider: str
    subject: str

    def name(self, secret: str) -> str:
        """The name of its key, if it is new."""
        return self.names(secret)[0]

    def names(self, secret: str) -> tuple[str, ...]:
        """The names that its key may have: under the current secret, and under the old one."""
        if self.provider in _PLAIN:
            return (f"{self.provider}:{self.subject}",)
        made = keyed_hashes.every(secret, "identity", self.provider, self.subject)
        return tuple(f"{self.provider}:{keyed_hashes.text(each)}" for each in made)


FIRST_OWNER = Identity(FIRST, "owner")


def of_login(raw: str) -> Identity:
    """The identity of a sign-in name.

    Raises:
        errors.BadInput: it cannot be one.
    """
    login = raw.strip().lower()
    if not _LOGIN.fullmatch(login):
        raise errors.BadInput("login", "bad-login")
    return Identity(LOGIN, login)


def of_address(raw: str) -> Identity:
    """The identity of a mail address. Upper and lower case are one, as every mail server has it.

    Callers that store a new address check it first (`mail_addresses.check`).

    Raises:
        errors.BadInput: it is not one plain address.
    """
    return Identity(MAIL, mail_addresses.known(raw).lower())


def of_typed(raw: str) -> Identity:
    """What somebody typed to sign in: a name or an address. What can be neither leads nowhere."""
    try:
        return of_address(raw) if "@" in raw else of_login(raw)
    except errors.BadInput:
        return Identity(MAIL, f"nobody {raw[:100]}")


def at_issuer(issuer: str) -> str:
    """The provider that an OpenID Connect issuer is: a `sub` means something there only."""
    return f"oidc/{issuer}"


def of_provider(provider: str, subject: str) -> Identity:
    """Somebody at a provider.

    Raises:
        errors.BadInput: the provider does not say who.
    """
    # Half a surrogate pair is text to JSON and to nobody else.
    is_text = not any("\ud800" <= each <= "\udfff" for each in subject)
    if not subject.strip() or len(subject) > _LONGEST_SUBJECT or not is_text:
        raise errors.BadInput("sub", "wrong-length", minimum=1, maximum=_LONGEST_SUBJECT)
    return Identity(provider, subject)
