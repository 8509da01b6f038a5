"""Create, find, change and delete accounts.

Owns the kinds Account and Identity. Each identity of an account (a sign-in name, a mail address, or
a person at a provider) is a separate entity that stores the account's id.

Invariant: An identity belongs to at most one account, because the transaction that assigns an
identity reads its entity first
(test_accounts.py::test_one_of_many_concurrent_requests_for_a_login_gets_it).

Invariant: Every change to an account's password, authenticator or roles changes its `epoch`, which
ends all sessions and tokens of the account
(test_accounts.py::test_a_role_is_held_until_it_is_revoked_and_a_change_ends_sessions).

`staff` is true if and only if the account has a grant. Only authorized people can give grants,
through `invitations`, the admin console or the command line. The last owner of the service keeps
that role; only an erasure (`personal_data`) removes the account anyway.
"""

import contextlib
import secrets
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime

import msgspec

from comments import errors
from comments.accounts import identities, security_log
from comments.domain import records
from comments.domain.crypto import encryption, keyed_hashes
from comments.domain.ids import author_ids
from comments.domain.moderation import roles, staff_notices
from comments.domain.text import cleaning
from comments.store import ownership, reads, transactions
from comments.store.models import account_rows, schema

_OWNER = "accounts"
_ADDRESS, _TOTP = "account address", "authenticator"
_BELOW = (
    "Session",
    "ModerationSession",
    "Passkey",
)  # Kinds whose rows are stored below their account
AUTHOR = author_ids.ACCOUNT  # The prefix of accounts' author ids
_TAKEN = {identities.LOGIN: "login-taken", identities.MAIL: "address-taken"}


class Account(msgspec.Struct, frozen=True):
    """The account of a person who signs in. Only `id` and `name` may be shown to others.

    `address` is encrypted; `address_of` decrypts it. `recovery_codes` is the number of unused
    recovery codes.
    """

    id: str
    name: str
    login: str
    grants: tuple[roles.Grant, ...]
    has_password: bool
    has_totp: bool
    recovery_codes: int
    address: str
    epoch: str
    created: datetime

    @property
    def author(self) -> str:
        """Return the author id of the account's comments."""
        return f"{AUTHOR}{self.id}"

    @property
    def actor(self) -> records.Actor:
        return records.Actor(self.author, self.name)

    def may(self, right: roles.Right, site: str) -> bool:
        return roles.may(self.grants, right, site)


class NewAccount(msgspec.Struct, frozen=True):
    """The values of an account to create. `password` is a hash, or empty."""

    id: str
    name: str
    identities: tuple[identities.Identity, ...]
    login: str = ""
    address: str = ""
    password: str = ""
    grants: tuple[roles.Grant, ...] = ()


def new_id() -> str:
    return keyed_hashes.text(secrets.token_bytes(16))


def new_epoch() -> str:
    """Return a new random value for `epoch`."""
    return secrets.token_hex(8)


def record(row: account_rows.AccountRow) -> Account:
    return Account(
        id=row.key.id(),
        name=row.name,
        login=row.login,
        grants=_grants(row.grants),
        has_password=bool(row.password),
        has_totp=bool(row.totp),
        recovery_codes=sum(map(bool, row.recovery)),
        address=row.address,
        epoch=row.epoch,
        created=row.created,
    )


def creation_writes(
    newcomer: NewAccount, *, secret: str, now: datetime
) -> tuple[account_rows.AccountRow, ownership.Writes]:
    """Return a new account and the writes that create it. Call this in a transaction.

    Raises:
        errors.Conflict: one of the identities belongs to another account.
    """
    named = [
        (identity, name) for identity in newcomer.identities for name in identity.names(secret)
    ]
    rows = reads.get_multi([account_rows.identity_key(name) for _, name in named])
    for (identity, _), row in zip(named, rows, strict=True):
        if row is not None and row.account != newcomer.id:
            raise errors.Conflict(_TAKEN.get(identity.provider, "account-exists"))
    return unchecked_creation_writes(newcomer, secret=secret, now=now)


def unchecked_creation_writes(
    newcomer: NewAccount, *, secret: str, now: datetime
) -> tuple[account_rows.AccountRow, ownership.Writes]:
    """Return what `creation_writes` returns, for identities that this transaction found free.

    An identity is also free if its account no longer exists.
    """
    names = [identity.name(secret) for identity in newcomer.identities]
    account = account_rows.AccountRow(
        key=account_rows.account_key(newcomer.id),
        name=newcomer.name,
        login=newcomer.login,
        address=seal_address(newcomer.address, secret, now),
        password=newcomer.password,
        grants=[_text(grant) for grant in newcomer.grants],
        staff=bool(newcomer.grants),
        identities=names,
        epoch=new_epoch(),
        created=now,
    )
    led = [
        account_rows.IdentityRow(key=account_rows.identity_key(name), account=newcomer.id)
        for name in names
    ]
    # Use put, not insert: if the response to a commit is lost, the transaction runs again and finds
    # these entities.
    return account, ownership.Writes(_OWNER, put=(account, *led))


def add(newcomer: NewAccount, *, secret: str, now: datetime) -> Account:
    """Create an account.

    Raises:
        errors.Conflict: an identity belongs to another account.
    """

    def body() -> Account:
        row, writes = creation_writes(newcomer, secret=secret, now=now)
        transactions.apply(writes)
        return record(row)

    return transactions.transaction(body)


def get(account: str) -> Account | None:
    """Return the account with this id, or None."""
    row = reads.get(account_rows.account_key(account)) if account else None
    return None if row is None else record(row)


def id_by_identity(identity: identities.Identity, secret: str) -> str:
    """Return the id of an identity's account, or a nonexistent id if the identity has no account.

    The nonexistent id makes callers do the same lookups for an unknown identity as for a known one.
    """
    row = identity_row(identity, secret)
    if row is not None:
        return str(row.account)
    return keyed_hashes.text(keyed_hashes.keyed_digest(secret, "nobody", identity.name(secret)))


def identity_row(identity: identities.Identity, secret: str) -> account_rows.IdentityRow | None:
    """Return an identity's row, which may be stored under the current secret or an older one."""
    rows = reads.get_multi([account_rows.identity_key(name) for name in identity.names(secret)])
    return next((row for row in rows if row is not None), None)


def rekey(identity: identities.Identity, secret: str) -> None:
    """Store an identity under the current secret if it is stored under an older one."""
    name, *before = identity.names(secret)
    if not before:
        return

    def body() -> None:
        led = identity_row(identity, secret)
        row = None if led is None else reads.get(account_rows.account_key(led.account))
        if led is None or row is None or led.key.id() == name:
            return
        row.identities = [name if other in before else other for other in row.identities]
        fresh = account_rows.IdentityRow(key=account_rows.identity_key(name), account=led.account)
        transactions.apply(ownership.Writes(_OWNER, put=(row, fresh), delete=(led.key,)))

    transactions.transaction(body)


def by_identity(identity: identities.Identity, secret: str) -> Account | None:
    """Return the account of an identity, or None."""
    return get(id_by_identity(identity, secret))


def by_text(text: str, secret: str) -> Account:
    """Return the account that has this sign-in name, mail address or id.

    Raises:
        errors.NotFound: the account does not exist.
    """
    account = by_identity(identities.of_text(text), secret) or get(text.removeprefix(AUTHOR))
    if account is None:
        raise errors.NotFound("account", text)
    return account


def staff() -> list[Account]:
    """List the accounts with a role, sorted by name."""
    ids = reads.names("Account", [("staff", "=", True)])
    rows = reads.get_multi([account_rows.account_key(account_id) for account_id in ids])
    members = [record(row) for row in rows if row is not None]
    return sorted(members, key=lambda each: (each.name, each.id))


def names(ids: Iterable[str]) -> dict[str, str]:
    """Return the display names of accounts by id, without accounts that do not exist."""
    rows = reads.get_multi([account_rows.account_key(account) for account in ids])
    return {row.key.id(): row.name for row in rows if row is not None}


def is_owned() -> bool:
    """Return whether this service has ever had an owner."""
    return reads.get(account_rows.identity_key(identities.FIRST_OWNER.name(""))) is not None


def grant(account: str, role: roles.Role | None, site: str, cause: security_log.Cause) -> Account:
    """Set an account's role on a site, or remove the role if `role` is None.

    Raises:
        errors.NotFound: the account does not exist.
        errors.Conflict: the account is the last owner of the service, and would lose that role.
    """

    def apply(row: account_rows.AccountRow) -> None:
        add_grants(row, () if role is None else (roles.Grant(role, site),), instead_of=site)

    return change(account, apply, cause, security_log.SecurityEvent.ROLES)


def change_moderator(
    account: str, role: roles.Role | None, site: str, cause: security_log.Cause
) -> Account:
    """Change the role of a site's moderator, for an owner of the site (`roles.is_moderator_of`).

    Raises:
        errors.NotFound: the account is not such a moderator.
    """

    def apply(row: account_rows.AccountRow) -> None:
        if not roles.is_moderator_of(_grants(row.grants), site):
            raise errors.NotFound("account", account)
        add_grants(row, () if role is None else (roles.Grant(role, site),), instead_of=site)

    return change(account, apply, cause, security_log.SecurityEvent.ROLES)


def add_grants(
    row: account_rows.AccountRow, grants: Iterable[roles.Grant], *, instead_of: str = ""
) -> None:
    """Add grants to a row in place of those for `instead_of`. The caller stores the row."""
    kept = [grant for grant in _grants(row.grants) if grant.site != instead_of]
    _set_grants(row, (*kept, *grants))


def renew(account: str, secret: str) -> bool:
    """Re-encrypt an account's values under the current secret. Return whether any value changed.

    Also store the identity of the account's mail address under the current secret.
    """

    def body() -> bool:
        row = reads.get(account_rows.account_key(account))
        if row is None:
            return False
        address = encryption.reseal(row.address, _ADDRESS, secret)
        key = encryption.reseal(row.totp, _TOTP, secret)
        if not address and not key:
            return False
        row.populate(address=address or row.address, totp=key or row.totp)
        transactions.apply(ownership.Writes(_OWNER, put=(row,)))
        return True

    changed = transactions.transaction(body)
    known = get(account)
    if known is not None and known.address:
        with contextlib.suppress(errors.BadLink):  # The address cannot be decrypted
            address = address_of(known, secret, now=known.created)
            rekey(identities.of_address(address), secret)
    return changed


def end_sessions(account: str, cause: security_log.Cause) -> Account:
    """End all sessions of an account.

    Raises:
        errors.NotFound: the account does not exist.
    """

    def apply(row: account_rows.AccountRow) -> None:
        # Also revoke reset links: anyone who has one could use it to sign in again.
        row.populate(reset="", epoch=new_epoch())

    return change(account, apply, cause, security_log.SecurityEvent.SESSIONS_ENDED)


def keys_below(account: str, *kinds: str) -> list[schema.RowKey]:
    """Return the keys of the rows of some kinds below an account."""
    above = account_rows.account_key(account)
    return [
        schema.RowKey(kind, entity.key.path[-1].name, parent=above)
        for kind in kinds
        for entity in reads.fetch(reads.Query(kind, ancestor=above, keys_only=True))
    ]


def remove(account: str) -> bool:
    """Delete an account with all its rows. Return whether the account existed.

    The account's comments stay, with an author id that no longer has an account. `personal_data`
    erases the comments too.
    """
    below = keys_below(account, *_BELOW)
    first = identities.FIRST_OWNER.name("")

    def body() -> bool:
        row = reads.get(account_rows.account_key(account))
        if row is None:
            return False
        gone = (
            row.key,
            # Keep the record that an owner existed: it makes all invitations for a first owner
            # invalid.
            *(account_rows.identity_key(name) for name in row.identities if name != first),
            *below,
            account_rows.security_log_key(account),
        )
        transactions.apply(ownership.Writes(_OWNER, delete=gone))
        return True

    return transactions.transaction(body)


def leave(identity: str) -> int:
    """Delete an identity, given its key name, and its account if nothing else leads to it.

    An account with a role stays. Return the number of deleted or changed rows.
    """
    led = reads.get(account_rows.identity_key(identity))
    if led is None:
        return 0

    def body() -> bool:
        row = reads.get(account_rows.account_key(led.account))
        if row is not None and set(row.identities) <= {identity} and not row.grants:
            return True
        if row is not None:
            row.identities = [name for name in row.identities if name != identity]
        put = () if row is None else (row,)
        transactions.apply(ownership.Writes(_OWNER, put=put, delete=(led.key,)))
        return False

    if transactions.transaction(body):
        remove(led.account)
    return 1


def dismiss(account: str) -> None:
    """Take all roles from an account and delete it (`remove`).

    Raises:
        errors.NotFound: the account does not exist.
        errors.Conflict: the account is the last owner of the service.
    """

    def body() -> None:
        row = _account_row(account)
        _set_grants(row, ())
        transactions.apply(ownership.Writes(_OWNER, put=(row,)))

    transactions.transaction(body)
    remove(account)


def seal_address(address: str, secret: str, now: datetime) -> str:
    """Encrypt a mail address for storage. An empty address stays empty."""
    return encryption.seal(address, _ADDRESS, secret, now=now) if address else ""


def address_of(account: Account, secret: str, *, now: datetime) -> str:
    """Return an account's mail address, or "" if it has none.

    Raises:
        errors.BadLink: the address was encrypted under a different secret.
    """
    return encryption.unseal(account.address, _ADDRESS, secret, now=now) if account.address else ""


def readable_address(account: Account, secret: str, *, now: datetime) -> str:
    """Return an account's mail address, or "" if there is none or it cannot be decrypted."""
    try:
        return address_of(account, secret, now=now)
    except errors.BadLink:
        return ""


def recipient_address(
    site: str, recipient: staff_notices.StaffRecipient, *, secret: str, now: datetime
) -> str:
    """Return the address of a recipient of a site's mail.

    The address is "" for an account without an address, or without a role on the site.
    """
    if recipient.is_address:
        return recipient.who
    account = get(recipient.who.removeprefix(AUTHOR))
    if account is None or not account.may(roles.Right.MODERATE, site):
        return ""
    return readable_address(account, secret, now=now)


def login_and_address(account: Account, secret: str, *, now: datetime) -> tuple[str, ...]:
    """Return the sign-in name and the address, from which the password must differ."""
    return account.login, readable_address(account, secret, now=now)


def seal_totp(key: str, secret: str, now: datetime) -> str:
    """Encrypt an authenticator's secret for storage."""
    return encryption.seal(key, _TOTP, secret, now=now)


def unseal_totp(stored: str, secret: str, now: datetime) -> str:
    """Decrypt an authenticator's secret.

    Raises:
        errors.BadLink: the authenticator's secret was encrypted under a different secret.
    """
    return encryption.unseal(stored, _TOTP, secret, now=now)


def clean_name(raw: str) -> str:
    """Check and clean the display name of an account with a role.

    A role name is allowed as the display name, because these accounts have roles.

    Raises:
        errors.BadInput: see `cleaning.tidy_name`.
    """
    return cleaning.tidy_name(raw)


def change(
    account: str,
    apply: Callable[[account_rows.AccountRow], None],
    cause: security_log.Cause,
    event: security_log.SecurityEvent,
) -> Account:
    """Change an account's row in a transaction, and note the change in the security log.

    Raises:
        errors.NotFound: the account does not exist.
    """

    def body() -> Account:
        row = _account_row(account)
        apply(row)
        transactions.apply(ownership.Writes(_OWNER, put=(row,)))
        security_log.append(account, cause, event)
        return record(row)

    return transactions.transaction(body)


def _account_row(account: str) -> account_rows.AccountRow:
    row = reads.get(account_rows.account_key(account)) if account else None
    if not isinstance(row, account_rows.AccountRow):
        raise errors.NotFound("account", account)
    return row


def _set_grants(row: account_rows.AccountRow, grants: Iterable[roles.Grant]) -> None:
    """Replace a row's grants. The caller stores the row in the same transaction.

    Raises:
        errors.Conflict: the service would lose its last owner.
    """
    was_owner = _is_service_owner(row)
    texts = [_text(grant) for grant in dict.fromkeys(grants)]
    row.populate(grants=texts, staff=bool(texts), epoch=new_epoch())
    if was_owner and not _is_service_owner(row):
        # The transaction reads the other owners, so two owners cannot remove each other at once.
        ids = reads.names("Account", [("staff", "=", True)])
        keys = [account_rows.account_key(other) for other in ids if other != row.key.id()]
        if not any(
            other is not None and _is_service_owner(other) for other in reads.get_multi(keys)
        ):
            raise errors.Conflict("last-owner")


def _is_service_owner(row: account_rows.AccountRow) -> bool:
    return roles.has(_grants(row.grants), roles.Role.OWNER, roles.SERVICE)


def _text(grant: roles.Grant) -> str:
    return f"{grant.role} {grant.site}"


def _grants(texts: Sequence[str]) -> tuple[roles.Grant, ...]:
    parts = (text.partition(" ") for text in texts)
    return tuple(roles.Grant(roles.Role(role), site) for role, _, site in parts)
