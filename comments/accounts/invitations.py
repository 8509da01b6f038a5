"""Invitations: how somebody comes to a role, and how he comes back who lost his password.

Owns what these tickets hold. An invitation gives roles to whoever accepts it: to nobody in
particular, or to the owner of one mail address. A reset lets the owner of one account choose a
password. Both are made by who may give them, shown or mailed once, and used once.

    reset   JSON [account, mark, whether it removes the second factor]

`Account.reset` is the mark of the last reset link that was made, until that is used or the password
is changed otherwise. Links of older releases are refused: they have no mark, and were good for a
day.

What must stay true:

- The first owner is made by a ticket that an operator made, never by being the first to come. Of
  tickets that are `first`, one works at most, and none once the service had an owner.
- An invitation that is bound to an address is accepted by an account of that address only: by a new
  one, which gets it confirmed by this, or by the one that has it.
- Of an account's reset links only the last one works, and none after a password was chosen.
- A reset replaces the password and nothing else: the code of the authenticator is asked for, unless
  an operator made the link to remove the second factor, too. Tries are counted as for sign-in.
"""

from datetime import datetime, timedelta

import msgspec

from comments import errors
from comments.accounts import accounts, identities, one_time_links, sessions
from comments.accounts.passwords import credentials, password_login
from comments.domain import roles
from comments.domain.crypto import encryption
from comments.domain.text import mail_addresses
from comments.store import ownership, reads, transactions
from comments.store.models import account_rows

_OWNER = "accounts"
TERM = timedelta(days=7)
RESET_TERM = timedelta(days=1)
_BOUND = "invited address"
OWNER = roles.Grant(roles.Role.OWNER, roles.SERVICE)


class Invitation(msgspec.Struct, frozen=True):
    """What an accepted invitation gives. `address` is the only one that may accept it.

    `first` says that it makes the first owner.
    """

    grants: tuple[roles.Grant, ...]
    address: str = ""
    first: bool = False


class Introduced(msgspec.Struct, frozen=True):
    """Somebody new whom a provider names, and what others are to call him."""

    name: str
    identity: identities.Identity


class _Reset(msgspec.Struct, frozen=True, array_like=True):
    """What the ticket of a reset holds."""

    account: str
    mark: str
    removes_second_factor: bool = False


class Choice(msgspec.Struct, frozen=True):
    """What somebody chooses and shows with a reset link, and from where.

    `browser` is the token of the session that the browser had.
    """

    password: str
    code: str = ""
    network: str = ""
    browser: str = ""


class Form(msgspec.Struct, frozen=True):
    """What somebody new says of himself. `login` may be empty where the address is known."""

    name: str
    login: str
    password: str


def invite(invitation: Invitation, *, secret: str, now: datetime, term: timedelta = TERM) -> str:
    """Make an invitation; its token.

    Raises:
        errors.BadInput: the address is not one plain address.
    """
    address = invitation.address
    if address:
        mail_addresses.check(address)
        address = encryption.seal(address, _BOUND, secret, now=now)
    content = msgspec.json.encode(msgspec.structs.replace(invitation, address=address))
    ticket = one_time_links.Ticket(one_time_links.Purpose.INVITATION, content.decode())
    return one_time_links.issue(ticket, secret, now=now, term=term)


def accept(token: str, form: Form, *, browser: str, secret: str, now: datetime) -> sessions.Session:
    """Make an account of an invitation, and sign it in. `browser` is the token it had before.

    Raises:
        errors.BadLink: the invitation is none, was used, or is too old.
        errors.BadInput: the form names nobody, or the password cannot be one.
        errors.Conflict: the name, or the address, has an account.
    """
    hashed = credentials.checked_password(form.password, form.login)
    login = identities.of_login(form.login) if form.login else None
    newcomer = accounts.NewAccount(
        id=accounts.new_id(),
        name=accounts.checked_name(form.name),
        identities=(login,) if login else (),
        login=login.subject if login else "",
        password=hashed,
    )
    return _joined(token, newcomer, browser=browser, secret=secret, now=now)


def accept_introduced(
    token: str, somebody: Introduced, *, browser: str, secret: str, now: datetime
) -> sessions.Session:
    """Make an account of an invitation that is led to by somebody at a provider; sign it in.

    Raises:
        errors.BadLink: the invitation is none, was used, or is too old.
        errors.Conflict: he, or the address, has an account.
    """
    newcomer = accounts.NewAccount(accounts.new_id(), somebody.name, (somebody.identity,))
    return _joined(token, newcomer, browser=browser, secret=secret, now=now)


def _joined(
    token: str, newcomer: accounts.NewAccount, *, browser: str, secret: str, now: datetime
) -> sessions.Session:
    """Make an account of an invitation, with what that gives, and sign it in."""
    attempt, session = one_time_links.new_token(), sessions.new_token(newcomer.id)

    def body() -> sessions.Session:
        invitation, used = _use(token, attempt, secret, now)
        known = list(newcomer.identities)
        if invitation.address:
            known.append(identities.of_address(invitation.address))
        if not known:
            raise errors.BadInput("login", "required")
        if _makes_first_owner(invitation, newcomer.id):
            known.append(identities.FIRST_OWNER)
        whole = msgspec.structs.replace(
            newcomer,
            identities=tuple(known),
            address=invitation.address,
            grants=invitation.grants,
        )
        row, joined = accounts.creating(whole, secret=secret, now=now)
        begun = sessions.beginning(session, row, secret, now=now)
        transactions.apply(used, joined, begun)
        return sessions.Session(accounts.record(row), session)

    accepted = transactions.transaction(body)
    sessions.end(browser, secret)
    return accepted


def accept_as(account: str, token: str, *, secret: str, now: datetime) -> accounts.Account:
    """Give an account what an invitation gives.

    Raises:
        errors.BadLink: the invitation is none, was used, or is too old.
        errors.Forbidden: it is bound to an address that the account does not have.
        errors.Conflict: it makes the first owner, and there was one.
        errors.NotFound: there is no such account.
    """
    attempt = one_time_links.new_token()

    def body() -> accounts.Account:
        invitation, used = _use(token, attempt, secret, now)
        row = reads.get(account_rows.account_key(account))
        if row is None:
            raise errors.NotFound("account", account)
        if invitation.address:
            bound = identities.of_address(invitation.address).names(secret)
            if set(bound).isdisjoint(row.identities):
                raise errors.Forbidden("wrong-invitation")
        if _makes_first_owner(invitation, account):
            transactions.apply(_owning(row))
        accounts.given(row, invitation.grants)
        transactions.apply(used, ownership.Writes(_OWNER, put=(row,)))
        return accounts.record(row)

    return transactions.transaction(body)


def reset(
    account: accounts.Account, *, secret: str, now: datetime, removes_second_factor: bool = False
) -> str:
    """Make a ticket with which an account's owner chooses a password; its token.

    Raises:
        errors.NotFound: there is no such account.
    """
    content = _Reset(account.id, accounts.new_epoch(), removes_second_factor)
    credentials.note_reset(account.id, content.mark)
    ticket = one_time_links.Ticket(
        one_time_links.Purpose.RESET, msgspec.json.encode(content).decode()
    )
    return one_time_links.issue(ticket, secret, now=now, term=RESET_TERM)


def renew(token: str, choice: Choice, *, secret: str, now: datetime) -> sessions.Session:
    """Choose a password with a reset's token, which ends every session, and sign in.

    Raises:
        errors.BadLink: the ticket is none, was used, or is too old, a later one was made, or the
            account is gone.
        errors.BadInput: the password cannot be one, or the authenticator's code is wrong.
        errors.TooMany: there were too many wrong codes.
    """
    attempt, fresh, made = (
        one_time_links.new_token(),
        accounts.new_epoch(),
        one_time_links.new_token(),
    )
    row, _, _ = _resetting(token, attempt, secret, now)
    known = accounts.record(row)
    hashed = credentials.checked_password(
        choice.password, *accounts.known_of(known, secret, now=now)
    )
    if known.has_totp:
        password_login.count(f"account:{known.id}", choice.network, secret, now=now)

    def body() -> sessions.Session:
        row, reset, used = _resetting(token, attempt, secret, now, own=fresh)
        if row.epoch != fresh:  # else our own commit, whose answer was lost
            _prove(row, reset, choice.code, secret, now)
            row.populate(password=hashed, reset="", epoch=fresh)
        session = f"{reset.account}.{made}"
        begun = sessions.beginning(session, row, secret, now=now)
        transactions.apply(used, begun, ownership.Writes(_OWNER, put=(row,)))
        return sessions.Session(accounts.record(row), session)

    renewed = transactions.transaction(body)
    sessions.end(choice.browser, secret)
    return renewed


def _resetting(
    token: str, attempt: str, secret: str, now: datetime, *, own: str = ""
) -> tuple[account_rows.Account, _Reset, ownership.Writes]:
    """The account that a reset link is for, what the link holds, and what uses it up.

    `own` is the epoch that a lost commit of the caller's would have given the account.

    Raises:
        errors.BadLink: it is no reset link, or not one that works any more.
    """
    content, used = one_time_links.using(
        token, one_time_links.Purpose.RESET, attempt, secret, now=now
    )
    try:
        reset = msgspec.json.decode(content, type=_Reset)
    except msgspec.DecodeError as error:
        raise errors.BadLink from error  # a link of an older release
    row = reads.get(account_rows.account_key(reset.account))
    if row is None or (row.reset != reset.mark and row.epoch != own):
        raise errors.BadLink
    return row, reset, used


def _prove(row: account_rows.Account, reset: _Reset, code: str, secret: str, now: datetime) -> None:
    """Check the second factor of an account, or remove it where the link says so.

    Raises:
        errors.BadInput: the code is wrong.
    """
    if reset.removes_second_factor:
        row.populate(totp="", totp_step=0)
        return
    try:
        password_login.use_code(row, code, secret, now)
    except password_login.Wrong as error:
        raise errors.BadInput("code", "wrong-totp-code") from error


def _use(
    token: str, attempt: str, secret: str, now: datetime
) -> tuple[Invitation, ownership.Writes]:
    content, used = one_time_links.using(
        token, one_time_links.Purpose.INVITATION, attempt, secret, now=now
    )
    invitation = msgspec.json.decode(content, type=Invitation)
    if not invitation.address:
        return invitation, used
    address = encryption.unseal(invitation.address, _BOUND, secret, now=now)
    return msgspec.structs.replace(invitation, address=address), used


def _makes_first_owner(invitation: Invitation, account: str) -> bool:
    """Whether nobody owned this service before; in the transaction that makes an owner.

    Raises:
        errors.Conflict: the invitation is for the first owner only, and there was one.
    """
    if not invitation.first and OWNER not in invitation.grants:
        return False
    there = reads.get(account_rows.identity_key(identities.FIRST_OWNER.name("")))
    is_first = there is None or there.account == account
    if invitation.first and not is_first:
        raise errors.Conflict("owner-exists")
    return is_first


def _owning(row: account_rows.Account) -> ownership.Writes:
    """Note whose the service is first."""
    name = identities.FIRST_OWNER.name("")
    row.populate(identities=list(dict.fromkeys((*row.identities, name))))
    marker = account_rows.Identity(key=account_rows.identity_key(name), account=row.key.id())
    return ownership.Writes(_OWNER, put=(marker,))
