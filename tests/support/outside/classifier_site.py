"""Services outside that a site asks about its comments: a site, a receiver, and the time of day.

Owns how tests put questions to a real peer on loopback: everything goes out by the product's own
way, from the event of a post to the request.
"""

import contextlib
import dataclasses
import json
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

from comments import config
from comments.domain import classifier_verdicts, records
from comments.events import dispatcher, message_queue, message_sender, safe_http
from comments.jobs import wiring
from comments.moderation import decisions
from comments.moderation.classifiers import classifier_requests, registration
from comments.store import connection, reads
from tests.support import loopback_servers
from tests.support.histories import counter_oracle
from tests.support.threads import sample_threads

BOSS = records.Actor("cli", "the command line")
GUEST = records.Author("Ann", "https://ann.example", "ann@mailbox.example", "g:ann")
LIMITS = safe_http.Limits(connect=60.0, total=60.0, answer=classifier_requests.LIMITS.answer)
SHORT = dataclasses.replace(LIMITS, connect=0.5, total=0.5)  # for those that never answer


class Service:
    """A site "demo" that asks a receiver, at a time that a test moves."""

    def __init__(
        self,
        receiver: loopback_servers.Receiver,
        client: safe_http.Client,
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
        """Have the site ask the receiver as its own service."""
        given = registration.Terms(**{"everybody": True, **terms})
        where = url or self.receiver.url
        made = registration.set_webhook("demo", where, given, self.by(), self.client)
        self.secret = made or self.secret

    def says(self, verdict: object, reason: str = "", **more: Any) -> None:
        """Have the receiver answer so from now on."""
        self.receiver.answer = json.dumps({"verdict": verdict, "reason": reason, **more}).encode()

    def ask(self, times: int = 1) -> message_sender.Done:
        """Deliver what happened, and put the questions that are due; again after pauses."""
        done = message_sender.Done()
        for number in range(times):
            self.now += timedelta(hours=2 * bool(number))
            self.deliver()
            done += message_sender.serve(lambda: self.now, reach=wiring.channels(self.settings))
        return done

    def deliver(self) -> None:
        while events := counter_oracle.events():
            dispatcher.deliver(events, now=self.now, handlers=wiring.HANDLERS)

    def check(self) -> None:
        """Every counter equals its recount."""
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
    """A service on loopback, and another one, that the store's processes may reach."""
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
    """Have a guest post."""
    given = {
        "author": GUEST,
        "sender": classifier_verdicts.Sender("203.0.113.9", "Canary/1.0"),
    } | more
    return sample_threads.post(site, text, parent, now=now, **given)


def waiting() -> list[message_queue.Message]:
    """The messages that are in the store."""
    query = reads.Query("Message", keys_only=True)
    names = [each.key.path[-1].name for each in reads.fetch(query)]
    return [message_queue.record(row) for row in message_queue.read(names)]
