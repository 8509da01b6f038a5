"""Double opt-in: nobody gets mail that the owner of the address did not ask for and confirm.

Owns the way from somebody's wish to a subscription, and back. What is asked for is sealed into a
link and mailed to the address; nothing of it is stored but that mail until it is sent. Who follows
the link is shown a page and presses a button: only that stores a subscription. Every mail about
comments carries a link that ends it, by one POST (RFC 8058) or by a button.

What must stay true:

- An answer depends on what was asked, never on what is stored of an address: `ask` does the same
  reads and writes whoever it is. Nobody learns who follows what.
- A mailbox (`mail_addresses.mailbox`) is written to unasked at most `PER_ADDRESS` times a day,
  however many ask; one network may ask `PER_NETWORK` times an hour.
- Those unasked mails say nothing that a stranger chose: no name, no title, no text.
- A link opens for one purpose. One to confirm is good for `TERM` and once: it must not subscribe
  anybody again who unsubscribed since. One to unsubscribe is good for ever, because mail is kept.
"""

import hashlib
import secrets
from datetime import datetime, timedelta
from typing import NamedTuple

import itsdangerous
import msgspec

from comments import errors
from comments.accounts import one_time_links
from comments.domain import records
from comments.domain.crypto import encryption, keyed_hashes, secret_rotation
from comments.domain.languages import catalogue
from comments.domain.text import mail_addresses
from comments.events import backlog, outbox
from comments.events.mail import mail_jobs
from comments.notifications import follower_compaction, follower_lists, subscriptions
from comments.sites import rate_limits, thread_info
from comments.sites.site_request import SiteRequest
from comments.store import ownership, reads, transactions
from comments.store.models import comment_rows

TERM = timedelta(days=2)
PER_ADDRESS = rate_limits.Limit("confirmations", 3, timedelta(days=1))
PER_NETWORK = rate_limits.Limit("subscriptions", 10, timedelta(hours=1))
_LINK = "flatthread unsubscribe 1"
_LONGEST_LINK = 1_000
_ADDRESS, _CONFIRM = "address", "confirm"


class Request(msgspec.Struct, frozen=True, array_like=True):
    """What somebody asked for, as it stands in a link. `thread` is a key name.

    `id` tells one link from another. Links of releases before it have none, and are good for
    `TERM`: all of them that ask for the same are used up together.
    """

    email: str
    site: str
    thread: str
    author: str
    replies: bool
    id: str = ""

    @property
    def wanted(self) -> subscriptions.Wanted:
        """What to subscribe to."""
        return subscriptions.Wanted(self.site, self.thread, self.author, self.replies)


class Unsubscription(NamedTuple):
    """What a link to unsubscribe is about."""

    subscriber: str
    names: tuple[str, ...]


def ask(
    email: str,
    request: SiteRequest,
    *,
    thread: records.ThreadName | None,
    author: str,
    replies: bool,
) -> None:
    """Have an address asked whether its owner wants this.

    Args:
        email: where to.
        request: the website whose comments it is about, and from where.
        thread: to be told of its new comments; None for not.
        author: who asks, empty for nobody we know. His own comments are not told him.
        replies: to be told of replies to the author.

    Raises:
        errors.BadInput: the address is not one plain address.
        errors.NotFound: nobody wrote in the thread yet.
        errors.Conflict: this service sends no mail.
        errors.TooMany: the network asked too often.
        errors.Overloaded: the store did not answer in time.
    """
    settings, now = request.settings, request.now
    if not settings.sends_mail:
        raise errors.Conflict("no-mail")
    email = mail_addresses.check(email)
    if thread is not None and thread_info.get(thread) is None:
        raise errors.NotFound("thread", thread.id)
    name = "" if thread is None else comment_rows.thread_key_name(thread)
    wanted = Request(email, request.site.id, name, author, replies, secrets.token_hex(16))
    link = encryption.seal(msgspec.json.encode(wanted).decode(), _CONFIRM, settings.secret, now=now)
    detail = mail_jobs.encode(mail_jobs.ConfirmationMail(link))
    event = outbox.mail_id("asked", secrets.token_hex(16))
    mine = rate_limits.Network(PER_NETWORK, request.sender.network, settings.secret)
    theirs = rate_limits.Bucket(PER_ADDRESS, mail_addresses.mailbox(email), settings.secret)

    def body() -> bool:
        rate_limits.read(mine, theirs, now=now)
        if mine.is_empty:
            raise errors.TooMany(retry_after=mine.wait(now))
        writes = [mine.take()]
        is_sent = not theirs.is_empty
        if is_sent:
            row = outbox.follow(outbox.Kind.MAIL, event, detail, due=now)
            writes += [theirs.take(), outbox.written([row])]
        transactions.apply(*writes)
        return is_sent

    if transactions.transaction(body):
        backlog.tell(event)


def request_of(link: str, *, secret: str, now: datetime) -> Request:
    """What a link asks to confirm.

    Raises:
        errors.BadLink: it is none of ours, or too old.
    """
    text = encryption.unseal(link, _CONFIRM, secret, now=now, term=TERM)
    return msgspec.json.decode(text, type=Request)


def unused_request_of(link: str, *, secret: str, now: datetime) -> Request:
    """What a link asks to confirm, if that was not done yet.

    Raises:
        errors.BadLink: the link is not valid, too old, or was used.
    """
    request = request_of(link, secret=secret, now=now)
    if one_time_links.is_spent(_subject(request), secret):
        raise errors.BadLink("link-used")
    return request


def things(request: Request) -> list[str]:
    """What somebody would be told of, in our own words."""
    found = []
    if request.replies:
        found.append(catalogue.ENGLISH.text("mail.about-replies"))
    if request.thread:
        found.append(catalogue.ENGLISH.text("mail.about-thread"))
    return found


def title_of(request: Request) -> str:
    """The title of the thread that a request is about; empty if it is about none."""
    row = reads.get(comment_rows.thread_key_of(request.thread)) if request.thread else None
    return "" if row is None else str(row.title or "")


def confirm(link: str, *, secret: str, now: datetime) -> Request:
    """Subscribe whom a link was sent to, and use the link up.

    Raises:
        errors.BadLink: the link is not valid, too old, or was used.
        errors.Overloaded: the store did not answer in time.
    """
    request = request_of(link, secret=secret, now=now)
    subscriber = subscriptions.known(ids_of(request.email, secret))
    address = encryption.seal(request.email, _ADDRESS, secret, now=now)
    subject, attempt = _subject(request), one_time_links.new_token()
    one_time_links.sweep(now=now)

    def using() -> ownership.Writes:
        purpose = one_time_links.Purpose.CONFIRMATION
        return one_time_links.spending(subject, purpose, attempt, secret, now=now, term=TERM)

    subscriptions.subscribe(subscriber, address, request.wanted, now=now, using=using)
    return request


def _subject(request: Request) -> str:
    """What stands for a link to confirm, however it is encoded."""
    return f"confirmation {request.id or msgspec.json.encode(request).decode()}"


def subscriber_of(email: str, secret: str) -> str:
    """The id of an address that is nobody's yet. Upper and lower case are one."""
    return ids_of(email, secret)[0]


def ids_of(email: str, secret: str) -> tuple[str, ...]:
    """The ids that an address may have: under the current secret, and under the old one."""
    return tuple(map(keyed_hashes.text, keyed_hashes.every(secret, "subscriber", email.lower())))


def address(stored: str, *, secret: str, now: datetime) -> str:
    """A stored address, to send mail to it.

    Raises:
        errors.BadLink: it was stored under another secret.
    """
    return encryption.unseal(stored, _ADDRESS, secret, now=now)


def renewed(stored: str, secret: str) -> str:
    """A stored address sealed under the current secret; "" if it is."""
    return encryption.renewed(stored, _ADDRESS, secret)


def is_of_the_past(subscriber: str, secret: str, *, now: datetime) -> bool:
    """Tell whether a subscriber's id was made under the old secret."""
    found = _opened(subscriptions.address_of(subscriber), secret, now)
    return bool(found) and subscriber in ids_of(found, secret)[1:]


def unsubscribe_link(ending: Unsubscription, secret: str) -> str:
    """The text of a link that ends subscriptions."""
    return str(_signer(secret).dumps([ending.subscriber, *ending.names]))


def unsubscription_of(link: str, secret: str) -> Unsubscription:
    """What a link ends.

    Raises:
        errors.BadLink: it is none of ours.
    """
    try:
        if len(link) > _LONGEST_LINK:
            raise errors.BadLink
        subscriber, *names = msgspec.convert(_signer(secret).loads(link), list[str])
    except (itsdangerous.BadData, msgspec.ValidationError, UnicodeError) as error:
        raise errors.BadLink from error
    return Unsubscription(subscriber, tuple(names))


def unsubscribe(link: str, secret: str, *, now: datetime) -> None:
    """End what a link is about. Again, and where nothing is left, it changes nothing.

    Raises:
        errors.BadLink: it is none of ours.
        errors.Overloaded: the store did not answer in time.
    """
    ending = unsubscription_of(link, secret)
    subscriptions.unsubscribe(ending.subscriber, ending.names, now=now)


def unsubscribe_from_everything(link: str, secret: str, *, now: datetime) -> None:
    """End everything of whom a link was sent to, and erase his address.

    Raises:
        errors.BadLink, errors.Overloaded: see `unsubscribe`.
    """
    subscriptions.forget(unsubscription_of(link, secret).subscriber, now=now)


def forget(email: str, secret: str, *, now: datetime) -> int:
    """Erase everything that is stored of an address, also from lists; how many subscriptions.

    Opens the address of every subscriber: their ids may be older than the secrets that are known.

    Raises:
        errors.BadInput: it is not one plain address.
        errors.Overloaded: the store is busy; run it again.
    """
    count = 0
    known = mail_addresses.known(email)
    for subscriber in dict.fromkeys([*ids_of(known, secret), *_having(known, secret, now)]):
        count += len(subscriptions.of_subscriber(subscriber))
        subscriptions.forget(subscriber, now=now)
        # Also erase them from lists that they left: their subscriptions no longer name those.
        for name in follower_lists.naming(subscriber):
            follower_compaction.erase(name, subscriber)
    return count


def _having(email: str, secret: str, now: datetime) -> list[str]:
    """The subscribers with this address, whatever secret their ids were made under."""
    return [
        subscriber
        for subscriber, stored in subscriptions.addresses()
        if _opened(stored, secret, now).lower() == email.lower()
    ]


def _opened(stored: str, secret: str, now: datetime) -> str:
    """A stored address; "" if it was sealed under a secret that is gone."""
    try:
        return address(stored, secret=secret, now=now)
    except errors.BadLink:
        return ""


def _signer(secret: str) -> itsdangerous.URLSafeSerializer:
    return itsdangerous.URLSafeSerializer(
        list(secret_rotation.accepted(secret)[::-1]),  # oldest first, as the library wants them
        salt=_LINK,
        signer_kwargs={"digest_method": hashlib.sha256},
        # Mail is kept for years: links of older releases were signed with SHA-1.
        fallback_signers=[{}],
    )
