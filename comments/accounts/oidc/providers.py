"""Register OpenID Connect providers, and control who can sign in through each provider.

Owns the kind Providers, one row for the service:

    Providers  key: "service"
               providers: JSON, a list of `Provider`

`issuer` is exactly the string in the provider's documents, because people are identified by
`issuer` and `sub` (`identities.at_issuer`). A provider that is removed and added again under a new
name still identifies the same people. `Site.has_providers` is written in the transaction that gives
a site its first provider or removes its last provider.

Changes by people are noted in the service's audit log (`roles.SERVICE`), if the caller passes
`noted`: the name of the provider, and who could and can use it.
"""

import re
from collections.abc import Callable, Collection
from datetime import datetime
from urllib.parse import urlsplit

import msgspec

from comments import errors
from comments.domain import decoders
from comments.domain.crypto import encryption
from comments.domain.moderation import roles
from comments.events import audit_log
from comments.sites import site_settings
from comments.store import ownership, reads, transactions
from comments.store.models import account_rows, comment_rows

_OWNER = "accounts"
_PURPOSE = "provider's secret"
MOST = 10  # Maximum number of providers of the service
_NAME = re.compile(r"[a-z0-9-]{1,31}")
_LONGEST_TITLE = 40
_LONGEST_ISSUER = 200
_LONGEST = 500  # Maximum length of a client id or secret


class Provider(msgspec.Struct, frozen=True):
    """A stored provider. `name` is an internal name, `title` is shown, `secret` is encrypted."""

    name: str
    title: str
    issuer: str
    client: str
    secret: str
    created: datetime
    sites: tuple[str, ...] = ()
    at_desk: bool = False


class OfferedProvider(msgspec.Struct, frozen=True):
    """The public part of a provider."""

    name: str
    title: str


class Registration(msgspec.Struct, frozen=True):
    """An operator's input about a provider, with the client secret in plain text."""

    name: str
    title: str
    issuer: str
    client: str
    secret: str


def make(given: Registration, secret: str, *, now: datetime) -> Provider:
    """Check an operator's input and make a provider that is not yet available to anyone.

    Raises:
        errors.BadInput: a value is not valid; the error names the field.
    """
    if not _NAME.fullmatch(given.name):
        raise errors.BadInput("name", "bad-id", limit=31)
    title = given.title.strip()
    if not title or len(title) > _LONGEST_TITLE or not title.isprintable():
        raise errors.BadInput("title", "not-one-line", limit=_LONGEST_TITLE)
    for field, value in (("client", given.client), ("secret", given.secret)):
        is_plain = value.isascii() and value.isprintable()
        if not value or len(value) > _LONGEST or not is_plain:
            raise errors.BadInput(field, "not-ascii", limit=_LONGEST)
    return Provider(
        name=given.name,
        title=title,
        issuer=_check_issuer(given.issuer),
        client=given.client,
        secret=encryption.seal(given.secret, _PURPOSE, secret, now=now),
        created=now,
    )


def client_secret(provider: Provider, secret: str, *, now: datetime) -> str:
    """Decrypt a provider's client secret.

    Raises:
        errors.BadLink: the client secret was encrypted under a different secret of the service.
    """
    return encryption.unseal(provider.secret, _PURPOSE, secret, now=now)


def every() -> tuple[Provider, ...]:
    """Return all providers, sorted by name."""
    row = reads.get(account_rows.providers_key())
    return () if row is None else decoders.json(tuple[Provider, ...]).decode(row.providers)


def of_site(site: str) -> tuple[Provider, ...]:
    """Return the providers available to a site's readers."""
    return tuple(provider for provider in every() if site in provider.sites)


def of_console() -> tuple[Provider, ...]:
    """Return the providers available to owners and moderators."""
    return tuple(provider for provider in every() if provider.at_desk)


def by_name(name: str, among: Collection[Provider]) -> Provider:
    """Return the provider that has this name.

    Raises:
        errors.NotFound: no provider has this name.
    """
    provider = next((candidate for candidate in among if candidate.name == name), None)
    if provider is None:
        raise errors.NotFound("provider", name[:100])
    return provider


def add(provider: Provider, *, noted: audit_log.Noted | None = None) -> None:
    """Store a new provider.

    Raises:
        errors.Conflict: the name or the issuer is in use, or there are `MOST` providers already.
    """

    def change(stored: list[Provider]) -> list[Provider]:
        # If the response to an earlier run was lost, the provider may already be stored.
        others = [other for other in stored if other != provider]
        if any(provider.name == other.name for other in others):
            raise errors.Conflict("provider-exists", value=provider.name)
        if any(provider.issuer == other.issuer for other in others):
            raise errors.Conflict("provider-exists", value=provider.issuer)
        if len(others) >= MOST:
            raise errors.Conflict("too-many-providers", limit=MOST)
        return [*others, provider]

    _change(change, provider.name, noted)


def offer(
    name: str, sites: Collection[str], *, at_desk: bool, noted: audit_log.Noted | None = None
) -> Provider:
    """Make a provider available to readers of these sites and, with `at_desk`, to staff.

    Raises:
        errors.NotFound: the provider or a site does not exist.
    """

    def widen(provider: Provider) -> Provider:
        for site in sites:
            row = reads.get(comment_rows.site_key(site)) if site else None
            if row is None or row.deleted is not None:
                raise errors.NotFound("site", site)
        offered = tuple(sorted({*provider.sites, *sites}))
        return msgspec.structs.replace(provider, sites=offered, at_desk=provider.at_desk or at_desk)

    return _change_one(name, widen, noted)


def withdraw(
    name: str, sites: Collection[str], *, at_desk: bool, noted: audit_log.Noted | None = None
) -> Provider:
    """Make a provider unavailable to readers of these sites and, with `at_desk`, to staff.

    Existing sessions and tokens stay valid.

    Raises:
        errors.NotFound: the provider does not exist.
    """

    def narrow(provider: Provider) -> Provider:
        left = tuple(site for site in provider.sites if site not in sites)
        return msgspec.structs.replace(
            provider, sites=left, at_desk=provider.at_desk and not at_desk
        )

    return _change_one(name, narrow, noted)


def remove(name: str, *, noted: audit_log.Noted | None = None) -> None:
    """Delete a provider and its client secret.

    Accounts stay, but no one can sign in to them through the provider.

    Raises:
        errors.NotFound: the provider does not exist.
    """
    gone: list[Provider] = []

    def change(stored: list[Provider]) -> list[Provider]:
        if not gone or any(provider in stored for provider in gone):
            gone[:] = [by_name(name, stored)]
        return [provider for provider in stored if provider not in gone]

    _change(change, name, noted)


def renew(secret: str) -> bool:
    """Re-encrypt the client secrets under the current `SECRET`. Return whether any changed."""

    def reencrypt(stored: list[Provider]) -> list[Provider]:
        fresh = [
            encryption.reseal(provider.secret, _PURPOSE, secret) or provider.secret
            for provider in stored
        ]
        return [
            msgspec.structs.replace(provider, secret=text)
            for provider, text in zip(stored, fresh, strict=True)
        ]

    known = list(every())
    if reencrypt(known) == known:
        return False
    _change(reencrypt)
    return True


def _change_one(
    name: str, change: Callable[[Provider], Provider], noted: audit_log.Noted | None
) -> Provider:
    changed: list[Provider] = []

    def change_list(stored: list[Provider]) -> list[Provider]:
        changed[:] = [change(by_name(name, stored))]
        return [changed[0] if provider.name == name else provider for provider in stored]

    _change(change_list, name, noted)
    return changed[0]


def _change(
    change: Callable[[list[Provider]], list[Provider]],
    name: str = "",
    noted: audit_log.Noted | None = None,
) -> None:
    def body() -> None:
        stored = list(every())
        # Computed first, because `change` may change the list
        before, users = _sites(stored), _users(name, stored)
        changed = sorted(change(stored), key=lambda each: each.name)
        content = msgspec.json.encode(changed).decode()
        row = account_rows.ProvidersRow(key=account_rows.providers_key(), providers=content)
        transactions.apply(ownership.Writes(_OWNER, put=(row,)))
        after = _sites(changed)
        if noted is not None and users != (now := _users(name, changed)):
            transactions.apply(
                audit_log.entry_writes(
                    noted.act, roles.SERVICE, f"provider:{name}",
                    before=users, after=now, now=noted.now,
                )
            )  # fmt: skip
        site_settings.mark_providers({site: site in after for site in before ^ after})

    transactions.transaction(body)


def _users(name: str, given: Collection[Provider]) -> str:
    """Return who can use a provider, for the audit log; "" if it does not exist."""
    provider = next((provider for provider in given if provider.name == name), None)
    if provider is None:
        return ""
    return ", ".join([*provider.sites, *(["staff"] if provider.at_desk else [])]) or "nobody"


def _sites(given: Collection[Provider]) -> set[str]:
    return {site for provider in given for site in provider.sites}


def _check_issuer(issuer: str) -> str:
    """Check an issuer.

    An issuer is not normalized, because it must equal the issuer in the provider's documents.
    """
    problem = errors.BadInput("issuer", "not-a-url")
    try:
        parts = urlsplit(issuer)
    except ValueError as error:
        raise problem from error
    is_plain = issuer.isascii() and issuer.isprintable() and " " not in issuer
    if not is_plain or len(issuer) > _LONGEST_ISSUER or parts.query or parts.fragment:
        raise problem
    if parts.scheme not in {"https", "http"} or not parts.hostname or parts.username is not None:
        raise problem  # `safe_http` checks for https and a public address when it sends requests
    return issuer
