"""The state of the thread and the site's options in pages are current, cached or not."""

import secrets
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from comments.domain import records, site_options
from comments.domain.records import Policy, ThreadState
from comments.events import audit_log
from comments.limits import usage
from comments.moderation.policy import policy_changes
from comments.reading.compaction import compactor
from comments.reading.materialized import directories
from comments.sites import site_settings
from comments.store import ownership, reads, transactions
from comments.store.memory import caches
from comments.store.models import bucket_rows, comment_rows
from comments.threads import thread_terms
from comments.web.http import page_members
from tests.support.people.post_times import Moment
from tests.support.threads import sample_threads, sample_votes
from tests.support.threads.cache_twins import PAGE, SITE, Process, Rows

ADA = records.Actor("cli", "Ada")
NOW = sample_threads.START
LOCKED = {"state": ThreadState.CLOSED}
OPENED = {"state": ThreadState.OPEN}
RAW = f"{SITE}?thread=raw"  # A thread that was never compacted


def _get(process: Process, path: str = PAGE) -> Any:
    response = process.client.get(path)
    assert response.status_code == 200
    return response.get_json()


def _state(process: Process, path: str = PAGE) -> str:
    return str(_get(process, path)["thread"]["state"])


def _post(process: Process, path: str = PAGE) -> str:
    text = {"name": "Ann", "body": f"Hello {secrets.token_hex(8)}"}
    found = process.client.post(path, json=text)
    return "open" if found.status_code == 201 else str(found.get_json()["code"])


def _lock(process: Process, thread: str = "page", **given: Any) -> None:
    with process.store.context():
        policy_changes.set_thread(records.ThreadName("demo", thread), ADA, now=NOW, **given)


def _policy(process: Process, **given: Any) -> None:
    with process.store.context():
        policy_changes.set_policy("demo", ADA, now=NOW, **given)


def _options(process: Process, **given: Any) -> None:
    with process.store.context():
        site_settings.change("demo", options=given)


def _row(process: Process) -> Any:
    with process.store.context():
        return reads.get(comment_rows.thread_key(records.ThreadName("demo", "page")))


def _copy(process: Process) -> Any:
    with process.store.context():
        key = bucket_rows.directory_key(records.ThreadName("demo", "page"))
        return thread_terms.decode(reads.get(key).terms)


def _version(process: Process) -> str:
    with process.store.context():
        return directories.load_directory(records.ThreadName("demo", "page")).version


def _compact(process: Process) -> None:
    with process.store.context():
        compactor.compact(sample_threads.SETTINGS.scheme, records.ThreadName("demo", "page"))


# --- Options --------------------


def test_a_page_has_every_option_of_its_site(quick: Process, several: Rows) -> None:
    shown = {"order": "best", "images": ["https://img.example"], "live": 0, "theme": "dark"}
    assert _get(quick)["options"] == {
        "votes": True, "website": True, "guests": True, "order": "thread", "images": [],
        "live": 60, "theme": "auto", "language": "", "moderation": True,
        "forms": False, "inbox": False, "origins": ["http://localhost:8080"], "mail": False,
        "sign_in": False,
    }  # fmt: skip
    _options(quick, **{**shown, "images": ("https://img.example",), "votes": False})
    found = _get(quick)["options"]
    assert found == {**found, **shown, "votes": False}
    assert tuple(found) == (
        *(name for name in site_options.NAMES if name != "claims"),
        "origins",
        "mail",
        "sign_in",
    )
    assert page_members.PageOptions.__struct_fields__ == tuple(found)


@pytest.mark.parametrize("path", [PAGE, RAW, f"{PAGE}&limit=all", f"{PAGE}&order=newest"])
def test_a_change_of_an_option_changes_the_etag(
    quick: Process, plain: Process, several: Rows, path: str
) -> None:
    first = [quick.client.get(path) for _ in range(2)][1]
    tag = first.headers["ETag"]
    assert quick.client.get(path, headers={"If-None-Match": tag}).status_code == 304
    _options(quick, votes=False)
    found = quick.client.get(path, headers={"If-None-Match": tag})
    assert found.get_json()["options"]["votes"] is False
    assert found.headers["ETag"] != tag
    with plain.store.context():
        assert site_settings.get("demo").options.votes is False
    assert plain.client.get(path).headers["ETag"] == found.headers["ETag"]


def test_a_page_without_an_order_has_that_of_the_site(quick: Process, several: Rows) -> None:
    for order in ("recent", "best", "oldest", "newest", "thread"):
        _options(quick, order=order)
        ours, named = _get(quick), _get(quick, f"{PAGE}&order={order}")
        assert ours == named
        assert ours["order"] == order
        assert _get(quick, f"{PAGE}&order=thread")["order"] == "thread"


@pytest.mark.parametrize("more", ["limit=all", "parent=root", "around={}", "replies"])
def test_lists_with_one_order_ignore_the_default(quick: Process, several: Rows, more: str) -> None:
    _options(quick, order="newest")
    path = f"{PAGE}&{more.format(several['2'].id)}"
    if more == "replies":
        path = f"/api/v1/comments/{several['1'].id}/replies"
    found = _get(quick, path)
    assert (found["order"], found["options"]["order"]) == ("thread", "newest")


# --- The thread's state --------------------


@pytest.mark.parametrize("path", [PAGE, RAW])
def test_a_page_says_what_a_post_would_meet(quick: Process, several: Rows, path: str) -> None:
    thread = path.partition("=")[2]
    for change, shown, code in (
        (lambda: _lock(quick, thread, **LOCKED), "closed", "thread-closed"),
        (lambda: _lock(quick, thread, policy=Policy.READ_ONLY), "closed", "thread-closed"),
        (lambda: _lock(quick, thread, **OPENED), "read-only", "read-only"),
        (lambda: _lock(quick, thread, policy=Policy.CLOSED), "closed", "thread-closed"),
        (lambda: _lock(quick, thread, inherits=True), "open", "open"),
        (lambda: _policy(quick, policy=Policy.READ_ONLY), "read-only", "read-only"),
        (lambda: _policy(quick, policy=Policy.CLOSED), "closed", "thread-closed"),
        (lambda: _lock(quick, thread, policy=Policy.OFF), "open", "open"),
        (lambda: _lock(quick, thread, inherits=True), "closed", "thread-closed"),
        (lambda: _policy(quick, policy=Policy.OFF), "open", "open"),
        (lambda: _policy(quick, close_after=1), "closed", "thread-closed"),
        (lambda: _policy(quick, close_after=0), "open", "open"),
    ):
        change()
        for _ in range(2):  # From Flask, then from the cache
            assert _state(quick, path) == shown
        assert _post(quick, path) == code


def test_a_thread_without_comments_has_a_state_too(quick: Process) -> None:
    none = f"{SITE}?thread=none"
    assert _state(quick, none) == "open"
    _policy(quick, policy=Policy.CLOSED)
    assert _state(quick, none) == "closed"


def test_a_thread_closes_while_its_pages_are_cached(
    quick: Process, several: Rows, monkeypatch: pytest.MonkeyPatch
) -> None:
    _policy(quick, close_after=7)
    clock = Moment()
    clock.at = NOW
    monkeypatch.setattr(page_members, "datetime", clock)
    assert [_state(quick) for _ in range(2)] == ["open", "open"]
    clock.pass_by(days=8)
    assert _state(quick) == "closed"


def test_a_spent_budget_makes_pages_read_only(quick: Process, several: Rows) -> None:
    with quick.store.context():
        site_settings.change("demo", budget={"posts": 5, "then": "read-only"})
    assert _state(quick) == "open"
    with quick.store.context():
        usage.note("demo", usage.UsageAmounts(posts=5), now=datetime.now(UTC))
    assert (_state(quick), _post(quick)) == ("read-only", "budget-spent")
    with quick.store.context():
        site_settings.change("demo", budget={"then": "slow"})
    assert _state(quick) == "open"


# --- Other processes --------------------


def _minute(monkeypatch: pytest.MonkeyPatch, *processes: Process) -> None:
    """Let the copies of every process become too old."""
    moment = caches.time.monotonic()  # type: ignore[attr-defined]
    monkeypatch.setattr(caches.time, "monotonic", lambda: moment + 61)  # type: ignore[attr-defined]
    for process in processes:
        process.now += 61


Change = Callable[[Process], None]
CHANGES: dict[str, tuple[Change, str]] = {
    "a lock": (lambda process: _lock(process, **LOCKED), "closed"),
    "a policy of the thread": (
        lambda process: _lock(process, policy=Policy.READ_ONLY),
        "read-only",
    ),
    "a policy of the site": (lambda process: _policy(process, policy=Policy.CLOSED), "closed"),
}


@pytest.mark.parametrize("name", CHANGES)
def test_other_processes_show_a_change_within_a_minute(
    quick: Process, plain: Process, several: Rows, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    change, shown = CHANGES[name]
    first = quick.client.get(PAGE)
    _state(plain)
    change(plain)
    assert _state(plain) == shown
    _minute(monkeypatch, quick, plain)
    again = quick.client.get(PAGE, headers={"If-None-Match": first.headers["ETag"]})
    assert again.get_json()["thread"] == {"state": shown}
    assert again.headers["ETag"] == plain.client.get(PAGE).headers["ETag"]


def test_a_directory_contains_the_terms_of_its_thread(quick: Process, several: Rows) -> None:
    changes: tuple[dict[str, Any], ...] = (
        LOCKED,
        {"policy": Policy.LINKS},
        OPENED,
        {"inherits": True},
    )
    for number, given in enumerate(changes):
        _lock(quick, **given)
        assert _copy(quick) == thread_terms.of(_row(quick))
        with quick.store.context():
            sample_votes.vote(several["1"], f"voter {number}")
            sample_votes.count_waiting()
        before = _version(quick)
        _compact(quick)
        assert _version(quick) != before
        assert _copy(quick) == thread_terms.of(_row(quick))


def test_an_undone_lock_is_undone_in_the_directory(quick: Process, several: Rows) -> None:
    _lock(quick, **LOCKED)
    with quick.store.context():
        entry = audit_log.log("demo")[0]
        policy_changes.undo("demo", entry.id, ADA, now=NOW)
    assert _state(quick) == "open"
    assert _copy(quick) == thread_terms.of(_row(quick))


def test_a_directory_of_an_older_release_lacks_the_terms(
    quick: Process, plain: Process, several: Rows
) -> None:
    _lock(quick, **LOCKED)

    def age() -> None:
        row = reads.get(bucket_rows.directory_key(records.ThreadName("demo", "page")))
        row.terms = ""
        transactions.apply(ownership.Writes("thread_terms", put=(row,)))

    with quick.store.context():
        transactions.transaction(age)
    assert _copy(quick) is None
    assert _state(plain) == "closed"
    with plain.store.context():
        sample_threads.retract(several["3"])
    _compact(plain)
    assert _copy(quick) == thread_terms.of(_row(quick))
