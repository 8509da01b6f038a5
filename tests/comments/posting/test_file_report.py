"""Each person's report counts once, enough reports hold a comment, and abuse has no effect."""

import contextlib
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import pytest
from flask.testing import FlaskClient

from comments import errors
from comments.domain import records
from comments.domain.ids import author_ids
from comments.domain.records import Status, Verb
from comments.events import audit_log, dispatcher
from comments.moderation import decisions, reports, retention
from comments.moderation.policy import policy_changes
from comments.moderation.reports import Reason
from comments.posting import file_report, own_comment
from comments.store import connection
from comments.upkeep import wiring
from tests.support import stored_state
from tests.support.histories import counter_oracle
from tests.support.people.api_requests import NOBODY, ONE, answer, bearer, listed, post, refused
from tests.support.threads import sample_threads

ADA = records.Actor("cli", "Ada")
NOW = sample_threads.START


def _report(row: records.Comment, network: str, author: str = "", **more: Any) -> None:
    given = {"reason": Reason.SPAM, "now": NOW, "site": "demo"} | more
    request = sample_threads.request(given["site"], now=given["now"], network=network)  # type: ignore[arg-type]
    file_report.report(row.id, given["reason"], request, author=author)  # type: ignore[arg-type]


def _status(row: records.Comment) -> Status:
    return decisions.case("demo", row.id).comment.status


@pytest.fixture
def row(store: connection.Store, site: records.Site) -> records.Comment:
    return sample_threads.post(site, "text")


def test_enough_different_reporters_hold_a_comment_with_their_reasons(row: records.Comment) -> None:
    _report(row, "one")
    _report(row, "two", reason=Reason.ABUSE)
    assert _status(row) is Status.APPROVED
    assert [each.open for each in reports.most("demo", 9)] == [2]
    _report(row, "three")
    case = decisions.case("demo", row.id)
    assert (case.comment.status, case.rule, case.why) == (
        Status.PENDING, "reports", "abuse 1, spam 2",
    )  # fmt: skip
    (entry,) = audit_log.log("demo")
    assert (entry.actor, entry.verb) == (file_report.BY, "hold")
    stored_state.assert_sums(is_delivered=False)


def test_a_person_counts_once_and_so_does_a_network(row: records.Comment) -> None:
    for number in range(5):
        _report(row, "one")
        _report(row, "one", f"g:{number}")
        _report(row, f"other {number}", "g:ann")
    assert reports.of([row.id])[row.id].open == 2
    assert _status(row) is Status.APPROVED


def test_the_same_reporters_cannot_hold_an_approved_comment_again(
    row: records.Comment,
) -> None:
    for number in range(3):
        _report(row, f"192.0.2.{number}", f"a:{number}")
    decisions.decide("demo", row.id, Verb.APPROVE, ADA, now=NOW)
    assert reports.most("demo", 9) == []
    for number in range(5):
        _report(row, f"192.0.2.{number}", f"a:{number}")
    assert _status(row) is Status.APPROVED
    _report(row, "192.0.2.5", "a:5")
    assert _status(row) is Status.PENDING


def test_anonymous_reports_of_one_area_count_once(row: records.Comment) -> None:
    for number in range(9):
        _report(row, f"192.0.{number}.1", f"g:{number}")
        _report(row, f"2001:db8:{number}::/64")
    assert reports.of([row.id])[row.id].open == 2
    assert _status(row) is Status.APPROVED
    _report(row, "192.1.2.1")
    assert _status(row) is Status.PENDING


def test_accounts_of_one_area_count_separately(row: records.Comment) -> None:
    for number in range(3):
        _report(row, f"192.0.2.{number}", f"a:{number}")
    assert _status(row) is Status.PENDING


def _anonymously(row: records.Comment, first: int = 0) -> None:
    for number in range(first, first + 9):
        with contextlib.suppress(errors.NotFound):  # Raised once the comment is held
            _report(row, f"10.{number}.0.1", f"g:{number}")


@pytest.mark.parametrize("verb", [Verb.APPROVE, Verb.RESTORE])
def test_anonymous_reports_never_hold_a_comment_that_a_moderator_approved(
    row: records.Comment, verb: Verb
) -> None:
    for number in range(3):
        _report(row, f"172.{number}.0.1")
    assert _status(row) is Status.PENDING
    decisions.decide("demo", row.id, verb, ADA, now=NOW)
    _anonymously(row)
    assert _status(row) is Status.APPROVED
    assert reports.of([row.id])[row.id].open == 9
    for number in range(3):
        assert _status(row) is Status.APPROVED
        _report(row, f"192.0.2.{number}", f"a:{number}")
    assert _status(row) is Status.PENDING


def test_approving_a_visible_comment_protects_it_from_anonymous_reports(
    row: records.Comment,
) -> None:
    _report(row, "one")
    decisions.decide("demo", row.id, Verb.APPROVE, ADA, now=NOW)
    _anonymously(row)
    assert _status(row) is Status.APPROVED


def test_an_approval_covers_only_the_text_that_was_approved(
    store: connection.Store, site: records.Site
) -> None:
    policy_changes.set_policy("demo", ADA, now=NOW, policy=records.Policy.ALL)
    row = sample_threads.post(site, "text")
    decisions.decide("demo", row.id, Verb.APPROVE, ADA, now=NOW)
    policy_changes.set_policy("demo", ADA, now=NOW, policy=records.Policy.OFF)
    _anonymously(row)
    assert _status(row) is Status.APPROVED
    own_comment.edit(
        row.id, author_id=row.author.id, body="another", revision=None,
        settings=sample_threads.SETTINGS, now=NOW + timedelta(minutes=1),
    )  # fmt: skip
    _anonymously(row, first=20)
    assert _status(row) is Status.PENDING


@pytest.mark.parametrize(
    ("author", "others", "expected"),
    [
        ("a:ann", file_report.TRUSTED, Status.APPROVED),
        ("a:ann", file_report.TRUSTED - 1, Status.PENDING),
        (author_ids.guest("b" * 26, NOW - timedelta(days=1)), file_report.TRUSTED, Status.APPROVED),
        (author_ids.guest("b" * 26, NOW), file_report.TRUSTED, Status.PENDING),
    ],
)
def test_anonymous_reports_never_hold_a_trusted_authors_comment(
    site: records.Site, store: connection.Store, author: str, others: int, expected: Status
) -> None:
    who = records.Author("Ann", id=author)
    row, *_ = [sample_threads.post(site, f"{number}", author=who) for number in range(others + 1)]
    dispatcher.deliver(counter_oracle.events(), now=NOW, handlers=wiring.HANDLERS)
    _anonymously(row)
    assert _status(row) is expected


@pytest.mark.parametrize("limit", [0, 1, 5])
def test_a_site_sets_the_number_of_reports_that_hold(row: records.Comment, limit: int) -> None:
    policy_changes.set_policy("demo", ADA, now=NOW, reports=limit)
    for number in range(4):
        if _status(row) is Status.APPROVED:
            _report(row, f"{number}")
    assert _status(row) is (Status.PENDING if limit == 1 else Status.APPROVED)


def test_only_visible_comments_of_the_site_can_be_reported(row: records.Comment) -> None:
    with pytest.raises(errors.NotFound):
        _report(row, "one", site="other")
    decisions.decide("demo", row.id, Verb.HOLD, ADA, now=NOW)
    with pytest.raises(errors.NotFound):
        _report(row, "one")
    assert reports.of([row.id]) == {}


def test_a_network_may_report_a_few_times_an_hour(
    store: connection.Store, site: records.Site
) -> None:
    most = file_report.PER_NETWORK.most
    rows = [sample_threads.post(site, f"{number}") for number in range(most + 1)]
    for each in rows[:most]:
        _report(each, "one")
    with pytest.raises(errors.TooMany) as told:
        _report(rows[most], "one")
    assert told.value.retry_after == 3600
    _report(rows[most], "two")
    _report(rows[most], "one", now=NOW + timedelta(hours=1))


def test_the_store_does_not_identify_reporters(row: records.Comment) -> None:
    _report(row, "203.0.113.99", "g:canary")
    stored = str([list(stored_state.rows(kind)) for kind in ("Report", "RateBucket", "AuditEntry")])
    assert "203.0.113" not in stored
    assert "canary" not in stored


def test_reporters_are_deleted_after_the_retention_period(row: records.Comment) -> None:
    _report(row, "one")
    retention.expire(NOW + retention.TERM - timedelta(seconds=1))
    assert reports.of([row.id])
    retention.expire(NOW + retention.TERM)
    assert reports.of([row.id]) == {}


@pytest.mark.slow
def test_concurrent_reports_hold_once(open_store: connection.Store, site: records.Site) -> None:
    with open_store.context():
        row = sample_threads.post(site, "text")
    barrier = threading.Barrier(8)

    def report(number: int) -> None:
        with open_store.context():
            barrier.wait(60)
            with contextlib.suppress(errors.NotFound):
                _report(row, f"{number}")

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(report, range(8)))
    with open_store.context():
        assert _status(row) is Status.PENDING
        assert len(audit_log.log("demo")) == 1
        assert reports.of([row.id])[row.id].open == 3
        stored_state.assert_sums(is_delivered=False)


def test_the_response_to_a_report_does_not_depend_on_its_effect(
    client: FlaskClient, open_store: connection.Store
) -> None:
    with open_store.context():
        policy_changes.set_policy("demo", ADA, now=NOW, reports=2)
    made = post(client)
    url = f"{ONE}{made['comment']['id']}/report"
    told = [client.post(url, json={"reason": "spam"}, headers=bearer(made)) for _ in range(2)]
    told.append(
        client.post(url, json={}, headers=bearer(made), environ_base={"REMOTE_ADDR": "203.0.113.7"})
    )
    assert [each.status_code for each in told] == [202] * 3
    assert {each.data for each in told} == {b'{"status":"reported"}'}
    assert len(listed(client)) == 1
    other = post(client, "Bob", "another", parent=made["comment"]["id"])
    away = {"REMOTE_ADDR": "198.51.100.9"}
    assert answer(client.post(url, json={}, headers=bearer(other), environ_base=away))
    assert [row["status"] for row in _rows(client)] == ["removed", "approved"]


def _rows(client: FlaskClient) -> list[dict]:
    from tests.support.people.api_requests import THREAD  # noqa: PLC0415 - only this test needs it

    return list(answer(client.get(THREAD))["comments"])


def test_an_invalid_report_is_refused(client: FlaskClient) -> None:
    made = post(client)
    url = f"{ONE}{made['comment']['id']}/report"
    refused(client.post(url, json={"reason": "boring"}), 400, "reason")
    refused(client.post(url, json={"text": "x"}), 400, "text")
    refused(client.post(f"{ONE}{NOBODY}/report", json={}), 404)
    refused(client.post(url, json={}, headers={"Authorization": "Bearer x"}), 401)
