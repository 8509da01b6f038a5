"""The store that a release wrote, kept in the repository for every later release to open.

    tests/fixtures/stores/format-1.db.gz      the data file
    tests/fixtures/stores/format-1.json       what readers saw in it (`shown`)

Never write an existing file again: it shows what an older release stored. If `store_format.FORMAT`
is raised, run this command once with the last commit that has the old format, and once with the
first commit that has the new one:

    python -m tests.support.kept_store

The content is made here and by the import of a sample file, with fixed names, texts and times.
"""

import contextlib
import dataclasses
import gzip
import json
import shutil
import tempfile
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import embedded_engine
from comments import config
from comments.domain import records
from comments.domain.records import Verb
from comments.moderation import decisions, reports
from comments.posting import file_report, own_comment
from comments.sites import site_settings
from comments.store import connection
from comments.transfer.importing import import_writer
from comments.tree.lists import ordered_query
from comments.upkeep.migrations import store_format, upgrades
from datastore_emulator import data_files
from tests.support.people import account_holders
from tests.support.threads import (
    compaction,
    moderated_site,
    sample_exports,
    sample_threads,
    sample_votes,
)

STORES = Path(__file__).parents[1] / "fixtures" / "stores"
KEPT = sorted(STORES.glob("format-*.db.gz"))
NOW = sample_threads.START
LATER = NOW + timedelta(days=1)
THREADS = (
    records.ThreadName("demo", "page"),
    records.ThreadName("demo", "other"),
    sample_exports.ROSES,
)


def settings(folder: Path, **more: Any) -> config.Settings:
    """Return the settings of the service whose data is in a folder."""
    return dataclasses.replace(sample_threads.SETTINGS, data_dir=folder, **more)


@contextlib.contextmanager
def open_store(folder: Path) -> Iterator[connection.Store]:
    """Open the store in a folder and enter it, as a service does."""
    found = settings(folder)
    with (
        embedded_engine.DataFiles().open_store(found.data_file, found) as store,
        store.context(),
    ):
        yield store


def unpack(kept: Path, folder: Path) -> None:
    """Make a kept store the data file in a folder."""
    folder.mkdir(exist_ok=True)
    with gzip.open(kept) as packed, settings(folder).data_file.open("wb") as file:
        shutil.copyfileobj(packed, file)


def shown() -> dict[str, list[dict[str, Any]]]:
    """Return what readers see of each thread, in reading order."""
    return {
        f"{name.site} {name.id}": [
            {"slug": row.slug, "name": row.author.name, "html": row.html, "score": row.score}
            for row in ordered_query.thread(name)
        ]
        for name in THREADS
    }


def fill() -> None:
    """Fill an empty store with a little of most things that a release stores."""
    upgrades.note_new()
    scheme = sample_threads.SETTINGS.scheme
    demo = site_settings.add("demo", ["https://a.example"], scheme=scheme, now=NOW)
    moderated_site.rule(words=("casino",))
    rows = sample_threads.grow(demo, sample_threads.TREE)
    more = {"[a *link*](https://b.example) and `code`": {"<b>no</b> HTML": {}}, "casino": {}}
    sample_threads.grow(demo, more, thread="other")
    own_comment.edit(
        rows["1.2"].id, author_id=rows["1.2"].author.id, body="1.2 edited", revision=None,
        settings=sample_threads.SETTINGS, now=NOW,
    )  # fmt: skip
    sample_threads.retract(rows["1.1"])
    for voter, value in (("x", 1), ("y", 1), ("z", -1)):
        sample_votes.vote(rows["2.1"], voter, value)
    sample_votes.count_all(LATER)
    decisions.decide("demo", rows["3"].id, Verb.PIN, sample_threads.ADA, now=NOW)
    asked = sample_threads.request(demo, network="192.0.2.1")
    file_report.report(rows["2"].id, reports.Reason.ABUSE, asked, author="g:eve")
    account_holders.account("ann", account_holders.OWNER, mail="ann@mail.example")
    compaction.whole(THREADS[0])
    sample_threads.post(demo, "after the compaction", rows["1"].id, now=NOW + timedelta(hours=1))
    site_settings.add("garden", sample_exports.SITE.origins, scheme=sample_exports.SCHEME, now=NOW)
    with sample_exports.planned("disqus.xml") as plan:
        import_writer.write(plan, scheme=sample_exports.SCHEME, now=NOW, clock=lambda: NOW)
    sample_votes.count_all(LATER)


def write() -> Path:
    """Write the files of this format, which must not exist."""
    target = STORES / f"format-{store_format.FORMAT}.db.gz"
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        with open_store(folder):
            fill()
            seen = shown()
        data_files.seal(settings(folder).data_file)
        with (
            target.open("xb") as file,
            gzip.GzipFile(filename="", fileobj=file, mode="wb", mtime=0) as packed,
        ):
            packed.write(settings(folder).data_file.read_bytes())
    target.with_name(f"format-{store_format.FORMAT}.json").write_text(
        json.dumps(seen, indent=1) + "\n"
    )
    return target


if __name__ == "__main__":
    print(write())  # noqa: T201 - the command's result
