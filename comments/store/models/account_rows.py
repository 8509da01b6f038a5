"""Define the kinds and keys for people who sign in: accounts, identities, sessions and links.

The module also defines the kinds for site keys and OpenID Connect providers, which vouch for
people. Only the package `accounts` writes these kinds.
"""

from datetime import UTC

from google.cloud import ndb

from comments.store.models import schema


class AccountRow(schema.StoredRow):
    """A person who signs in. `address` and `totp` are encrypted; `password` is a hash, or empty.

    `grants` contains roles, each as "{role} {site}"; an account with any role is `staff`.
    `identities` contains the key names of this account's Identity rows. `epoch` is random; changing
    it ends all sessions and tokens. `reset` is the mark of the only valid reset link, or "" if
    there is none.
    """

    name = schema.TextProperty(required=True)
    login = schema.TextProperty(default="")
    address = schema.TextProperty(default="")
    password = schema.TextProperty(default="")
    totp = schema.TextProperty(default="")
    totp_step = schema.IntegerProperty(indexed=False, default=0)
    grants = schema.TextProperty(repeated=True)
    staff = schema.BooleanProperty(default=False)
    identities = schema.TextProperty(repeated=True)
    epoch = schema.TextProperty(required=True)
    reset = schema.TextProperty(default="")
    created = schema.DateTimeProperty(indexed=False, tzinfo=UTC)


class IdentityRow(schema.StoredRow):
    """A name, an address or a person at a provider that identifies exactly one account."""

    account = schema.TextProperty(required=True)


class SessionRow(schema.StoredRow):
    """A browser in which an account is signed in. `epoch` is the account's `epoch` at sign-in."""

    epoch = schema.TextProperty(required=True)
    created = schema.DateTimeProperty(indexed=False, tzinfo=UTC)
    seen = schema.DateTimeProperty(indexed=False, tzinfo=UTC)


class ModerationSessionRow(schema.StoredRow):
    """A page of a site where a moderator decides about comments.

    `origin` is the page's origin, and `epoch` the account's `epoch` at the beginning.
    """

    site = schema.StringProperty(required=True)
    origin = schema.TextProperty(required=True)
    epoch = schema.TextProperty(required=True)
    created = schema.DateTimeProperty(indexed=False, tzinfo=UTC)
    seen = schema.DateTimeProperty(indexed=False, tzinfo=UTC)


class TicketRow(schema.StoredRow):
    """A one-time link: its token allows one action.

    `used` identifies the attempt that used the link.
    """

    purpose = schema.TextProperty(required=True)
    content = schema.TextProperty(default="")
    expires = schema.DateTimeProperty(tzinfo=UTC)
    used = schema.TextProperty(default="")


class SiteKeysRow(schema.StoredRow):
    """The keys with which a site signs tokens for its readers, as JSON."""

    keys = schema.TextProperty(default="[]")


class ProvidersRow(schema.StoredRow):
    """The OpenID Connect providers of this service, as JSON."""

    providers = schema.TextProperty(default="[]")


def providers_key() -> ndb.Key:
    """Return the key of the only Providers row."""
    return schema.RowKey(ProvidersRow, "service")


def site_keys_key(site: str) -> ndb.Key:
    return schema.RowKey(SiteKeysRow, site)


def account_key(account: str) -> ndb.Key:
    return schema.RowKey(AccountRow, account)


def identity_key(name: str) -> ndb.Key:
    return schema.RowKey(IdentityRow, name)


def session_key(account: str, name: str) -> ndb.Key:
    return schema.RowKey(SessionRow, name, parent=account_key(account))


def moderation_session_key(account: str, name: str) -> ndb.Key:
    return schema.RowKey(ModerationSessionRow, name, parent=account_key(account))


def ticket_key(name: str) -> ndb.Key:
    return schema.RowKey(TicketRow, name)
