"""Test the requests and corrections to Akismet, its verdicts, and what it learns about senders.

A real HTTP server on loopback simulates Akismet as documented.
"""

import dataclasses
import json
from collections.abc import Iterator
from datetime import timedelta
from urllib.parse import parse_qs

import pytest

from comments import errors
from comments.accounts import accounts
from comments.domain import records
from comments.domain.moderation import classifier_verdicts
from comments.domain.records import Status, Verb
from comments.events import audit_log, dead_letters, retry_pauses
from comments.moderation import decisions
from comments.moderation.classifiers import akismet, classifier_answers, registration
from comments.moderation.policy import rulebook
from comments.posting import own_comment
from comments.store import connection, reads
from comments.transfer import personal_data
from tests.support import loopback_servers
from tests.support.histories import counter_oracle
from tests.support.outside import classifier_site
from tests.support.outside.classifier_site import BOSS, Service, say
from tests.support.threads import sample_threads

KEY = "0123456789ab"


class Akismet(Service):
    """The site "demo" with Akismet; tests set the verdicts."""

    def is_asked_too(self, **terms: bool) -> None:
        given = registration.Terms(**terms)
        url = f"http://{loopback_servers.NAME}:{self.receiver.port}/1.1/"
        registration.set_akismet("demo", KEY, given, self.by(), self.client, url=url)

    def finds(self, word: str, **headers: str) -> None:
        self.receiver.answer, self.receiver.headers = word.encode(), headers

    @property
    def asked(self) -> list[tuple[str, dict[str, str]]]:
        """The calls that Akismet received, with their fields."""
        return [
            (
                each.path.removeprefix("/1.1/"),
                {name: "".join(value) for name, value in parse_qs(each.body.decode()).items()},
            )
            for each in self.receiver.heard
        ]


@pytest.fixture
def service(
    open_store: connection.Store, store: connection.Store, site: records.Site
) -> Iterator[Akismet]:
    with classifier_site.serving(open_store) as made:
        found = Akismet(made.receiver, made.client, made.settings, made.other)
        found.is_asked_too()
        yield found


def test_a_request_has_only_the_fields_that_akismet_needs(
    service: Akismet, site: records.Site
) -> None:
    service.finds("false")
    comment = say(site, "a *text*", url="http://localhost:8080/page")
    assert (comment.status, service.case(comment).rule) == (Status.PENDING, "opinion:akismet")
    service.ask()
    assert service.asked == [
        (
            "comment-check",
            {
                "api_key": KEY, "blog": "http://localhost:8080/", "blog_charset": "UTF-8",
                "user_ip": "203.0.113.9", "user_agent": "Canary/1.0",
                "permalink": "http://localhost:8080/page", "comment_type": "comment",
                "comment_author": "Ann", "comment_author_email": "ann@mailbox.example",
                "comment_author_url": "https://ann.example", "comment_content": "a *text*",
                "comment_date_gmt": "2026-01-02T03:04:05Z",
            },
        )
    ]  # fmt: skip
    (heard,) = service.receiver.heard
    assert {name.lower() for name in heard.headers} == {
        "host", "connection", "accept-encoding", "content-type", "content-length", "user-agent",
    }  # fmt: skip
    assert service.status(comment) is Status.APPROVED
    reply = say(site, "a reply", comment.id, url="http://elsewhere.example/")
    service.ask()
    assert service.asked[-1][1]["comment_type"] == "reply"
    assert service.status(reply) is Status.APPROVED


@pytest.mark.parametrize(
    ("network", "sent"),
    [
        ("2001:db8:0:7::/64", "2001:db8:0:7::"), ("unknown", akismet.NOBODY),
        ("", akismet.NOBODY), ("192.0.2.1", "192.0.2.1"),
    ],
)  # fmt: skip
def test_an_address_is_sent_only_as_far_as_it_is_known(
    service: Akismet, site: records.Site, network: str, sent: str
) -> None:
    say(site, sender=classifier_verdicts.Sender(network))
    service.ask()
    fields = service.asked[0][1]
    assert (fields["user_ip"], "user_agent" in fields) == (sent, False)


def test_members_comments_are_not_checked_unless_the_site_enables_it(
    service: Akismet, site: records.Site
) -> None:
    member = records.Author("Bob", id=f"{accounts.AUTHOR}bob")
    assert say(site, "known", author=member).status is Status.APPROVED
    service.ask()
    assert service.asked == []
    service.is_asked_too(everybody=True)
    assert say(site, "known too", author=member).status is Status.PENDING


@pytest.mark.parametrize(
    ("word", "headers", "becomes", "why"),
    [
        ("true", {}, Status.SPAM, ""),
        ("true\n", {"X-akismet-pro-tip": "discard"}, Status.SPAM, "Akismet advises discarding it"),
        ("false", {"X-akismet-pro-tip": "discard"}, Status.APPROVED, ""),
        ("false", {}, Status.APPROVED, ""),
    ],
)
def test_a_spam_verdict_makes_a_comment_spam_and_others_show_it(
    service: Akismet, site: records.Site, word: str, headers: dict, becomes: Status, why: str
) -> None:
    service.finds(word, **headers)
    comment = say(site, "the text that is kept")
    service.ask()
    found = service.case(comment)
    assert (found.comment.status, found.rule, found.why) == (becomes, "akismet", why)
    assert found.comment.body == "the text that is kept"
    (noted,) = audit_log.log("demo", subject=comment.id)
    assert (noted.actor, noted.reason) == (records.Actor("akismet", "Akismet"), why)
    decisions.undo("demo", noted.id, BOSS, now=service.now)
    service.check()


@pytest.mark.parametrize("word", ["invalid", "", "True", "falsetrue", "<html>", "x" * 20_000])
def test_an_answer_that_is_neither_true_nor_false_is_a_failure(
    service: Akismet, site: records.Site, word: str
) -> None:
    service.finds(word, **{"X-akismet-debug-help": 'Empty "user_ip" value'})
    comment = say(site)
    assert service.ask().failed == 1
    assert (service.status(comment), classifier_answers.of([comment.id])) == (Status.PENDING, {})
    (left,) = classifier_site.waiting()
    assert "Canary" not in left.content
    service.finds("false")
    service.ask(2)
    assert service.status(comment) is Status.APPROVED


def test_after_the_last_attempt_a_comment_is_held_and_its_sender_is_erased(
    service: Akismet, site: records.Site
) -> None:
    service.receiver.status = 503
    comment = say(site)
    service.ask(1)
    (left,) = classifier_site.waiting()
    assert classifier_verdicts.decode_question(left.content).sender
    service.ask(retry_pauses.MOST_ATTEMPTS + 2)
    assert len(service.asked) == retry_pauses.MOST_ATTEMPTS
    said = classifier_answers.of([comment.id])[comment.id].of["akismet"]
    assert (service.status(comment), said.reason) == (Status.PENDING, "answered 503")
    (dead,) = dead_letters.dead().letters
    assert classifier_verdicts.decode_question(
        dead.detail
    ) == classifier_verdicts.ClassifierQuestion(1)
    # A later request cannot send the sender's address, because it is no longer stored.
    service.receiver.status = 200
    service.finds("true")
    dead_letters.revive(dead.id, now=service.now)
    service.ask()
    assert service.asked[-1][1]["user_ip"] == akismet.NOBODY
    assert service.status(comment) is Status.SPAM


def test_a_sender_is_stored_encrypted_and_erased_with_the_verdict(
    service: Akismet, site: records.Site
) -> None:
    service.finds("false")
    comment = say(site)

    def stored(*kinds: str) -> str:
        return "".join(str(entity) for kind in kinds for entity in reads.fetch(reads.Query(kind)))

    everything = ("Event", "Message", "Comment", "Advice", "AuditEntry", "RateBucket")
    assert "203.0.113.9" not in stored(*everything)
    assert "Canary" not in stored(*everything)
    service.ask()
    service.deliver()
    assert classifier_site.waiting() == []
    assert counter_oracle.events() == []
    assert personal_data.author_of(comment.id) == "g:ann"


# --- Both classifiers, and corrections --------------------


@pytest.mark.parametrize(
    ("ours", "akismets", "becomes"),
    [
        ("approve", "false", Status.APPROVED),
        ("hold", "false", Status.PENDING),
        ("approve", "true", Status.SPAM),
        ("reject", "false", Status.REJECTED),
    ],
)
def test_a_comment_that_waits_for_two_classifiers_is_shown_if_both_allow_it(
    service: Akismet, site: records.Site, ours: str, akismets: str, becomes: Status
) -> None:
    service.finds(akismets)
    service.is_asked(url=service.other.url)
    service.other.answer = json.dumps({"verdict": ours}).encode()
    comment = say(site)
    assert service.case(comment).rule == "opinion:akismet+webhook"
    assert service.ask().told == 2
    assert service.status(comment) is becomes
    service.check()


def test_a_comment_is_not_shown_while_one_of_two_classifiers_has_not_answered(
    service: Akismet, site: records.Site
) -> None:
    service.finds("false")
    service.is_asked(url=service.other.url)
    service.other.status = 202
    comment = say(site)
    assert service.ask().told == 2
    assert service.status(comment) is Status.PENDING


def submitted(service: Akismet) -> list[str]:
    return [call for call, _ in service.asked if call.startswith("submit")]


def test_each_moderators_decision_against_the_verdict_is_sent_as_a_correction_once(
    service: Akismet, site: records.Site
) -> None:
    service.finds("true")
    comment = say(site)
    service.ask()
    for verb in (Verb.REJECT, Verb.SPAM):
        service.decide(comment, verb)
    service.ask()
    assert submitted(service) == []
    service.decide(comment, Verb.APPROVE)
    service.decide(comment, Verb.HIDE)
    service.decide(comment, Verb.APPROVE)
    service.ask()
    assert submitted(service) == ["submit-ham"]
    call, fields = service.asked[-1]
    assert (call, fields["comment_content"], fields["api_key"]) == ("submit-ham", "text", KEY)
    assert (fields["user_ip"], "user_agent" in fields) == (akismet.NOBODY, False)
    service.decide(comment, Verb.SPAM)
    service.ask()
    assert submitted(service) == ["submit-ham", "submit-spam"]
    service.check()


def test_an_undo_of_a_verdict_is_a_correction_and_the_verdict_itself_is_not(
    service: Akismet, site: records.Site
) -> None:
    service.is_asked_too(holds=False)
    service.finds("true")
    comment = say(site)
    service.ask()
    assert submitted(service) == []
    (noted,) = audit_log.log("demo", subject=comment.id)
    decisions.undo("demo", noted.id, BOSS, now=service.now)
    service.ask()
    assert (submitted(service), service.status(comment)) == (["submit-ham"], Status.APPROVED)


def test_no_correction_is_sent_for_a_changed_or_erased_text(
    service: Akismet, site: records.Site
) -> None:
    service.finds("false")
    edited, erased = say(site, "to be edited"), say(site, "to be taken back")
    service.ask()
    at = service.now + timedelta(seconds=1)
    service.settings = dataclasses.replace(service.settings, edit_window=86_400)
    own_comment.edit(
        edited.id, author_id="g:ann", body="another", revision=None,
        settings=service.settings, now=at,
    )  # fmt: skip
    new = say(site, "never asked about")
    for comment in (edited, erased, new):
        service.decide(comment, Verb.SPAM)
    sample_threads.retract(erased)
    told = [
        classifier_verdicts.decode_question(each.content).correction
        for each in classifier_site.waiting()
    ]
    assert told == ["spam"]  # Queued only for the comment that is erased later
    service.ask(2)
    assert submitted(service) == []


def test_a_failed_correction_is_retried(service: Akismet, site: records.Site) -> None:
    service.finds("false")
    comment = say(site)
    service.ask()
    service.decide(comment, Verb.SPAM)
    service.receiver.status = 500
    service.ask()
    service.receiver.status = 200
    service.ask(2)
    assert submitted(service) == ["submit-spam", "submit-spam"]
    assert (
        classifier_answers.of([comment.id])[comment.id].of["akismet"].state
        is classifier_answers.AnswerState.SAID
    )


# --- The key --------------------


def test_the_key_is_stored_encrypted_and_kept_if_none_is_given(
    service: Akismet, site: records.Site
) -> None:
    assert KEY not in str(list(reads.fetch(reads.Query("Rulebook"))))
    registration.set_akismet(
        "demo", "", registration.Terms(holds=False), service.by(), service.client
    )
    (found,) = registration.every("demo")
    assert registration.secrets_of(found, sample_threads.SETTINGS.secret, now=service.now) == (KEY,)
    assert (found.holds, found.url.endswith("/1.1/")) == (False, True)
    assert KEY not in str(audit_log.log("demo"))
    registration.remove("demo", "akismet", service.by())
    registration.set_akismet("demo", "abc", registration.Terms(), service.by(), service.client)
    assert rulebook.from_store("demo").classifiers[0].url == akismet.ADDRESS


@pytest.mark.parametrize("key", ["", "two words", "x" * 101, "schl\xfcssel", "a&b=c"])
def test_an_invalid_key_is_refused(service: Akismet, key: str) -> None:
    registration.remove("demo", "akismet", service.by())
    with pytest.raises(errors.BadInput, match="key"):
        registration.set_akismet("demo", key, registration.Terms(), service.by(), service.client)
    assert registration.every("demo") == ()


def test_an_internal_address_is_refused(service: Akismet) -> None:
    with pytest.raises(errors.UnsafeAddress):
        registration.set_akismet(
            "demo", KEY, registration.Terms(), service.by(), service.client, url="https://10.0.0.1/"
        )
