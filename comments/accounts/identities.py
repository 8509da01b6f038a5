"""Define identities, which lead to accounts: sign-in names, addresses, and users at providers.

Owns the format of an Identity's key. Keys are stored, so the format must not change:

    "{provider}:{subject}"   login, first: plain text; others: 128 bits of a keyed digest, base32

The provider is `login`, `mail`, `first` (the first owner of this service), "site/{site id}"
(readers whom a site identifies) or "oidc/{issuer}" (people whom a provider identifies).
"""

import re
from typing import NamedTuple

from comments import errors
from comments.domain.crypto import keyed_hashes
from comments.domain.text.addresses import mail_addresses

LOGIN, MAIL, FIRST = "login", "mail", "first"
# The subjects of these providers are not personal data. They must be found even after the secret
# has changed and the old secret is lost.
_PLAIN = {LOGIN, FIRST}
_LOGIN = re.compile(r"[a-z0-9][a-z0-9._-]{0,62}")
_LONGEST_SUBJECT = 1_000


class Identity(NamedTuple):
    """A person's identity at a provider."""

    provider: str
    subject: str

    def name(self, secret: str) -> str:
        """Return the key name under which a new identity is stored."""
        return self.names(secret)[0]

    def names(self, secret: str) -> tuple[str, ...]:
        """Return the possible key names: first under the current secret, then under older ones."""
        if self.provider in _PLAIN:
            return (f"{self.provider}:{self.subject}",)
        made = keyed_hashes.every(secret, "identity", self.provider, self.subject)
        return tuple(f"{self.provider}:{keyed_hashes.text(digest)}" for digest in made)


FIRST_OWNER = Identity(FIRST, "owner")


def of_login(raw: str) -> Identity:
    """Return the identity of a sign-in name.

    Raises:
        errors.BadInput: the text is not a valid sign-in name.
    """
    login = raw.strip().lower()
    if not _LOGIN.fullmatch(login):
        raise errors.BadInput("login", "bad-login")
    return Identity(LOGIN, login)


def of_address(raw: str) -> Identity:
    """Return the identity of a mail address. Ignore case, as mail servers do in practice.

    Callers that store a new address must first check it with `mail_addresses.check`.

    Raises:
        errors.BadInput: the text is not one plain address.
    """
    return Identity(MAIL, mail_addresses.canonical_or_stored(raw).lower())


def of_text(raw: str) -> Identity:
    """Return the identity of a typed sign-in name or address.

    For other text, return an identity that no account has.
    """
    try:
        return of_address(raw) if "@" in raw else of_login(raw)
    except errors.BadInput:
        return Identity(MAIL, f"nobody {raw[:100]}")


def at_issuer(issuer: str) -> str:
    """Return the provider name for an issuer. A `sub` is unique only within its issuer."""
    return f"oidc/{issuer}"


def of_provider(provider: str, subject: str) -> Identity:
    """Return the identity for a subject at a provider.

    Raises:
        errors.BadInput: the subject is empty, too long, or not valid text.
    """
    # JSON allows unpaired surrogates, which no encoding can represent.
    is_text = not any("\ud800" <= character <= "\udfff" for character in subject)
    if not subject.strip() or len(subject) > _LONGEST_SUBJECT or not is_text:
        raise errors.BadInput("sub", "wrong-length", minimum=1, maximum=_LONGEST_SUBJECT)
    return Identity(provider, subject)
