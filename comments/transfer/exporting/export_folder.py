"""Keep the latest exports of a site in a folder, one file for each export.

Files are named "SITE-20261128T031500Z.EXTENSION", so sorting them by name also sorts them by time.
"""

import re
from datetime import UTC, datetime
from pathlib import Path

_TIME = "%Y%m%dT%H%M%SZ"
_NAME = re.compile(r"\A(.+)-([0-9]{8}T[0-9]{6}Z)(\.[a-z.]{1,20})")


def file_name(site: str, extension: str, now: datetime) -> str:
    """Return the name of a new export, such as "blog-20261128T031500Z.jsonl.gz"."""
    return f"{site}-{now.astimezone(UTC).strftime(_TIME)}{extension}"


def remove_old(folder: Path, site: str, extension: str, keep: int) -> list[Path]:
    """Delete all but the latest `keep` exports of a site; return their paths."""
    exports = sorted(
        file
        for file in folder.iterdir()
        if (match := _NAME.fullmatch(file.name)) and match.group(1, 3) == (site, extension)
    )
    old = exports[:-keep]
    for file in old:
        file.unlink(missing_ok=True)
    return old
