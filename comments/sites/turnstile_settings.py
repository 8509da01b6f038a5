"""Change a site's Turnstile settings.

This module converts the owner's input to the stored settings: the secret key is stored encrypted,
and an empty field keeps the stored value. `admission` decides which posts need a Turnstile token.
"""

from datetime import datetime
from typing import NamedTuple

import msgspec

from comments import config, errors
from comments.domain import records
from comments.domain.crypto import encryption
from comments.events import audit_log
from comments.limits import turnstile
from comments.sites import site_settings

_LONGEST = 200


class TurnstileInput(NamedTuple):
    """The owner's input. An empty key, secret or address keeps the stored value."""

    key: str
    secret: str
    refuses: bool = False
    url: str = ""


def set_up(
    site: str,
    given: TurnstileInput,
    *,
    settings: config.Settings,
    now: datetime,
    noted: audit_log.Noted | None = None,
) -> records.Site:
    """Require a Turnstile token for posts on a site.

    Raises:
        errors.NotFound: the site does not exist.
        errors.BadInput: a key is missing or malformed, or the address is not allowed or cannot be
            reached.
    """
    for name, text in (("key", given.key), ("secret", given.secret)):
        if len(text) > _LONGEST or not text.isascii() or not all("!" <= c <= "~" for c in text):
            raise errors.BadInput(name, "bad-key", limit=_LONGEST)
    if given.url:
        turnstile.OUTBOUND.get().vet(given.url)
    secret = given.secret and encryption.seal(
        given.secret, turnstile.PURPOSE, settings.secret, now=now
    )

    def change(stored: records.Turnstile | None) -> records.Turnstile:
        key = given.key or (stored.key if stored else "")
        kept = secret or (stored.secret if stored else "")
        for name, text in (("key", key), ("secret", kept)):
            if not text:
                raise errors.BadInput(name, "required")
        return records.Turnstile(
            key, kept, given.refuses, given.url or (stored.url if stored else "")
        )

    return site_settings.change(site, turnstile=change, noted=noted)


def renew(site: str, secret: str) -> bool:
    """Re-encrypt a site's Turnstile secret with the current `SECRET`. Return whether it changed.

    Raises:
        errors.NotFound: the site does not exist.
    """

    def reencrypt(stored: records.Turnstile | None) -> records.Turnstile | None:
        fresh = encryption.reseal(stored.secret, turnstile.PURPOSE, secret) if stored else ""
        return msgspec.structs.replace(stored, secret=fresh) if stored and fresh else stored

    stored = site_settings.get(site).turnstile
    if reencrypt(stored) == stored:
        return False
    site_settings.change(site, turnstile=reencrypt)
    return True


def remove(site: str, *, noted: audit_log.Noted | None = None) -> records.Site:
    """Stop requiring a Turnstile token for posts on a site.

    Raises:
        errors.NotFound: the site does not exist.
    """
    return site_settings.change(site, turnstile=lambda _: None, noted=noted)
