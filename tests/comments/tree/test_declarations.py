"""Declarations are added, changed and removed once, even if the answer of a commit is lost."""

from datetime import timedelta

import pytest

from comments import errors
from comments.domain import records
from comments.domain.counters import declared_counters
from comments.domain.counters.declared_counters import Declaration
from comments.store import connection
from comments.tree.counters.declared import declarations, declared_backfill
from tests.support.histories import declared_oracle
from tests.support.store_interceptors import Commits, InterceptorSlot
from tests.support.threads import sample_threads

NOW = sample_threads.START + timedelta(days=1)
ANY = declared_counters.declare("any")
OTHER = declared_counters.declare("any", ["up > 1"])


@pytest.fixture
def faults(interceptor: InterceptorSlot) -> Commits:
    return interceptor.use(Commits())


def _declared() -> list[Declaration]:
    return [each.declaration for each in declarations.of_site("demo").counters]


@pytest.mark.parametrize("when", ["before", "after"])
def test_each_change_happens_once_if_an_answer_is_lost(
    store: connection.Store, site: records.Site, faults: Commits, when: str
) -> None:
    faults.plan = [when]
    assert declarations.add("demo", ANY, now=NOW).generation == 1
    faults.plan = [when]
    assert declarations.change("demo", OTHER, now=NOW).generation == 2
    assert declarations.of_site("demo").removed == (1,)
    faults.plan = [when]
    declarations.remove("demo", "any", now=NOW)
    known = declarations.of_site("demo")
    assert (known.counters, known.removed, known.last) == ((), (1, 2), 2)
    faults.plan = [when] * 3
    declared_backfill.complete("demo")
    declared_oracle.assert_counted()


def test_a_name_is_taken_until_its_counter_is_removed(
    store: connection.Store, site: records.Site
) -> None:
    declarations.add("demo", ANY, now=NOW)
    for again in (ANY, OTHER):
        with pytest.raises(errors.Conflict) as caught:
            declarations.add("demo", again, now=NOW)
        assert caught.value.code == "counter-exists"
    declarations.remove("demo", "any", now=NOW)
    for refused in (
        lambda: declarations.remove("demo", "any", now=NOW),
        lambda: declarations.change("demo", ANY, now=NOW),
        lambda: declarations.counter("demo", "any"),
    ):
        with pytest.raises(errors.NotFound):
            refused()
    assert declarations.add("demo", OTHER, now=NOW).generation == 2


def test_a_changed_counter_keeps_its_place_and_an_equal_declaration_its_numbers(
    store: connection.Store, site: records.Site
) -> None:
    last = declared_counters.declare("last")
    declarations.add("demo", ANY, now=NOW)
    declarations.add("demo", last, now=NOW)
    assert declarations.change("demo", ANY, now=NOW).generation == 1
    declarations.change("demo", OTHER, now=NOW)
    assert _declared() == [OTHER, last]


def test_only_one_process_continues_a_job_of_another_and_only_after_a_while(
    store: connection.Store, site: records.Site
) -> None:
    declarations.add("demo", ANY, now=NOW)
    assert declarations.unsettled_sites(NOW) == []
    later = NOW + timedelta(minutes=1)
    assert declarations.unsettled_sites(later) == ["demo"]
    assert declarations.begin_job("demo", before=later, now=later)
    assert not declarations.begin_job("demo", before=later, now=later)
    declarations.end_job("demo")
    assert declarations.unsettled_sites(NOW + timedelta(days=1)) == ["demo"]  # It is not complete.
    declared_backfill.complete("demo")
    assert declarations.unsettled_sites(NOW + timedelta(days=1)) == []
    assert not declarations.begin_job("demo", before=NOW + timedelta(days=1), now=later)
