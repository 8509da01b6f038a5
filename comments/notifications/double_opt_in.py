"""Double opt-in: send mail only to addresses whose owners have requested and confirmed it.

A subscription request is encrypted into a link, which is mailed to the address. Until that mail is
sent, the queued mail is the only stored copy of the request. The link opens a page with a button,
and only a click on the button stores the subscription. Every mail about comments contains a link
that ends the subscription, either by one POST (RFC 8058) or through a button on a page.

Invariant: A response depends only on the request, and `request_confirmation` performs the same
reads and writes for every address, so a caller cannot learn who follows which threads
(test_subscribing_limits.py::test_the_response_and_the_cost_are_the_same_for_every_address).

A mailbox (`mail_addresses.mailbox`) receives at most `PER_ADDRESS` confirmation mails per day, no
matter how many people request them. A network can make `PER_NETWORK` requests per hour.
Confirmation mails contain nothing that a stranger chose: no name, no title, no text. A confirmation
link works once, within `TERM`, so it cannot resubscribe a person who has since unsubscribed. An
unsubscribe link never expires, because people keep mail.
"""

import hashlib
import secrets
from datetime import datetime, timedelta
from typing import NamedTuple

import itsdangerous
import msgspec

from comments import errors
from comments.accounts.links import one_time_links
from comments.domain import decoders, records
from comments.domain.crypto import encryption, keyed_hashes, secret_rotation
from comments.domain.languages import catalogue
from comments.domain.text.addresses import mail_addresses
from comments.events import backlog, mail_jobs, outbox
from comments.limits import rate_limits
from comments.limits.site_request import SiteRequest
from comments.notifications import subscriptions
from comments.sites import mail_server, site_settings
from comments.store import ownership, reads, transactions
from comments.store.large_sets import set_compaction, set_search
from comments.store.models import comment_rows
from comments.threads import thread_info

TERM = timedelta(days=2)
PER_ADDRESS = rate_limits.Limit("confirmations", 3, timedelta(days=1))
PER_NETWORK = rate_limits.Limit("subscriptions", 10, timedelta(hours=1))
_LINK = "flatthread unsubscribe 1"
_LONGEST_LINK = 1_000
_ADDRESS, _CONFIRM = "address", "confirm"


class SubscriptionRequest(msgspec.Struct, frozen=True, array_like=True):
    """A subscription request, as encoded in a link. `thread` is a key name.

    `id` makes each link unique. Links that older releases made without an `id` are also valid for
    `TERM`. Using such a link also uses up all other links with the same content.
    """

    email: str
    site: str
    thread: str
    author: str
    replies: bool
    id: str = ""

    @property
    def target(self) -> subscriptions.SubscriptionTarget:
        """The requested subscriptions."""
        return subscriptions.SubscriptionTarget(self.site, self.thread, self.author, self.replies)


class Unsubscription(NamedTuple):
    """The content of an unsubscribe link: the subscriber and the names of the subscriptions."""

    subscriber: str
    names: tuple[str, ...]


def request_confirmation(
    email: str,
    request: SiteRequest,
    *,
    thread: records.ThreadName | None,
    author: str,
    replies: bool,
) -> None:
    """Mail a confirmation link for the requested subscriptions to an address.

    Args:
        email: the address.
        request: the website and the caller's network.
        thread: the thread to follow, or None.
        author: the caller's author id, or "" if it is unknown. Authors receive no mail about their
            own comments.
        replies: whether to subscribe to replies to the author.

    Raises:
        errors.BadInput: `email` is not one plain address.
        errors.NotFound: the thread has no comments yet.
        errors.Conflict: this service sends no mail.
        errors.TooMany: the network made too many requests.
        errors.Overloaded: the store did not respond in time.
    """
    settings, now = request.settings, request.now
    if not mail_server.sends_mail_of(request.site, settings):
        raise errors.Conflict("no-mail")
    email = mail_addresses.check(email)
    if thread is not None and thread_info.get(thread) is None:
        raise errors.NotFound("thread", thread.id)
    name = "" if thread is None else comment_rows.thread_key_name(thread)
    wanted = SubscriptionRequest(
        email, request.site.id, name, author, replies, secrets.token_hex(16)
    )
    link = encryption.seal(msgspec.json.encode(wanted).decode(), _CONFIRM, settings.secret, now=now)
    detail = mail_jobs.encode(mail_jobs.ConfirmationMail(link))
    event = outbox.mail_id("asked", secrets.token_hex(16))
    mine = rate_limits.Network(PER_NETWORK, request.sender.network, settings.secret)
    theirs = rate_limits.RateLimitBucket(
        PER_ADDRESS, mail_addresses.mailbox(email), settings.secret
    )

    def body() -> bool:
        rate_limits.read(mine, theirs, now=now)
        if mine.is_empty:
            raise errors.TooMany(retry_after=mine.wait(now))
        writes = [mine.count_writes()]
        is_sent = not theirs.is_empty
        if is_sent:
            row = outbox.follow(outbox.EventKind.MAIL, event, detail, due=now)
            writes += [theirs.count_writes(), outbox.follow_up_writes([row])]
        transactions.apply(*writes)
        return is_sent

    if transactions.transaction(body):
        backlog.tell(event)


def request_of(link: str, *, secret: str, now: datetime) -> SubscriptionRequest:
    """Decrypt the request in a confirmation link.

    Raises:
        errors.BadLink: the link is invalid or has expired, or its site is deleted.
    """
    text = encryption.unseal(link, _CONFIRM, secret, now=now, term=TERM)
    request = decoders.json(SubscriptionRequest).decode(text)
    if not site_settings.is_active(request.site):
        raise errors.BadLink
    return request


def unused_request_of(link: str, *, secret: str, now: datetime) -> SubscriptionRequest:
    """Decrypt the request in a confirmation link that has not been used yet.

    Raises:
        errors.BadLink: the link is invalid, has expired, or has been used.
    """
    request = request_of(link, secret=secret, now=now)
    if one_time_links.is_spent(_subject(request), secret):
        raise errors.BadLink("link-used")
    return request


def things(
    request: SubscriptionRequest, words: catalogue.Catalogue = catalogue.ENGLISH
) -> list[str]:
    """Describe the requested subscriptions in words."""
    parts = []
    if request.replies:
        parts.append(words.text("mail.about-replies"))
    if request.thread:
        parts.append(words.text("mail.about-thread"))
    return parts


def title_of(request: SubscriptionRequest) -> str:
    """Return the title of the requested thread, or "" if the thread has no title."""
    row = reads.get(comment_rows.thread_key_of(request.thread)) if request.thread else None
    return "" if row is None else str(row.title or "")


def confirm(link: str, *, secret: str, now: datetime, shares: bool = False) -> SubscriptionRequest:
    """Store the subscriptions in a confirmation link, and mark the link as used.

    If `shares` is true, the site's owner may see the address in the list of the thread's followers.

    Raises:
        errors.BadLink: the link is invalid, has expired, or has been used.
        errors.Overloaded: the store did not respond in time.
    """
    request = request_of(link, secret=secret, now=now)
    subscriber = subscriptions.stored_id(ids_of(request.email, secret))
    address = encryption.seal(request.email, _ADDRESS, secret, now=now)
    subject, attempt = _subject(request), one_time_links.new_token()
    one_time_links.sweep(now=now)

    def link_writes() -> ownership.Writes:
        purpose = one_time_links.LinkPurpose.CONFIRMATION
        return one_time_links.spend_writes(subject, purpose, attempt, secret, now=now, term=TERM)

    wanted = request.target._replace(shares=shares)
    subscriptions.subscribe(subscriber, address, wanted, now=now, using=link_writes)
    return request


def _subject(request: SubscriptionRequest) -> str:
    """Return a text that identifies a confirmation link, no matter how the link is encoded."""
    return f"confirmation {request.id or msgspec.json.encode(request).decode()}"


def subscriber_of(email: str, secret: str) -> str:
    """Return the id for a new subscriber with this address.

    Addresses that differ only in the case of letters have the same id.
    """
    return ids_of(email, secret)[0]


def ids_of(email: str, secret: str) -> tuple[str, ...]:
    """Return the possible ids of an address, starting with the id from the current secret."""
    return tuple(map(keyed_hashes.text, keyed_hashes.every(secret, "subscriber", email.lower())))


def address(stored: str, *, secret: str, now: datetime) -> str:
    """Decrypt a stored address.

    Raises:
        errors.BadLink: the address was encrypted with a different secret.
    """
    return encryption.unseal(stored, _ADDRESS, secret, now=now)


def reencrypt(stored: str, secret: str) -> str:
    """Re-encrypt a stored address with the current secret.

    If re-encryption is unnecessary or impossible, return "".
    """
    return encryption.reseal(stored, _ADDRESS, secret)


def is_of_the_past(subscriber: str, secret: str, *, now: datetime) -> bool:
    """Return whether a subscriber's id was derived with an older secret."""
    email = _readable_address(subscriptions.address_of(subscriber), secret, now)
    return bool(email) and subscriber in ids_of(email, secret)[1:]


def unsubscribe_link(ending: Unsubscription, secret: str) -> str:
    """Make the token for an unsubscribe link."""
    return str(_signer(secret).dumps([ending.subscriber, *ending.names]))


def unsubscription_of(link: str, secret: str) -> Unsubscription:
    """Decode an unsubscribe link.

    Raises:
        errors.BadLink: the link is invalid.
    """
    try:
        if len(link) > _LONGEST_LINK:
            raise errors.BadLink
        subscriber, *names = decoders.convert(_signer(secret).loads(link), list[str])
    except (itsdangerous.BadData, msgspec.ValidationError, UnicodeError) as error:
        raise errors.BadLink from error
    return Unsubscription(subscriber, tuple(names))


def unsubscribe(link: str, secret: str, *, now: datetime) -> None:
    """End the subscriptions in an unsubscribe link. Repeating the call changes nothing.

    Raises:
        errors.BadLink: the link is invalid.
        errors.Overloaded: the store did not respond in time.
    """
    ending = unsubscription_of(link, secret)
    subscriptions.unsubscribe(ending.subscriber, ending.names, now=now)


def sharing_site(link: str, secret: str) -> str:
    """Return the site whose owner may see the recipient's address, or "" if there is none.

    Raises:
        errors.BadLink: the link is invalid.
    """
    ending = unsubscription_of(link, secret)
    return subscriptions.sharing_site(ending.subscriber, ending.names)


def unshare(link: str, secret: str) -> None:
    """Hide the address of the recipient of an unsubscribe link from the site's owner.

    Raises:
        errors.BadLink, errors.Overloaded: see `unsubscribe`.
    """
    ending = unsubscription_of(link, secret)
    subscriptions.unshare(ending.subscriber, ending.names)


def unsubscribe_from_everything(link: str, secret: str, *, now: datetime) -> None:
    """End all subscriptions of an unsubscribe link's recipient, and erase the recipient's address.

    Raises:
        errors.BadLink, errors.Overloaded: see `unsubscribe`.
    """
    subscriptions.forget(unsubscription_of(link, secret).subscriber, now=now)


def forget(email: str, secret: str, *, now: datetime) -> int:
    """Erase all data about an address, including its ids in lists.

    Return the number of erased subscriptions.

    Raises:
        errors.BadInput: `email` is not one plain address.
        errors.Overloaded: the store is busy; repeating the call continues the erasure.
    """
    count = 0
    known = mail_addresses.canonical_or_stored(email)
    # Also compare every stored address, because an id may have been derived with a secret that is
    # no longer known.
    for subscriber in dict.fromkeys(
        [*ids_of(known, secret), *_subscribers_with(known, secret, now)]
    ):
        count += len(subscriptions.of_subscriber(subscriber))
        subscriptions.forget(subscriber, now=now)
        # Also erase the id from lists that the subscriber has left, because no subscription names
        # these lists.
        for name in set_search.sets_with(subscriber):
            set_compaction.erase(name, subscriber)
    return count


def _subscribers_with(email: str, secret: str, now: datetime) -> list[str]:
    """Return the subscribers with this address, no matter which secret made their ids."""
    return [
        subscriber
        for subscriber, stored in subscriptions.addresses()
        if _readable_address(stored, secret, now).lower() == email.lower()
    ]


def _readable_address(stored: str, secret: str, now: datetime) -> str:
    """Decrypt a stored address, or return "" if its secret is no longer known."""
    try:
        return address(stored, secret=secret, now=now)
    except errors.BadLink:
        return ""


def _signer(secret: str) -> itsdangerous.URLSafeSerializer:
    return itsdangerous.URLSafeSerializer(
        list(secret_rotation.accepted_secrets(secret)[::-1]),  # The oldest secret comes first.
        salt=_LINK,
        signer_kwargs={"digest_method": hashlib.sha256},
    )
