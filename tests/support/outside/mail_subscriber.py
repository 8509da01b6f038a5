"""Subscribe a reader to the thread "page" over HTTP, with a real mail server."""

import dataclasses
from typing import Any

from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from comments import config
from comments.domain import records
from comments.notifications import double_opt_in, thread_followers
from comments.store import connection, reads
from comments.upkeep import scheduler, wiring
from tests.support.histories import counter_oracle
from tests.support.html import page_buttons
from tests.support.outside.mail_server import Box

URL = "/api/v1/sites/demo/subscription?thread=page"
THREAD = records.ThreadName("demo", "page")
LIST = thread_followers.set_of(THREAD)
ANN = "Ann@example.org"
ACTOR = records.Actor("cli", "Ada")
KINDS = ("Subscriber", "Subscription", "FollowerMark", "FollowerList", "FollowerSegment", "Event")


@dataclasses.dataclass
class Asker:
    """A service with a mail server and a reader who has posted in the thread "page"."""

    client: FlaskClient
    store: connection.Store
    settings: config.Settings
    box: Box
    token: str = ""

    def ask(self, email: str = ANN, *, address: str = "203.0.113.1", **more: Any) -> TestResponse:
        sent = {"email": email, "thread": True} | more
        headers = {"Authorization": f"Bearer {self.token}"} if sent.get("replies") else {}
        peer = {"REMOTE_ADDR": address}
        return self.client.put(URL, json=sent, headers=headers, environ_overrides=peer)

    def deliver(self) -> None:
        with self.store.context():
            made = scheduler.Scheduler(handlers=wiring.handlers(self.settings))
            while events := counter_oracle.events():
                made.deliver(events)

    def follow(self, email: str = ANN, **more: Any) -> None:
        """Subscribe, then press the button on the page that the mail links to."""
        assert self.ask(email, **more).status_code == 202
        self.deliver()
        assert self.press("Confirm").status_code == 200

    def press(self, label: str, link: str = "") -> TestResponse:
        """Press a button on the page of a link, by default the link in the last mail."""
        return page_buttons.press(self.client, link or self.box.link(), label)

    def stored(self) -> dict[str, int]:
        with self.store.context():
            counted = {kind: reads.count(reads.Query(kind)) for kind in KINDS}
        return {kind: count for kind, count in counted.items() if count}

    def is_following(self, email: str = ANN) -> bool:
        with self.store.context():
            who = double_opt_in.subscriber_of(email, self.settings.secret)
            return thread_followers.is_subscriber(THREAD, who)
