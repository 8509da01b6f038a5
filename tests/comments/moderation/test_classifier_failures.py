"""Test which classifier answers are invalid and what happens when classifiers fail.

The tests use real HTTP servers that send wrong answers and real sockets that misbehave.
"""

import dataclasses
import socket
import threading
from collections.abc import Callable, Iterator

import pytest

from comments.domain import records
from comments.domain.records import Status
from comments.events import dead_letters, retry_pauses
from comments.moderation.classifiers import classifier_answers, classifier_requests, registration
from comments.store import connection
from tests.support import loopback_servers
from tests.support.outside import classifier_site
from tests.support.outside.classifier_site import Service, say
from tests.support.threads import sample_threads

SHOWN, HELD = Status.APPROVED, Status.PENDING


@pytest.fixture
def service(
    open_store: connection.Store, store: connection.Store, site: records.Site
) -> Iterator[Service]:
    with classifier_site.serving(open_store) as made:
        yield made


HUGE = b'{"verdict":"approve","x":"' + b"x" * classifier_requests.LIMITS.answer + b'"}'


@pytest.mark.parametrize(
    ("status", "answer"),
    [
        (200, b""), (200, b"ok"), (200, b'{"verdict":"delete"}'), (200, b'{"verdict":1}'),
        (200, b'{"verdict":"approve","reason":["x"]}'), (200, HUGE), (204, b""),
        (302, b'{"verdict":"approve"}'), (404, b'{"verdict":"approve"}'),
        (500, b'{"verdict":"approve"}'),
    ],
)  # fmt: skip
def test_an_invalid_answer_changes_nothing_and_the_request_is_retried(
    service: Service, site: records.Site, status: int, answer: bytes
) -> None:
    service.is_asked()
    service.receiver.status, service.receiver.answer = status, answer
    comment = say(site)
    assert service.ask().failed == 1
    assert (service.status(comment), classifier_answers.of([comment.id])) == (HELD, {})
    service.receiver.status = 200
    service.says("approve")
    service.ask()
    assert service.status(comment) is HELD  # No request is sent before the pause ends
    assert service.ask(2).told == 1
    assert service.status(comment) is SHOWN


def _closes(connection: socket.socket, _over: threading.Event) -> None:
    connection.recv(1)


def _garbles(connection: socket.socket, _over: threading.Event) -> None:
    connection.recv(65536)
    connection.sendall(b"\x00" * 1000 + b"\r\n\r\n")


def _hangs(_connection: socket.socket, over: threading.Event) -> None:
    over.wait()


def _trickles(connection: socket.socket, over: threading.Event) -> None:
    connection.recv(65536)
    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n{")
    while not over.wait(0.05):
        connection.sendall(b" ")


def _cuts(connection: socket.socket, _over: threading.Event) -> None:
    connection.recv(65536)
    connection.sendall(b'HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n{"verdict":"approve"}')


@pytest.mark.parametrize("talk", [_closes, _garbles, _hangs, _trickles, _cuts])
def test_a_misbehaving_server_leaves_the_comment_held_and_the_request_pending(
    open_store: connection.Store,
    store: connection.Store,
    site: records.Site,
    talk: Callable[[socket.socket, threading.Event], None],
) -> None:
    with loopback_servers.peer(talk) as port:
        client = loopback_servers.client(port, limits=classifier_site.SHORT)
        classifier_requests.OUTBOUND.put(open_store, client)
        service = Service(loopback_servers.Receiver(port), client, sample_threads.SETTINGS)
        service.is_asked()
        comment = say(site)
        assert service.ask().failed == 1
    assert service.status(comment) is HELD
    (left,) = classifier_site.waiting()
    assert left.attempts == 1


@pytest.mark.parametrize(("then", "becomes"), [("hold", HELD), ("show", SHOWN)])
def test_after_the_last_attempt_the_sites_fallback_applies(
    service: Service, site: records.Site, then: str, becomes: Status
) -> None:
    service.is_asked(shows=then == "show")
    service.receiver.status = 500
    comment = say(site)
    service.ask(retry_pauses.MOST_ATTEMPTS - 1)
    assert (service.status(comment), classifier_answers.of([comment.id])) == (HELD, {})
    service.ask(2)
    assert len(service.receiver.heard) == retry_pauses.MOST_ATTEMPTS
    assert service.status(comment) is becomes
    said = classifier_answers.of([comment.id])[comment.id].of["webhook"]
    assert (said.state, said.reason) == (classifier_answers.AnswerState.FAILED, "answered 500")
    (dead,) = dead_letters.dead().letters
    assert (dead.reason, dead.is_dead) == ("answered 500", True)
    service.check()
    # When the classifier works again, comments can be checked unless a moderator has decided them.
    service.receiver.status = 200
    service.says("spam")
    dead_letters.revive(dead.id, now=service.now)
    service.ask()
    assert service.status(comment) is Status.SPAM


def test_a_classifier_that_answers_410_is_not_asked_again(
    service: Service, site: records.Site
) -> None:
    service.is_asked()
    service.receiver.status = 410
    comment = say(site)
    service.ask(3)
    assert len(service.receiver.heard) == 1
    assert service.status(comment) is HELD


def test_comments_of_a_removed_classifier_are_left_to_moderators(
    service: Service, site: records.Site
) -> None:
    service.is_asked()
    comment = say(site)
    registration.remove("demo", "webhook", service.by())
    service.ask()
    assert (service.status(comment), classifier_site.waiting()) == (HELD, [])
    assert say(site, "another").status is SHOWN


def test_an_unreadable_secret_gives_the_request_up(service: Service, site: records.Site) -> None:
    service.is_asked()
    comment = say(site)
    service.settings = dataclasses.replace(service.settings, secret="another secret of theirs")
    service.ask()
    assert service.receiver.heard == []
    said = classifier_answers.of([comment.id])[comment.id].of["webhook"]
    assert said.state is classifier_answers.AnswerState.FAILED
    assert "SECRET" in said.reason
