"""Register OpenID Connect providers, and control who can sign in through each provider.

Owns the kind Providers, one row for the service:

    Providers  key: "service"
               providers: JSON, a list of `Provider`

`issuer` is exactly the string in the provider's documents, because people are identified by
`issuer` and `sub` (`identities.at_issuer`). A provider that is removed and added again under a new
name still identifies the same people. `Site.has_providers` is written in the transaction that gives
a site its first provider or takes its last one.
"""

import re
from collections.abc import Callable, Collection
from datetime import datetime
from urllib.parse import urlsplit

import msgspec

from comments import errors
from comments.domain import decoders
from comments.domain.crypto import encryption
from comments.sites import site_settings
from comments.store import ownership, reads, transactions
from comments.store.models import account_rows, comment_rows

_OWNER = "accounts"
_PURPOSE = "provider's secret"
MOST = 10  # providers of the service
_NAME = re.compile(r"[a-z0-9-]{1,31}")
_LONGEST_TITLE = 40
_LONGEST_ISSUER = 200
_LONGEST = 500  # characters of a client id or secret


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


def checked(given: Registration, secret: str, *, now: datetime) -> Provider:
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
        issuer=_checked_issuer(given.issuer),
        client=given.client,
        secret=encryption.seal(given.secret, _PURPOSE, secret, now=now),
        created=now,
    )


def opened(provider: Provider, secret: str, *, now: datetime) -> str:
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
    return tuple(each for each in every() if site in each.sites)


def of_desk() -> tuple[Provider, ...]:
    """Return the providers available to owners and moderators."""
    return tuple(each for each in every() if each.at_desk)


def chosen(name: str, among: Collection[Provider]) -> Provider:
    """Return the provider that has this name.

    Raises:
        errors.NotFound: no provider has this name.
    """
    found = next((each for each in among if each.name == name), None)
    if found is None:
        raise errors.NotFound("provider", name[:100])
    return found


def add(provider: Provider) -> None:
    """Store a new provider.

    Raises:
        errors.Conflict: the name or the issuer is in use, or there are `MOST` providers already.
    """

    def change(found: list[Provider]) -> list[Provider]:
        # If the response to an earlier run was lost, the provider may already be stored.
        others = [each for each in found if each != provider]
        if any(provider.name == each.name for each in others):
            raise errors.Conflict("provider-exists", value=provider.name)
        if any(provider.issuer == each.issuer for each in others):
            raise errors.Conflict("provider-exists", value=provider.issuer)
        if len(others) >= MOST:
            raise errors.Conflict("too-many-providers", limit=MOST)
        return [*others, provider]

    _change(change)


def offer(name: str, sites: Collection[str], *, at_desk: bool) -> Provider:
    """Make a provider available to readers of these sites and, with `at_desk`, to staff.

    Raises:
        errors.NotFound: the provider or a site does not exist.
    """

    def widened(found: Provider) -> Provider:
        for site in sites:
            if not site or reads.get(comment_rows.site_key(site)) is None:
                raise errors.NotFound("site", site)
        offered = tuple(sorted({*found.sites, *sites}))
        return msgspec.structs.replace(found, sites=offered, at_desk=found.at_desk or at_desk)

    return _change_one(name, widened)


def withdraw(name: str, sites: Collection[str], *, at_desk: bool) -> Provider:
    """Make a provider unavailable to readers of these sites and, with `at_desk`, to staff.

    Existing sessions and tokens stay valid.

    Raises:
        errors.NotFound: the provider does not exist.
    """

    def narrowed(found: Provider) -> Provider:
        left = tuple(each for each in found.sites if each not in sites)
        return msgspec.structs.replace(found, sites=left, at_desk=found.at_desk and not at_desk)

    return _change_one(name, narrowed)


def remove(name: str) -> None:
    """Delete a provider and its client secret.

    Accounts stay, but no one can sign in to them through the provider.

    Raises:
        errors.NotFound: the provider does not exist.
    """
    gone: list[Provider] = []

    def change(found: list[Provider]) -> list[Provider]:
        if not gone or any(each in found for each in gone):
            gone[:] = [chosen(name, found)]
        return [each for each in found if each not in gone]

    _change(change)


def renew(secret: str) -> bool:
    """Re-encrypt the client secrets under the current `SECRET`. Return whether any changed."""

    def renewed(found: list[Provider]) -> list[Provider]:
        fresh = [encryption.renewed(each.secret, _PURPOSE, secret) or each.secret for each in found]
        return [
            msgspec.structs.replace(each, secret=text)
            for each, text in zip(found, fresh, strict=True)
        ]

    known = list(every())
    if renewed(known) == known:
        return False
    _change(renewed)
    return True


def _change_one(name: str, change: Callable[[Provider], Provider]) -> Provider:
    changed: list[Provider] = []

    def one(found: list[Provider]) -> list[Provider]:
        changed[:] = [change(chosen(name, found))]
        return [changed[0] if each.name == name else each for each in found]

    _change(one)
    return changed[0]


def _change(change: Callable[[list[Provider]], list[Provider]]) -> None:
    def body() -> None:
        found = list(every())
        before = _sites(found)  # `change` may change the list
        changed = sorted(change(found), key=lambda each: each.name)
        content = msgspec.json.encode(changed).decode()
        row = account_rows.ProvidersRow(key=account_rows.providers_key(), providers=content)
        transactions.apply(ownership.Writes(_OWNER, put=(row,)))
        after = _sites(changed)
        site_settings.mark_providers({site: site in after for site in before ^ after})

    transactions.transaction(body)


def _sites(given: Collection[Provider]) -> set[str]:
    return {site for each in given for site in each.sites}


def _checked_issuer(issuer: str) -> str:
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
