"""Run a service that sends mail about comments; tests subscribe, post and read the recipients.

Tests advance the time, and each delivery step is one sweep.
"""

import dataclasses
from collections.abc import Sequence
from datetime import datetime, timedelta

from comments import config
from comments.domain import records, sorthash
from comments.domain.crypto import encryption
from comments.events import dispatcher, outbox
from comments.jobs import wiring
from comments.notifications import double_opt_in, planner, subscriptions
from comments.store import connection
from comments.store.models import comment_rows
from tests.support import programs
from tests.support.outside.mail_server import Box
from tests.support.threads import sample_threads

SITE = records.Site("demo", ("http://localhost:8080",), sorthash.DEFAULT_DIGITS, 2)
THREAD = records.ThreadName("demo", "page")
START = sample_threads.START
INDEXES = programs.ROOT / "index.yaml"


@dataclasses.dataclass
class MailService:
    """A service that sends mail. Subscriptions skip confirmation, which has separate tests."""

    store: connection.Store
    settings: config.Settings
    box: Box
    now: datetime = START + timedelta(days=1)

    @property
    def handlers(self) -> Sequence[dispatcher.Handler]:
        return (*wiring.HANDLERS, *planner.handlers(self.settings, lambda: self.now))

    def id_of(self, email: str) -> str:
        return double_opt_in.subscriber_of(email, self.settings.secret)

    def subscribe(self, email: str, *, author: str = "", replies: bool = False) -> str:
        thread = "" if replies else comment_rows.thread_key_name(THREAD)
        wanted = subscriptions.SubscriptionTarget("demo", thread, author, replies)
        subscriptions.subscribe(self.id_of(email), self.seal(email), wanted, now=self.now)
        return self.id_of(email)

    def seal(self, email: str) -> str:
        """Return an address in the stored form."""
        return encryption.seal(email, "address", self.settings.secret, now=self.now)

    def say(self, text: str, parent: str | None = None, author: str = "g:bob") -> records.Comment:
        written = records.Author("Bob", id=author)
        return sample_threads.post(SITE, text, parent, author=written, now=START)

    def sweep(self) -> dispatcher.DeliveryCounts:
        return dispatcher.sweep(now=self.now, handlers=self.handlers)

    def deliver(self) -> None:
        """Sweep until nothing is due."""
        self.now += outbox.SWEPT_AFTER
        while self.sweep().delivered:
            pass

    def told(self, text: str) -> list[str]:
        """Return the recipients of a comment's text."""
        return sorted(
            address
            for number, address in enumerate(self.box.recipients)
            if f"> {text}\n" in self.box.text(number)
        )
