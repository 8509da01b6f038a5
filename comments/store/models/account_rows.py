"""Define the kinds and keys for people who sign in: accounts, identities, sessions and links.

The module also defines the kinds for site keys and OpenID Connect providers, which vouch for
people. Only the package `accounts` writes these kinds.
"""

from comments.store.models import schema


class AccountRow(schema.StoredRow):
    """A person who signs in. `address` and `totp` are encrypted; `password` is a hash, or empty.

    `grants` contains roles, each as "{role} {site}"; an account with any role is `staff`.
    `identities` contains the key names of this account's Identity rows. `epoch` is random; changing
    it ends all sessions and tokens. `recovery` contains the hashes of recovery codes, and "" for
    each used code. `reset` is the mark of the only valid reset link, or "" if
    there is none. `visited` is when the current visit of the console began, and `visited_before`
    when the visit before it began (`accounts/sessions`).
    """

    name = schema.text(required=True)
    login = schema.text(default="")
    address = schema.text(default="")
    password = schema.text(default="")
    totp = schema.text(default="")
    totp_step = schema.integer(indexed=False, default=0)
    recovery = schema.texts()
    grants = schema.texts()
    staff = schema.boolean(default=False)
    identities = schema.texts()
    epoch = schema.text(required=True)
    reset = schema.text(default="")
    created = schema.time(indexed=False)
    visited = schema.time(indexed=False)
    visited_before = schema.time(indexed=False)


class IdentityRow(schema.StoredRow):
    """An identifier of exactly one account: a name, an address, or a person at a provider."""

    account = schema.text(required=True)


class SessionRow(schema.StoredRow):
    """A browser in which an account is signed in. `epoch` is the account's `epoch` at sign-in."""

    epoch = schema.text(required=True)
    created = schema.time(indexed=False)
    seen = schema.time(indexed=False)


class ModerationSessionRow(schema.StoredRow):
    """A page of a site where a moderator decides about comments.

    `origin` is the page's origin, and `epoch` is the account's `epoch` when the session began.
    """

    site = schema.string(required=True)
    origin = schema.text(required=True)
    epoch = schema.text(required=True)
    created = schema.time(indexed=False)
    seen = schema.time(indexed=False)


class PasskeyRow(schema.StoredRow):
    """A passkey of an account. `credential` and `public_key` are base64url; `party` is the host.

    `sign_count` is the authenticator's number of signatures, or 0 if it does not count.
    """

    name = schema.text(required=True)
    credential = schema.text(required=True)
    public_key = schema.text(required=True)
    sign_count = schema.integer(indexed=False, default=0)
    party = schema.text(required=True)
    created = schema.time(indexed=False)
    used = schema.time(indexed=False)


class SecurityLogRow(schema.StoredRow):
    """The security log of an account: its entries as JSON (`accounts/security_log`).

    `due` is when the oldest entry expires; `language` is that of the browser of the last sign-in.
    """

    entries = schema.text(default="[]")
    due = schema.time(required=True)
    language = schema.text(default="en")


class TicketRow(schema.StoredRow):
    """A one-time link: its token allows one action.

    `used` identifies the attempt that used the link.
    """

    purpose = schema.string(required=True)
    content = schema.text(default="")
    expires = schema.time()
    used = schema.text(default="")


class SiteKeysRow(schema.StoredRow):
    """The keys, as JSON, with which a site signs tokens for its readers."""

    keys = schema.text(default="[]")


class ProvidersRow(schema.StoredRow):
    """The OpenID Connect providers of this service, as JSON."""

    providers = schema.text(default="[]")


def providers_key() -> schema.RowKey:
    """Return the key of the only Providers row."""
    return schema.RowKey(ProvidersRow, "service")


def site_keys_key(site: str) -> schema.RowKey:
    return schema.RowKey(SiteKeysRow, site)


def account_key(account: str) -> schema.RowKey:
    return schema.RowKey(AccountRow, account)


def identity_key(name: str) -> schema.RowKey:
    return schema.RowKey(IdentityRow, name)


def session_key(account: str, name: str) -> schema.RowKey:
    return schema.RowKey(SessionRow, name, parent=account_key(account))


def moderation_session_key(account: str, name: str) -> schema.RowKey:
    return schema.RowKey(ModerationSessionRow, name, parent=account_key(account))


def passkey_key(account: str, name: str) -> schema.RowKey:
    return schema.RowKey(PasskeyRow, name, parent=account_key(account))


def security_log_key(account: str) -> schema.RowKey:
    return schema.RowKey(SecurityLogRow, account)


def link_key(name: str) -> schema.RowKey:
    return schema.RowKey(TicketRow, name)
