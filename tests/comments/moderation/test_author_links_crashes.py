"""A process that is killed at a commit of a claim or a link stores all of it or nothing."""

import contextlib
import signal
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from comments import errors
from comments.accounts import accounts, identities, reader_accounts
from comments.domain import records
from comments.domain.ids import imported_ids
from comments.events import audit_log, dispatcher
from comments.moderation.policy import author_links, policy_changes, rulebook
from comments.sites import site_settings
from comments.store import connection
from comments.upkeep import wiring
from datastore_emulator import inprocess
from tests.support import dying_programs
from tests.support.histories import counter_oracle
from tests.support.threads import sample_threads

pytestmark = [pytest.mark.slow, pytest.mark.embedded]

NOW = sample_threads.START + timedelta(hours=1)
SECRET = sample_threads.SETTINGS.secret
ANN = "ann@example.org"
IMPORTED = imported_ids.author_ids_of_address(SECRET, "demo", ANN)[0]
GUEST = "g:guest"


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[inprocess.Engine]:
    """An engine on a file that other processes share."""
    with inprocess.open_engine(tmp_path / "store.db", indexes=dying_programs.INDEXES) as engine:
        yield engine


@pytest.fixture
def ann(store: connection.Store, site: records.Site) -> accounts.Account:
    """A reader whose address an import used, beside a banned guest."""
    node = sample_threads.node("imported", author=IMPORTED)
    sample_threads.store_imported(records.ThreadName("demo", "t"), node)
    sample_threads.post(site, "by a guest", author=records.Author("G", id=GUEST), thread="t")
    dispatcher.deliver(counter_oracle.events(), now=NOW, handlers=wiring.HANDLERS)
    policy_changes.ban("demo", GUEST, sample_threads.ADA, now=NOW)
    reader = reader_accounts.Reader(identities.of_address(ANN), "Ann")
    return reader_accounts.sign_in(reader, secret=SECRET, now=NOW)


def _claim(ann: accounts.Account) -> None:
    author_links.claim(site_settings.get("demo"), ANN, ann, secret=SECRET, now=NOW)


def _give_up(ann: accounts.Account) -> None:
    author_links.give_up_claims("demo", ann.author, ann.actor, now=NOW)


def _link(_: accounts.Account) -> None:
    author_links.link("demo", IMPORTED, GUEST, sample_threads.ADA, now=NOW)


def _unlink(_: accounts.Account) -> None:
    with contextlib.suppress(errors.NotFound):  # A process that died has ended the link
        author_links.unlink("demo", IMPORTED, GUEST, sample_threads.ADA, now=NOW)


def _allow(_: accounts.Account) -> None:
    with contextlib.suppress(errors.NotFound):
        author_links.allow_claims("demo", IMPORTED, sample_threads.ADA, now=NOW)


def _state() -> object:
    links = author_links.of_people("demo", [IMPORTED])
    verbs = sorted(entry.verb for entry in audit_log.log("demo") if entry.verb != "ban")
    bans = sorted(ban.author for ban in rulebook.from_store("demo").bans)
    return {link.kind for link in links}, verbs, bans


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize(
    ("earlier", "act", "expected"),
    [
        ([], _claim, ({"claim"}, ["claim"], [GUEST])),
        ([_claim], _give_up, ({"refused"}, ["claim", "unlink-authors"], [GUEST])),
        ([_claim, _give_up], _allow, (set(), ["allow-claims", "claim", "unlink-authors"], [GUEST])),
        ([], _link, ({"link"}, ["link-authors"], [GUEST, IMPORTED])),
        ([_link], _unlink, (set(), ["link-authors", "unlink-authors"], [GUEST, IMPORTED])),
    ],
    ids=["claim", "give up", "allow", "link", "unlink"],
)
def test_a_change_that_is_killed_at_any_commit_is_stored_whole_or_not_at_all(
    tmp_path: Path,
    ann: accounts.Account,
    earlier: list[Callable[[accounts.Account], None]],
    act: Callable[[accounts.Account], None],
    expected: object,
    when: str,
) -> None:
    for step in earlier:
        step(ann)
    states = [_state(), expected]
    for call in range(1, 20):
        rule = {"rpc": "Commit", "call": call, "when": when, "kill": True}
        status, _ = dying_programs.run(tmp_path / "store.db", [rule], act, ann)
        if status == 0:
            break
        assert status == -signal.SIGKILL
        assert _state() in states
    assert call > 1
    assert _state() == expected
