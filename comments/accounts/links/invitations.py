"""Give roles through invitation links, and let people choose new passwords through reset links.

An invitation gives roles to the person who accepts it; it can be bound to one mail address. A reset
link lets the owner of one account choose a password. Only authorized people create these links.
Each link is shown or mailed once and works once. The content of a reset link's token is:

    reset   JSON [account, mark, whether it removes the second factor]

`Account.reset` is the mark of the account's latest reset link. The mark is cleared when the link is
used or the password is changed some other way. Links from older releases have no mark and are
refused; such links were valid for only a day.

Only an invitation made by an operator can create the first owner, and only if the service has never
had an owner. The first visitor never becomes the owner automatically. An invitation bound to an
address can be accepted only by the account that has this address, or by a new account. A new
account gets the address, which the invitation confirms. The first owner can enter an address, which
nobody has confirmed: the account gets mail there, but the address does not lead to the account.

A reset replaces only the password: it requires the authenticator's code, unless an operator made
the link to remove the second factor too. The attempts to use a reset link are counted in the same
way as sign-in attempts.
"""

import contextlib
import secrets
from datetime import datetime, timedelta
from typing import NamedTuple

import msgspec

from comments import errors
from comments.accounts import accounts, identities, security_log, sessions
from comments.accounts.links import one_time_links
from comments.accounts.passwords import credentials, password_login
from comments.accounts.security_log import SecurityEvent
from comments.domain import decoders
from comments.domain.crypto import encryption
from comments.domain.moderation import roles
from comments.domain.text.addresses import mail_addresses
from comments.events import backlog, mail_jobs, outbox
from comments.store import ownership, reads, transactions
from comments.store.models import account_rows

_OWNER = "accounts"
TERM = timedelta(days=7)
RESET_TERM = timedelta(days=1)
_FIRST_TERM = timedelta(days=1)  # For the first owner's link, which each start replaces
_BOUND = "invited address"
_MAILED = "mailed invitation"
OWNER = roles.Grant(roles.Role.OWNER, roles.SERVICE)


class Invitation(msgspec.Struct, frozen=True):
    """An invitation and the roles that it gives.

    If `address` is set, only the owner of that address can accept the invitation. If `first` is
    set, the invitation creates the first owner.
    """

    grants: tuple[roles.Grant, ...]
    address: str = ""
    first: bool = False


class PendingInvitation(NamedTuple):
    """An invitation that nobody has accepted.

    `address` is the address to which the invitation is bound, shortened so that only people who
    know it recognize it, or "".
    """

    id: str
    grants: tuple[roles.Grant, ...]
    address: str
    expires: datetime


class MailedInvitation(msgspec.Struct, frozen=True, array_like=True):
    """The encrypted content of a mail job for an invitation: its token and its address."""

    token: str
    address: str


class Introduced(msgspec.Struct, frozen=True):
    """A person without an account whom a provider has identified, and their display name."""

    name: str
    identity: identities.Identity


class _Reset(msgspec.Struct, frozen=True, array_like=True):
    """The content of a reset link's token."""

    account: str
    mark: str
    removes_second_factor: bool = False


class PasswordReset(msgspec.Struct, frozen=True):
    """The input from a reset page: the new password and the authenticator's code.

    `browser` is the token of the browser's earlier session.
    """

    password: str
    code: str = ""
    browser: str = ""


class SignUpForm(msgspec.Struct, frozen=True):
    """The data that a new person enters. `login` may be "" if the invitation has an address.

    Only the first owner may enter an `address`.
    """

    name: str
    login: str
    password: str
    address: str = ""


def invite(invitation: Invitation, *, secret: str, now: datetime, term: timedelta = TERM) -> str:
    """Create an invitation and return its token.

    Raises:
        errors.BadInput: the address is not one plain address.
    """
    address = invitation.address
    if address:
        mail_addresses.check(address)
        address = encryption.seal(address, _BOUND, secret, now=now)
    content = msgspec.json.encode(msgspec.structs.replace(invitation, address=address)).decode()
    purpose = one_time_links.LinkPurpose.INVITATION
    return one_time_links.issue(purpose, content, secret, now=now, term=term)


def send(token: str, address: str, *, secret: str, now: datetime) -> None:
    """Queue the mail with an invitation's link, for the address that can accept the invitation."""
    content = msgspec.json.encode(MailedInvitation(token, address)).decode()
    job = mail_jobs.InvitationMail(encryption.seal(content, _MAILED, secret, now=now))
    event = outbox.mail_id(mail_jobs.tag(job), secrets.token_hex(16))
    row = outbox.follow(outbox.EventKind.MAIL, event, mail_jobs.encode(job), due=now)
    transactions.transaction(lambda: transactions.apply(outbox.follow_up_writes([row])))
    backlog.tell(event)


def open_mailed(sealed: str, *, secret: str, now: datetime) -> MailedInvitation:
    """Decrypt the content of a mail job for an invitation.

    Raises:
        errors.BadLink: the content is not valid, or the invitation has expired.
    """
    text = encryption.unseal(sealed, _MAILED, secret, now=now, term=TERM)
    return decoders.json(MailedInvitation).decode(text)


def list_pending(*, secret: str, now: datetime) -> list[PendingInvitation]:
    """List the invitations that can still be accepted, the first to expire first.

    Invitations from releases that did not index the purpose of tickets are not listed.
    """
    awaiting = []
    for made in one_time_links.list_unused(one_time_links.LinkPurpose.INVITATION, now=now):
        # An address that cannot be decrypted belongs to an invitation that no longer works.
        with contextlib.suppress(errors.BadLink):
            invitation = _decode(made.content, secret, now)
            shown = mail_addresses.shorten(invitation.address)
            awaiting.append(PendingInvitation(made.id, invitation.grants, shown, made.expires))
    return awaiting


def withdraw(invitation: str) -> None:
    """Delete the invitation with this id, so that nobody can accept it.

    Raises:
        errors.BadLink: there is no such invitation, or it was accepted.
    """
    one_time_links.withdraw(invitation, one_time_links.LinkPurpose.INVITATION)


def link(base: str, page: str, token: str) -> str:
    """Return a link whose fragment contains a one-time token; browsers never send the fragment."""
    return f"{base.rstrip('/')}/{page}#{token}"


def first_owner_link(url: str, *, secret: str, now: datetime) -> str:
    """Make a one-time link for the first owner; return "" if the service has ever had an owner."""
    if accounts.is_owned():
        return ""
    token = invite(Invitation((OWNER,), first=True), secret=secret, now=now, term=_FIRST_TERM)
    return link(url, "admin/welcome", token)


def accept(
    token: str, form: SignUpForm, cause: security_log.Cause, *, browser: str
) -> sessions.Session:
    """Create an account from an invitation, and begin a session for it.

    `browser` is the token of the browser's earlier session, which is ended.

    Raises:
        errors.BadLink: the invitation is not valid, was used, or has expired.
        errors.BadInput: the form has no sign-in name and the invitation has no address, or the
            password or the address is not allowed.
        errors.Conflict: an account with this name or address already exists.
    """
    hashed = credentials.check_and_hash(form.password, form.login, form.address)
    login = identities.of_login(form.login) if form.login else None
    newcomer = accounts.NewAccount(
        id=accounts.new_id(),
        name=accounts.clean_name(form.name),
        identities=(login,) if login else (),
        login=login.subject if login else "",
        address=mail_addresses.check(form.address) if form.address else "",
        password=hashed,
    )
    return _join(token, newcomer, cause, browser=browser)


def accept_introduced(
    token: str, somebody: Introduced, cause: security_log.Cause, *, browser: str
) -> sessions.Session:
    """Create an account from an invitation for a person identified by a provider, and sign them in.

    Raises:
        errors.BadLink: the invitation is not valid, was used, or has expired.
        errors.Conflict: the person or the address already has an account.
    """
    newcomer = accounts.NewAccount(accounts.new_id(), somebody.name, (somebody.identity,))
    return _join(token, newcomer, cause, browser=browser)


def _join(
    token: str, newcomer: accounts.NewAccount, cause: security_log.Cause, *, browser: str
) -> sessions.Session:
    """Create an account with an invitation's roles, and begin a session for it."""
    attempt, session = one_time_links.new_token(), sessions.new_token(newcomer.id)
    secret, now = cause.secret, cause.now

    def body() -> sessions.Session:
        invitation, used = _invitation_writes(token, attempt, secret, now)
        known = list(newcomer.identities)
        if invitation.address:
            known.append(identities.of_address(invitation.address))
        if not known:
            raise errors.BadInput("login", "required")
        if _is_first_owner(invitation, newcomer.id):
            known.append(identities.FIRST_OWNER)
        elif newcomer.address:
            raise errors.BadInput("email", "unknown-field")
        whole = msgspec.structs.replace(
            newcomer,
            identities=tuple(known),
            address=invitation.address or newcomer.address,
            grants=invitation.grants,
        )
        row, joined = accounts.creation_writes(whole, secret=secret, now=now)
        begun = sessions.begin_writes(session, row, secret, now=now)
        transactions.apply(used, joined, begun)
        security_log.append(newcomer.id, cause, SecurityEvent.JOINED)
        return sessions.Session(accounts.record(row), session)

    accepted = transactions.transaction(body)
    sessions.end(browser, secret)
    return accepted


def accept_as(account: str, token: str, cause: security_log.Cause) -> accounts.Account:
    """Give an existing account the roles of an invitation.

    Raises:
        errors.BadLink: the invitation is not valid, was used, or has expired.
        errors.Forbidden: the invitation is bound to an address that the account does not have.
        errors.Conflict: the invitation is for the first owner, but there has already been one.
        errors.NotFound: the account does not exist.
    """
    attempt, secret, now = one_time_links.new_token(), cause.secret, cause.now

    def body() -> accounts.Account:
        invitation, used = _invitation_writes(token, attempt, secret, now)
        row = reads.get(account_rows.account_key(account))
        if row is None:
            raise errors.NotFound("account", account)
        if invitation.address:
            bound = identities.of_address(invitation.address).names(secret)
            if set(bound).isdisjoint(row.identities):
                raise errors.Forbidden("wrong-invitation")
        if _is_first_owner(invitation, account):
            transactions.apply(_owner_writes(row))
        accounts.add_grants(row, invitation.grants)
        transactions.apply(used, ownership.Writes(_OWNER, put=(row,)))
        security_log.append(account, cause, SecurityEvent.ROLES)
        return accounts.record(row)

    return transactions.transaction(body)


def issue_reset(
    account: accounts.Account, cause: security_log.Cause, *, removes_second_factor: bool = False
) -> str:
    """Create a reset link for an account and return the link's token.

    Raises:
        errors.NotFound: the account does not exist.
    """
    content = _Reset(account.id, accounts.new_epoch(), removes_second_factor)
    credentials.note_reset(account.id, content.mark, cause)
    encoded = msgspec.json.encode(content).decode()
    purpose = one_time_links.LinkPurpose.RESET
    return one_time_links.issue(purpose, encoded, cause.secret, now=cause.now, term=RESET_TERM)


def reset_password(
    token: str, choice: PasswordReset, cause: security_log.Cause
) -> sessions.Session:
    """Set a new password with a reset token, end all sessions, and sign in.

    Raises:
        errors.BadLink: the token is not valid, used, expired or replaced by a later one, or the
            account no longer exists.
        errors.BadInput: the password is not allowed, or the authenticator's code is wrong.
        errors.TooMany: there were too many attempts.
    """
    attempt, made = one_time_links.new_token(), one_time_links.new_token()
    fresh = accounts.new_epoch()
    secret, now = cause.secret, cause.now
    row, _, _ = _reset_writes(token, attempt, secret, now)
    known = accounts.record(row)
    hashed = credentials.check_and_hash(
        choice.password, *accounts.login_and_address(known, secret, now=now)
    )
    if known.has_totp:
        password_login.count(f"account:{known.id}", cause)

    def body() -> sessions.Session:
        row, reset, used = _reset_writes(token, attempt, secret, now, own=fresh)
        if row.epoch != fresh:  # If equal, an earlier run committed but its response was lost
            events = _prove(row, reset, choice.code, secret, now)
            row.populate(password=hashed, reset="", epoch=fresh)
            security_log.append(reset.account, cause, SecurityEvent.PASSWORD, *events)
            if reset.removes_second_factor:
                # Somebody else may have added them.
                keys = accounts.keys_below(reset.account, "Passkey")
                transactions.apply(ownership.Writes(_OWNER, delete=tuple(keys)))
        session = f"{reset.account}.{made}"
        begun = sessions.begin_writes(session, row, secret, now=now)
        transactions.apply(used, begun, ownership.Writes(_OWNER, put=(row,)))
        return sessions.Session(accounts.record(row), session)

    renewed = transactions.transaction(body)
    sessions.end(choice.browser, secret)
    return renewed


def _reset_writes(
    token: str, attempt: str, secret: str, now: datetime, *, own: str = ""
) -> tuple[account_rows.AccountRow, _Reset, ownership.Writes]:
    """Return a reset link's account, its content, and the writes that mark the link as used.

    `own` is the epoch that an earlier run of the caller's transaction would have set.

    Raises:
        errors.BadLink: the link is not valid, used, expired or replaced, or its account no longer
            exists.
    """
    content, used = one_time_links.use_writes(
        token, one_time_links.LinkPurpose.RESET, attempt, secret, now=now
    )
    try:
        reset = decoders.json(_Reset).decode(content)
    except msgspec.DecodeError as error:
        raise errors.BadLink from error  # A link from an older release
    row = reads.get(account_rows.account_key(reset.account))
    if row is None or (row.reset != reset.mark and row.epoch != own):
        raise errors.BadLink
    return row, reset, used


def _prove(
    row: account_rows.AccountRow, reset: _Reset, code: str, secret: str, now: datetime
) -> tuple[SecurityEvent, ...]:
    """Check an account's second factor, or remove it if the reset link was made to do so.

    Return what the security log must note about it.

    Raises:
        errors.BadInput: the code is wrong.
    """
    if reset.removes_second_factor:
        had_totp = bool(row.totp)
        row.populate(totp="", totp_step=0, recovery=[])
        return (SecurityEvent.AUTHENTICATOR_REMOVED,) if had_totp else ()
    try:
        return password_login.use_code(row, code, secret, now)
    except password_login.Wrong as error:
        raise errors.BadInput("code", "wrong-totp-code") from error


def _invitation_writes(
    token: str, attempt: str, secret: str, now: datetime
) -> tuple[Invitation, ownership.Writes]:
    content, used = one_time_links.use_writes(
        token, one_time_links.LinkPurpose.INVITATION, attempt, secret, now=now
    )
    return _decode(content, secret, now), used


def _decode(content: str, secret: str, now: datetime) -> Invitation:
    """Decode the content of an invitation's ticket, and decrypt its address.

    Raises:
        errors.BadLink: the address was encrypted under a different secret.
    """
    invitation = decoders.json(Invitation).decode(content)
    if not invitation.address:
        return invitation
    address = encryption.unseal(invitation.address, _BOUND, secret, now=now)
    return msgspec.structs.replace(invitation, address=address)


def _is_first_owner(invitation: Invitation, account: str) -> bool:
    """In the transaction that accepts an invitation, return whether it creates the first owner.

    Raises:
        errors.Conflict: the invitation is only for the first owner, and there has already been one.
    """
    if not invitation.first and OWNER not in invitation.grants:
        return False
    there = reads.get(account_rows.identity_key(identities.FIRST_OWNER.name("")))
    is_first = there is None or there.account == account
    if invitation.first and not is_first:
        raise errors.Conflict("owner-exists")
    return is_first


def _owner_writes(row: account_rows.AccountRow) -> ownership.Writes:
    """Mark an account as the first owner's in its row, and return the write of the marker row."""
    name = identities.FIRST_OWNER.name("")
    row.identities = list(dict.fromkeys((*row.identities, name)))
    marker = account_rows.IdentityRow(key=account_rows.identity_key(name), account=row.key.id())
    return ownership.Writes(_OWNER, put=(marker,))
