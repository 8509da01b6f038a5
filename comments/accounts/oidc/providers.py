"""The OpenID Connect providers that this service knows, and who may use which.

Owns the kind Providers, one row for the service:

    Providers  key: "service"
               providers: JSON, a list of `Provider`

What must stay true:

- The client's secret is stored sealed, and shown by nothing.
- An `issuer` is what a provider's own documents call it, to the letter: people are known by it and
  their `sub` there (`identities.at_issuer`), so a provider that is taken away and added again under
  another name knows them, and one with another issuer knows nobody.
- Readers of a site, and owners and moderators, use the providers that an operator offers them.
"""

import re
from collections.abc import Callable, Collection
from datetime import datetime
from urllib.parse import urlsplit

import msgspec

from comments import errors
from comments.domain.crypto import encryption
from comments.store import ownership, reads, transactions
from comments.store.models import account_rows, comment_rows

_OWNER = "accounts"
_PURPOSE = "provider's secret"
MOST = 10  # of the service
_NAME = re.compile(r"[a-z0-9-]{1,31}")
_LONGEST_TITLE = 40
_LONGEST_ISSUER = 200
_LONGEST = 500  # characters of a client's id and secret


class Provider(msgspec.Struct, frozen=True):
    """A provider as stored: `name` is ours, `title` what people read, `secret` is sealed."""

    name: str
    title: str
    issuer: str
    client: str
    secret: str
    created: datetime
    sites: tuple[str, ...] = ()
    at_desk: bool = False


class OfferedProvider(msgspec.Struct, frozen=True):
    """A provider as readers know it."""

    name: str
    title: str


class Registration(msgspec.Struct, frozen=True):
    """What an operator says of a provider, the client's secret as it is."""

    name: str
    title: str
    issuer: str
    client: str
    secret: str


def checked(given: Registration, secret: str, *, now: datetime) -> Provider:
    """A provider that nobody may use yet.

    Raises:
        errors.BadInput: a value cannot be one.
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
    """The client's secret.

    Raises:
        errors.BadLink: it was stored under another secret of the service.
    """
    return encryption.unseal(provider.secret, _PURPOSE, secret, now=now)


def every() -> tuple[Provider, ...]:
    """All providers, by name."""
    row = reads.get(account_rows.providers_key())
    return () if row is None else msgspec.json.decode(row.providers, type=tuple[Provider, ...])


def of_site(site: str) -> tuple[Provider, ...]:
    """Those that readers of a site may use."""
    return tuple(each for each in every() if site in each.sites)


def of_desk() -> tuple[Provider, ...]:
    """Those that owners and moderators may use."""
    return tuple(each for each in every() if each.at_desk)


def chosen(name: str, among: Collection[Provider]) -> Provider:
    """One of several, by name.

    Raises:
        errors.NotFound: it is none of them.
    """
    found = next((each for each in among if each.name == name), None)
    if found is None:
        raise errors.NotFound("provider", name[:100])
    return found


def add(provider: Provider) -> None:
    """Know one more provider.

    Raises:
        errors.Conflict: there is one of that name, or of that issuer, or as many as there may be.
    """

    def change(found: list[Provider]) -> list[Provider]:
        others = [each for each in found if each != provider]  # our own commit, its answer lost
        if any(provider.name == each.name for each in others):
            raise errors.Conflict("provider-exists", value=provider.name)
        if any(provider.issuer == each.issuer for each in others):
            raise errors.Conflict("provider-exists", value=provider.issuer)
        if len(others) >= MOST:
            raise errors.Conflict("too-many-providers", limit=MOST)
        return [*others, provider]

    _change(change)


def offer(name: str, sites: Collection[str], *, at_desk: bool) -> Provider:
    """Let readers of these sites use a provider, and those who look after comments, if `at_desk`.

    Raises:
        errors.NotFound: there is no such provider, or no such site.
    """

    def widened(found: Provider) -> Provider:
        for site in sites:
            if not site or reads.get(comment_rows.site_key(site)) is None:
                raise errors.NotFound("site", site)
        offered = tuple(sorted({*found.sites, *sites}))
        return msgspec.structs.replace(found, sites=offered, at_desk=found.at_desk or at_desk)

    return _change_one(name, widened)


def withdraw(name: str, sites: Collection[str], *, at_desk: bool) -> Provider:
    """Let them use it no more. Who came by it stays signed in until his token or session ends.

    Raises:
        errors.NotFound: there is no such provider.
    """

    def narrowed(found: Provider) -> Provider:
        left = tuple(each for each in found.sites if each not in sites)
        return msgspec.structs.replace(found, sites=left, at_desk=found.at_desk and not at_desk)

    return _change_one(name, narrowed)


def remove(name: str) -> None:
    """Forget a provider and the client's secret. Accounts stay, and lead nowhere by it.

    Raises:
        errors.NotFound: there is none.
    """
    gone: list[Provider] = []

    def change(found: list[Provider]) -> list[Provider]:
        if not gone or any(each in found for each in gone):
            gone[:] = [chosen(name, found)]
        return [each for each in found if each not in gone]

    _change(change)


def renew(secret: str) -> bool:
    """Seal the clients' secrets under the current `SECRET`; whether one was not."""

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
        changed = sorted(change(list(every())), key=lambda each: each.name)
        content = msgspec.json.encode(changed).decode()
        row = account_rows.Providers(key=account_rows.providers_key(), providers=content)
        transactions.apply(ownership.Writes(_OWNER, put=(row,)))

    transactions.transaction(body)


def _checked_issuer(issuer: str) -> str:
    """An issuer, as it stands in a provider's documents: it is compared to the letter."""
    problem = errors.BadInput("issuer", "not-a-url")
    try:
        parts = urlsplit(issuer)
    except ValueError as error:
        raise problem from error
    is_plain = issuer.isascii() and issuer.isprintable() and " " not in issuer
    if not is_plain or len(issuer) > _LONGEST_ISSUER or parts.query or parts.fragment:
        raise problem
    if parts.scheme not in {"https", "http"} or not parts.hostname or parts.username is not None:
        raise problem  # that it is https, and leads to the Internet, whoever asks it sees to
    return issuer
