"""Posts without JavaScript are limited and held more strictly than posts with a proof of work."""

import itertools
from typing import Any

from flask.testing import FlaskClient

from comments.domain import records
from comments.domain.records import Policy, Status, Verb
from comments.moderation import decisions
from comments.moderation.policy import policy_changes
from comments.posting import admission
from comments.sites import turnstile_settings
from comments.store import connection
from tests.support.html.plain_forms import PAGE, TEXT, form, resend, rows, send
from tests.support.people import api_requests
from tests.support.people.post_times import Moment
from tests.support.threads import sample_threads

BOSS = records.Actor("cli", "the command line")

CHECKED = {"proof_of_work": 10, "form_seconds": 3}


def test_without_a_proof_of_work_each_comment_waits_for_a_moderator(
    door: Any, plain: Any, open_store: connection.Store
) -> None:
    client = door(**CHECKED)
    page = client.get(PAGE).text
    assert "A moderator reviews comments from this form before others can see them." in page
    answer = send(client)
    assert answer.headers["Location"] == "demo/waiting?thread=page"
    assert client.get(PAGE).text.count("ft-comment") == page.count("ft-comment")
    with open_store.context():
        (case,) = sample_threads.queue()
        assert (case.comment.status, case.rule) == (Status.PENDING, "form")
        assert case.why == "it was sent without JavaScript and therefore without a proof of work"
        row = case.comment
        decisions.decide("demo", row.id, Verb.APPROVE, BOSS, now=sample_threads.START)
    assert [each.id for each in rows(open_store)] == [row.id]
    # The author is not recognized: the next comment waits too.
    assert send(client, body="Another").headers["Location"] == "demo/waiting?thread=page"


def test_turnstile_is_replaced_by_a_moderator_too(
    door: Any, plain: Any, open_store: connection.Store
) -> None:
    client = door()
    assert "A moderator reviews" not in client.get(PAGE).text
    with open_store.context():
        turnstile_settings.set_up(
            "demo",
            turnstile_settings.TurnstileInput("key", "secret"),
            settings=sample_threads.SETTINGS,
            now=sample_threads.START,
        )
    assert "A moderator reviews" in client.get(PAGE).text
    assert send(client).headers["Location"] == "demo/waiting?thread=page"


def test_a_network_posts_less_without_proofs(door: Any, plain: Any, moment: Moment) -> None:
    client = door(**CHECKED, posts_per_network=20)
    answers = [send(client, body=f"text {n}") for n in range(admission.FORM_POSTS + 1)]
    assert [each.status_code for each in answers] == [303] * admission.FORM_POSTS + [429]
    assert answers[-1].headers["Retry-After"] == "600"
    assert form(answers[-1].text)["name"] == "Ann"
    assert send(client, peer="198.51.100.1").status_code == 303
    moment.pass_by(minutes=10)
    assert send(client).status_code == 303


def test_a_sites_own_stricter_limit_applies(door: Any, plain: Any, moment: Moment) -> None:
    client = door(**CHECKED, posts_per_network=1)
    assert [send(client, body=f"text {n}").status_code for n in range(2)] == [303, 429]


def test_a_site_gets_a_limited_number_of_posts_without_proofs(
    door: Any, plain: Any, moment: Moment
) -> None:
    client = door(**CHECKED)
    peers = (f"198.51.100.{n}" for n in itertools.count(1))
    for number in range(admission.FORMS.most):
        moment.pass_by(seconds=1)
        assert send(client, peer=next(peers), body=f"text {number}").status_code == 303
    assert send(client, peer=next(peers)).status_code == 429
    moment.pass_by(hours=1)
    assert send(client, peer=next(peers)).status_code == 303


def test_pressing_the_button_twice_at_the_limit_posts_once(
    door: Any, plain: Any, open_store: connection.Store
) -> None:
    client = door(**CHECKED, posts_per_network=1)
    found = form(client.get(PAGE).text) | TEXT
    answers = [resend(client, **found) for _ in range(2)]
    assert [each.headers["Location"] for each in answers] == ["demo/waiting?thread=page"] * 2
    assert api_requests.stored(open_store, "Comment") == 1


def test_without_proofs_the_sites_rules_decide(
    client: FlaskClient, plain: Any, open_store: connection.Store
) -> None:
    with open_store.context():
        policy_changes.set_policy("demo", BOSS, now=sample_threads.START, policy=Policy.ALL)
    assert send(client).headers["Location"] == "demo/waiting?thread=page"
    with open_store.context():
        (case,) = sample_threads.queue()
    assert case.rule == "policy:all"
