"""People who sign in: their accounts, what leads to one, their sessions, one-time tickets.

And who may say that somebody is who he says: keys of sites, and providers. Kinds and keys; written
by `accounts` only, and drawn there.
"""

from datetime import UTC

from google.cloud import ndb


class Account(ndb.Model):
    """Somebody. `address` and `totp` are sealed, `password` is a hash, empty for none.

    `grants` are roles, each as "{role} {site}"; who has one is `staff`. `identities` are the key
    names of what leads here. `epoch` is random: whoever changes it ends all sessions and tokens.
    `reset` is the mark of the one reset link that works; empty for none.
    """

    name = ndb.TextProperty(required=True)
    login = ndb.TextProperty(default="")
    address = ndb.TextProperty(default="")
    password = ndb.TextProperty(default="")
    totp = ndb.TextProperty(default="")
    totp_step = ndb.IntegerProperty(indexed=False, default=0)
    grants = ndb.TextProperty(repeated=True)
    staff = ndb.BooleanProperty(default=False)
    identities = ndb.TextProperty(repeated=True)
    epoch = ndb.TextProperty(required=True)
    reset = ndb.TextProperty(default="")
    created = ndb.DateTimeProperty(indexed=False, tzinfo=UTC)


class Identity(ndb.Model):
    """What leads to an account: a name, an address, somebody at a provider. Never two accounts."""

    account = ndb.TextProperty(required=True)


class Session(ndb.Model):
    """One browser in which somebody is signed in. `epoch` is the account's of then."""

    epoch = ndb.TextProperty(required=True)
    created = ndb.DateTimeProperty(indexed=False, tzinfo=UTC)
    seen = ndb.DateTimeProperty(indexed=False, tzinfo=UTC)


class Ticket(ndb.Model):
    """What may be done once by whoever holds its token. `used` says by which attempt it was."""

    purpose = ndb.TextProperty(required=True)
    content = ndb.TextProperty(default="")
    expires = ndb.DateTimeProperty(tzinfo=UTC)
    used = ndb.TextProperty(default="")


class SiteKeys(ndb.Model):
    """The keys with which a site signs who its readers are, as JSON."""

    keys = ndb.TextProperty(default="[]")


class Providers(ndb.Model):
    """The OpenID Connect providers that this service knows, as JSON."""

    providers = ndb.TextProperty(default="[]")


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
