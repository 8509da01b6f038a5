"""An import prints its report, stores a file once, and refuses files that it cannot read."""

import gc
import json
import re
from pathlib import Path
from typing import Any

import flask
import pytest

from comments.domain import records
from comments.events import dispatcher
from comments.store import connection
from comments.transfer.formats import format_registry
from comments.transfer.importing import import_journal
from comments.tree.counters import thread_counts
from comments.upkeep.integrity import repair
from tests.comments.cli.conftest import Runner
from tests.support.threads import sample_threads

FIXTURE = """<?xml version="1.0" encoding="utf-8"?>
<disqus xmlns="http://disqus.com" xmlns:dsq="http://disqus.com/disqus-internals">
<thread dsq:id="1"><id/><link>https://example.com/page/</link><title>Page</title>
<createdAt>2011-01-01T00:00:00Z</createdAt><isClosed>false</isClosed><isDeleted>false</isDeleted>
</thread>
<post dsq:id="11"><message><![CDATA[<p>first</p>]]></message>
<createdAt>2011-01-02T00:00:00Z</createdAt><isDeleted>false</isDeleted><isSpam>false</isSpam>
<author><name>Ann</name><isAnonymous>true</isAnonymous></author><thread dsq:id="1"/></post>
<post dsq:id="12"><message><![CDATA[<p>answer</p>]]></message>
<createdAt>2011-01-03T00:00:00Z</createdAt><isDeleted>false</isDeleted><isSpam>false</isSpam>
<author><name>Bob</name><isAnonymous>true</isAnonymous></author><thread dsq:id="1"/>
<parent dsq:id="11"/></post>
</disqus>
"""


@pytest.fixture
def export(tmp_path: Path) -> Path:
    file = tmp_path / "export.xml"
    file.write_text(FIXTURE, encoding="utf-8")
    return file


def test_an_import_stores_the_file_once(
    run: Runner, site: records.Site, store: connection.Store, export: Path
) -> None:
    first = run("import", "disqus", export, "--site", "demo")
    assert first.exit_code == 0
    assert "Added 2 comments in 1 thread; 0 existed already.\n" in first.output
    assert first.output.endswith(
        "To view a thread of 2 comments, "
        "open /?site=demo&thread=example.com%2Fpage on the server.\n"
        'To show it on a page: <div id="flatthread" data-thread="example.com/page"></div>\n'
    )
    again = run("import", "disqus", export, "--site", "demo")
    assert "Added 0 comments in 1 thread; 2 existed already.\n" in again.output
    assert "To view a thread" in again.output
    run("site", "set", "demo", "--add-origin", "https://example.com")
    again = run("import", "disqus", export, "--site", "demo")
    assert 'data-page="https://example.com/page/"' in again.output
    assert sample_threads.listed(site, "example.com/page") == ["<p>first</p>", "<p>answer</p>"]


def test_garbage_is_collected_rarely_during_an_import_only(
    run: Runner, site: records.Site, export: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, deliver = gc.get_threshold(), dispatcher.deliver
    during: list[int] = []

    def delivered(*given: Any, **more: Any) -> dispatcher.DeliveryCounts:
        during.append(gc.get_threshold()[0])
        return deliver(*given, **more)

    monkeypatch.setattr(dispatcher, "deliver", delivered)
    assert run("import", "disqus", export, "--site", "demo").exit_code == 0
    assert max(during) > before[0]
    assert gc.get_threshold() == before
    assert run("import", "disqus", export, "--site", "unknown").exit_code == 1
    assert gc.get_threshold() == before


def test_an_import_stores_its_progress(
    run: Runner, open_store: connection.Store, site: records.Site, export: Path
) -> None:
    run("import", "disqus", export, "--site", "demo", "--dry-run")
    with open_store.context():
        assert import_journal.recent_imports("demo") == []
    for _ in range(2):
        run("import", "disqus", export, "--site", "demo")
        with open_store.context():
            (found,) = import_journal.recent_imports("demo")
        assert (found.system, found.file, found.comments) == ("disqus", "export.xml", 2)
        assert (found.seen, found.added) == (2, 2)


def test_a_sites_numbers_include_an_import_when_it_ends(
    run: Runner, site: records.Site, store: connection.Store, export: Path
) -> None:
    run("import", "disqus", export, "--site", "demo")
    # The rows with the counts of many threads are complete, so pages that list threads use them.
    thread = "demo/example.com/page"
    assert thread_counts.of_threads("demo", [thread]) == {thread: 2}
    shown = run("stats", "site", "demo", "--format", "json")
    (numbers,) = json.loads(shown.output)
    assert (numbers["comments"], numbers["commenters"]) == (2, 2)
    assert run("recount").output == "0 differences corrected.\n"


def test_a_dry_run_stores_nothing(
    run: Runner, site: records.Site, store: connection.Store, export: Path
) -> None:
    checked = run("import", "disqus", export, "--site", "demo", "--dry-run")
    assert checked.exit_code == 0
    assert "2 comments in 1 thread." in checked.output
    assert checked.output.endswith("Dry run: nothing was stored.\n")
    assert list(repair.threads("demo")) == []


def test_a_dry_run_refuses_an_import_that_cannot_be_stored(
    run: Runner, site: records.Site, open_store: connection.Store, export: Path
) -> None:
    run("import", "disqus", export, "--site", "demo")
    moved = export.with_name("moved.xml")
    moved.write_text(FIXTURE.replace("/page/", "/moved/"), encoding="utf-8")
    for options in (("--dry-run",), ()):
        refused = run("import", "disqus", moved, "--site", "demo", *options)
        assert refused.exit_code == 1
        assert "is already stored in" in refused.output
        assert "into different sites." in refused.output
    with open_store.context():
        assert [each.file for each in import_journal.recent_imports("demo")] == ["export.xml"]


def test_a_damaged_file_is_refused_with_its_line_and_stores_nothing(
    run: Runner, site: records.Site, store: connection.Store, export: Path
) -> None:
    export.write_text(FIXTURE.replace("</disqus>", "<thread></disqus>"), encoding="utf-8")
    refused = run("import", "disqus", export, "--site", "demo")
    assert refused.exit_code == 1
    assert f"{export}:13:" in refused.output
    assert list(repair.threads("demo")) == []


@pytest.mark.parametrize("options", [(), ("--dry-run",)], ids=["import", "dry run"])
@pytest.mark.parametrize("system", ["disqus", "wordpress"])
def test_an_unsupported_encoding_is_reported_in_one_line_and_stores_nothing(
    run: Runner,
    site: records.Site,
    store: connection.Store,
    export: Path,
    system: str,
    options: tuple[str, ...],
) -> None:
    text = re.sub(r"\A<\?xml.*?\?>", "", FIXTURE).strip()
    export.write_text(f'<?xml version="1.0" encoding="utf-7"?>\n{text}', encoding="utf-7")
    refused = run("import", system, export, "--site", "demo", *options)
    assert refused.exit_code == 1
    assert isinstance(refused.exception, SystemExit)
    assert refused.output.count("\n") == 1
    assert f'{export}:1: the encoding "utf-7" is not supported: convert' in refused.output
    assert list(repair.threads("demo")) == []
    assert import_journal.recent_imports("demo") == []


def test_errors_contain_no_escape_sequences_of_a_file(
    app: flask.Flask, garden: records.Site, tmp_path: Path
) -> None:
    file = tmp_path / "comments.csv"
    file.write_text("page,\x1b]0;title\x07,text\n")
    shown = app.test_cli_runner().invoke(
        args=["import", "generic", str(file), "--site", "garden"], color=True
    )
    assert shown.exit_code == 1
    assert "]0;title" in shown.output
    assert not {"\x1b", "\x07"} & set(shown.output)


def test_the_help_names_every_format(run: Runner) -> None:
    shown = run("import", "--help").output
    assert [name for name in format_registry.NAMES if name not in shown] == []
