"""Test which classifier answers are accepted, which classifiers are asked, and what is stored."""

import json

import pytest

from comments import errors
from comments.domain.moderation import classifier_verdicts
from comments.domain.moderation.classifier_verdicts import Classifier, ClassifierAnswer, Verdict


@pytest.mark.parametrize("verdict", list(Verdict))
def test_a_verdict_with_or_without_a_reason_is_accepted(verdict: Verdict) -> None:
    assert classifier_verdicts.read(json.dumps({"verdict": verdict}).encode()) == ClassifierAnswer(
        verdict
    )
    said = {"verdict": verdict, "reason": "Größe 蜗", "score": 0.3}
    assert classifier_verdicts.read(json.dumps(said).encode()) == ClassifierAnswer(
        verdict, "Größe 蜗"
    )


@pytest.mark.parametrize(
    "data",
    [
        b"", b"approve", b'"approve"', b"null", b"[]", b"{}", b'{"verdict":"delete"}',
        b'{"verdict":"APPROVE"}', b'{"verdict":1}', b'{"verdict":null}', b'{"verdict":["spam"]}',
        b'{"reason":"x"}', b'{"verdict":"spam","reason":1}', b'{"verdict":"spam","reason":null}',
        b'{"verdict":"spam","reason":"a\\nb"}', b'{"verdict":"spam","reason":"\\u0000"}',
        b'{"verdict":"spam","reason":"\\u202e"}', b'{"verdict":"spam","reason":"\\ud800"}',
        b'{"verdict":"spam"}x', b'{"verdict":"sp\xff"}', b'{"verdict":"spam","x":' + b"[" * 5_000,
        json.dumps({"verdict": "spam", "reason": "x" * 301}).encode(),
    ],
)  # fmt: skip
def test_any_other_answer_is_refused(data: bytes) -> None:
    with pytest.raises(errors.BadInput):
        classifier_verdicts.read(data)


def test_members_comments_go_only_to_classifiers_for_everybody() -> None:
    guests = Classifier("akismet", "https://a.example", ())
    everybody = Classifier("webhook", "https://b.example", (), everybody=True)
    assert classifier_verdicts.classifiers_for((guests, everybody), is_guest=True) == (
        guests,
        everybody,
    )
    assert classifier_verdicts.classifiers_for((guests, everybody), is_guest=False) == (everybody,)


def test_only_the_rule_of_waiting_comments_names_the_awaited_classifiers() -> None:
    assert classifier_verdicts.rule(["akismet", "webhook"]) == "opinion:akismet+webhook"  # Stored
    assert classifier_verdicts.awaited_classifiers("opinion:akismet+webhook") == (
        "akismet",
        "webhook",
    )
    for other in ("", "policy:first", "rule:opinion:x", "moderator", "webhook"):
        assert classifier_verdicts.awaited_classifiers(other) == ()


def test_the_stored_forms_are_stable() -> None:
    asked = classifier_verdicts.ClassifiersToAsk(("akismet",), "sealed")
    assert classifier_verdicts.encode(asked) == '{"of":["akismet"],"sender":"sealed"}'
    assert classifier_verdicts.decode_asked('{"of":["akismet"],"sender":"sealed"}') == asked
    question = classifier_verdicts.ClassifierQuestion(3, "sealed")
    assert classifier_verdicts.encode(question) == '{"revision":3,"sender":"sealed"}'
    assert classifier_verdicts.decode_question(
        '{"revision":3}'
    ) == classifier_verdicts.ClassifierQuestion(3)
    assert (
        classifier_verdicts.encode(classifier_verdicts.Sender("192.0.2.1", "B"))
        == '["192.0.2.1","B"]'
    )
