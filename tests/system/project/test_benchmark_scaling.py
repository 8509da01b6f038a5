"""The simulation, the recording and the cost model behind docs/scaling.md are correct."""

import collections
import math
import random
import re
import xml.etree.ElementTree as ET
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.scaling import __main__ as scaling
from benchmarks.scaling import (
    key_ranges,
    large_data,
    large_figures,
    monthly_costs,
    range_figures,
    recorded_writes,
    write_streams,
)
from benchmarks.threads import loading
from comments.jobs.integrity import recount, repair
from comments.store import connection
from comments.tree import ordered_query
from emulator import inprocess
from emulator.encoding import indexes
from tests.support import programs

DOCUMENT = programs.ROOT / "docs" / "scaling.md"
FOLDER = programs.ROOT / "docs" / "scaling"
PAGE = monthly_costs.Read((1, 2), (0, 1))
NOTHING = recorded_writes.Bill()
KEYS = st.lists(st.binary(min_size=1, max_size=4), min_size=1, max_size=40)


def recording(**bills: recorded_writes.Bill) -> recorded_writes.Recording:
    """Return a recording of one comment and one vote, in which most operations are free."""
    parts = dict.fromkeys(("posting", "voting", "editing", "later", "idle"), NOTHING) | bills
    return recorded_writes.Recording(1, 1, 0, 1, [], **parts)


class TestKeyRanges:
    @given(st.lists(KEYS, min_size=1, max_size=8))
    def test_every_write_goes_to_exactly_one_range(self, intervals: list[list[bytes]]) -> None:
        ranges = key_ranges.KeyRanges(limit=3.0)
        for keys in intervals:
            before = len(ranges)
            found = ranges.write(keys, 1.0)
            assert len(found.loads) == before
            assert sum(found.loads) == len(keys)

    @given(KEYS)
    def test_the_same_keys_again_are_divided_by_the_splits(self, keys: list[bytes]) -> None:
        ranges = key_ranges.KeyRanges(limit=0.0)
        for _ in range(40):
            ranges.write(keys, 1.0)
        most = max(collections.Counter(keys).values())
        assert ranges.write(keys, 1.0).hottest == most

    def test_a_range_that_receives_one_key_cannot_be_split(self) -> None:
        ranges = key_ranges.KeyRanges(limit=1.0)
        for _ in range(5):
            assert ranges.write([b"same"] * 9, 1.0).loads == (9.0,)

    def test_a_range_within_the_limit_is_not_split(self) -> None:
        ranges = key_ranges.KeyRanges(limit=9.0)
        ranges.write([b"a", b"b", b"c"], 3.0)
        assert len(ranges) == 1

    def test_splits_spread_random_keys_and_never_ascending_ones(self) -> None:
        chance, numbers = random.Random(1), iter(range(100_000))
        spread = [[chance.randbytes(8) for _ in range(1_000)] for _ in range(10)]
        ascending = [[next(numbers).to_bytes(8) for _ in range(1_000)] for _ in range(10)]
        assert key_ranges.run(spread, 5_000.0)[-1].hottest < 2 * key_ranges.LIMIT
        assert {each.hottest for each in key_ranges.run(ascending, 5_000.0)} == {5_000.0}

    def test_the_writes_above_the_limits_are_summed(self) -> None:
        assert key_ranges.Interval((10.0, 700.0, 500.0, 501.0)).over(500.0) == 201.0


class TestRecording:
    def test_the_recorded_entries_are_those_that_the_engine_stores(self) -> None:
        recorder = recorded_writes.Recorder()
        with inprocess.open_engine(
            None,
            indexes=programs.ROOT / "index.yaml",
            concurrency="pessimistic",
            history=0,
            built_in_indexes="eager",
        ) as engine:
            store = connection.Store(inprocess.Channel(engine, recorder), project=loading.PROJECT)
            traffic = recorded_writes.Traffic(engine, store, random.Random(1))
            recorded: collections.Counter[tuple[str, bytes]] = collections.Counter()
            for part in ([(0, 0, None), (1, 0, None)], [(0, 1, 0), (1, 1, 0), (0, 2, None)]):
                traffic.post(part)
                traffic.work(2)
            for space, keys in recorder.taken().items():
                recorded.update((space, key) for key in keys)
            # An entry that was written once exists; one that was also removed does not.
            present = collections.Counter(
                space
                for (space, _), times in recorded.items()
                if times % 2 and not space.endswith(recorded_writes.ROWS)
            )
            assert present == stored_entries(engine)

    def test_a_stream_has_a_key_for_each_comment_in_every_line(self) -> None:
        streams = write_streams.synthetic(3, 2, 20)
        assert list(streams) == [*write_streams.OURS, *write_streams.NAIVE]
        for intervals in streams.values():
            assert [len(keys) for keys in intervals] == [20, 20]
            assert len({key for keys in intervals for key in keys}) == 40


def stored_entries(engine: inprocess.Engine) -> collections.Counter[str]:
    """Return the number of entries in each index, except the indexes of keys."""
    found: collections.Counter[str] = collections.Counter()
    with engine.storage.read() as snapshot:
        for _, code, number, _ in snapshot.index_sizes():
            index = indexes.decode(code)
            if index.properties:
                found[recorded_writes.index_name(index)] = number
    return found


class TestCosts:
    @given(
        st.integers(1, 10**8).map(monthly_costs.Month),
        st.integers(1, 8),
    )
    def test_first_calls_are_bounded_by_calls_and_by_minutes(
        self, month: monthly_costs.Month, processes: int
    ) -> None:
        month = msgspec.structs.replace(month, views=min(month.views, 10**6), processes=processes)
        first = monthly_costs.first_calls(month)
        slots = monthly_costs.MINUTES * processes
        calls = month.views * monthly_costs.CALLS_PER_VIEW
        assert 0 < first <= min(calls, slots * month.threads) * (1 + 1e-9)
        assert monthly_costs.busy_minutes(month) <= min(calls, slots) * (1 + 1e-9)

    def test_a_busy_thread_is_read_once_a_minute(self) -> None:
        month = monthly_costs.Month(900)
        assert month.threads == 1
        assert math.isclose(monthly_costs.first_calls(month), 1800, rel_tol=0.03)

    def test_a_month_is_the_sum_of_its_calls(self) -> None:
        made = recording(
            posting=recorded_writes.Bill(3, 5, 0, 1),
            voting=recorded_writes.Bill(2, 1, 0, 0),
            idle=recorded_writes.Bill(0, 0, 0, 2),
        )
        month = monthly_costs.Month(1_000_000, per_comment=100, per_vote=1_000)
        found = monthly_costs.operations(month, PAGE, made)
        shared = monthly_costs.first_calls(month) + 2 * monthly_costs.busy_minutes(month)
        assert math.isclose(found.lenient, shared + 10_000 * 3 + 1_000 * 2)
        probes = 2_000_000 + 10_000 + 2 * monthly_costs.MINUTES
        assert math.isclose(found.strict - found.lenient, probes)
        saved = 2_000_000 - monthly_costs.first_calls(month)
        assert math.isclose(found.strict - found.fresh, saved)
        assert (found.writes, found.deletes) == (10_000 * 5 + 1_000, 0)

    def test_the_free_operations_of_each_day_are_not_charged(self) -> None:
        prices = monthly_costs.Prices(1.0, 10.0, 100.0, 1_000, 100, 10)
        within = monthly_costs.Operations(0, 0, 0, 3_000, 300)
        assert within.dollars(prices, 30_000) == 0.0
        above = monthly_costs.Operations(0, 0, 0, 103_000, 100_300)
        assert above.dollars(prices, 130_000) == 1.0 + 10.0 + 100.0
        assert above.dollars(prices, 230_000) == 2.0 + 10.0 + 100.0

    def test_the_reads_of_a_page_come_from_the_document_of_costs(self) -> None:
        assert monthly_costs.reads(scaling.COSTS, "first page") == PAGE
        with pytest.raises(SystemExit, match='has no row "last page"'):
            monthly_costs.reads(scaling.COSTS, "last page")

    @pytest.mark.parametrize("prices", ["1,2", "1,2,x", "1,-2,3", "nan,1,1", "inf,1,1"])
    def test_malformed_prices_are_refused(
        self, prices: str, capsys: pytest.CaptureFixture[str]
    ) -> None:
        with pytest.raises(SystemExit):
            scaling.parsed(["costs", "--prices", prices])
        assert "--prices: give three numbers" in capsys.readouterr().err


@pytest.fixture
def threads(tmp_path: Path) -> Path:
    """The data folder of a large site, on a small scale."""
    folder = tmp_path / "threads"
    large_data.main(["threads", str(folder), "--threads", "12"])
    return folder


class TestLargeData:
    def test_every_copied_thread_is_sound_and_has_its_own_ids(self, threads: Path) -> None:
        with inprocess.open_engine(threads / "flatthread.db", history=0) as engine:
            store = connection.Store(inprocess.Channel(engine), project=loading.PROJECT)
            seen: set[str] = set()
            with store.context():
                for number in range(12):
                    name = large_data.thread_name(number)
                    rows = ordered_query.thread(name)
                    assert [row.level for row in rows] == [0, 1, 0]
                    assert repair.find_problems(loading.SCHEME, name) == []
                    wrong = recount.thread(name, tell=lambda _number: None, fixes=False)
                    assert not wrong
                    seen |= {row.id for row in rows}
            assert len(seen) == 36

    def test_a_folder_that_exists_is_refused(
        self, threads: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        with pytest.raises(SystemExit):
            large_data.main(["million", str(threads)])
        assert f"{threads} exists already" in capsys.readouterr().err

    @pytest.mark.slow
    def test_a_short_run_measures_both_kinds_of_data(self, threads: Path, tmp_path: Path) -> None:
        thread = tmp_path / "thread"
        large_data.main(["million", str(thread), "--comments", "300"])
        run = large_figures.measure([thread, threads], 1)
        assert [(data.comments, data.threads) for data in run.found] == [(300, 1), (36, 12)]
        for data in run.found:
            assert all(times.seconds for times in data.calls)
            assert data.compaction.changes > 0
            assert large_figures.FIRST in [times.name for times in data.calls]
        assert "| 300 comments in one thread | 36 comments in 12 threads |" in (
            large_figures.markdown(run)
        )


class TestDocument:
    def test_the_tables_are_those_of_the_stored_figures(self) -> None:
        text = DOCUMENT.read_text()
        ranges = msgspec.json.decode((FOLDER / "ranges.json").read_bytes(), type=range_figures.Run)
        assert range_figures.markdown(ranges) in text
        page = monthly_costs.reads(scaling.COSTS, "first page")
        costs = monthly_costs.markdown(page, ranges.recording, monthly_costs.Prices())
        assert costs in text
        large = msgspec.json.decode((FOLDER / "large.json").read_bytes(), type=large_figures.Run)
        assert large_figures.markdown(large) in text

    def test_the_plots_are_those_of_the_stored_figures(self) -> None:
        ranges = msgspec.json.decode((FOLDER / "ranges.json").read_bytes(), type=range_figures.Run)
        page = monthly_costs.reads(scaling.COSTS, "first page")
        plots = [
            *range_figures.drawn(ranges),
            *monthly_costs.drawn(page, ranges.recording, monthly_costs.Prices()),
        ]
        for name, drawn in plots:
            assert (FOLDER / name).read_text() == drawn
            ET.fromstring(drawn)  # noqa: S314 - our own XML

    def test_it_counts_the_composite_indexes(self) -> None:
        count = (programs.ROOT / "index.yaml").read_text().count("\n- kind:")
        assert f"| 200 | {count} are used |" in DOCUMENT.read_text()

    def test_a_quick_run_writes_tables_and_plots(self, tmp_path: Path) -> None:
        document = tmp_path / "scaling.md"
        document.write_text(
            "<!-- ranges -->\n<!-- end of ranges -->\n<!-- costs -->\n<!-- end of costs -->\n"
        )
        scaling.main(["ranges", "--quick", "--write", "--document", str(document)])
        scaling.main(["costs", "--write", "--document", str(document)])
        text = document.read_text()
        assert re.search(r"^\| Event due \| \d", text, re.MULTILINE)
        assert re.search(r"^\| 100,000,000 \| 100,000 \| 4 \|", text, re.MULTILINE)
        made = sorted(each.name for each in (tmp_path / "scaling").iterdir())
        assert made == ["costs.svg", "hottest.svg", "ramp.svg", "ranges.json", "ranges.svg"]
