"""Let people sign in with passkeys (WebAuthn Level 3) instead of a password and a code.

Owns the kind Passkey, below its account: the name, the credential's id and public key, the relying
party, the number of signatures, and when the passkey was made and last used.

A passkey alone signs in, as on GitHub: the authenticator also checks the person (by fingerprint,
face or PIN), so it proves two factors at once, and no page of another host can use it. Only
accounts with a password can have passkeys, so a passkey is never the only way to sign in.

Each ceremony begins with a challenge (`one_time_links`). It belongs to the browser that requested
it, because the link's token is in a cookie that scripts cannot read (`web/sign_in/passkey_pages`),
and it is used up by the first answer, right or wrong. A challenge for a new passkey also belongs to
the account that entered the password, as long as its sessions last.

`webauthn` is imported on first use, because it takes over 100 ms and few processes need it.
"""

import contextlib
import hashlib
import ipaddress
import re
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import urlsplit

import msgspec

from comments import errors
from comments.accounts import accounts, security_log, sessions
from comments.accounts.links import one_time_links
from comments.accounts.security_log import SecurityEvent
from comments.domain import decoders
from comments.domain.crypto import keyed_hashes
from comments.domain.text import cleaning
from comments.limits import rate_limits
from comments.store import ownership, reads, transactions
from comments.store.models import account_rows

if TYPE_CHECKING:
    from webauthn.helpers import structs

_OWNER = "accounts"
_ACCOUNT = re.compile("[a-z2-7]{26}")  # The id of an account (`accounts.new_id`)
TERM = timedelta(minutes=5)
MOST = 10  # Maximum number of an account
PER_NETWORK = rate_limits.Limit("passkey challenges", 30, timedelta(minutes=15))
LONGEST_ANSWER = 20_000  # Characters; answers without attestation have about 1,000


class RelyingParty(NamedTuple):
    """The host and the origin for which passkeys are made: those of the service's own address."""

    id: str
    origin: str


class Passkey(NamedTuple):
    """A passkey as its owner sees it."""

    id: str
    name: str
    created: datetime
    used: datetime | None


class Options(NamedTuple):
    """The options for the browser, as JSON, and the token of the challenge."""

    json: str
    token: str


class WrongPasskey(errors.Forbidden):
    """A passkey's answer is not valid. The error does not say why."""

    code = "wrong-passkey"


class _Challenge(msgspec.Struct, frozen=True):
    """The content of a challenge's link. For a sign-in, `account` and `epoch` are empty."""

    challenge: str
    account: str = ""
    epoch: str = ""


def relying_party(service_url: str) -> RelyingParty | None:
    """Return the relying party of a service, or None if browsers offer it no passkeys.

    Browsers offer passkeys only with HTTPS or on localhost, and never for an IP address.
    """
    url = urlsplit(service_url)
    host = url.hostname or ""
    is_local = host == "localhost" or host.endswith(".localhost")
    if not host or not (url.scheme == "https" or (url.scheme == "http" and is_local)):
        return None
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return RelyingParty(host, f"{url.scheme}://{url.netloc}")
    return None


def list_passkeys(account: str) -> list[Passkey]:
    """Return an account's passkeys, oldest first."""
    return [Passkey(row.key.id(), row.name, row.created, row.used) for row in _rows(account)]


def begin_registration(
    account: accounts.Account, party: RelyingParty, cause: security_log.Cause
) -> Options:
    """Make a challenge for a new passkey of an account that has just entered its password.

    Raises:
        errors.Conflict: the account has `MOST` passkeys.
    """
    import webauthn  # noqa: PLC0415 - see the module
    from webauthn.helpers import base64url_to_bytes, structs  # noqa: PLC0415 - see the module

    rows = _rows(account.id)
    if len(rows) >= MOST:
        raise errors.Conflict("too-many-passkeys", maximum=MOST)
    options = webauthn.generate_registration_options(
        rp_id=party.id,
        rp_name=party.id,
        user_id=account.id.encode(),
        user_name=account.login or account.name,
        user_display_name=account.name,
        timeout=int(TERM.total_seconds()) * 1000,
        authenticator_selection=structs.AuthenticatorSelectionCriteria(
            resident_key=structs.ResidentKeyRequirement.REQUIRED,
            user_verification=structs.UserVerificationRequirement.REQUIRED,
        ),
        exclude_credentials=[
            structs.PublicKeyCredentialDescriptor(base64url_to_bytes(row.credential))
            for row in rows
        ],
    )
    purpose = one_time_links.LinkPurpose.NEW_PASSKEY
    challenge = _Challenge(_text(options.challenge), account.id, account.epoch)
    return _issue(options, purpose, challenge, cause)


def register(
    session: sessions.Session,
    token: str,
    name: str,
    answer: str,
    party: RelyingParty,
    cause: security_log.Cause,
) -> accounts.Account:
    """Add a passkey to the account of a session, and end all of its sessions.

    Raises:
        WrongPasskey: the answer is not valid.
        errors.BadInput: the name is not allowed.
        errors.Conflict: the account has `MOST` passkeys.
    """
    import webauthn  # noqa: PLC0415 - see the module

    shown, account = cleaning.tidy_name(name), session.account
    asked = _use(token, one_time_links.LinkPurpose.NEW_PASSKEY, cause)
    if (asked.account, asked.epoch) != (account.id, account.epoch):
        raise WrongPasskey
    with _refusing():
        made = webauthn.verify_registration_response(
            credential=_check_length(answer),
            expected_challenge=_bytes(asked.challenge),
            expected_rp_id=party.id,
            expected_origin=party.origin,
            require_user_verification=True,
        )
    fresh = account_rows.PasskeyRow(
        key=account_rows.passkey_key(account.id, _digest(made.credential_id)),
        name=shown,
        credential=_text(made.credential_id),
        public_key=_text(made.credential_public_key),
        sign_count=made.sign_count,
        party=party.id,
        created=cause.now,
    )

    def apply(row: account_rows.AccountRow) -> None:
        others = [other for other in _rows(account.id) if other.key != fresh.key]
        if len(others) >= MOST:
            raise errors.Conflict("too-many-passkeys", maximum=MOST)
        row.epoch = accounts.new_epoch()
        transactions.apply(ownership.Writes(_OWNER, put=(fresh,)))

    return accounts.change(account.id, apply, cause, SecurityEvent.PASSKEY_ADDED)


def begin_sign_in(party: RelyingParty, cause: security_log.Cause) -> Options:
    """Make a challenge for a sign-in.

    Raises:
        errors.TooMany: the network has requested too many challenges.
    """
    import webauthn  # noqa: PLC0415 - see the module
    from webauthn.helpers import structs  # noqa: PLC0415 - see the module

    if not rate_limits.take(PER_NETWORK, cause.network, cause.secret, now=cause.now):
        raise errors.TooMany(retry_after=int(PER_NETWORK.window.total_seconds()))
    options = webauthn.generate_authentication_options(
        rp_id=party.id,
        timeout=int(TERM.total_seconds()) * 1000,
        user_verification=structs.UserVerificationRequirement.REQUIRED,
    )
    purpose = one_time_links.LinkPurpose.PASSKEY
    return _issue(options, purpose, _Challenge(_text(options.challenge)), cause)


def sign_in(
    token: str, answer: str, party: RelyingParty, cause: security_log.Cause, *, browser: str
) -> sessions.Session:
    """Begin a session for the account whose passkey signed the challenge.

    `browser` is the token of the browser's earlier session, which is ended.

    Raises:
        WrongPasskey: the answer is not valid.
    """
    import webauthn  # noqa: PLC0415 - see the module
    from webauthn.helpers import parse_authentication_credential_json  # noqa: PLC0415

    asked = _use(token, one_time_links.LinkPurpose.PASSKEY, cause)
    with _refusing():
        given = parse_authentication_credential_json(_check_length(answer))
        account = (given.response.user_handle or b"").decode()
        if not _ACCOUNT.fullmatch(account):
            raise WrongPasskey
        key = account_rows.passkey_key(account, _digest(given.raw_id))
    attempt = one_time_links.new_token()
    session = f"{account}.{attempt}"

    def body() -> sessions.Session:
        row, passkey = reads.get_multi([account_rows.account_key(account), key])
        if row is None or passkey is None or passkey.party != party.id:
            raise WrongPasskey
        if reads.get(sessions.KIND.keys(session, cause.secret)[0]) is not None:
            # An earlier run committed, but its response was lost.
            return sessions.Session(accounts.record(row), session)
        with _refusing():
            checked = webauthn.verify_authentication_response(
                credential=given,
                expected_challenge=_bytes(asked.challenge),
                expected_rp_id=party.id,
                expected_origin=party.origin,
                credential_public_key=_bytes(passkey.public_key),
                credential_current_sign_count=passkey.sign_count,
                require_user_verification=True,
            )
        passkey.populate(sign_count=checked.new_sign_count, used=cause.now)
        begun = sessions.begin_writes(session, row, cause.secret, now=cause.now)
        transactions.apply(begun, ownership.Writes(_OWNER, put=(passkey,)))
        security_log.append(account, cause, SecurityEvent.SIGNED_IN)
        return sessions.Session(accounts.record(row), session)

    begun = transactions.transaction(body)
    sessions.end(browser, cause.secret)
    return begun


def remove(account: str, passkey: str, cause: security_log.Cause) -> accounts.Account:
    """Remove a passkey, and end all sessions of its account.

    Raises:
        errors.NotFound: the account has no such passkey.
    """

    def apply(row: account_rows.AccountRow) -> None:
        key = account_rows.passkey_key(account, passkey)
        if not passkey or reads.get(key) is None:
            raise errors.NotFound("passkey", passkey)
        row.epoch = accounts.new_epoch()
        transactions.apply(ownership.Writes(_OWNER, delete=(key,)))

    return accounts.change(account, apply, cause, SecurityEvent.PASSKEY_REMOVED)


def _issue(
    options: "structs.PublicKeyCredentialCreationOptions"
    " | structs.PublicKeyCredentialRequestOptions",
    purpose: one_time_links.LinkPurpose,
    challenge: _Challenge,
    cause: security_log.Cause,
) -> Options:
    import webauthn  # noqa: PLC0415 - see the module

    content = msgspec.json.encode(challenge).decode()
    token = one_time_links.issue(purpose, content, cause.secret, now=cause.now, term=TERM)
    return Options(webauthn.options_to_json(options), token)


def _use(token: str, purpose: one_time_links.LinkPurpose, cause: security_log.Cause) -> _Challenge:
    """Use up a challenge, before the answer is checked."""
    attempt = one_time_links.new_token()

    def body() -> str:
        content, used = one_time_links.use_writes(
            token, purpose, attempt, cause.secret, now=cause.now
        )
        transactions.apply(used)
        return content

    try:
        content = transactions.transaction(body)
    except errors.BadLink as error:
        raise WrongPasskey from error
    return decoders.json(_Challenge).decode(content)


def _rows(account: str) -> list[account_rows.PasskeyRow]:
    names = reads.names("Passkey", ancestor=account_rows.account_key(account))
    rows = reads.get_multi([account_rows.passkey_key(account, name) for name in names])
    return sorted((row for row in rows if row is not None), key=lambda row: row.created)


@contextlib.contextmanager
def _refusing() -> Iterator[None]:
    """Raise `WrongPasskey` for every answer that the library does not accept or cannot read."""
    from webauthn.helpers import exceptions  # noqa: PLC0415 - see the module

    try:
        yield
    except (exceptions.WebAuthnException, ValueError, TypeError, KeyError) as error:
        raise WrongPasskey from error


def _check_length(answer: str) -> str:
    if len(answer) > LONGEST_ANSWER:
        raise WrongPasskey
    return answer


def _digest(credential: bytes) -> str:
    """Return the name of a credential's row."""
    return keyed_hashes.text(hashlib.sha256(credential).digest())


def _text(value: bytes) -> str:
    from webauthn.helpers import bytes_to_base64url  # noqa: PLC0415 - see the module

    return bytes_to_base64url(value)


def _bytes(text: str) -> bytes:
    from webauthn.helpers import base64url_to_bytes  # noqa: PLC0415 - see the module

    return base64url_to_bytes(text)
