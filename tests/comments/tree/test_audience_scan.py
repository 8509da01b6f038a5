"""Audiences equal a count over the comments after any history, at the cost that was said before."""

import contextlib
import functools
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from datetime import date, timedelta
from typing import Any, NamedTuple
from unittest import mock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from comments import errors
from comments.domain import records
from comments.domain.ids import sorthash
from comments.events import dispatcher
from comments.moderation import decisions
from comments.store import connection
from comments.transfer import personal_data
from comments.tree.bulk import recategorize
from comments.tree.counters import audience_scan, statistics
from comments.upkeep import wiring
from datastore_emulator import inprocess, testing
from tests.support import audience_forms, prepared_stores
from tests.support.audience_forms import Form
from tests.support.histories import counter_oracle
from tests.support.store_interceptors import Calls, InterceptorSlot
from tests.support.threads import sample_threads

NOW = sample_threads.START + timedelta(days=9)
FIRST = date(2026, 1, 2)
THREADS = ("a", "b", "c")
CATEGORIES = ("news", "sport", "sport/football", "sport news")
DAYS = 4


def _period(first: int, last: int) -> Form:
    return {f"{name}": f"{FIRST + timedelta(days=day)}" for name, day in
            (("since", first), ("until", last))}  # fmt: skip


PERIODS: list[Form] = [{}, _period(0, 0), _period(1, 2), _period(-3, 1), _period(2, 300)]
SOURCES: list[Form] = [
    *({"thread": name} for name in (*THREADS, "never seen")),
    *({"category": name, **period} for name in (*CATEGORIES, "travel") for period in PERIODS),
    *({"site": True, **period} for period in PERIODS),
]


class Step(NamedTuple):
    """A step of a history; its numbers pick comments, people, threads and days."""

    kind: str
    one: int
    two: int
    three: int


KINDS = ("post", "post", "post", "post", "judge", "retract", "recategorize", "erase", "deliver")
STEPS = st.builds(Step, st.sampled_from(KINDS), *[st.integers(0, 30)] * 3)
VERBS = (records.Verb.APPROVE, records.Verb.REJECT, records.Verb.SPAM, records.Verb.HIDE,
         records.Verb.HOLD)  # fmt: skip


class History:
    """A site with threads in categories, and the steps that change them."""

    def __init__(self, site: records.Site) -> None:
        self._site = sample_threads.filing(site, *CATEGORIES)
        self._posted: list[records.Comment] = []

    def take(self, step: Step) -> None:
        if step.kind == "deliver":
            deliver()
        elif step.kind == "post":
            self._post(step)
        elif self._posted:
            getattr(self, f"_{step.kind}")(step)

    def _post(self, step: Step) -> None:
        name = sample_threads.author(f"{step.two % 5}")
        self._posted.append(
            sample_threads.post(
                self._site, f"{len(self._posted)}", author=name, thread=THREADS[step.one % 3],
                categories=self._chosen(step.one), now=_at(step.three),
            )
        )  # fmt: skip

    def _judge(self, step: Step) -> None:
        comment = self._posted[step.one % len(self._posted)]
        # The comment may be retracted, or have a status that cannot be hidden.
        with contextlib.suppress(errors.Conflict):
            decisions.decide("demo", comment.id, VERBS[step.two % 5], sample_threads.ADA, now=NOW)

    def _retract(self, step: Step) -> None:
        sample_threads.retract(self._posted[step.one % len(self._posted)])

    def _recategorize(self, step: Step) -> None:
        thread = self._posted[step.one % len(self._posted)].thread
        name = records.ThreadName("demo", thread)
        recategorize.change(name, self._chosen(step.two), now=NOW)

    def _erase(self, step: Step) -> None:
        personal_data.erase(f"g:{step.two % 5}", now=NOW)

    def _chosen(self, pick: int) -> list[str]:
        return [name for place, name in enumerate(CATEGORIES) if pick >> place & 1]


def _at(day: int) -> Any:
    return sample_threads.START + timedelta(days=day % DAYS)


def settle() -> None:
    """Finish all changes of categories, and deliver all events."""
    recategorize.finish(now=NOW, steps=100)
    deliver()


def deliver() -> None:
    dispatcher.deliver(counter_oracle.events(), now=NOW, handlers=wiring.HANDLERS)


def authors_in(source: Form) -> set[str]:
    """Return the authors with an approved comment in a source, from the comments."""
    return {
        state.author
        for state in counter_oracle.states()
        if state.site == "demo" and state.author and state.status == "approved"
        and source.get("thread") in {None, state.thread.removeprefix("demo/")}
        and ("category" not in source or _is_in(source["category"], state.categories))
        and source.get("since", "") <= state.day <= source.get("until", "9999")
    }  # fmt: skip


def _is_in(category: str, filed: Iterable[str]) -> bool:
    return any(f"{each}/".startswith(f"{category}/") for each in filed)


@contextmanager
def small_pages() -> Iterator[None]:
    """Read every range in pages of two rows."""
    with mock.patch.multiple(audience_scan, _PAGE=2, _SMALLEST_PAGE=2):
        yield


@pytest.mark.slow
@pytest.mark.embedded
@settings(max_examples=max(1, settings.default.max_examples // 5))
@given(
    history=st.lists(STEPS, min_size=8, max_size=30),
    named=audience_forms.questions(SOURCES),
    limit=st.integers(1, 3),
)
def test_audiences_equal_a_naive_count_after_any_history(
    history: list[Step], named: dict[str, Form], limit: int
) -> None:
    """The numbers, the lists and the cost are checked, with pages of two rows."""
    with prepared_stores.opened(None) as engine, _opened(engine) as site, small_pages():
        steps = History(site)
        for step in history:
            steps.take(step)
        settle()
        in_source = functools.cache(lambda place: authors_in(SOURCES[place]))
        expected = {
            name: audience_forms.members(form, lambda each: in_source(SOURCES.index(each)))
            for name, form in named.items()
        }
        asked = audience_forms.question(named)
        said = audience_scan.cost("demo", asked)
        with testing.meter(engine) as billed:
            counted = audience_scan.count("demo", asked)
        assert {each.audience: each.commenters for each in counted} == {
            name: len(people) for name, people in expected.items()
        }
        assert billed.reads == said.reads
        for name, form in named.items():
            one = audience_forms.question({name: form})
            read = functools.partial(audience_scan.members, "demo", one, limit=limit)
            listed = statistics.whole(lambda after, read=read: read(after=after))  # type: ignore[misc]
            assert [each.author for each in listed] == sorted(expected[name])


@contextmanager
def _opened(engine: inprocess.Engine) -> Iterator[records.Site]:
    store = connection.Store(inprocess.Channel(engine), project="test")
    with store.context():
        yield prepared_stores.demo()


@pytest.fixture(scope="module")
def begun(tmp_path_factory: pytest.TempPathFactory) -> prepared_stores.Beginning:
    """Nine authors in thread a, of whom the first three also write in b and on the next day."""
    return prepared_stores.grown(tmp_path_factory, _tell_all)


@pytest.fixture
def told(store: connection.Store, begun: prepared_stores.Beginning) -> records.Site:
    return begun.found


def _tell_all(site: records.Site) -> records.Site:
    site = sample_threads.filing(site, *CATEGORIES)
    for number in range(9):
        _tell(site, number, "a", "news")
    for number in range(3):
        _tell(site, number, "b", "sport/football", day=1)
    settle()
    return site


def _tell(site: records.Site, number: int, thread: str, *categories: str, day: int = 0) -> None:
    sample_threads.post(
        site, f"{thread} {number}", author=sample_threads.author(f"{number}"), thread=thread,
        categories=categories, now=_at(day),
    )  # fmt: skip


BOTH: Form = {"all": [{"category": "news"}, {"thread": "b"}]}


def test_all_audiences_of_a_question_share_one_scan(
    told: records.Site, engine: inprocess.Engine, calls: Calls
) -> None:
    """Finding out the sizes takes three calls, and each of the three ranges takes one."""
    asked = audience_forms.question({
        "both": BOTH,
        "only news": {"any": [{"category": "news"}], "but": [{"thread": "b"}]},
        "late": {"site": True, **_period(1, 1)},
    })  # fmt: skip
    calls.names.clear()
    assert audience_scan.count("demo", asked) == [
        audience_scan.AudienceCount("both", 3),
        audience_scan.AudienceCount("only news", 6),
        audience_scan.AudienceCount("late", 3),
    ]
    sizes = ["Lookup", "RunAggregationQuery", "RunQuery"]
    assert calls.names == [*sizes, "RunQuery", "RunQuery", "RunQuery", "Commit"]


@pytest.mark.parametrize(
    ("source", "rows", "reads"),
    [
        ({"category": "news"}, 9, 1 + 1),
        ({"site": True}, 9, 1 + 1),
        ({"category": "travel"}, 0, 1),
        ({"thread": "a"}, 9, 1 + 9),
        ({"thread": "never seen"}, 0, 1),
        ({"site": True, **_period(0, 300)}, 9 + 3, 2 + 2),
        ({"category": "sport", **_period(0, 0)}, 0, 0),
    ],
)
def test_the_cost_is_said_before_the_scan(
    told: records.Site, engine: inprocess.Engine, source: Form, rows: int, reads: int
) -> None:
    asked = audience_forms.question({"x": source})
    with testing.meter(engine) as asking:
        assert audience_scan.cost("demo", asked) == audience_scan.ScanCost(rows, reads)
    with testing.meter(engine) as scanning:
        audience_scan.count("demo", asked)
    assert scanning.reads == reads
    assert asking.reads <= 2
    assert (scanning.writes, scanning.deletes) == (0, 0)


def test_the_largest_pages_are_used_unless_there_are_too_many_ranges(
    told: records.Site, engine: inprocess.Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Smaller pages cost more, and the cost says so."""
    asked = audience_forms.question({"x": {"any": [{"site": True}, {"category": "news"}]}})
    for name, value in (("_BUFFERED", 1), ("_PAGE", 30), ("_SMALLEST_PAGE", 4)):
        monkeypatch.setattr(audience_scan, name, value)
    assert audience_scan.cost("demo", asked) == audience_scan.ScanCost(18, 2 + 3 + 3)
    with testing.meter(engine) as scanning:
        assert audience_scan.count("demo", asked)[0].commenters == 9
    assert scanning.reads == 8


def test_a_scan_that_is_too_large_is_refused_before_it_begins(
    told: records.Site, engine: inprocess.Engine
) -> None:
    asked = audience_forms.question({"x": {"thread": "a"}})
    scans: list[Callable[..., object]] = [audience_scan.count, audience_scan.members]
    for scan in scans:
        scan("demo", asked, most=9)
        with testing.meter(engine) as cost, pytest.raises(errors.BadInput) as refused:
            scan("demo", asked, most=8)
        assert (refused.value.code, refused.value.field) == ("audience-too-large", "audiences")
        assert refused.value.params == {"rows": 9, "limit": 8}
        assert cost.reads == 1


@pytest.mark.parametrize("limit", [0, audience_scan.MOST + 1])
def test_a_page_of_members_is_bounded(told: records.Site, limit: int) -> None:
    with pytest.raises(errors.BadInput) as refused:
        audience_scan.members("demo", audience_forms.question({"x": BOTH}), limit=limit)
    assert (refused.value.code, refused.value.field) == ("out-of-range", "limit")


def test_only_one_audience_can_be_listed(told: records.Site) -> None:
    asked = audience_forms.question({"x": BOTH, "y": BOTH})
    with pytest.raises(errors.BadInput) as refused:
        audience_scan.members("demo", asked)
    assert (refused.value.code, refused.value.field) == ("too-many-items", "audiences")


def test_a_scan_sees_one_moment(
    told: records.Site, open_store: connection.Store, interceptor: InterceptorSlot
) -> None:
    """While a scan reads its third page, everybody leaves one category for another."""
    calls = 0

    def move() -> None:
        with open_store.context():
            recategorize.change(sample_threads.name_of(told, "a"), ["sport"], now=NOW)
            settle()

    def interrupt(method: str, _request: object, proceed: Callable[[], bytes]) -> bytes:
        nonlocal calls
        calls += method == "RunQuery" and threading.current_thread() is threading.main_thread()
        if calls == 3:
            calls += 1
            mover = threading.Thread(target=move)
            mover.start()
            mover.join()
        return proceed()

    interceptor.use(interrupt)
    asked = audience_forms.question({
        "any": {"any": [{"category": "news"}, {"category": "sport"}]},
        "all": {"all": [{"category": "news"}, {"category": "sport"}]},
        "news": {"category": "news"},
    })  # fmt: skip
    with small_pages():
        before = audience_scan.count("demo", asked)
        after = audience_scan.count("demo", asked)
    assert [each.commenters for each in before] == [9, 3, 9]
    assert [each.commenters for each in after] == [9, 0, 0]
    assert calls > 4


def test_another_site_with_the_same_beginning_is_not_scanned(told: records.Site) -> None:
    beside = sample_threads.filing(records.Site("demo-2", (), sorthash.DEFAULT_DIGITS, 2), "news")
    _tell(beside, 20, "a", "news")
    settle()
    named = {f"{place}": source for place, source in enumerate(SOURCES[4:8])} | {
        "s": {"site": True}
    }
    asked = audience_forms.question(named)
    assert {each.audience for each in audience_scan.count("demo-2", asked)} == {*named}
    assert audience_scan.count("demo-2", asked)[-1].commenters == 1
    assert audience_scan.count("demo", asked)[-1].commenters == 9


@pytest.mark.parametrize("source", [{"thread": "a"}, {"site": True}, {"category": "news"}])
def test_an_author_without_an_approved_comment_is_in_no_audience(
    told: records.Site, source: Form
) -> None:
    """The author's row exists in the thread and on the site, with numbers."""
    held = sample_threads.post(told, "held", author=sample_threads.author("x"), thread="a")
    decisions.decide("demo", held.id, records.Verb.HOLD, sample_threads.ADA, now=NOW)
    settle()
    asked = audience_forms.question({"x": source})
    assert audience_scan.count("demo", asked)[0].commenters == 9
    decisions.decide("demo", held.id, records.Verb.APPROVE, sample_threads.ADA, now=NOW)
    settle()
    assert audience_scan.count("demo", asked)[0].commenters == 10


@pytest.mark.parametrize("limit", [1, 2, 4, 9, 10])
@pytest.mark.parametrize(
    ("form", "authors"),
    [
        ({"thread": "a"}, range(9)),
        ({"site": True}, range(9)),
        ({"category": "sport/football"}, range(3)),
        ({"all": [{"site": True, **_period(1, 1)}, {"site": True, **_period(1, 2)}]}, range(3)),
        ({"any": [{"category": "news"}], "but": [{"thread": "b"}]}, range(3, 9)),
    ],
)
def test_pages_of_any_length_contain_each_member_once(
    told: records.Site, form: Form, authors: range, limit: int
) -> None:
    asked = audience_forms.question({"x": form})
    with small_pages():
        listed = statistics.whole(
            lambda after: audience_scan.members("demo", asked, after=after, limit=limit)
        )
        assert [each.author for each in listed] == [f"g:{number}" for number in authors]
