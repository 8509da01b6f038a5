"""Real exports of other systems are the same after an export and an import, on any store."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from comments.domain import records
from comments.sites import site_settings
from comments.store import connection
from comments.transfer.checking import checked_import
from comments.transfer.formats import format_registry
from comments.transfer.importing import import_writer
from datastore_emulator import inprocess
from tests.support import datastores, optional_tools, prepared_stores, programs
from tests.support.exporting import site_exports
from tests.support.threads import sample_exports
from tests.support.threads.sample_exports import NOW, SCHEME, SECRET

pytestmark = [pytest.mark.slow, pytest.mark.embedded]

FILES = [
    "disqus/evanlin-189.xml",
    "wxr/themeunittestdata-33.xml",
    "other/isso-incolumitas-434.db",
    "other/twikoo-zl88-61.json",
]


@pytest.fixture(scope="module")
def emulator() -> Iterator[str]:
    """The address of an emulator in a process of its own, which has only the listed indexes."""
    command: list[str | Path] = [
        programs.BIN / "python", "-m", "emulator", "--port", "0", "--in-memory",
        "--indexes", "index.yaml", "--strict-indexes",
    ]  # fmt: skip
    with programs.running(command, environ=programs.environment()) as program:
        yield program.wait_for(r"DATASTORE_EMULATOR_HOST=(\S+)")[1]


@pytest.fixture
def embedded() -> Iterator[inprocess.Engine]:
    with prepared_stores.opened(None) as engine:
        yield engine


def add_site() -> records.Site:
    return site_settings.add("garden", sample_exports.SITE.origins, scheme=SCHEME, now=NOW)


def moved(store: connection.Store, source: Path, target: Path) -> None:
    """Import a file into an empty store, and export it again."""
    with store.context():
        site = add_site()
        found = format_registry.recognize(source)
        with checked_import.plan(
            found.read, source, site=site, scheme=SCHEME, secret=SECRET, unit=found.unit
        ) as plan:
            added = import_writer.write(plan, scheme=SCHEME, now=NOW).added
            assert added == plan.report.comments > 0
        site_exports.save(target, "garden", site_exports.ALL)


@pytest.mark.parametrize("name", FILES)
def test_an_export_of_a_real_site_is_the_same_in_another_store(
    embedded: inprocess.Engine, emulator: str, tmp_path: Path, name: str
) -> None:
    source = optional_tools.real_export(name)
    files = [tmp_path / f"{number}.jsonl" for number in range(3)]
    moved(datastores.Embedded(embedded).connect(), source, files[0])
    moved(datastores.Emulator(emulator).connect(), files[0], files[1])
    with prepared_stores.opened(None) as engine:
        moved(datastores.Embedded(engine).connect(), files[1], files[2])
    first = site_exports.content(files[0])
    assert site_exports.content(files[1]) == first
    assert site_exports.content(files[2]) == first
