"""People who sign in: their accounts, what leads to one, their sessions, one-time tickets.

And who may say that somebody is who he says: keys of sites, and providers. Kinds and keys; written
by `accounts` only, and drawn there.
"""

from datetime import UTC

from google.cloud import ndb

from comments.store.models import schema


class Account(schema.Kind):
    """Somebody. `address` and `totp` are sealed, `password` is a hash, empty for none.

    `grants` are roles, each as "{role} {site}"; who has one is `staff`. `identities` are the key
    names of what leads here. `epoch` is random: whoever changes it ends all sessions and tokens.
    `reset` is the mark of the one reset link that works; empty for none.
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


class Identity(schema.Kind):
    """What leads to an account: a name, an address, somebody at a provider. Never two accounts."""

    account = schema.TextProperty(required=True)


class Session(schema.Kind):
    """One browser in which somebody is signed in. `epoch` is the account's of then."""

    epoch = schema.TextProperty(required=True)
    created = schema.DateTimeProperty(indexed=False, tzinfo=UTC)
    seen = schema.DateTimeProperty(indexed=False, tzinfo=UTC)


class Ticket(schema.Kind):
    """What may be done once by whoever holds its token. `used` says by which attempt it was."""

    purpose = schema.TextProperty(required=True)
    content = schema.TextProperty(default="")
    expires = schema.DateTimeProperty(tzinfo=UTC)
    used = schema.TextProperty(default="")


class SiteKeys(schema.Kind):
    """The keys with which a site signs who its readers are, as JSON."""

    keys = schema.TextProperty(default="[]")


class Providers(schema.Kind):
    """The OpenID Connect providers that this service knows, as JSON."""

    providers = schema.TextProperty(default="[]")


def providers_key() -> ndb.Key:
    """The key of the one row of providers."""
    return ndb.Key(Providers, "service")


def site_keys_key(site: str) -> ndb.Key:
    """The key of a site's keys."""
    return ndb.Key(SiteKeys, site)


def account_key(account: str) -> ndb.Key:
    """The key of an account."""
    return ndb.Key(Account, account)


def identity_key(name: str) -> ndb.Key:
    """The key of what leads to an account."""
    return ndb.Key(Identity, name)


def session_key(account: str, name: str) -> ndb.Key:
    """The key of a session, below its account's."""
    return ndb.Key(Session, name, parent=account_key(account))


def ticket_key(name: str) -> ndb.Key:
    """The key of a ticket."""
    return ndb.Key(Ticket, name)
