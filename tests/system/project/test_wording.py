"""No file in the project contains forbidden wording; CONTRIBUTING.md has the rules for prose."""

import re
import subprocess
from pathlib import Path

from tests.support import programs

FORBIDDEN = re.compile(
    r"\b(whoever|of ours|told of|such as have|what waits|he|him|his|himself)\b", re.IGNORECASE
)
HEBREW = "|he|"  # The code of a language
# Texts that others wrote: licenses and pinned packages.
NOT_OURS = ("LICENSE", "requirements.txt", "requirements-dev.txt", "package-lock.json")
# Minified files, whose names may be any letters.
BUILT = "comments/web/static/widget/"
PICTURES = (".webp", ".png", ".gz")


def test_no_file_contains_a_forbidden_phrase() -> None:
    listed = subprocess.run(
        ["git", "ls-files"], cwd=programs.ROOT, capture_output=True, text=True, check=True
    )
    found = []
    for name in listed.stdout.splitlines():
        path = programs.ROOT / name
        if name.startswith(BUILT) or path.suffix in PICTURES:
            continue
        if path.name in NOT_OURS or path == Path(__file__) or not path.is_file():
            continue
        text = path.read_bytes().decode(errors="replace")
        for number, line in enumerate(text.splitlines(), 1):
            if FORBIDDEN.search(line.replace(HEBREW, "")):
                found.append(f"{name}:{number}: {line.strip()[:100]}")
    assert not found
