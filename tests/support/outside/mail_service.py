"""Run a service that sends mail about comments; tests subscribe, post and read the recipients.

Tests advance the time, and each delivery step is one sweep.
"""

import dataclasses
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from comments import app as apps
from comments import config
from comments.domain import records
from comments.domain.crypto import encryption
from comments.domain.ids import sorthash
from comments.domain.text import cleaning
from comments.events import dispatcher, outbox
from comments.notifications import double_opt_in, planner, subscriptions
from comments.store import connection
from comments.store.models import comment_rows
from comments.upkeep import wiring
from tests.support import programs
from tests.support.outside.mail_server import Box
from tests.support.threads import sample_threads

SITE = records.Site("demo", ("http://localhost:8080",), sorthash.DEFAULT_DIGITS, 2)
THREAD = records.ThreadName("demo", "page")
START = sample_threads.START
INDEXES = programs.ROOT / "index.yaml"


FOLLOWER = "fay@example.org"


@dataclasses.dataclass(frozen=True)
class Said:
    """The first comment of a thread, by an anonymous author."""

    name: str = "Bob"
    title: str = "A page"
    text: str = "hello"


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

    def mails_about(self, said: Sequence[Said]) -> list[bytes]:
        """Start a followed thread with each comment; return the mails that the server received."""
        client = apps.create_app(self.settings, self.store).test_client()
        for place, each in enumerate(said):
            thread = records.ThreadName("demo", f"page-{place}")
            wanted = subscriptions.SubscriptionTarget("demo", comment_rows.thread_key_name(thread))
            subscriptions.subscribe(self.id_of(FOLLOWER), self.seal(FOLLOWER), wanted, now=START)
            sent = {"name": each.name[: cleaning.MAX_NAME], "body": each.text, "title": each.title}
            answer = client.post(f"/api/v1/sites/demo/comments?thread={thread.id}", json=sent)
            assert answer.status_code in {201, 202}, answer.text
        self.now = datetime.now(UTC)
        self.deliver()
        assert len(self.box.raw) == len(said), "a mail is missing"
        return self.box.raw
