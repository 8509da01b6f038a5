"""Erasing a site deletes every row of it, in steps that any process can continue."""

import re
import signal
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from comments import errors
from comments.accounts import accounts
from comments.accounts.oidc import providers
from comments.domain import records
from comments.sites import site_deletion, site_settings
from comments.store import connection, ownership, reads, transactions
from comments.store.models import account_rows, event_rows
from comments.upkeep import scheduler, site_erasure
from comments.upkeep.integrity import thread_audit
from datastore_emulator import inprocess
from tests.comments import kinds
from tests.support import dying_programs, site_rows, store_snapshot
from tests.support.threads import sample_threads

NOW = sample_threads.START
SETTLED = NOW + site_erasure.SETTLING
ADA = records.Actor("cli", "Ada")
GONE = "zebra-erased"
# Sites whose ids begin or end with the other one's.
OTHERS = ("zebra-erase", "zebra-erased-2", "zebra-erased2", "a-zebra-erased")
NAMED = re.compile(rb"(?<!a-)zebra-erased(?![a-z0-9-])")


@pytest.fixture
def sites(store: connection.Store) -> None:
    """Store rows of every kind for the site to erase and for the others."""
    fill()


def fill() -> None:
    for site in (*OTHERS, GONE):
        site_rows.store_all(site)
    audited = thread_audit.AuditState(
        after=f"{GONE}/page",
        found=tuple(
            thread_audit.AuditedThread(site, "page", ("level",), NOW) for site in (GONE, OTHERS[0])
        ),
    )
    transactions.transaction(lambda: thread_audit._store_state(audited))
    site_deletion.delete(GONE, ADA, now=NOW)


def erase(*, steps: int | None = None) -> int:
    """Run an erasure to its end in calls of `steps` transactions; return the number of calls."""
    site_erasure.begin(GONE, now=NOW)
    for number in range(1, 10_000):
        if site_erasure.go_on(GONE, now=SETTLED, steps=steps).is_done:
            return number
    raise AssertionError


def named() -> dict[bytes, bytes]:
    """Return the rows with the site's id in their bytes."""
    return {
        key: row
        for key, row in store_snapshot.everything().items()
        if NAMED.search(key) or NAMED.search(row)
    }


def of_others() -> set[tuple[bytes, bytes]]:
    """Return the rows that an erasure must not change: neither of the site, nor shared with it."""
    ids = [
        made(GONE).encode() for made in (site_rows.comment_id, site_rows.reader, site_rows.follower)
    ]
    rows = store_snapshot.everything("Providers").items()
    return {
        (key, row)
        for key, row in rows
        if not NAMED.search(key + b" " + row) and not any(each in key for each in ids)
    }


def test_every_kind_is_erased_or_exempt_for_a_reason() -> None:
    erased, exempt = set(site_erasure.ERASERS), set(site_erasure.EXEMPT)
    known = {kind.KIND for kind in kinds.stored()}
    assert erased | exempt == known
    assert not erased & exempt
    assert set(site_rows.MAKERS) == known
    assert all(site_erasure.EXEMPT.values())


@pytest.mark.parametrize("steps", [None, 1])
def test_an_erasure_leaves_nothing_of_the_site_and_all_of_the_other_site(
    sites: None, steps: int | None
) -> None:
    before = of_others()
    erase(steps=steps)
    assert named() == {}
    assert before <= set(store_snapshot.everything().items())
    made = (site_rows.comment_id, site_rows.reader, site_rows.follower)
    ids = [make(GONE).encode() for make in made]
    assert not [key for key in store_snapshot.everything() if any(each in key for each in ids)]


def test_rows_that_other_sites_share_stay_for_them(sites: None) -> None:
    erase()
    assert [each.sites for each in providers.every()] == [("elsewhere",)]
    staff = accounts.get(site_rows.staff(GONE))
    assert staff is not None
    assert [grant.site for grant in staff.grants] == ["elsewhere"]
    assert accounts.get(site_rows.reader(GONE)) is None
    assert reads.names("Subscriber") == sorted([*map(site_rows.follower, OTHERS), "shared"])
    audited = thread_audit.state()
    assert audited is not None
    assert [entry.site for entry in audited.found] == [OTHERS[0]]
    jobs = [name for name in reads.names("Job") if name.startswith("import/")]
    assert jobs == sorted(f"import/{site}/1a" for site in OTHERS)


def test_the_sites_own_row_is_deleted_last_and_only_after_a_while(sites: None) -> None:
    site_erasure.begin(GONE, now=NOW)
    first = site_erasure.go_on(GONE, now=NOW)
    assert (first.rows > 0, first.is_left, first.is_done) == (True, True, False)
    assert site_erasure.go_on(GONE, now=NOW) == site_erasure.ErasureProgress(
        0, is_left=False, is_done=False
    )
    with pytest.raises(errors.Conflict):
        site_settings.add(GONE, [], scheme=sample_threads.SETTINGS.scheme, now=NOW)
    late = event_rows.JobRow(key=event_rows.job_key(f"upload/{GONE}"), position="{}")
    transactions.transaction(lambda: transactions.apply(ownership.Writes("tests", put=(late,))))
    assert site_erasure.go_on(GONE, now=SETTLED).rows == 1
    assert site_erasure.go_on(GONE, now=SETTLED).is_done
    site_settings.add(GONE, [], scheme=sample_threads.SETTINGS.scheme, now=NOW)


def test_an_erasure_that_has_ended_changes_nothing_when_it_is_repeated(sites: None) -> None:
    erase()
    before = store_snapshot.everything()
    assert site_erasure.go_on(GONE, now=SETTLED).is_done
    assert site_erasure.run_part(GONE, now=SETTLED).rows == 0
    assert store_snapshot.everything() == before


def test_a_site_that_is_not_deleted_is_not_erased(sites: None) -> None:
    site_deletion.restore(GONE, ADA, now=NOW)
    before = store_snapshot.everything()
    with pytest.raises(errors.Conflict, match="site-not-deleted"):
        site_erasure.begin(GONE, now=NOW)
    assert site_erasure.go_on(GONE, now=SETTLED) == (0, False, False)
    assert store_snapshot.everything() == before


@pytest.mark.parametrize(
    ("after", "due"), [(timedelta(days=29, hours=23), False), (timedelta(days=30), True)]
)
def test_the_scheduler_erases_a_site_after_its_term(
    sites: None, after: timedelta, due: bool
) -> None:
    now = NOW + after
    assert (records.SiteErasure(GONE) in scheduler.find_due_work(now)) is due
    if not due:
        return
    clock = [now]
    process = scheduler.Scheduler(now=lambda: clock[0])
    for _ in range(3):
        process.round([records.SiteErasure(GONE)])
    assert site_settings.is_being_erased(GONE)
    clock[0] += site_erasure.SETTLING
    process.round([records.SiteErasure(GONE)])
    assert named() == {}


def test_no_thread_is_compacted_while_its_site_is_erased(sites: None) -> None:
    site_erasure.begin(GONE, now=NOW)
    site_settings.COPIES.get().drop(GONE)
    before = store_snapshot.everything()
    assert scheduler.Scheduler().compact(records.ThreadName(GONE, "page"))
    assert store_snapshot.everything() == before


def test_an_account_with_another_identity_only_loses_the_sites(store: connection.Store) -> None:
    row = account_rows.AccountRow(
        key=account_rows.account_key("a"), name="Ann", epoch="e",
        identities=[f"site/{GONE}:ann", "mail:ann"],
    )  # fmt: skip
    led = [
        account_rows.IdentityRow(key=account_rows.identity_key(name), account="a")
        for name in row.identities
    ]
    transactions.transaction(
        lambda: transactions.apply(ownership.Writes("accounts", put=(row, *led)))
    )
    site_rows.store_all(OTHERS[0])
    accounts.leave(f"site/{GONE}:ann")
    kept = reads.get(account_rows.account_key("a"))
    assert kept.identities == ["mail:ann"]
    assert reads.get(account_rows.identity_key("mail:ann")) is not None
    assert reads.get(account_rows.identity_key(f"site/{GONE}:ann")) is None


def _erase_in_small_steps() -> None:
    site_erasure.AT_ONCE = 3
    erase()


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[inprocess.Engine]:
    """An engine on a file that other processes share."""
    with inprocess.open_engine(tmp_path / "store.db", indexes=dying_programs.INDEXES) as engine:
        yield engine


@pytest.mark.slow
@pytest.mark.embedded
@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("call", [1, 2, 9, 20, 33])
def test_the_next_call_completes_an_erasure_that_was_killed(
    tmp_path: Path, sites: None, call: int, when: str
) -> None:
    before = of_others()
    rule = {"rpc": "Commit", "call": call, "when": when, "kill": True}
    ended = dying_programs.run(tmp_path / "store.db", [rule], _erase_in_small_steps)
    assert ended == (-signal.SIGKILL, "")
    assert named()
    erase()
    assert named() == {}
    assert before <= set(store_snapshot.everything().items())


def test_a_time_is_kept_for_the_next_process(sites: None) -> None:
    """Repeating `begin` does not move the time from which the settling counts."""
    site_erasure.begin(GONE, now=NOW)
    site_erasure.begin(GONE, now=NOW + timedelta(hours=1))
    begun: datetime | None = site_settings.kept_site(GONE).erasing
    assert begun == NOW
