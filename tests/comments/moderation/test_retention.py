"""The service erases refused texts and commenters' addresses after their retention periods."""

from datetime import timedelta
from typing import Any

import pytest

from comments import config, errors
from comments.domain import records
from comments.domain.records import Status, Verb
from comments.events import dispatcher
from comments.moderation import decisions, retention, retention_marks
from comments.store import connection, reads, transactions
from comments.store.models import comment_rows, conversion
from comments.upkeep import wiring
from tests.support import stored_state
from tests.support.threads import sample_threads

ADA = records.Actor("cli", "Ada")
NAME = records.ThreadName("demo", "page")


def _decide(row: records.Comment, verb: Verb, **more: object) -> Any:
    given = {"now": sample_threads.START + timedelta(hours=1), **more}
    return decisions.decide("demo", row.id, verb, ADA, **given)  # type: ignore[arg-type]


def _status(row: records.Comment) -> Status:
    return decisions.case("demo", row.id).comment.status


def _deliver() -> None:
    events = [stored_state.name_of(each) for each in stored_state.rows("Event")]
    dispatcher.deliver(events, now=sample_threads.START, handlers=wiring.HANDLERS)


def test_a_refused_text_is_erased_after_thirty_days(
    site: records.Site, tree_rows: dict[str, records.Comment]
) -> None:
    for text, verb in [("1.1", Verb.REJECT), ("2", Verb.SPAM), ("3", Verb.HIDE)]:
        _decide(tree_rows[text], verb, now=sample_threads.START)
    _decide(tree_rows["2.1"], Verb.SPAM, now=sample_threads.START)
    _decide(tree_rows["2.1"], Verb.APPROVE, now=sample_threads.START)
    _deliver()
    assert retention.expire(sample_threads.START + retention.TERM - timedelta(seconds=1)) == 0
    assert _status(tree_rows["1.1"]) is Status.REJECTED
    assert retention.expire(sample_threads.START + retention.TERM) == 2
    stored = {
        row.id: row for row in map(conversion.comment_from_message, stored_state.rows("Comment"))
    }
    erased = [stored[tree_rows[text].id] for text in ("1.1", "2")]
    assert [(row.status, row.body, row.author.name) for row in erased] == [
        (Status.RETRACTED, "", "")
    ] * 2
    assert stored[tree_rows["3"].id].body == "3"
    assert sample_threads.listed(site) == ["1", "-", "1.1.1", "1.1.2", "1.2", "-", "2.1"]
    assert list(stored_state.rows("ErasureDue")) == []
    with pytest.raises(errors.Conflict):
        _decide(tree_rows["1.1"], Verb.RESTORE)
    _deliver()
    stored_state.assert_sums()


def test_a_later_refusal_restarts_the_term(tree_rows: dict[str, records.Comment]) -> None:
    later = sample_threads.START + timedelta(days=20)
    _decide(tree_rows["1"], Verb.REJECT, now=sample_threads.START)
    _deliver()
    _decide(tree_rows["1"], Verb.APPROVE, now=later)
    _decide(tree_rows["1"], Verb.REJECT, now=later)
    # The later decisions' events are undelivered, so the mark still has the first refusal's time.
    assert retention.expire(sample_threads.START + retention.TERM) == 0
    assert _status(tree_rows["1"]) is Status.REJECTED
    assert retention_marks.due_comments(later, 9) == [tree_rows["1"].id]
    assert retention.expire(later + retention.TERM) == 1


def test_a_comments_address_is_erased_after_thirty_days(
    store: connection.Store, site: records.Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retention, "AT_ONCE", 10)
    settings = config.Settings(secret="another secret of the tests")
    said = [
        sample_threads.post(
            site, f"{place}", author=records.Author("Ann", email=f"ann{place}@example.org"),
            now=sample_threads.START + timedelta(days=place // 15), key=f"key {place:016}",
            settings=settings,
        )
        for place in range(32)
    ]  # fmt: skip
    plain = sample_threads.post(site, "without one", now=sample_threads.START)
    _deliver()

    def addresses() -> int:
        rows = map(conversion.comment_from_message, stored_state.rows("Comment"))
        return sum(bool(row.author.email) for row in rows)

    term = retention.TERM
    assert retention.forget_addresses(sample_threads.START + term - timedelta(seconds=1)) == 0
    assert addresses() == 32
    # All comments from one day have the same time, so a batch can end among comments of equal age.
    assert retention.forget_addresses(sample_threads.START + term) == 16
    assert addresses() == 17
    # Cron and workers erase addresses as part of the retention work.
    retention.expire(sample_threads.START + term + timedelta(days=2))
    assert addresses() == 0
    assert retention.forget_addresses(sample_threads.START + term + timedelta(days=9)) == 0
    row = reads.get(comment_rows.comment_key(said[0].id))
    assert (row.author_name, row.body, row.fingerprint) == ("Ann", "0", b"")
    assert (row.revision, row.status) == (said[0].revision, "approved")
    assert reads.get(comment_rows.comment_key(plain.id)).fingerprint


def test_a_scan_is_bounded_and_two_processes_share_it(
    store: connection.Store, site: records.Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retention, "AT_ONCE", 2)
    monkeypatch.setattr(retention, "STEPS", 3)
    author = records.Author("Ann", email="ann@example.org")
    for place in range(9):
        sample_threads.post(
            site, f"{place}", author=author, now=sample_threads.START + timedelta(hours=place)
        )
    later = sample_threads.START + timedelta(days=60)
    assert retention.forget_addresses(later) == 6
    # A process with an outdated position does not move the scan back.
    found = retention._behind(retention._Place(), later)
    transactions.transaction(lambda: retention._walk("", found))
    assert retention.forget_addresses(later) == 3
    assert retention.forget_addresses(later) == 0


def test_imported_spam_is_not_erased(store: connection.Store, site: records.Site) -> None:
    sample_threads.store_imported(NAME, sample_threads.node("spam", None, Status.SPAM))
    _deliver()
    assert list(stored_state.rows("ErasureDue")) == []
    assert retention.expire(sample_threads.START + timedelta(days=9999)) == 0
    assert list(stored_state.rows("ErasureDue")) == []
