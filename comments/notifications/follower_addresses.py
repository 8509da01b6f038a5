"""List the addresses of a thread's subscribers for the owner of the thread's site.

Subscribers agree to this listing on the page that confirms their subscription. They can withdraw
their agreement on that page or on the page that ends the subscription (`subscriptions`).

An address is listed only if its owner still agrees at the moment when the address is read. Each
listing is recorded in the audit log before the first address is read. The entry in the audit log
contains no address.
"""

from collections.abc import Iterator
from datetime import datetime

from comments import errors
from comments.domain import records
from comments.events import audit_log
from comments.notifications import double_opt_in, subscriptions, thread_followers
from comments.store import transactions

VERB = "list-addresses"
_AT_ONCE = 100  # Number of subscribers per read.


def list_addresses(
    thread: records.ThreadName,
    actor: records.Actor,
    *,
    secret: str,
    now: datetime,
    reason: str = "",
) -> Iterator[str]:
    """Record the listing, and return the addresses in the order of the subscribers' ids.

    Raises:
        errors.BadInput: the reason is too long, or is not one line of printable text.
        errors.Overloaded: the store did not respond in time.
    """
    act = audit_log.Act(actor, VERB, reason)

    def body() -> None:
        if not audit_log.is_done(act):
            subject = f"thread:{thread.id}"
            entry = audit_log.entry_writes(act, thread.site, subject, before="", after="", now=now)
            transactions.apply(entry)

    transactions.transaction(body)
    return _addresses(thread, secret, now)


def _addresses(thread: records.ThreadName, secret: str, now: datetime) -> Iterator[str]:
    name, position = subscriptions.name_of_thread(thread), ""
    while True:
        page = thread_followers.subscribers(thread, after=position, limit=_AT_ONCE)
        for sealed in subscriptions.shared_addresses(page.ids, name):
            try:
                yield double_opt_in.address(sealed, secret=secret, now=now)
            except errors.BadLink:
                continue  # The secret that encrypted this address is no longer known.
        if page.position is None:
            return
        position = page.position
