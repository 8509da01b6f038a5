"""Find and write small exports, and read what their import stores.

An export that a test writes has one post per line, starting at line 2, so the test can name a
fault's line.
"""

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from comments.domain import records
from comments.domain.ids import sorthash
from comments.store import reads
from comments.store.models import conversion
from comments.transfer import import_source
from comments.transfer.checking import checked_import
from comments.transfer.formats import disqus
from comments.transfer.importing import import_writer
from tests.conftest import ROOT

IMPORTS = ROOT / "tests" / "fixtures" / "imports"
SECRET = "a secret of the tests"
NOW = datetime(2026, 1, 2, tzinfo=UTC)
SCHEME = sorthash.Scheme()
SITE = records.Site(
    id="garden", origins=("https://garden.example",), digits=SCHEME.digits, width=SCHEME.width
)
ROSES = records.ThreadName("garden", "garden.example/roses")


def planned(
    name: str,
    reader: import_source.Reader = disqus.read,
    levels: int = 8,
    site: records.Site = SITE,
) -> checked_import.CheckedImport:
    scheme = sorthash.Scheme(levels=levels)
    return checked_import.plan(reader, IMPORTS / name, site=site, scheme=scheme, secret=SECRET)


def planned_by(
    reader: import_source.Reader,
    path: Path,
    *,
    levels: int = 8,
    site: records.Site = SITE,
    unit: str = "line",
) -> checked_import.CheckedImport:
    """Plan the import of any file with a reader."""
    scheme = sorthash.Scheme(levels=levels)
    return checked_import.plan(reader, path, site=site, scheme=scheme, secret=SECRET, unit=unit)


def post(post_id: str, parent: str | None = None, minute: int = 0, **more: str) -> str:
    """Return a one-line post for a Disqus export, in thread 1."""
    values = {"message": f"text {post_id}", "name": "Ada", "thread": "1"} | more
    created = values.get("created", f"2015-01-01T{minute // 60:02}:{minute % 60:02}:00Z")
    answers = f'<parent dsq:id="{parent}"/>' if parent else ""
    return (
        f'<post dsq:id="{post_id}"><message><![CDATA[{values["message"]}]]></message>'
        f"<createdAt>{created}</createdAt><isDeleted>false</isDeleted><isSpam>false</isSpam>"
        f"<author><name>{values['name']}</name></author>"
        f'<thread dsq:id="{values["thread"]}"/>{answers}</post>\n'
    )


THREAD = '<thread dsq:id="1"><link>https://garden.example/roses</link></thread>\n'


def saved(path: Path, *lines: str) -> Path:
    """Write a Disqus export with one argument on each line, starting at line 2."""
    opening = '<disqus xmlns="http://disqus.com" xmlns:dsq="http://disqus.com/disqus-internals">'
    path.write_text(f"{opening}\n{''.join(lines)}</disqus>")
    return path


def threads_of(sizes: Sequence[int], author: str = "") -> list[str]:
    """Return the lines of an export of threads with these numbers of comments.

    The n-th comment of thread 3 has the id 300n and answers the comment before it, or is a root.
    """
    lines = []
    for key, size in enumerate(sizes, start=1):
        lines.append(THREAD.replace("roses", f"page{key}").replace('id="1"', f'id="{key}"'))
        for n in range(size):
            above = f"{key}00{n - 1}" if n % 3 else None
            name = author or f"author {(key + n) % 4}"
            lines.append(post(f"{key}00{n}", above, minute=n, thread=str(key), name=name))
    return lines


def plan_of(
    path: Path, levels: int = 8, site: records.Site = SITE, mapping: Sequence[str] = ()
) -> checked_import.CheckedImport:
    return checked_import.plan(
        disqus.read,
        path,
        site=site,
        scheme=sorthash.Scheme(levels=levels),
        secret=SECRET,
        mapping=mapping,
    )


def written(plan: checked_import.CheckedImport) -> dict[str, records.ImportedComment]:
    """Return the comments that a plan would write, by source id."""
    return {
        comment.source.partition(":")[2] or comment.id: comment
        for batch in plan.batches()
        for thread in batch
        for comment in thread.nodes
    }


def notes(plan: checked_import.CheckedImport, kind: str) -> list[tuple[int, str]]:
    return [(note.line, note.text) for note in plan.report.notes if note.kind == kind]


def write(plan: checked_import.CheckedImport, levels: int = 8) -> import_writer.ImportSummary:
    return import_writer.write(plan, scheme=sorthash.Scheme(levels=levels), now=NOW)


def rows() -> list[records.Comment]:
    """Return all stored comments, ordered by thread and sort hash."""
    found = map(conversion.comment_from_message, reads.fetch(reads.Query("Comment")))
    return sorted(found, key=lambda row: (row.thread, row.sort_hash))


def entities() -> int:
    return sum(reads.count(reads.Query(kind)) for kind in ("Comment", "Thread"))


def source_ids(found: list[records.Comment], plan: checked_import.CheckedImport) -> list[str]:
    names = {plan.id_of(node.id): node.id for thread in plan.threads for node in thread.nodes}
    return [names[row.id] for row in found]
