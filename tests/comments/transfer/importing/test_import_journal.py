"""The journal of an import contains each added comment once, whatever interrupts the import."""

from collections import Counter
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path

import msgspec
import pytest

from comments import errors
from comments.domain import records
from comments.store import transactions
from comments.transfer.checking import import_batches
from comments.transfer.importing import import_journal, import_writer
from tests.support.store_interceptors import Commits, InterceptorSlot
from tests.support.threads import sample_exports
from tests.support.threads.sample_exports import NOW, SCHEME, plan_of, rows, threads_of, write

SIZES = [3, 1, 4]


def journal() -> import_journal.Import:
    (found,) = import_journal.recent_imports("garden")
    return found


def noted(import_id: str) -> list[str]:
    """Return the comments in an import's batches, in order."""
    return [each for _, batch in import_journal.batches("garden", import_id) for each in batch.ids]


def change(found: import_journal.Import, **changed: datetime) -> None:
    stored = msgspec.structs.replace(found, **changed)
    transactions.transaction(
        lambda: transactions.apply(import_journal.import_writes("garden", stored))
    )


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(import_batches, "BATCH", 3)


def test_the_journal_contains_what_each_commit_added(
    garden: records.Site, export: Callable[..., Path]
) -> None:
    with plan_of(export(*threads_of(SIZES))) as plan:
        write(plan)
        order = [plan.id_of(node.id) for thread in plan.threads for node in thread.nodes]
    found = journal()
    assert (found.system, found.comments, found.seen, found.added) == ("disqus", 8, 8, 8)
    batches = [batch for _, batch in import_journal.batches("garden", found.id)]
    assert [list(batch.ids) for batch in batches] == [order[:3], order[3:6], order[6:]]
    pages = [f"garden.example/page{n}" for n in (1, 2, 3)]
    assert [list(batch.threads) for batch in batches] == [pages[:1], pages[1:], []]
    assert {batch.closed for batch in batches} == {()}


def test_an_interrupted_import_continues_its_journal(
    garden: records.Site, export: Callable[..., Path]
) -> None:
    path, seen = export(*threads_of(SIZES)), list[int]()

    def kill(count: int) -> None:
        seen.append(count)
        if len(seen) == 2:
            raise KeyboardInterrupt

    with plan_of(path) as plan, pytest.raises(KeyboardInterrupt):
        import_writer.write(plan, scheme=SCHEME, now=NOW, progress=kill)
    first = journal()
    assert (len(noted(first.id)), first.added) == (6, None)
    for _ in range(2):
        with plan_of(path) as plan:
            write(plan)
        assert (journal().id, journal().added) == (first.id, 8)
        assert Counter(noted(first.id)) == Counter(row.id for row in rows())


def test_a_batch_whose_answer_was_lost_is_noted_once(
    garden: records.Site, interceptor: InterceptorSlot, export: Callable[..., Path]
) -> None:
    with plan_of(export(*threads_of(SIZES))) as plan:
        interceptor.use(Commits()).plan = ["", "after", "after", "before", "after"]
        write(plan)
    assert Counter(noted(journal().id)) == Counter(row.id for row in rows())
    assert len(import_journal.batch_names("garden", journal().id)) == 3


def test_an_import_adds_nothing_once_an_undo_has_begun(
    garden: records.Site, export: Callable[..., Path]
) -> None:
    path = export(*threads_of(SIZES))

    def undo(_: int) -> None:
        change(journal(), undoing=NOW)

    with plan_of(path) as plan, pytest.raises(errors.ImportRefused):
        import_writer.write(plan, scheme=SCHEME, now=NOW, progress=undo)
    assert len(rows()) == len(noted(journal().id)) == 3
    with plan_of(path) as plan, pytest.raises(errors.ImportRefused):
        write(plan)
    assert len(rows()) == 3


@pytest.mark.parametrize("ended", ["undone", "began"])
def test_a_new_journal_begins_after_an_undo_and_after_the_term(
    garden: records.Site, export: Callable[..., Path], ended: str
) -> None:
    path = export(*threads_of(SIZES))
    with plan_of(path) as plan:
        write(plan)
        first = journal()
        moment = NOW if ended == "undone" else NOW - import_journal.TERM
        change(first, **{ended: moment})
        write(plan)
    found = {each.id: each for each in import_journal.recent_imports("garden")}
    assert len(found) == 2
    assert found.pop(first.id).added == 8
    (second,) = found.values()
    assert (second.added, second.began) == (0, NOW)


def test_an_import_can_be_undone_from_its_end_to_the_end_of_its_term(
    garden: records.Site, export: Callable[..., Path]
) -> None:
    with plan_of(export(*threads_of(SIZES))) as plan:
        import_writer.write(plan, scheme=SCHEME, now=NOW, clock=lambda: NOW)
    found, moment = journal(), timedelta(seconds=1)
    running = msgspec.structs.replace(found, added=None)
    late = NOW + timedelta(seconds=import_journal.LATE)
    assert [each.can_be_undone(NOW) for each in (found, running)] == [True, False]
    assert running.can_be_undone(late)
    assert found.can_be_undone(found.ends - moment)
    assert not found.can_be_undone(found.ends)
    begun = msgspec.structs.replace(found, undoing=NOW)
    assert begun.can_be_undone(found.ends)
    assert not msgspec.structs.replace(begun, undone=NOW).can_be_undone(NOW)
    assert not msgspec.structs.replace(found, id="").can_be_undone(NOW)


@pytest.mark.parametrize(
    "unknown", ["", "nosuchone", "garden/x", "\N{LATIN SMALL LETTER SHARP S}" * 600]
)
def test_an_unknown_import_is_refused(garden: records.Site, unknown: str) -> None:
    with pytest.raises(errors.ImportRefused, match="garden has no import"):
        import_journal.get(sample_exports.SITE.id, unknown)
