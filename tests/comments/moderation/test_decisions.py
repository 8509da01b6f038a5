"""Moderation decisions take effect, are logged, can be undone, and survive races and faults."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import flask
import grpc
import pytest

from comments import errors
from comments.domain import presentation, records
from comments.domain.moderation.reasons import HoldReason
from comments.domain.records import Ruling, Status, Verb
from comments.domain.text import sanitizing
from comments.events import audit_log, backlog, outbox, webhook_endpoints, webhooks
from comments.moderation import decisions
from comments.posting import own_comment
from comments.store import connection, transactions
from comments.tree import status_changes
from comments.tree.lists import ordered_query
from comments.upkeep.integrity import repair
from tests.support import stored_state
from tests.support.store_interceptors import TRANSIENT, Faults
from tests.support.threads import raw_changes, sample_threads

ADA = records.Actor("cli", "Ada")
BEN = records.Actor("account:ben", "Ben")
POLICY = Ruling(Status.PENDING, "policy", "2 links", (HoldReason("links", {"count": 2}),))
NAME = records.ThreadName("demo", "page")


def _decide(row: records.Comment, verb: Verb, actor: records.Actor = ADA, **more: object) -> Any:
    given = {"now": sample_threads.START + timedelta(hours=1), **more}
    return decisions.decide("demo", row.id, verb, actor, **given)  # type: ignore[arg-type]


def _status(row: records.Comment) -> Status:
    return decisions.case("demo", row.id).comment.status


def _assert_stored() -> None:
    stored_state.assert_sums(is_delivered=False)
    assert repair.find_problems(sample_threads.SETTINGS.scheme, NAME) == []


@pytest.mark.parametrize(
    ("verb", "status"),
    [
        (Verb.REJECT, Status.REJECTED), (Verb.SPAM, Status.SPAM), (Verb.HIDE, Status.HIDDEN),
        (Verb.HOLD, Status.PENDING),
    ],
)  # fmt: skip
def test_a_removed_comment_leaves_its_place_and_returns_to_it(
    tree_rows: dict[str, records.Comment], verb: Verb, status: Status
) -> None:
    before = sample_threads.listed(records.Site("demo", (), "", 2))
    site = records.Site("demo", (), "", 2)
    assert _decide(tree_rows["1.1"], verb).status is status
    assert sample_threads.listed(site) == ["1", "-", "1.1.1", "1.1.2", "1.2", "2", "2.1", "3"]
    assert _decide(tree_rows["3"], verb).status is status
    assert sample_threads.listed(site)[-1] == "2.1"
    _assert_stored()
    assert _decide(tree_rows["1.1"], Verb.APPROVE).sort_hash == tree_rows["1.1"].sort_hash
    _decide(tree_rows["3"], Verb.RESTORE)
    assert sample_threads.listed(site) == before
    _assert_stored()


def test_removing_the_last_reply_removes_its_tombstones_and_approval_restores_them(
    site: records.Site, tree_rows: dict[str, records.Comment]
) -> None:
    _decide(tree_rows["2"], Verb.REJECT)
    assert sample_threads.listed(site)[-3:] == ["-", "2.1", "3"]
    _decide(tree_rows["2.1"], Verb.SPAM)
    assert sample_threads.listed(site)[-2:] == ["1.2", "3"]
    _assert_stored()
    _decide(tree_rows["2.1"], Verb.APPROVE)
    assert sample_threads.listed(site)[-3:] == ["-", "2.1", "3"]
    _assert_stored()


def test_a_decision_is_undone_once_and_to_the_earlier_status(
    tree_rows: dict[str, records.Comment],
) -> None:
    _decide(tree_rows["1"], Verb.HOLD)
    _decide(tree_rows["1"], Verb.APPROVE)
    _decide(tree_rows["1"], Verb.RESTORE)
    assert _status(tree_rows["1"]) is Status.PENDING
    with pytest.raises(errors.Conflict) as refused:
        _decide(tree_rows["1"], Verb.RESTORE)
    assert refused.value.code == "nothing-to-restore"
    with pytest.raises(errors.Conflict):
        _decide(tree_rows["2"], Verb.RESTORE)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (POLICY, POLICY),
        (Ruling(Status.PENDING, "rule:casino", "it has spam"),) * 2,
        (Ruling(Status.PENDING, "opinion:akismet", "not asked yet"), Ruling(Status.PENDING)),
    ],
)
def test_undoing_a_decision_restores_the_reason_too(
    tree_rows: dict[str, records.Comment], before: Ruling, after: Ruling
) -> None:
    comment = tree_rows["1"]
    held = status_changes.Decision(audit_log.Act(ADA, "hold"), sample_threads.START, lambda _: None)
    transactions.transaction(
        lambda: transactions.apply(*status_changes.judge(comment.id, before, held).writes)
    )
    _decide(comment, Verb.APPROVE, reason="looks fine")
    entry = next(each for each in audit_log.log("demo") if each.verb == "approve")
    decisions.undo("demo", entry.id, BEN, now=sample_threads.START)
    case = decisions.case("demo", comment.id)
    assert Ruling(case.comment.status, case.rule, case.why, case.reasons) == after


@pytest.mark.parametrize("verb", Verb)
def test_a_retracted_comment_never_comes_back(
    tree_rows: dict[str, records.Comment], verb: Verb
) -> None:
    _decide(tree_rows["3"], Verb.PIN)
    _decide(tree_rows["3"], Verb.REJECT)
    own_comment.retract(tree_rows["3"].id, author_id="g:3", revision=None, now=sample_threads.START)
    with pytest.raises(errors.Conflict) as refused:
        _decide(tree_rows["3"], verb)
    assert refused.value.code == "comment-retracted"
    case = decisions.case("demo", tree_rows["3"].id)
    assert (case.rule, case.why, case.stood, case.comment.pinned) == ("", "", None, False)


@pytest.mark.parametrize("verb", Verb)
@pytest.mark.parametrize("elsewhere", ["other", "", "*"])
def test_a_comment_of_another_site_is_not_found(
    tree_rows: dict[str, records.Comment], verb: Verb, elsewhere: str
) -> None:
    before = list(map(str, stored_state.rows("Comment")))
    for row in tree_rows.values():
        with pytest.raises(errors.NotFound):
            decisions.decide(elsewhere, row.id, verb, ADA, now=sample_threads.START)
        with pytest.raises(errors.NotFound):
            decisions.case(elsewhere, row.id)
    assert list(map(str, stored_state.rows("Comment"))) == before
    assert stored_state.audit() == []


def test_a_decision_needs_the_current_revision_and_may_be_repeated(
    tree_rows: dict[str, records.Comment],
) -> None:
    _decide(tree_rows["1"], Verb.HOLD, revision=1)
    with pytest.raises(errors.RevisionMismatch):
        _decide(tree_rows["1"], Verb.REJECT, revision=1)
    held = _decide(tree_rows["1"], Verb.HOLD, revision=1)
    assert (held.status, held.revision) == (Status.PENDING, 2)
    assert len(stored_state.audit()) == 1


def test_an_invisible_comment_is_neither_hidden_nor_pinned(
    tree_rows: dict[str, records.Comment],
) -> None:
    _decide(tree_rows["1"], Verb.SPAM)
    for verb in (Verb.HIDE, Verb.PIN):
        with pytest.raises(errors.Conflict) as refused:
            _decide(tree_rows["1"], verb)
        assert refused.value.code == "comment-not-shown"


def test_a_pinned_comment_is_marked_while_it_is_visible(
    tree_rows: dict[str, records.Comment],
) -> None:
    assert b"pinned" not in presentation.fragment(tree_rows["1"])
    assert b'"pinned":true' in presentation.fragment(_decide(tree_rows["1"], Verb.PIN))
    assert b"pinned" not in presentation.fragment(_decide(tree_rows["1"], Verb.HIDE))
    assert b'"pinned":true' in presentation.fragment(_decide(tree_rows["1"], Verb.RESTORE))
    assert b"pinned" not in presentation.fragment(_decide(tree_rows["1"], Verb.UNPIN))


def test_the_log_names_the_decision_and_its_actor_but_nothing_of_the_comment(
    store: connection.Store, site: records.Site
) -> None:
    author = records.Author("Canary", "https://canary.example", "canary@example.org", "g:canary")
    row = sample_threads.post(site, "canary text", author=author)
    _decide(row, Verb.HOLD, reason="seen before")
    _decide(row, Verb.APPROVE, BEN, now=sample_threads.START + timedelta(hours=2))
    last, first = audit_log.log("demo")
    assert (first.actor, first.verb, first.before, first.after, first.reason) == (
        ADA, "hold", "approved", "pending", "seen before",
    )  # fmt: skip
    assert (last.actor, last.verb, last.before, last.after) == (
        BEN, "approve", "pending", "approved",
    )  # fmt: skip
    assert audit_log.log("demo", subject=row.id, before=last.at, limit=1) == [first]
    assert audit_log.log("other") == []
    assert "canary" not in str(list(stored_state.rows("AuditEntry"))).lower()
    with pytest.raises(errors.NotFound):
        audit_log.entry("other", first.id)


@pytest.mark.parametrize("reason", ["x" * 501, "two\nlines", "\x00", "\ud800"])
def test_a_reason_is_one_short_line(tree_rows: dict[str, records.Comment], reason: str) -> None:
    with pytest.raises(errors.BadInput, match="reason"):
        _decide(tree_rows["1"], Verb.HIDE, reason=reason)
    assert _status(tree_rows["1"]) is Status.APPROVED


def test_a_log_entry_can_be_undone_until_the_next_decision(
    tree_rows: dict[str, records.Comment],
) -> None:
    _decide(tree_rows["1"], Verb.SPAM)
    (entry,) = audit_log.log("demo")
    assert decisions.undo("demo", entry.id, BEN, now=sample_threads.START).status is Status.APPROVED
    with pytest.raises(errors.Conflict) as refused:
        decisions.undo("demo", entry.id, BEN, now=sample_threads.START)
    assert refused.value.code == "decided-since"
    with pytest.raises(errors.NotFound):
        decisions.undo("other", entry.id, BEN, now=sample_threads.START)
    _decide(tree_rows["2"], Verb.PIN)
    pinned = next(each for each in audit_log.log("demo") if each.verb == "pin")
    assert not decisions.undo("demo", pinned.id, BEN, now=sample_threads.START).pinned


def test_a_bulk_decision_reports_the_outcome_of_each_comment(
    tree_rows: dict[str, records.Comment],
) -> None:
    own_comment.retract(
        tree_rows["2.1"].id, author_id="g:2.1", revision=None, now=sample_threads.START
    )
    ids = [tree_rows["1"].id, "a" * 26, tree_rows["2.1"].id, tree_rows["3"].id, tree_rows["3"].id]
    found = decisions.decide_many("demo", ids, Verb.SPAM, ADA, now=sample_threads.START)
    assert [(each.id, each.code) for each in found] == [
        (tree_rows["1"].id, ""), ("a" * 26, "comment-not-found"),
        (tree_rows["2.1"].id, "comment-retracted"), (tree_rows["3"].id, ""),
    ]  # fmt: skip
    assert len(stored_state.audit()) == 2
    with pytest.raises(errors.BadInput, match=r"too-many-items \(limit=100\)"):
        decisions.decide_many(
            "demo", [f"{n}" for n in range(101)], Verb.SPAM, ADA, now=sample_threads.START
        )
    _assert_stored()


@pytest.mark.parametrize(
    ("verbs", "told"),
    [
        ([Verb.HIDE], webhooks.Type.RETRACTED), ([Verb.HOLD, Verb.REJECT], None),
        ([Verb.HOLD, Verb.APPROVE], webhooks.Type.POSTED), ([Verb.PIN], None),
    ],
)  # fmt: skip
def test_a_webhook_gets_the_change_that_readers_saw(
    tree_rows: dict[str, records.Comment], verbs: list[Verb], told: webhooks.Type | None
) -> None:
    for verb in verbs:
        decided = _decide(tree_rows["3"], verb)
    (row,) = outbox.read([outbox.event_id(decided.id, decided.revision)])
    assert webhook_endpoints._type(outbox.record(row)) is told


def test_a_removal_is_compacted_at_once(
    open_store: connection.Store, tree_rows: dict[str, records.Comment], clock: Callable[[], float]
) -> None:
    waiting = backlog.Backlog(clock)
    waiting.open()
    backlog.BACKLOG.put(open_store, waiting)
    _decide(tree_rows["1"], Verb.REJECT)
    assert waiting._waiting[NAME].due == clock() + backlog.ERASE_AFTER


# --- Races and faults


def _at_once(store: connection.Store, *steps: Callable[[], object]) -> list[object]:
    """Run each step in a separate thread; return each step's result or error."""
    barrier = threading.Barrier(len(steps))

    def run(step: Callable[[], object]) -> object:
        with store.context():
            barrier.wait(60)
            try:
                return step()
            except errors.FlatthreadError as error:
                return error

    with ThreadPoolExecutor(len(steps)) as pool:
        return list(pool.map(run, steps))


@pytest.mark.slow
def test_of_two_concurrent_decisions_one_succeeds_and_the_other_is_refused(
    open_store: connection.Store, site: records.Site
) -> None:
    for attempt in range(6):
        with open_store.context():
            # A thread of its own, because the number of pins in a thread is limited.
            row = sample_threads.post(site, f"{attempt}", thread=f"thread {attempt}")
        found = _at_once(
            open_store,
            lambda row=row: _decide(row, Verb.REJECT, ADA, revision=1),  # type: ignore[misc]
            lambda row=row: _decide(row, Verb.PIN, BEN, revision=1),  # type: ignore[misc]
        )
        with open_store.context():
            refused = [each for each in found if isinstance(each, errors.Conflict)]
            assert len(refused) == 1
            assert isinstance(refused[0], errors.RevisionMismatch)
            assert len(audit_log.log("demo", subject=row.id)) == 1
    with open_store.context():
        _assert_stored()


@pytest.mark.slow
def test_an_approval_races_with_the_authors_edit_and_approves_only_the_seen_text(
    open_store: connection.Store, site: records.Site
) -> None:
    for attempt in range(6):
        with open_store.context():
            row = sample_threads.post(site, f"{attempt}")
            held = _decide(row, Verb.HOLD)

        def edit(row: records.Comment = row) -> object:
            return own_comment.edit(
                row.id, author_id=row.author.id, body="buy", revision=None,
                settings=sample_threads.SETTINGS, now=sample_threads.START,
            )  # fmt: skip

        approved, _ = _at_once(
            open_store,
            lambda row=row, held=held: _decide(row, Verb.APPROVE, revision=held.revision),  # type: ignore[misc]
            edit,
        )
        with open_store.context():
            case = decisions.case("demo", row.id)
            if isinstance(approved, errors.RevisionMismatch):
                assert (case.comment.status, case.comment.body) == (Status.PENDING, "buy")
            else:
                assert isinstance(approved, records.Comment)
                assert approved.body == row.body
    with open_store.context():
        _assert_stored()


def _rewrite(row: records.Comment, body: str, revision: int | None = None) -> records.Comment:
    now = sample_threads.START + timedelta(hours=1)
    return decisions.rewrite(
        "demo", row.id, body, BEN, now=now, reason="a telephone number", revision=revision
    )


def test_readers_see_that_staff_edited_a_text_until_its_author_edits_it(
    app: flask.Flask, tree_rows: dict[str, records.Comment]
) -> None:
    row = tree_rows["1.1"]
    shown = _shown_to_readers(app, row)
    assert "edited_by" not in shown
    edited = _rewrite(row, "Call me at *…*", row.revision)
    after = _shown_to_readers(app, row)
    assert (after["edited_by"], after["html"]) == ("staff", "<p>Call me at <em>…</em></p>\n")
    assert {name for name in shown if shown[name] != after[name]} == {"html", "edited", "revision"}
    (entry,) = audit_log.log("demo", subject=row.id)
    assert (entry.verb, entry.actor, entry.reason) == ("edit", BEN, "a telephone number")
    with pytest.raises(errors.Conflict, match="not-undoable"):
        decisions.undo("demo", entry.id, BEN, now=sample_threads.START)
    with pytest.raises(errors.RevisionMismatch):
        _rewrite(row, "again", row.revision)
    assert _rewrite(row, "Call me at *…*").revision == edited.revision
    own_comment.edit(
        row.id, author_id=row.author.id, body="by me", revision=None,
        settings=sample_threads.SETTINGS, now=sample_threads.START,
    )  # fmt: skip
    assert "edited_by" not in _shown_to_readers(app, row)
    _rewrite(row, "by staff")
    sample_threads.retract(row)
    assert not decisions.case("demo", row.id).comment.edited_by_staff
    with pytest.raises(errors.Conflict):
        _rewrite(row, "of nobody")
    with pytest.raises(errors.NotFound):
        decisions.rewrite("other", tree_rows["1"].id, "x", BEN, now=sample_threads.START)
    _assert_stored()


@pytest.mark.parametrize("verb", [Verb.HOLD, Verb.REJECT, Verb.SPAM, Verb.HIDE])
def test_an_edit_by_staff_keeps_the_status(
    tree_rows: dict[str, records.Comment], verb: Verb
) -> None:
    status = _decide(tree_rows["1.1"], verb).status
    edited = _rewrite(tree_rows["1.1"], "without the number")
    assert (edited.status, edited.body) == (status, "without the number")
    _assert_stored()


def test_an_imported_html_text_stays_html_when_staff_edit_it(
    tree_rows: dict[str, records.Comment],
) -> None:
    row = tree_rows["2.1"]
    raw_changes.comment(row.id, renderer=sanitizing.SANITISER, body="<b>old</b>")
    assert _rewrite(row, "<b>new</b> <script>x</script>*").html == "<b>new</b> *"


def _shown_to_readers(app: flask.Flask, row: records.Comment) -> dict[str, Any]:
    page = app.test_client().get("/api/v1/sites/demo/comments?thread=page").get_json()
    return next(each for each in page["comments"] if each["id"] == row.id)


@pytest.mark.slow
def test_an_approval_races_with_the_authors_retraction_which_always_wins(
    open_store: connection.Store, site: records.Site
) -> None:
    for attempt in range(6):
        with open_store.context():
            row = sample_threads.post(site, f"{attempt}")
            _decide(row, Verb.HOLD)
        _at_once(
            open_store,
            lambda row=row: _decide(row, Verb.APPROVE),  # type: ignore[misc]
            lambda row=row: own_comment.retract(  # type: ignore[misc]
                row.id, author_id=row.author.id, revision=None, now=sample_threads.START
            ),
        )
        with open_store.context():
            assert _status(row) is Status.RETRACTED
    with open_store.context():
        assert ordered_query.thread(NAME) == ()
        _assert_stored()


@pytest.mark.slow
@pytest.mark.parametrize("status", TRANSIENT[:2])
@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("method", ["Lookup", "RunQuery", "Commit"])
@pytest.mark.usefixtures("brief_doubt")
def test_a_decision_whose_store_call_fails_once_is_applied_and_logged_once(
    tree_rows: dict[str, records.Comment],
    faults: Faults,
    method: str,
    when: str,
    status: grpc.StatusCode,
) -> None:
    verbs = [Verb.PIN, Verb.HIDE, Verb.RESTORE]
    for number, verb in enumerate(verbs, 1):
        revision = decisions.case("demo", tree_rows["1.1"].id).comment.revision
        faults.plan[method, faults.calls.get(method, 0) + 1] = (when, status)
        decided = _decide(tree_rows["1.1"], verb, revision=revision)
        assert decided.revision == revision + 1
        assert len(stored_state.audit()) == number
    faults.plan.clear()
    _assert_stored()
