"""Outgoing mail and webhooks contain only our words and links and nothing that callers inject.

The tests run a complete service with a mail server and a webhook. Authors post over HTTP, and the
tests read the outgoing messages.
"""

import dataclasses
import json
import re
import threading
from collections.abc import Iterator
from datetime import UTC, datetime
from html.parser import HTMLParser
from typing import Any

import pytest
from flask.testing import FlaskClient

from comments import app as apps
from comments.domain import records
from comments.domain.crypto import encryption
from comments.domain.records import Policy
from comments.events import message_sender, webhook_endpoints, webhooks
from comments.moderation.policy import policy_changes
from comments.notifications import double_opt_in, subscriptions
from comments.sites import site_settings
from comments.store import connection, reads
from comments.store.models import comment_rows
from comments.upkeep import scheduler, wiring, worker_threads
from tests.support import loopback_servers, programs
from tests.support.histories import counter_oracle
from tests.support.loopback_servers import Receiver
from tests.support.outside import mail_server
from tests.support.outside.mail_server import PUBLIC, Box
from tests.support.people import api_requests
from tests.support.threads import sample_threads

URL = "/api/v1/sites/demo/comments?thread=page"
PAGE = "http://localhost:8080/post"
SECRET = webhooks.secret(bytes(32))
NEVER_SAID = "canary"
# The only headers that our mail may have.
HEADERS = {
    "From", "To", "Subject", "Date", "Message-ID", "Auto-Submitted", "X-Auto-Response-Suppress",
    "List-Unsubscribe", "List-Unsubscribe-Post", "MIME-Version", "Content-Type",
    "In-Reply-To", "References",
}  # fmt: skip


@dataclasses.dataclass
class OutgoingService:
    """A service with its mail server and the receiver of the site's webhook."""

    client: FlaskClient
    store: connection.Store
    upkeep: scheduler.Scheduler
    box: Box
    told: Receiver

    def post(self, **more: Any) -> dict[str, Any]:
        options = {
            name: more.pop(name) for name in ("headers", "environ_overrides") if name in more
        }
        sent = {"name": "Bob", "body": "text"} | more
        answer = self.client.post(URL, json=sent, **options)
        assert answer.status_code == 201, answer.text
        found: dict[str, Any] = answer.json  # type: ignore[assignment]
        return found

    def deliver(self) -> None:
        """Deliver all events to handlers and recipients."""
        with self.store.context():
            while events := counter_oracle.events():
                self.upkeep.deliver(events)
            message_sender.serve(lambda: datetime.now(UTC))

    def left(self) -> str:
        """Return all outgoing mails and requests as text, with their headers."""
        mails = [made.as_string() for _, made in self.box.taken]
        texts = [self.box.text(number) for number in range(len(mails))]
        heard = [f"{each.path}{each.headers}{each.body.decode()}" for each in self.told.heard]
        return "".join([*mails, *texts, *heard])


@pytest.fixture
def outgoing(open_store: connection.Store, site: records.Site) -> Iterator[OutgoingService]:
    """A service with Ann as a follower of the thread."""
    with mail_server.serving() as box, loopback_servers.receiver() as told:
        settings = box.settings()
        client = loopback_servers.client(told.port)
        message_sender.OUTBOUND.put(open_store, client)
        with open_store.context():
            made = webhook_endpoints.Registered(
                "one", told.url, (SECRET,), webhooks.PUBLIC_TYPES, sample_threads.START
            )
            webhook_endpoints.add("demo", made, client)
            thread = comment_rows.thread_key_name(records.ThreadName("demo", "page"))
            now = datetime.now(UTC)
            subscriptions.subscribe(
                double_opt_in.subscriber_of("ann@example.org", settings.secret),
                encryption.seal("ann@example.org", "address", settings.secret, now=now),
                subscriptions.SubscriptionTarget("demo", thread, "", replies=False),
                now=now,
            )
        app = apps.create_app(settings, open_store)
        work = scheduler.Scheduler(handlers=wiring.handlers(settings))
        yield OutgoingService(app.test_client(), open_store, work, box, told)


class Shown(HTMLParser):
    """The elements of an HTML part and its link targets."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.links: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.links += [value or "" for name, value in attrs if name in {"href", "src"}]


@pytest.mark.parametrize(
    "text",
    [
        "a\r\nBcc: eve@evil.example",
        "a\nReply-To: eve@evil.example",
        "a\rSubject: Buy",
        "a\r\n\r\n<p>",
        "https://a.example/\r\nX-Evil: 1",
    ],
)
def test_a_line_end_in_a_header_value_is_refused(outgoing: OutgoingService, text: str) -> None:
    for field in ("name", "title", "url", "website", "email"):
        refused = outgoing.client.post(URL, json={"name": "Bob", "body": "text"} | {field: text})
        assert (refused.status_code, json.loads(refused.text)["field"]) == (400, field)
    outgoing.deliver()
    assert (outgoing.box.taken, outgoing.told.heard) == ([], [])
    assert api_requests.is_empty(outgoing.client.get(URL))


@pytest.mark.parametrize(
    "path", ["site=demo%0d%0aX-Evil:1", "thread=a%0d%0aX-Evil:%201", "x%0d%0a=1"]
)
def test_a_line_end_in_an_address_is_in_no_header_of_the_response(
    outgoing: OutgoingService, path: str
) -> None:
    for url in (
        f"/api/v1/sites/demo/comments?{path}",
        f"/embed/demo?{path}",
        f"/%0d%0aX-Evil:1?{path}",
    ):
        answer = outgoing.client.get(url)
        assert answer.status_code in {400, 404}
        assert not any("vil" in f"{name}{value}" for name, value in answer.headers)


def test_links_images_and_html_of_a_comment_are_plain_text_in_mail(
    outgoing: OutgoingService,
) -> None:
    outgoing.post(
        name="<b>Bob</b><img src=x>",
        title="<a href='https://evil.example/t'>Win</a>",
        url=PAGE,
        body="[win](https://evil.example/a) ![x](https://evil.example/i.png)\n\n"
        "<u>u</u> <a href='https://evil.example/b'>b</a> <img src=//evil.example/c> evil.example",
    )
    outgoing.deliver()
    ((recipient, made),) = outgoing.box.taken
    assert recipient == "ann@example.org"
    assert set(made.keys()) == HEADERS
    plain, rich = made.iter_parts()
    assert (plain.get_content_type(), rich.get_content_type()) == ("text/plain", "text/html")
    shown = Shown(rich.get_content())
    assert shown.tags <= {"html", "div", "p", "a", "blockquote", "br"}
    for link in (*shown.links, *re.findall(r"\w+://\S+", outgoing.box.text())):
        assert link.startswith((f"{PUBLIC}/", f"{PAGE}#"))
    assert "evil" not in f"{made['Subject']}{plain.get_content()}{rich.get_content()}"


def test_a_forged_host_appears_in_no_outgoing_message(outgoing: OutgoingService) -> None:
    evil = {
        "Host": "evil.example",
        "X-Forwarded-Host": "evil.example",
        "X-Forwarded-Server": "evil.example",
        "X-Forwarded-Proto": "gopher",
        "Forwarded": "host=evil.example;proto=gopher",
        "X-Original-URL": "https://evil.example/",
    }
    outgoing.post(headers=evil)
    outgoing.deliver()
    assert (len(outgoing.box.taken), len(outgoing.told.heard)) == (1, 1)
    assert "evil" not in outgoing.left()
    assert "gopher" not in outgoing.left()
    assert f"{PUBLIC}/embed/demo" in outgoing.box.text()


def test_a_forged_host_appears_in_no_moderation_link(outgoing: OutgoingService) -> None:
    with outgoing.store.context():
        site_settings.change("demo", moderators=["boss@demo.example"])
        policy_changes.set_policy(
            "demo", records.Actor("cli", "Ada"), now=sample_threads.START, policy=Policy.ALL
        )
    evil = {"Host": "evil.example", "X-Forwarded-Host": "evil.example"}
    answer = outgoing.client.post(URL, json={"name": "Bob", "body": "text"}, headers=evil)
    assert answer.status_code == 202
    outgoing.deliver()
    assert outgoing.box.recipients == ["boss@demo.example"]
    assert f"{PUBLIC}/decisions?token=" in outgoing.box.text()
    assert "evil" not in outgoing.left()


def test_a_webhook_contains_only_what_readers_see(outgoing: OutgoingService) -> None:
    private = {
        "headers": {
            "User-Agent": NEVER_SAID,
            "Referer": f"http://localhost:8080/{NEVER_SAID}",
            "Idempotency-Key": f"{NEVER_SAID}-0123456789",
            "Cookie": f"a={NEVER_SAID}",
            "X-Forwarded-For": "198.51.100.77",
        },
        "environ_overrides": {"REMOTE_ADDR": "198.51.100.77"},
    }
    posted = outgoing.post(email=f"{NEVER_SAID}@example.org", **private)
    outgoing.deliver()
    url = f"/api/v1/comments/{posted['comment']['id']}"
    token = {"Authorization": f"Bearer {posted['token']}"}
    assert (
        outgoing.client.patch(url, json={"body": "other words"}, headers=token).status_code == 200
    )
    outgoing.deliver()
    assert outgoing.client.delete(url, headers=token).status_code in {200, 204}
    outgoing.deliver()
    heard = [json.loads(each.body) for each in outgoing.told.heard]
    assert [each["type"] for each in heard] == [type_.value for type_ in webhooks.PUBLIC_TYPES]
    for told in heard:
        assert set(told) == {"type", "timestamp", "data"}
        assert set(told["data"]) == {"site", "thread", "title", "url", "comment"}
        own = {"replies", "cursor", "editable_until"}
        assert set(told["data"]["comment"]) == set(posted["comment"]) - own
    with outgoing.store.context():
        (subscriber,) = reads.fetch(reads.Query("Subscriber", keys_only=True))
    everything = "".join(f"{each.path}{each.headers}{each.body!r}" for each in outgoing.told.heard)
    secrets = [NEVER_SAID, "198.51.100.77", posted["token"], SECRET, "g:", "ann@example.org"]
    for secret in (*secrets, subscriber.key.path[-1].name):
        assert secret not in everything
    # The message about a retracted comment has no name and no text.
    assert "Bob" not in json.dumps(heard[-1])
    assert "other words" not in json.dumps(heard[-1])


def test_people_post_and_read_while_a_receiver_hangs(outgoing: OutgoingService) -> None:
    heard, over = threading.Event(), threading.Event()

    def hang(_: loopback_servers.Heard) -> None:
        heard.set()
        over.wait(programs.PATIENCE)

    outgoing.told.then = hang
    messenger = worker_threads.MessageThread(outgoing.store, lambda: datetime.now(UTC))
    messenger.start()
    try:
        outgoing.post(body="first")
        with outgoing.store.context():
            outgoing.upkeep.deliver(counter_oracle.events())
        messenger.nudge()
        assert heard.wait(programs.PATIENCE)
        outgoing.post(body="second")
        assert len(outgoing.client.get(URL).json["comments"]) == 2
        assert not over.is_set()
    finally:
        over.set()
        assert messenger.stop(programs.PATIENCE)
