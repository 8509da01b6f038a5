"""Let owners and moderators sign in through a provider, and link providers to their accounts.

Invariant: Signing in through a provider never gives a role
(test_provider_login.py::test_signing_in_by_a_provider_gives_nobody_a_role).

An identity leads to an account with a role only in two cases: the account's owner linked the
identity while signed in, after entering the password, or the owner accepted an invitation with it.

If an account uses an authenticator, a sign-in through a provider also requires the authenticator's
code. Until the session begins, a one-time link stores the sign-in and is valid for `TERM`. An
identity that belongs to another account is refused, never moved.
"""

from datetime import datetime, timedelta
from typing import NamedTuple

import msgspec

from comments import errors
from comments.accounts import accounts, identities, security_log, sessions
from comments.accounts.links import invitations, one_time_links
from comments.accounts.oidc import oidc_client
from comments.accounts.passwords import password_login
from comments.domain import decoders
from comments.store import ownership, reads, transactions
from comments.store.models import account_rows

_OWNER = "accounts"
TERM = timedelta(minutes=10)


class NotLinked(errors.Forbidden):
    """The identity leads to no account with a role. The error does not mention other accounts."""

    code = "not-linked"


class CodeAsked(NamedTuple):
    """The authenticator's code is required next, together with this token."""

    token: str


class _Step(msgspec.Struct, frozen=True):
    """A sign-in that waits for the authenticator's code: the content of a one-time link."""

    account: str
    epoch: str


def sign_in(
    person: oidc_client.ProviderUser, cause: security_log.Cause, *, browser: str
) -> sessions.Session | CodeAsked:
    """Begin a session for an account with a role, or request the authenticator's code.

    `browser` is the token of the browser's earlier session.

    Raises:
        NotLinked: the person has no account with a role.
    """
    token, secret, now = one_time_links.new_token(), cause.secret, cause.now

    def body() -> accounts.Account | None:
        led = accounts.identity_row(person.identity, secret)
        row = None if led is None else reads.get(account_rows.account_key(led.account))
        if row is None or not row.grants:
            raise NotLinked
        if not row.totp:
            return accounts.record(row)
        step = msgspec.json.encode(_Step(row.key.id(), row.epoch)).decode()
        purpose = one_time_links.LinkPurpose.SECOND_STEP
        transactions.apply(
            one_time_links.issue_writes(token, purpose, step, secret, now=now, term=TERM)
        )
        return None

    account = transactions.transaction(body)
    accounts.rekey(person.identity, secret)
    if account is None:
        return CodeAsked(token)
    begun = sessions.begin(account.id, secret, now=now, cause=cause)
    sessions.end(browser, secret)
    return begun


def finish(token: str, code: str, cause: security_log.Cause, *, browser: str) -> sessions.Session:
    """Complete a sign-in through a provider with the authenticator's code.

    Raises:
        errors.BadLink: the token is not valid, was used or has expired, or the account has changed.
        password_login.Wrong: the code is wrong.
        errors.TooMany: there were too many attempts.
    """
    attempt, made = one_time_links.new_token(), one_time_links.new_token()
    secret, now = cause.secret, cause.now
    held = _read_step(token, attempt, secret, now)
    password_login.count(f"account:{held.account}", cause)

    def body() -> sessions.Session:
        content, used = one_time_links.use_writes(
            token, one_time_links.LinkPurpose.SECOND_STEP, attempt, secret, now=now
        )
        step = decoders.json(_Step).decode(content)
        row = reads.get(account_rows.account_key(step.account))
        session = f"{step.account}.{made}"
        if reads.get(sessions.KIND.keys(session, secret)[0]) is not None and row is not None:
            # An earlier run committed, but its response was lost.
            return sessions.Session(accounts.record(row), session)
        if row is None or row.epoch != step.epoch:
            raise errors.BadLink
        noted = password_login.use_code(row, code, secret, now)
        begun = sessions.begin_writes(session, row, secret, now=now)
        transactions.apply(used, begun, ownership.Writes(_OWNER, put=(row,)))
        security_log.append(step.account, cause, *noted, security_log.SecurityEvent.SIGNED_IN)
        return sessions.Session(accounts.record(row), session)

    begun = transactions.transaction(body)
    sessions.end(browser, secret)
    return begun


def accept(
    token: str,
    person: oidc_client.ProviderUser,
    name: str,
    cause: security_log.Cause,
    *,
    browser: str,
) -> sessions.Session | CodeAsked:
    """Accept an invitation for a person identified by a provider, using their account or a new one.

    Raises:
        errors.BadLink: the invitation is not valid, was used, or has expired.
        errors.BadInput: the account is new and has no valid name.
        errors.Conflict: the invitation is for the first owner, but there has already been one.
        errors.Forbidden: the invitation is bound to an address that the account does not have.
    """
    known = accounts.by_identity(person.identity, cause.secret)
    if known is not None:
        invitations.accept_as(known.id, token, cause)
        return sign_in(person, cause, browser=browser)
    newcomer = invitations.Introduced(accounts.clean_name(name or person.name), person.identity)
    return invitations.accept_introduced(token, newcomer, cause, browser=browser)


def link(
    account: str, epoch: str, person: oidc_client.ProviderUser, cause: security_log.Cause
) -> None:
    """Link a person at a provider to an account.

    Raises:
        errors.Conflict: the person is linked to another account, or the account is already linked
            to a person at this provider.
        errors.Forbidden: the account has changed since the flow began, or no longer exists.
    """
    identity, secret = person.identity, cause.secret
    name = identity.name(secret)

    def body() -> None:
        led = accounts.identity_row(identity, secret)
        row = reads.get(account_rows.account_key(account))
        if row is None or row.epoch != epoch:
            raise errors.Forbidden("not-signed-in")
        if led is not None and led.account == account:
            return
        if led is not None or is_linked(row.identities, identity.provider):
            raise errors.Conflict("identity-taken")
        row.identities = [*row.identities, name]
        marker = account_rows.IdentityRow(key=account_rows.identity_key(name), account=account)
        transactions.apply(ownership.Writes(_OWNER, put=(row, marker)))
        security_log.append(account, cause, security_log.SecurityEvent.PROVIDER_LINKED)

    transactions.transaction(body)


def unlink(account: str, issuer: str, cause: security_log.Cause) -> None:
    """Unlink a provider from an account, and end the account's sessions.

    Raises:
        errors.NotFound: the provider is not linked, or the account does not exist.
    """
    provider = identities.at_issuer(issuer)
    fresh = accounts.new_epoch()

    def body() -> None:
        row = reads.get(account_rows.account_key(account))
        if row is not None and row.epoch == fresh:
            return  # An earlier run committed, but its response was lost
        gone = [] if row is None else [n for n in row.identities if _is_at(n, provider)]
        if not gone:
            raise errors.NotFound("provider", issuer)
        row.populate(identities=[n for n in row.identities if n not in gone], epoch=fresh)
        keys = tuple(account_rows.identity_key(name) for name in gone)
        transactions.apply(ownership.Writes(_OWNER, put=(row,), delete=keys))
        security_log.append(account, cause, security_log.SecurityEvent.PROVIDER_UNLINKED)

    transactions.transaction(body)


def issuers_of(account: str, among: tuple[str, ...]) -> frozenset[str]:
    """Return which of these issuers are linked to an account."""
    row = reads.get(account_rows.account_key(account))
    names = [] if row is None else row.identities
    return frozenset(issuer for issuer in among if is_linked(names, identities.at_issuer(issuer)))


def is_linked(names: list[str], provider: str) -> bool:
    """Return whether one of these identity names belongs to a provider."""
    return any(_is_at(name, provider) for name in names)


def _is_at(name: str, provider: str) -> bool:
    # Split at the last colon: issuers contain colons, digests do not.
    return name.rpartition(":")[0] == provider


def _read_step(token: str, attempt: str, secret: str, now: datetime) -> _Step:
    content, _ = one_time_links.use_writes(
        token, one_time_links.LinkPurpose.SECOND_STEP, attempt, secret, now=now
    )
    return decoders.json(_Step).decode(content)
