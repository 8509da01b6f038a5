"""Export a site to a file, and read such files without the code of the import."""

import gzip
import json
from datetime import datetime
from pathlib import Path
from typing import Any

from comments.transfer.exporting import export_file, site_contents, site_export
from tests.support.threads import sample_exports

NOW = sample_exports.NOW
ALL = site_contents.Choices(addresses=True, audit_log=True)
PLAIN = site_contents.Choices()


def save(
    path: Path,
    site: str,
    choices: site_contents.Choices = PLAIN,
    *,
    format_: str = "jsonl",
    secret: str = sample_exports.SECRET,
    now: datetime = NOW,
) -> Path:
    """Export a site to a file."""
    run = site_export.SiteExport(site, site_export.FORMATS[format_], choices, secret, now)
    run.write(lambda: export_file.create(path))
    return path


def lines(path: Path) -> list[dict[str, Any]]:
    """Return the lines of an export."""
    data = path.read_bytes()
    if path.suffix == ".gz":
        data = gzip.decompress(data)
    assert data.endswith(b"\n")
    return [json.loads(each) for each in data.decode().split("\n")[:-1]]


def of_kind(path: Path, kind: str) -> list[dict[str, Any]]:
    """Return the lines of one kind."""
    return [each for each in lines(path) if each["kind"] == kind]


def content(path: Path) -> list[dict[str, Any]]:
    """Return the lines of an export, without the time in its header."""
    header, *rest = lines(path)
    del header["time"]
    return [header, *rest]
