"""Change the mail address of an account, after its owner has confirmed a link at the new address.

The link's encrypted content is [account, address, epoch of the account]. Each change of how the
account is protected changes the epoch, and so does the use of the link: it works once, and not
after a change of the password. Epochs are random, so the link works only for the account that
requested it, and a stranger at a mistyped address gains nothing. The old address gets a notice.

Only the person who confirms learns that another account has the address: the response to a request
is the same for every address.
"""

import secrets
from datetime import datetime, timedelta

import msgspec

from comments import errors
from comments.accounts import accounts, identities, security_log
from comments.accounts.links import email_login
from comments.domain import decoders
from comments.domain.crypto import encryption
from comments.domain.text.addresses import mail_addresses
from comments.events import backlog, mail_jobs, outbox
from comments.limits import rate_limits
from comments.store import ownership, reads, transactions
from comments.store.models import account_rows

_OWNER = "accounts"
TERM = timedelta(days=1)
_LINK = "account address link"


class AddressLink(msgspec.Struct, frozen=True, array_like=True):
    """The content of a link."""

    account: str
    address: str
    epoch: str


def request(account: accounts.Account, address: str, cause: security_log.Cause) -> None:
    """Mail a link to an account's new address, unless the mailbox has had too many such mails.

    Raises:
        errors.BadInput: the address is not one plain address.
        errors.Conflict: this service sends no mail.
        errors.TooMany: the network made too many requests.
    """
    secret, now = cause.secret, cause.now
    job = mail_jobs.AddressMail(link_key(account, mail_addresses.check(address), cause))
    if not cause.sends_mail:
        raise errors.Conflict("no-mail")
    event = outbox.mail_id(mail_jobs.tag(job), secrets.token_hex(16))
    mine = rate_limits.Network(email_login.PER_NETWORK, cause.network, secret)
    mailbox = mail_addresses.mailbox(address)
    theirs = rate_limits.RateLimitBucket(email_login.PER_ADDRESS, mailbox, secret)

    def body() -> bool:
        rate_limits.read(mine, theirs, now=now)
        if mine.is_empty:
            raise errors.TooMany(retry_after=mine.wait(now))
        transactions.apply(mine.count_writes())
        if theirs.is_empty:
            return False
        row = outbox.follow(outbox.EventKind.MAIL, event, mail_jobs.encode(job), due=now)
        transactions.apply(theirs.count_writes(), outbox.follow_up_writes([row]))
        return True

    if transactions.transaction(body):
        backlog.tell(event)


def link_key(account: accounts.Account, address: str, cause: security_log.Cause) -> str:
    """Return the encrypted content of a link."""
    content = msgspec.json.encode(AddressLink(account.id, address, account.epoch)).decode()
    return encryption.seal(content, _LINK, cause.secret, now=cause.now)


def open_link(token: str, *, secret: str, now: datetime) -> AddressLink:
    """Decrypt the content of a link.

    Raises:
        errors.BadLink: the link is not valid, or has expired.
    """
    return decoders.json(AddressLink).decode(
        encryption.unseal(token, _LINK, secret, now=now, term=TERM)
    )


def confirm(account: str, token: str, cause: security_log.Cause) -> accounts.Account:
    """Give the signed-in account the address of a link.

    Raises:
        errors.BadLink: the link is not valid, used, expired, or for another account.
        errors.Conflict: another account has the address.
    """
    link = open_link(token, secret=cause.secret, now=cause.now)
    return set_address(account, link.address, cause, epoch=link.epoch)


def set_address(
    account: str, address: str, cause: security_log.Cause, *, epoch: str = ""
) -> accounts.Account:
    """Set an account's confirmed address, or remove it if it is ""; end all sessions.

    Raises:
        errors.BadInput: the address is not one plain address.
        errors.BadLink: the account no longer has this `epoch`.
        errors.Conflict: another account has the address.
        errors.NotFound: the account does not exist.
    """
    secret, fresh = cause.secret, accounts.new_epoch()
    names = identities.of_address(mail_addresses.check(address)).names(secret) if address else ()

    def body() -> accounts.Account:
        row = reads.get(account_rows.account_key(account))
        if row is None:
            raise errors.NotFound("account", account)
        if row.epoch == fresh:  # An earlier run committed, but its response was lost
            return accounts.record(row)
        if epoch and row.epoch != epoch:
            raise errors.BadLink
        others = reads.get_multi([account_rows.identity_key(name) for name in names])
        if any(other is not None and other.account != account for other in others):
            raise errors.Conflict("address-taken")
        gone = [name for name in row.identities if name.startswith(f"{identities.MAIL}:")]
        security_log.append(account, cause, security_log.SecurityEvent.ADDRESS, address=row.address)
        row.populate(
            identities=[name for name in row.identities if name not in gone] + [*names[:1]],
            address=accounts.seal_address(address, secret, cause.now),
            epoch=fresh,
        )
        led = [
            account_rows.IdentityRow(key=account_rows.identity_key(name), account=account)
            for name in names[:1]
        ]
        deleted = tuple(account_rows.identity_key(name) for name in gone if name not in names[:1])
        transactions.apply(ownership.Writes(_OWNER, put=(row, *led), delete=deleted))
        return accounts.record(row)

    return transactions.transaction(body)
