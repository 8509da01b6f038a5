"""A verification beside people who post, vote, moderate and retract reports no false difference."""

import threading
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest

from comments.domain import records
from comments.domain.records import Verb
from comments.moderation import decisions
from comments.store import transactions
from comments.transfer.checking import import_batches
from comments.transfer.verification import import_verification
from comments.tree import changes
from tests.support import datastores
from tests.support.threads import sample_threads, sample_votes
from tests.support.threads.sample_exports import (
    NOW,
    entities,
    plan_of,
    rows,
    threads_of,
    write,
)

VERBS = (Verb.SPAM, Verb.APPROVE, Verb.PIN, Verb.HIDE, Verb.RESTORE, Verb.UNPIN)
TURNS = 40
ANN = records.Actor("cli", "Ann")


class People:
    """People who change the imported comments until they are told to stop."""

    def __init__(self, site: records.Site, found: list[records.Comment]) -> None:
        self.turns = 0
        self.failed: list[BaseException] = []
        self._site, self._found = site, found
        self._ended = threading.Event()

    def run(self, datastore: datastores.Datastore) -> None:
        with datastore.connect().context():
            try:
                while not self._ended.is_set():
                    self._act(self._found[self.turns * 5 % len(self._found)])
                    self.turns += 1
            except BaseException as error:  # noqa: BLE001 - the test raises it
                self.failed.append(error)

    def stop(self) -> None:
        self._ended.set()

    def _act(self, row: records.Comment) -> None:
        now = NOW + timedelta(days=1, seconds=self.turns)
        sample_threads.post(self._site, f"hello {self.turns}", thread=row.thread, now=now)
        if self.turns % 9 == 4:
            transactions.transaction(
                lambda: transactions.apply(
                    *changes.retract(row.id, now=now, check=lambda _: None).writes
                )
            )
        elif self.turns % 9 == 7 and sample_votes.comment(row.id).status == "approved":
            sample_votes.vote(sample_votes.comment(row.id), f"g:{self.turns}", now=now)
            sample_votes.count_waiting(now + timedelta(days=1))
        else:  # Refused decisions come back as results.
            verb = VERBS[self.turns % len(VERBS)]
            decisions.decide_many(self._site.id, [row.id], verb, ANN, now=now)


@pytest.mark.slow
def test_a_verification_beside_people_reports_no_false_difference(
    garden: records.Site,
    datastore: datastores.Datastore,
    export: Callable[..., Path],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(import_batches, "BATCH", 7)
    with plan_of(export(*threads_of([12, 3, 9]))) as plan:
        write(plan)
        people = People(garden, rows())
        thread = threading.Thread(target=people.run, args=(datastore,))
        thread.start()
        try:
            while people.turns < TURNS and not people.failed:
                found = import_verification.verify(plan)
                assert [group for group in found.differences if not group.reason] == []
        finally:
            people.stop()
            thread.join()
        assert people.failed == []
        found = import_verification.verify(plan)
    assert found.unexplained_count == 0
    assert found.explained_count > 5
    assert found.other_comments == people.turns
    assert entities() == 24 + people.turns + 3
