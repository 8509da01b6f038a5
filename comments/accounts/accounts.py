"""Accounts: making them, finding them, what they may do, and removing them.

Owns the kinds Account and Identity. An account is led to by its identities, of which each is an
entity of its own, inserted by the transaction that gives it: so two who ask for one name at once
cannot both get it, and no look-up can give two accounts.

What must stay true:

- Nobody becomes anything by asking: grants come from who may give them (`invitations`, the command
  line), never from what a person says of himself.
- `staff` is true of exactly those with a grant.
- What ends trust (a password, an authenticator, a role, a removal) changes `epoch`, and with it
  ends every session and token of the account, wherever they are held.
"""

import contextlib
import secrets
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime

import msgspec

from comments import errors
from comments.accounts import identities
from comments.domain import author_ids, records, roles
from comments.domain.crypto import encryption, keyed_hashes
from comments.domain.text import cleaning
from comments.store import ownership, reads, transactions
from comments.store.models import account_rows, conversion

_OWNER = "accounts"
_ADDRESS, _TOTP = "account address", "authenticator"
# A comment's author is an account if his id begins so.
AUTHOR = author_ids.ACCOUNT
_TAKEN = {
    identities.LOGIN: "login-taken",
    identities.MAIL: "address-taken",
}


class Account(msgspec.Struct, frozen=True):
    """Somebody who signs in. `login` and everything but `id` and `name` is nobody else's business.

    `address` is sealed (`address_of`).
    """

    id: str
    name: str
    login: str
    grants: tuple[roles.Grant, ...]
    has_password: bool
    has_totp: bool
    address: str
    epoch: str
    created: datetime

    @property
    def author(self) -> str:
        """The id of the author of his comments."""
        return f"{AUTHOR}{self.id}"

    @property
    def actor(self) -> records.Actor:
        """Who he is to those who are told what he did."""
        return records.Actor(self.author, self.name)

    def may(self, right: roles.Right, site: str) -> bool:
        """Whether he may do this on a site."""
        return roles.may(self.grants, right, site)


class NewAccount(msgspec.Struct, frozen=True):
    """Somebody who is to have an account. `password` is a hash; empty for none."""

    id: str
    name: str
    identities: tuple[identities.Identity, ...]
    login: str = ""
    address: str = ""
    password: str = ""
    grants: tuple[roles.Grant, ...] = ()


def new_id() -> str:
    """An id for a newcomer."""
    return keyed_hashes.text(secrets.token_bytes(16))


def new_epoch() -> str:
    """A value that `epoch` never had."""
    return secrets.token_hex(8)


def record(row: account_rows.Account) -> Account:
    """A stored account as a record."""
    return Account(
        id=row.key.id(),
        name=row.name,
        login=row.login,
        grants=_grants(row.grants),
        has_password=bool(row.password),
        has_totp=bool(row.totp),
        address=row.address,
        epoch=row.epoch,
        created=conversion.plain(row.created),
    )


def creating(
    newcomer: NewAccount, *, secret: str, now: datetime
) -> tuple[account_rows.Account, ownership.Writes]:
    """An account and what makes it, in a transaction. Its identities must be nobody's yet.

    Raises:
        errors.Conflict: one of them leads to another account.
    """
    named = [(each, name) for each in newcomer.identities for name in each.names(secret)]
    rows = reads.get_multi([account_rows.identity_key(name) for _, name in named])
    for (each, _), row in zip(named, rows, strict=True):
        if row is not None and row.account != newcomer.id:
            raise errors.Conflict(_TAKEN.get(each.provider, "account-exists"))
    return creating_again(newcomer, secret=secret, now=now)


def creating_again(
    newcomer: NewAccount, *, secret: str, now: datetime
) -> tuple[account_rows.Account, ownership.Writes]:
    """The same for identities that this transaction has read, which lead to nobody who is there."""
    names = [each.name(secret) for each in newcomer.identities]
    account = account_rows.Account(
        key=account_rows.account_key(newcomer.id),
        name=newcomer.name,
        login=newcomer.login,
        address=_sealed(newcomer.address, secret, now),
        password=newcomer.password,
        grants=[_text(grant) for grant in newcomer.grants],
        staff=bool(newcomer.grants),
        identities=names,
        epoch=new_epoch(),
        created=now,
    )
    led = [
        account_rows.Identity(key=account_rows.identity_key(name), account=newcomer.id)
        for name in names
    ]
    # Not inserted: a second run after a lost answer meets its own.
    return account, ownership.Writes(_OWNER, put=(account, *led))


def add(newcomer: NewAccount, *, secret: str, now: datetime) -> Account:
    """Make an account.

    Raises:
        errors.Conflict: an identity leads to another account.
    """

    def body() -> Account:
        row, writes = creating(newcomer, secret=secret, now=now)
        transactions.apply(writes)
        return record(row)

    return transactions.transaction(body)


def get(account: str) -> Account | None:
    """An account by its id."""
    row = reads.get(account_rows.account_key(account)) if account else None
    return None if row is None else record(row)


def id_by_identity(identity: identities.Identity, secret: str) -> str:
    """The id of the account that an identity leads to; one that there is not, if it leads nowhere.

    So whoever looks for the account does the same for every identity.
    """
    row = stored_identity(identity, secret)
    if row is not None:
        return str(row.account)
    return keyed_hashes.text(keyed_hashes.keyed(secret, "nobody", identity.name(secret)))


def stored_identity(identity: identities.Identity, secret: str) -> account_rows.Identity | None:
    """The stored identity, under whichever secret it was stored."""
    rows = reads.get_multi([account_rows.identity_key(each) for each in identity.names(secret)])
    return next((row for row in rows if row is not None), None)


def rekey(identity: identities.Identity, secret: str) -> None:
    """Store an identity that was stored under the old secret under the current one."""
    name, *before = identity.names(secret)
    if not before:
        return

    def body() -> None:
        found = stored_identity(identity, secret)
        row = None if found is None else reads.get(account_rows.account_key(found.account))
        if found is None or row is None or found.key.id() == name:
            return
        row.populate(identities=[name if each in before else each for each in row.identities])
        fresh = account_rows.Identity(key=account_rows.identity_key(name), account=found.account)
        transactions.apply(ownership.Writes(_OWNER, put=(row, fresh), delete=(found.key,)))

    transactions.transaction(body)


def by_identity(identity: identities.Identity, secret: str) -> Account | None:
    """The account that an identity leads to."""
    return get(id_by_identity(identity, secret))


def by_text(text: str, secret: str) -> Account:
    """The account of a sign-in name, an address or an id.

    Raises:
        errors.NotFound: there is none.
    """
    found = by_identity(identities.of_typed(text), secret) or get(text.removeprefix(AUTHOR))
    if found is None:
        raise errors.NotFound("account", text)
    return found


def staff() -> list[Account]:
    """Everybody who has a role, by name."""
    query = reads.Query("Account", [("staff", "=", True)], keys_only=True)
    ids = [entity.key.path[-1].name for entity in reads.fetch(query)]
    rows = reads.get_multi([account_rows.account_key(each) for each in ids])
    found = [record(row) for row in rows if row is not None]
    return sorted(found, key=lambda each: (each.name, each.id))


def is_owned() -> bool:
    """Whether this service ever had an owner."""
    return reads.get(account_rows.identity_key(identities.FIRST_OWNER.name(""))) is not None


def grant(account: str, role: roles.Role | None, site: str) -> Account:
    """Give somebody a role on a site instead of the one he has there; None for none.

    Raises:
        errors.NotFound: there is no such account.
    """

    def apply(row: account_rows.Account) -> None:
        given(row, () if role is None else (roles.Grant(role, site),), instead_of=site)

    return change(account, apply)


def given(
    row: account_rows.Account, grants: Iterable[roles.Grant], *, instead_of: str = ""
) -> None:
    """Note grants in a row, which is then to be put."""
    kept = [each for each in _grants(row.grants) if each.site != instead_of]
    texts = [_text(each) for each in dict.fromkeys((*kept, *grants))]
    row.populate(grants=texts, staff=bool(texts), epoch=new_epoch())


def renew(account: str, secret: str) -> bool:
    """Seal what an account holds under the current secret; whether it was not.

    Its address leads to it under the current secret, too.
    """

    def body() -> bool:
        row = reads.get(account_rows.account_key(account))
        if row is None:
            return False
        address = encryption.renewed(row.address, _ADDRESS, secret)
        key = encryption.renewed(row.totp, _TOTP, secret)
        if not address and not key:
            return False
        row.populate(address=address or row.address, totp=key or row.totp)
        transactions.apply(ownership.Writes(_OWNER, put=(row,)))
        return True

    changed = transactions.transaction(body)
    found = get(account)
    if found is not None and found.address:
        with contextlib.suppress(errors.BadLink):  # sealed under a secret that is gone
            address = address_of(found, secret, now=found.created)
            rekey(identities.of_address(address), secret)
    return changed


def end_sessions(account: str) -> Account:
    """Sign somebody out wherever he is signed in.

    Raises:
        errors.NotFound: there is no such account.
    """

    def apply(row: account_rows.Account) -> None:
        # Anybody who has a reset link could sign in again.
        row.populate(reset="", epoch=new_epoch())

    return change(account, apply)


def remove(account: str) -> bool:
    """Erase an account, what leads to it, and its sessions; whether there was one.

    What was written stays: its authors' ids lead nowhere then. `personal_data` erases that too.
    """
    query = reads.Query("Session", ancestor=account_rows.account_key(account), keys_only=True)
    sessions = [entity.key.path[-1].name for entity in reads.fetch(query)]

    first = identities.FIRST_OWNER.name("")

    def body() -> bool:
        row = reads.get(account_rows.account_key(account))
        if row is None:
            return False
        gone = (
            row.key,
            # That there was an owner stays: the first to come must not become one again.
            *(account_rows.identity_key(name) for name in row.identities if name != first),
            *(account_rows.session_key(account, name) for name in sessions),
        )
        transactions.apply(ownership.Writes(_OWNER, delete=gone))
        return True

    return transactions.transaction(body)


def address_of(account: Account, secret: str, *, now: datetime) -> str:
    """The mail address of an account; empty for none.

    Raises:
        errors.BadLink: it was stored under another secret.
    """
    return encryption.unseal(account.address, _ADDRESS, secret, now=now) if account.address else ""


def readable_address(account: Account, secret: str, *, now: datetime) -> str:
    """The mail address of an account; "" for none, or if its secret is gone."""
    try:
        return address_of(account, secret, now=now)
    except errors.BadLink:
        return ""


def known_of(account: Account, secret: str, *, now: datetime) -> tuple[str, ...]:
    """What others may know of somebody, so that it cannot be the password: login and address."""
    return account.login, readable_address(account, secret, now=now)


def seal_totp(key: str, secret: str, now: datetime) -> str:
    """An authenticator's secret as it is stored."""
    return encryption.seal(key, _TOTP, secret, now=now)


def unseal_totp(stored: str, secret: str, now: datetime) -> str:
    """An authenticator's secret as it is used.

    Raises:
        errors.BadLink: it was stored under another secret.
    """
    return encryption.unseal(stored, _TOTP, secret, now=now)


def checked_name(raw: str) -> str:
    """A name that others see, as it is stored.

    Raises:
        errors.BadInput: see `cleaning.tidy_name`. Who has a role may be called what it is.
    """
    return cleaning.tidy_name(raw)


def change(account: str, apply: Callable[[account_rows.Account], None]) -> Account:
    """Change the row of an account in a transaction.

    Raises:
        errors.NotFound: there is no such account.
    """

    def body() -> Account:
        row = reads.get(account_rows.account_key(account)) if account else None
        if row is None:
            raise errors.NotFound("account", account)
        apply(row)
        transactions.apply(ownership.Writes(_OWNER, put=(row,)))
        return record(row)

    return transactions.transaction(body)


def _sealed(address: str, secret: str, now: datetime) -> str:
    return encryption.seal(address, _ADDRESS, secret, now=now) if address else ""


def _text(grant: roles.Grant) -> str:
    return f"{grant.role} {grant.site}"


def _grants(texts: Sequence[str]) -> tuple[roles.Grant, ...]:
    found = (text.partition(" ") for text in texts)
    return tuple(roles.Grant(roles.Role(role), site) for role, _, site in found)
