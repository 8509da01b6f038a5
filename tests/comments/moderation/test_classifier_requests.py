"""Each site's own classifier gets the right requests, and its verdicts take effect.

The classifier is a real HTTP server; the tests run all the code that handles a post's event.
"""

import json
from collections.abc import Iterator
from datetime import timedelta

import grpc
import pytest

from comments.accounts import accounts
from comments.domain import records
from comments.domain.moderation.classifier_verdicts import Verdict
from comments.domain.records import Policy, Status, Verb
from comments.events import audit_log, dispatcher, webhooks
from comments.moderation import decisions
from comments.moderation.classifiers import classifier_answers, classifier_requests
from comments.moderation.policy import policy_changes, rulebook
from comments.notifications import planner
from comments.posting import own_comment
from comments.sites import site_settings
from comments.store import connection
from comments.upkeep import wiring
from datastore_emulator import inprocess, testing
from tests.support import loopback_servers
from tests.support.outside import classifier_site, mail_server
from tests.support.outside.classifier_site import BOSS, Service, say
from tests.support.store_interceptors import TRANSIENT, Faults
from tests.support.threads import sample_threads

SHOWN, HELD = Status.APPROVED, Status.PENDING


@pytest.fixture
def service(
    open_store: connection.Store, store: connection.Store, site: records.Site
) -> Iterator[Service]:
    with classifier_site.serving(open_store) as made:
        yield made


def edit(comment: records.Comment, text: str, service: Service) -> records.Comment:
    now = comment.created + timedelta(minutes=5)
    return own_comment.edit(
        comment.id, author_id=comment.author.id, body=text, revision=None,
        settings=service.settings, now=now,
    )  # fmt: skip


def entry(comment: records.Comment) -> records.Audit:
    return audit_log.log("demo", subject=comment.id)[0]


# --- The request --------------------


def test_a_request_contains_what_moderators_see_and_nothing_about_the_sender(
    service: Service, site: records.Site
) -> None:
    service.is_asked()
    service.says("approve")
    comment = say(site, "a *text*", title="Of snails", url="http://localhost:8080/page")
    assert comment.status is HELD
    assert service.ask().told == 1
    (heard,) = service.receiver.heard
    hook = webhooks.Hook(service.receiver.url, (service.secret,))
    assert heard.headers["webhook-id"] == f"msg_{comment.id}_1_review"
    signed = webhooks.headers(hook, f"{comment.id}.1.review", heard.body, now=service.now)
    assert heard.headers["webhook-signature"] == signed["webhook-signature"]
    asked = json.loads(heard.body)
    assert (asked["type"], asked["data"]["title"]) == ("comment.review", "Of snails")
    said = asked["data"]["comment"]
    assert (said["text"], said["html"]) == ("a *text*", "<p>a <em>text</em></p>\n")
    assert said["author"] == {"name": "Ann", "website": "https://ann.example", "guest": True}
    for personal in ("mailbox.example", "g:ann", "203.0.113.9", "Canary"):
        assert personal not in heard.body.decode()


def test_a_request_uses_tls_and_the_host_name(
    open_store: connection.Store, store: connection.Store, site: records.Site
) -> None:
    with loopback_servers.receiver(certificate=loopback_servers.NAME) as receiver:
        client = loopback_servers.client(receiver.port, limits=classifier_site.LIMITS)
        classifier_requests.OUTBOUND.put(open_store, client)
        service = Service(receiver, client, sample_threads.SETTINGS)
        service.is_asked(url=f"https://{loopback_servers.NAME}:{receiver.port}/in")
        service.says("approve")
        comment = say(site)
        service.ask()
        assert service.status(comment) is SHOWN


def test_a_request_costs_a_post_nothing_and_no_post_waits_for_it(
    service: Service, site: records.Site, engine: inprocess.Engine
) -> None:
    say(site, "to be there")
    costs = []
    for number in range(2):
        rulebook.current("demo")
        with testing.meter(engine) as cost:
            say(site, f"text {number}")
        costs.append((cost.reads, cost.writes))
        service.is_asked()
    assert costs[0] == costs[1]
    assert service.receiver.heard == []


def test_members_comments_are_not_sent_to_a_classifier_for_guests(
    service: Service, site: records.Site
) -> None:
    service.is_asked(everybody=False)
    member = records.Author("Bob", id=f"{accounts.AUTHOR}bob")
    assert say(site, "known", author=member).status is SHOWN
    assert say(site, "guest").status is HELD
    assert say(site, "new", author=records.Author("New")).status is HELD
    service.says("approve")
    service.ask()
    assert len(service.receiver.heard) == 2


def test_refused_or_retracted_comments_are_not_sent(service: Service, site: records.Site) -> None:
    service.is_asked()
    banned = records.Author("Eve", id="g:eve")
    policy_changes.ban("demo", "g:eve", BOSS, now=service.now, is_shadow=True)
    # Other authors' comments wait for the classifier, so this comment must appear to wait too.
    assert say(site, author=banned).status is Status.SPAM
    sample_threads.retract(say(site, "taken back"))
    service.ask()
    assert service.receiver.heard == []
    assert classifier_site.waiting() == []


# --- The effect --------------------


@pytest.mark.parametrize(
    ("holds", "verdict", "becomes"),
    [
        (1, Verdict.APPROVE, SHOWN),
        (1, Verdict.HOLD, HELD),
        (1, Verdict.SPAM, Status.SPAM),
        (1, Verdict.REJECT, Status.REJECTED),
        (0, Verdict.APPROVE, SHOWN),
        (0, Verdict.HOLD, HELD),
        (0, Verdict.SPAM, Status.SPAM),
        (0, Verdict.REJECT, Status.REJECTED),
    ],
)
def test_a_verdict_is_applied_like_a_moderators_decision(
    service: Service, site: records.Site, holds: int, verdict: Verdict, becomes: Status
) -> None:
    service.is_asked(holds=bool(holds))
    service.says(verdict, "for a reason")
    comment = say(site)
    assert comment.status is (HELD if holds else SHOWN)
    reply = None if holds else say(site, "a reply", comment.id)
    service.ask()
    found = service.case(comment)
    assert found.comment.status is becomes
    assert classifier_answers.of([comment.id])[comment.id].of["webhook"].reason == "for a reason"
    if becomes is not comment.status:
        noted = entry(comment)
        assert (noted.actor.id, noted.reason) == ("webhook", "for a reason")
        assert (noted.before, noted.after) == (comment.status, becomes)
        assert (found.rule, found.why, found.stood) == ("webhook", "for a reason", comment.status)
    if reply is not None:
        assert service.status(reply) is becomes
    service.check()
    assert classifier_site.waiting() == []


def test_an_undone_verdict_stays_undone(service: Service, site: records.Site) -> None:
    service.is_asked(holds=False)
    service.says("spam")
    comment = say(site)
    service.ask()
    decisions.undo("demo", entry(comment).id, BOSS, now=service.now)
    assert service.status(comment) is SHOWN
    about = classifier_requests.RequestSubject("demo", comment.id, 1)
    said = classifier_answers.StoredAnswer(
        classifier_answers.AnswerState.SAID, service.now, Verdict.SPAM
    )
    for name, taken in (("webhook", "KNOWN"), ("akismet", "OVERTAKEN")):
        found = classifier_requests.take(
            about, name, said, settings=service.settings, now=service.now
        )
        assert found.name == taken
    assert service.status(comment) is SHOWN


def test_a_comment_that_also_waits_for_a_moderator_is_not_released(
    service: Service, site: records.Site
) -> None:
    service.is_asked()
    service.says("approve")
    policy_changes.set_policy("demo", BOSS, now=service.now, policy=Policy.ALL)
    comment = say(site)
    service.ask()
    assert (service.status(comment), service.case(comment).rule) == (HELD, "policy:all")
    assert len(service.receiver.heard) == 1
    service.says("spam")
    other = say(site, "another")
    service.ask()
    assert service.status(other) is Status.SPAM


# --- A person has the last word --------------------


@pytest.mark.parametrize("verdict", list(Verdict))
@pytest.mark.parametrize("verb", [Verb.APPROVE, Verb.REJECT, Verb.SPAM])
def test_a_moderators_decision_during_the_request_is_not_overruled(
    service: Service, site: records.Site, open_store: connection.Store, verb: Verb, verdict: Verdict
) -> None:
    service.is_asked()
    service.says(verdict)
    comment = say(site)

    def decide(_: loopback_servers.Heard) -> None:
        with open_store.context():
            service.decide(comment, verb)

    service.receiver.then = decide
    service.ask()
    found = service.case(comment)
    assert (found.rule, entry(comment).actor) == ("moderator", BOSS)
    assert found.comment.status is records.BECOMES[verb]
    assert classifier_answers.of([comment.id]) == {}
    service.check()


def test_a_moderator_who_holds_a_visible_comment_is_not_overruled(
    service: Service, site: records.Site
) -> None:
    service.is_asked(holds=False)
    comment = say(site)
    service.decide(comment, Verb.HOLD)
    service.says("approve")
    service.ask()
    assert (service.status(comment), service.case(comment).rule) == (HELD, "moderator")
    assert service.receiver.heard == []


def test_an_edit_is_judged_again_and_the_verdict_on_the_old_text_is_ignored(
    service: Service, site: records.Site, open_store: connection.Store
) -> None:
    service.is_asked()
    service.says("approve")
    comment = say(site)

    def change(_: loopback_servers.Heard) -> None:
        service.receiver.then = lambda _: None
        with open_store.context():
            edit(comment, "buy now", service)

    service.receiver.then = change
    service.ask()
    assert service.status(comment) is HELD
    service.says("spam", "of the new text")
    service.ask()
    assert service.status(comment) is Status.SPAM
    texts = [json.loads(each.body)["data"]["comment"]["text"] for each in service.receiver.heard]
    assert texts == ["text", "buy now"]


def test_an_edited_visible_comment_is_held_again(service: Service, site: records.Site) -> None:
    service.is_asked()
    service.says("approve")
    comment = say(site)
    service.ask()
    assert edit(comment, "another text", service).status is HELD
    assert sample_threads.listed(site) == []
    service.ask()
    assert sample_threads.listed(site) == ["another text"]
    service.check()


def test_an_edit_held_by_the_policy_is_not_released_by_a_verdict(
    service: Service, site: records.Site
) -> None:
    service.is_asked()
    service.says("approve")
    comment = say(site)
    policy_changes.set_policy("demo", BOSS, now=service.now, policy=Policy.LINKS)
    edit(comment, "see https://elsewhere.example/", service)
    service.ask()
    assert (service.status(comment), service.case(comment).rule) == (HELD, "policy:links")


# --- Repeated and concurrent verdicts, and a failing store --------------------


def test_a_repeated_verdict_is_applied_once(service: Service, site: records.Site) -> None:
    service.is_asked()
    comment = say(site)
    about = classifier_requests.RequestSubject("demo", comment.id, 1)

    def take(verdict: Verdict) -> str:
        said = classifier_answers.StoredAnswer(
            classifier_answers.AnswerState.SAID, service.now, verdict
        )
        return classifier_requests.take(
            about, "webhook", said, settings=service.settings, now=service.now
        ).name

    assert [take(Verdict.APPROVE), take(Verdict.APPROVE), take(Verdict.SPAM)] == [
        "DONE", "KNOWN", "OTHER",
    ]  # fmt: skip
    assert service.status(comment) is SHOWN
    assert len(audit_log.log("demo", subject=comment.id)) == 1
    service.ask()
    assert service.receiver.heard == []


@pytest.mark.parametrize("status", TRANSIENT[:2])
@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("method", ["Lookup", "Commit"])
@pytest.mark.usefixtures("brief_doubt")
def test_a_verdict_whose_store_call_fails_once_is_applied_once(
    service: Service,
    site: records.Site,
    faults: Faults,
    method: str,
    when: str,
    status: grpc.StatusCode,
) -> None:
    service.is_asked()
    comment = say(site)
    about = classifier_requests.RequestSubject("demo", comment.id, 1)
    said = classifier_answers.StoredAnswer(
        classifier_answers.AnswerState.SAID, service.now, Verdict.APPROVE
    )
    faults.plan[method, faults.calls.get(method, 0) + 1] = (when, status)
    classifier_requests.take(about, "webhook", said, settings=service.settings, now=service.now)
    assert service.status(comment) is SHOWN
    assert len(audit_log.log("demo", subject=comment.id)) == 1
    faults.plan.clear()
    service.check()


def test_verdicts_are_deleted_with_the_text(service: Service, site: records.Site) -> None:
    service.is_asked()
    service.says("approve", "knows her")
    comment = say(site)
    service.ask()
    assert classifier_answers.of([comment.id])
    sample_threads.retract(comment)
    service.ask()
    assert classifier_answers.of([comment.id]) == {}


def test_moderators_are_mailed_once_the_comment_needs_their_decision(
    service: Service, site: records.Site
) -> None:
    site_settings.change("demo", moderators=["boss@demo.example"])
    service.is_asked()
    with mail_server.serving() as box:
        service.settings = box.settings(secret=service.settings.secret)
        told = (*wiring.HANDLERS, *planner.handlers(service.settings, lambda: service.now))

        def mailed() -> list[str]:
            service.now += timedelta(minutes=5)
            while dispatcher.sweep(now=service.now, handlers=told).delivered:
                pass
            return box.recipients

        comment = say(site, "a question of taste")
        assert mailed() == []
        service.says("hold")
        service.ask()
        assert mailed() == ["boss@demo.example"]
        assert "a question of taste" in box.text()
        service.says("approve")
        say(site, "another")
        service.ask()
        assert mailed() == ["boss@demo.example"]
        assert service.status(comment) is HELD
