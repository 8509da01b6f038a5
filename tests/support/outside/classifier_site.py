"""Set up a site with a classifier on loopback and a clock that the test advances.

Requests to the classifier pass through all of the product's code, from a post's event to the HTTP
request.
"""

import contextlib
import dataclasses
import json
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

from comments import config
from comments.domain import records
from comments.domain.moderation import classifier_verdicts
from comments.events import dispatcher, message_queue, message_sender, safe_http
from comments.moderation import decisions
from comments.moderation.classifiers import classifier_requests, registration
from comments.store import connection, reads
from comments.upkeep import wiring
from tests.support import loopback_servers
from tests.support.histories import counter_oracle
from tests.support.threads import sample_threads

BOSS = records.Actor("cli", "the command line")
GUEST = records.Author("Ann", "https://ann.example", "ann@mailbox.example", "g:ann")
LIMITS = safe_http.RequestLimits(connect=60.0, total=60.0, answer=classifier_requests.LIMITS.answer)
SHORT = dataclasses.replace(LIMITS, connect=0.5, total=0.5)  # For classifiers that never answer


class Service:
    """The site "demo" with its classifier and the present time."""

    def __init__(
        self,
        receiver: loopback_servers.Receiver,
        client: safe_http.HttpClient,
        settings: config.Settings,
        other: loopback_servers.Receiver | None = None,
    ) -> None:
        self.receiver = receiver
        self.other = other or receiver
        self.client = client
        self.settings = settings
        self.now = sample_threads.START + timedelta(hours=1)
        self.secret = ""

    def by(self) -> registration.By:
        return registration.By(BOSS, self.now, self.settings)

    def is_asked(self, *, url: str = "", **terms: bool) -> None:
        """Register the receiver as the site's classifier."""
        given = registration.Terms(**{"everybody": True, **terms})
        where = url or self.receiver.url
        made = registration.set_webhook("demo", where, given, self.by(), self.client)
        self.secret = made or self.secret

    def says(self, verdict: object, reason: str = "", **more: Any) -> None:
        """Set the verdict in the receiver's answers."""
        self.receiver.answer = json.dumps({"verdict": verdict, "reason": reason, **more}).encode()

    def ask(self, times: int = 1) -> message_sender.SendingCounts:
        """Deliver events and send due requests. With `times` > 1, repeat this every two hours."""
        done = message_sender.SendingCounts()
        for number in range(times):
            self.now += timedelta(hours=2 * bool(number))
            self.deliver()
            done += message_sender.serve(lambda: self.now, reach=wiring.channels(self.settings))
        return done

    def deliver(self) -> None:
        while events := counter_oracle.events():
            dispatcher.deliver(events, now=self.now, handlers=wiring.HANDLERS)

    def check(self) -> None:
        """Check that every counter equals the sum over the comments."""
        self.deliver()
        counter_oracle.assert_all_counted()

    def case(self, comment: records.Comment) -> records.Case:
        return decisions.case("demo", comment.id)

    def status(self, comment: records.Comment) -> records.Status:
        return self.case(comment).comment.status

    def decide(
        self, comment: records.Comment, verb: records.Verb, reason: str = ""
    ) -> records.Comment:
        return decisions.decide("demo", comment.id, verb, BOSS, now=self.now, reason=reason)


@contextlib.contextmanager
def serving(
    store: connection.Store, settings: config.Settings = sample_threads.SETTINGS
) -> Iterator[Service]:
    """Run two classifiers on loopback; processes on this store may connect to both."""
    with loopback_servers.receiver() as receiver, loopback_servers.receiver() as other:
        client = loopback_servers.client(receiver.port, other.port, limits=LIMITS)
        classifier_requests.OUTBOUND.put(store, client)
        yield Service(receiver, client, settings, other)


def say(
    site: records.Site,
    text: str = "text",
    parent: str | None = None,
    *,
    now: datetime = sample_threads.START,
    **more: Any,
) -> records.Comment:
    """Post as a guest."""
    given = {
        "author": GUEST,
        "sender": classifier_verdicts.Sender("203.0.113.9", "Canary/1.0"),
    } | more
    return sample_threads.post(site, text, parent, now=now, **given)


def waiting() -> list[message_queue.Message]:
    """Return the stored messages."""
    query = reads.Query("Message", keys_only=True)
    names = [each.key.path[-1].name for each in reads.fetch(query)]
    return [message_queue.record(row) for row in message_queue.read(names)]
