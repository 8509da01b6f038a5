"""Test who may send a classifier's delayed verdicts, about which comments, and how often."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from comments.domain import records
from comments.domain.records import Status, Verb
from comments.events import webhooks
from comments.moderation.classifiers import classifier_answers, registration, site_service
from comments.posting import own_comment
from comments.sites import site_settings
from comments.store import connection
from tests.support.outside import classifier_site
from tests.support.outside.classifier_site import Service, say
from tests.support.people.account_holders import SECRET
from tests.support.threads import sample_threads

PATH = "/api/v1/sites/demo/opinions"


@pytest.fixture
def service(
    open_store: connection.Store, store: connection.Store, site: records.Site
) -> Iterator[Service]:
    with classifier_site.serving(open_store) as made:
        made.now = datetime.now(UTC) + timedelta(seconds=30)
        made.is_asked()
        made.receiver.status = 202
        yield made


@pytest.fixture
def asked(service: Service, site: records.Site) -> tuple[records.Comment, str]:
    """A held comment with a classifier that answers later, and the id of the classifier request."""
    comment = say(site, now=datetime.now(UTC))
    service.ask()
    return comment, json.loads(service.receiver.heard[-1].body)["data"]["question"]


def give(
    client: FlaskClient,
    service: Service,
    question: str,
    verdict: object = "approve",
    *,
    path: str = PATH,
    secret: str = "",
    at: datetime | None = None,
    **more: object,
) -> TestResponse:
    """Send a verdict with a webhook signature."""
    body = json.dumps({"question": question, "verdict": verdict, **more}).encode()
    hook = webhooks.Hook(service.receiver.url, (secret or service.secret,))
    signed = webhooks.headers(hook, "given.1", body, now=at or datetime.now(UTC))
    return client.post(path, data=body, headers=signed)


def assert_refused(response: TestResponse, status: int, code: str) -> None:
    assert (response.status_code, response.get_json()["code"]) == (status, code), response.text


def test_a_classifier_may_answer_later_and_repeat_the_same_answer(
    client: FlaskClient, service: Service, asked: tuple[records.Comment, str]
) -> None:
    comment, question = asked
    assert classifier_site.waiting() == []
    entry = classifier_answers.of([comment.id])[comment.id].of["webhook"]
    assert (service.status(comment), entry.state) == (
        Status.PENDING,
        classifier_answers.AnswerState.LATER,
    )
    for _ in range(2):
        response = give(client, service, question, reason="read by us")
        assert (response.status_code, response.get_json()) == (200, {"status": "taken"})
        assert service.status(comment) is Status.APPROVED
    assert_refused(give(client, service, question, "spam"), 409, "answered-before")
    assert service.status(comment) is Status.APPROVED
    service.check()


@pytest.mark.parametrize("how", ["no headers", "other secret", "old", "ahead", "other body"])
def test_an_unsigned_verdict_is_refused(
    client: FlaskClient, service: Service, asked: tuple[records.Comment, str], how: str
) -> None:
    comment, question = asked
    now = datetime.now(UTC)
    if how == "no headers":
        response = client.post(PATH, json={"question": question, "verdict": "approve"})
    elif how == "other body":
        hook = webhooks.Hook(service.receiver.url, (service.secret,))
        signed = webhooks.headers(hook, "given.1", b'{"verdict":"spam"}', now=now)
        body = json.dumps({"question": question, "verdict": "approve"}).encode()
        response = client.post(PATH, data=body, headers=signed)
    else:
        secret = webhooks.secret(b"another" * 4) if how == "other secret" else ""
        away = {"old": timedelta(minutes=-6), "ahead": timedelta(minutes=6)}
        response = give(
            client, service, question, secret=secret, at=now + away.get(how, timedelta())
        )
    assert_refused(response, 401, "bad-signature")
    assert service.status(comment) is Status.PENDING


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("webhook-timestamp", "x"), ("webhook-timestamp", "9" * 13), ("webhook-timestamp", "-1"),
        ("webhook-id", ""), ("webhook-signature", ""), ("webhook-signature", "v1,"),
        ("webhook-signature", "v2,AAAA"), ("webhook-signature", "\xe9"),
    ],
)  # fmt: skip
def test_an_invalid_signature_is_refused(
    client: FlaskClient, service: Service, asked: tuple[records.Comment, str], name: str, value: str
) -> None:
    body = json.dumps({"question": asked[1], "verdict": "approve"}).encode()
    hook = webhooks.Hook(service.receiver.url, (service.secret,))
    signed = webhooks.headers(hook, "given.1", body, now=datetime.now(UTC))
    assert_refused(
        client.post(PATH, data=body, headers={**signed, name: value}), 401, "bad-signature"
    )


def test_a_new_secret_is_valid_beside_the_old_one_unless_that_leaked(
    client: FlaskClient, service: Service, asked: tuple[records.Comment, str]
) -> None:
    old = service.secret
    new = registration.rotate("demo", service.by(), keeps_old=True)
    assert give(client, service, asked[1], secret=old).status_code == 200
    assert give(client, service, asked[1], secret=new).status_code == 200
    newest = registration.rotate("demo", service.by(), keeps_old=False)
    assert_refused(give(client, service, asked[1], secret=new), 401, "bad-signature")
    assert give(client, service, asked[1], secret=newest).status_code == 200


def test_a_verdict_must_name_the_request_and_reaches_no_other_comment(
    client: FlaskClient, service: Service, site: records.Site, asked: tuple[records.Comment, str]
) -> None:
    comment, question = asked
    other = say(site, "another", now=datetime.now(UTC))
    blog = site_settings.add(
        "blog", ["https://blog.example"], scheme=sample_threads.SETTINGS.scheme, now=service.now
    )
    theirs = say(blog, "theirs", now=datetime.now(UTC))
    mac = question.rpartition(".")[2]
    for wrong in (
        f"{other.id}.1.{mac}",
        f"{comment.id}.2.{mac}",
        f"{comment.id}.1.{'a' * 26}",
        f"{comment.id}.x.{mac}",
        comment.id,
        "\xe9.1.x",
        ".",
        site_service.name("blog", theirs.id, 1, SECRET),
        site_service.name("demo", theirs.id, 1, "another secret of the tests"),
    ):
        assert_refused(give(client, service, wrong, "spam"), 404, "question-not-found")
    foreign = site_service.name("demo", theirs.id, 1, SECRET)
    assert_refused(give(client, service, foreign, "spam"), 409, "decided-since")
    assert service.status(comment) is service.status(other) is Status.PENDING
    path = "/api/v1/sites/blog/opinions"
    assert_refused(give(client, service, question, path=path), 401, "bad-signature")


@pytest.mark.parametrize(
    "sent",
    [
        {"verdict": "delete"}, {"verdict": 1}, {"verdict": None}, {"verdict": "spam", "reason": 1},
        {"verdict": "spam", "reason": "x" * 301}, {"verdict": "spam", "reason": "a\nb"},
        {"verdict": "spam", "more": 1},
    ],
)  # fmt: skip
def test_an_invalid_verdict_is_refused_and_changes_nothing(
    client: FlaskClient, service: Service, asked: tuple[records.Comment, str], sent: dict
) -> None:
    response = give(client, service, asked[1], **sent)
    assert response.status_code == 400
    assert service.status(asked[0]) is Status.PENDING
    huge = give(client, service, asked[1], reason="x" * 70_000)
    assert huge.status_code == 413


@pytest.mark.parametrize("since", ["decided", "edited", "retracted", "late"])
def test_a_verdict_after_an_edit_a_decision_or_the_term_changes_nothing(
    client: FlaskClient,
    service: Service,
    site: records.Site,
    asked: tuple[records.Comment, str],
    since: str,
) -> None:
    comment, question = asked
    if since == "decided":
        service.decide(comment, Verb.REJECT)
    elif since == "edited":
        own_comment.edit(
            comment.id, author_id=comment.author.id, body="another", revision=None,
            settings=service.settings, now=datetime.now(UTC),
        )  # fmt: skip
    elif since == "retracted":
        sample_threads.retract(comment)
    else:
        comment = say(site, "old", now=datetime.now(UTC) - timedelta(days=8))
        question = site_service.name("demo", comment.id, 1, SECRET)
    before = service.case(comment)
    assert_refused(give(client, service, question), 409, "decided-since")
    assert service.case(comment) == before


def test_a_site_without_a_classifier_accepts_no_verdicts(
    client: FlaskClient, service: Service, asked: tuple[records.Comment, str]
) -> None:
    registration.remove("demo", "webhook", service.by())
    assert_refused(give(client, service, asked[1]), 401, "bad-signature")
