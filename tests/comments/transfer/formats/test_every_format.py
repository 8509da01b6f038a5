"""Laws that hold for the import of every format, tested with the format's samples.

`tests/support/importing/sample_files.py` explains how to add a format.
"""

import signal
from pathlib import Path
from typing import Any

import click.testing
import flask
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from comments import errors
from comments.domain import records
from comments.events import dispatcher, outbox
from comments.sites import site_settings
from comments.store import connection
from comments.transfer.checking import checked_import, import_batches
from comments.transfer.formats import format_registry
from comments.transfer.uploads import upload_steps
from comments.transfer.uploads.upload_store import UploadState
from comments.upkeep import wiring
from comments.upkeep.integrity import repair
from datastore_emulator import inprocess
from tests.support import dying_programs, prepared_stores
from tests.support.histories import counter_oracle
from tests.support.importing import sample_files, stored_imports, uploading
from tests.support.threads import sample_exports
from tests.support.threads.sample_exports import NOW, SCHEME

BATCH = 2  # Comments, in the tests that kill an import
CUTS = 60
POINTS: list[dict[str, Any]] = [
    *(
        {"rpc": "Commit", "call": call, "when": when}
        for call in (1, 2, 3)
        for when in ("before", "after")
    ),
    {"point": "commit.mutation", "call": 2},
    {"point": "commit.mutation", "call": 9},
    {"point": "commit.indexes", "call": 8},
    {"point": "commit.after", "call": 2},
]
UNTRUSTED = "untrusted_"
# The formats, and our own export as files that owners upload.
NAMES = (*format_registry.NAMES, f"{UNTRUSTED}flatthread")
every_format = pytest.mark.parametrize("name", NAMES)


def crooked() -> list[tuple[str, str]]:
    return [(name, fault) for name in NAMES for fault in samples(name).CROOKED]


def refused() -> list[tuple[str, str]]:
    return [(name, fault) for name in NAMES for fault in samples(name).REFUSED]


def samples(name: str) -> sample_files.FormatSamples:
    try:
        return sample_files.of(name)
    except ModuleNotFoundError as error:
        message = f"{name} has no samples; tests/support/importing/sample_files.py explains how"
        raise AssertionError(message) from error


def saved(folder: Path, data: bytes) -> Path:
    path = folder / "export"
    path.write_bytes(data)
    return path


def format_of(name: str) -> format_registry.Format:
    return format_registry.get(name.removeprefix(UNTRUSTED))


def plan_of(name: str, path: Path) -> checked_import.CheckedImport:
    found = format_of(name)
    reader = found.read_untrusted if name.startswith(UNTRUSTED) else found.read
    return sample_exports.planned_by(reader, path, unit=found.unit)


def run(app: flask.Flask, name: str, path: Path, *, named: bool = False) -> click.testing.Result:
    """Run the command; `named` names the format."""
    arguments = ("import", *([format_of(name).name] if named else []), str(path))
    options = ("--site", "garden", *(["--untrusted"] if name.startswith(UNTRUSTED) else []))
    return app.test_cli_runner().invoke(args=[*arguments, *options])


def assert_stored(name: str, sample: sample_files.Sample) -> None:
    """Check that the store contains what the sample's import has to store, and nothing else."""
    expected = list(sample.comments)
    found = stored_imports.comments(format_of(name).name, [each.id for each in expected])
    assert [stored_imports.without_person(each) for each in found] == [
        stored_imports.without_person(each) for each in expected
    ]
    assert stored_imports.people(found) == stored_imports.people(expected)
    assert stored_imports.threads() == sample.threads
    for thread in sample.threads:
        assert repair.find_problems(SCHEME, records.ThreadName("garden", thread)) == []
    counter_oracle.assert_counted()


def assert_addresses(name: str, sample: sample_files.Sample) -> None:
    """Check that the addresses of authors are stored encrypted."""
    expected = {
        each.id: sample.addresses[person]
        for each in sample.comments
        if (person := each.person or each.name) in sample.addresses
    }
    ids = [each.id for each in sample.comments]
    assert stored_imports.addresses(format_of(name).name, ids) == expected


@every_format
def test_an_import_stores_each_comment_of_the_file_once(
    app: flask.Flask, garden: records.Site, tmp_path: Path, name: str
) -> None:
    sample = samples(name).SANE
    path = saved(tmp_path, sample.data)
    first = run(app, name, path)
    assert first.exit_code == 0, first.output
    assert f"Added {len(sample.comments)} comments in {len(sample.threads)}" in first.output
    assert set(sample.says) <= set(first.output.splitlines())
    assert_stored(name, sample)
    assert_addresses(name, sample)
    before = sample_exports.rows()
    again = run(app, name, path)
    assert f"Added 0 comments in {len(sample.threads)}" in again.output
    assert sample_exports.rows() == before


@pytest.mark.parametrize("name", [each for each in NAMES if each != "flatthread"])
def test_an_upload_stores_the_same_as_the_command(garden: records.Site, name: str) -> None:
    sample, clock = samples(name).SANE, uploading.Clock()
    checked = uploading.checked("garden", sample.data, clock)
    assert checked.state is UploadState.CHECKED, checked.problem
    assert checked.system == format_of(name).name
    uploading.confirm("garden", checked.id, clock)
    assert upload_steps.do_next_step("garden", sample_exports.SECRET, clock=clock)
    done = uploading.current("garden")
    assert (done.added, done.explained, done.unexplained) == (len(sample.comments), 0, 0)
    assert_stored(name, sample)


@every_format
def test_a_format_is_recognized_by_itself_only(tmp_path: Path, name: str) -> None:
    sample = samples(name).SANE
    path = saved(tmp_path, sample.data)
    assert format_registry.recognize(path) == format_of(name)
    known = [each for each in format_registry.FORMATS if each.recognizes(sample.data)]
    assert known == [format_of(name)]


@every_format
def test_a_sample_is_varied(name: str) -> None:
    sample = samples(name).SANE
    assert len(sample.comments) >= 6
    assert len(sample.threads) >= 2
    assert len({each.person or each.name for each in sample.comments}) >= 3
    assert {each.thread for each in sample.comments} == set(sample.threads)
    by_id = {each.id: each for each in sample.comments}
    assert any(each.parent and by_id[each.parent].parent for each in sample.comments)
    assert any(not each.text.isascii() for each in sample.comments)


@pytest.mark.parametrize(("name", "fault"), crooked())
def test_a_crooked_file_is_imported_and_its_faults_are_reported(
    app: flask.Flask, garden: records.Site, tmp_path: Path, name: str, fault: str
) -> None:
    sample = samples(name).CROOKED[fault]
    shown = run(app, name, saved(tmp_path, sample.data), named=True)
    assert shown.exit_code == 0, shown.output
    assert_stored(name, sample)
    assert set(sample.says) <= set(shown.output.splitlines())


@pytest.mark.parametrize(("name", "fault"), refused())
def test_a_refused_file_is_explained_and_leaves_nothing(
    app: flask.Flask, garden: records.Site, tmp_path: Path, name: str, fault: str
) -> None:
    data, message = samples(name).REFUSED[fault]
    shown = run(app, name, saved(tmp_path, data), named=True)
    assert shown.exit_code == 1
    assert message in shown.output
    assert "Traceback" not in shown.output
    assert sample_exports.entities() == 0


@every_format
def test_a_file_that_is_cut_off_is_refused_or_has_whole_comments(
    garden: records.Site, tmp_path: Path, name: str
) -> None:
    sample = samples(name).SANE
    texts = {each.id: each.text for each in sample.comments}
    ends = [len(sample.data) * each // CUTS for each in range(CUTS)]
    whole = 0
    for end in ends:
        path = saved(tmp_path, sample.data[:end])
        try:
            plan = plan_of(name, path)
        except errors.BadImport:
            continue
        whole += 1
        with plan:
            written = sample_exports.written(plan)
        assert {key: each.body for key, each in written.items()}.items() <= texts.items()
    assert whole < CUTS / 2
    assert sample_exports.entities() == 0


@every_format
@settings(max_examples=settings.default.max_examples // 2)
@given(data=st.data())
def test_changed_bytes_are_refused_or_give_a_plan(
    tmp_path_factory: pytest.TempPathFactory, name: str, data: st.DataObject
) -> None:
    content = bytearray(samples(name).SANE.data)
    places = st.tuples(st.integers(0, len(content) - 1), st.integers(0, 255))
    for place, byte in data.draw(st.lists(places, min_size=1, max_size=3)):
        content[place] = byte
    path = tmp_path_factory.getbasetemp() / f"changed-{name}"
    path.write_bytes(content)
    try:
        plan = plan_of(name, path)
    except errors.BadImport:
        return
    with plan:
        written = sample_exports.written(plan)
        assert len(written) == plan.report.comments
        assert list(plan.report.lines())


def imported(name: str, path: Path) -> int:
    """Import and count in small batches; return the number of added comments."""
    import_batches.BATCH = BATCH
    with plan_of(name, path) as plan:
        added = sample_exports.write(plan).added
    events = [event.id for event in outbox.pending_events(outbox.COUNTERS)]
    dispatcher.deliver(events, now=NOW, handlers=wiring.HANDLERS)
    return added


@pytest.fixture
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(import_batches, "BATCH", BATCH)


@pytest.fixture(scope="module")
def empty_site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data file with the site "garden", for copies."""
    path = tmp_path_factory.mktemp("garden") / "data"
    with prepared_stores.opened(path) as engine, opened_store(engine).context():
        site_settings.add("garden", sample_exports.SITE.origins, scheme=SCHEME, now=NOW)
    return path


def opened_store(engine: inprocess.Engine) -> connection.Store:
    return connection.Store(inprocess.Channel(engine), project="test")


@pytest.mark.slow
@pytest.mark.embedded
@pytest.mark.usefixtures("_small")
@pytest.mark.parametrize(
    "name",
    ["disqus", f"{UNTRUSTED}flatthread"],  # All formats share the import that is killed
)
def test_an_import_that_is_killed_at_any_of_ten_points_is_completed_by_the_next(
    empty_site: Path, tmp_path: Path, name: str
) -> None:
    sample = samples(name).SANE
    path = saved(tmp_path, sample.data)
    with prepared_stores.opened_copy(empty_site) as engine, opened_store(engine).context():
        imported(name, path)
        uninterrupted = stored_imports.rows()
    stops = set()
    stores = [tmp_path / f"store-{number}" for number in range(len(POINTS))]
    for store, rule in zip(stores, POINTS, strict=True):
        store.write_bytes(empty_site.read_bytes())
        ended = dying_programs.run(store, [{**rule, "kill": True}], imported, name, path)
        assert ended == (-signal.SIGKILL, ""), rule
        with prepared_stores.opened(store) as engine, opened_store(engine).context():
            stored = len(sample_exports.rows())
            stops.add(stored)
            assert imported(name, path) == len(sample.comments) - stored, rule
            assert stored_imports.rows() == uninterrupted, rule
            assert_stored(name, sample)
            assert imported(name, path) == 0
    assert len(stops) > 2
    assert max(stops) < len(sample.comments)
