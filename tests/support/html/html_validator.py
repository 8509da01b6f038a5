"""Check HTML with the pinned version of html-validate (tests/validator)."""

import json
import shutil
import subprocess
from collections.abc import Sequence

from tests.support import optional_tools, programs

FOLDER = programs.ROOT / "tests" / "validator"


def complaints(documents: Sequence[str]) -> list[list[str]]:
    """Return each document's faults. Without a validator, skip the test, except in CI."""
    node = shutil.which("node") or shutil.which("nodejs")
    optional_tools.require(
        node and (FOLDER / "node_modules").is_dir(),
        "no HTML validator: scripts/test without arguments installs it, given node and npm",
    )
    judged = subprocess.run(
        [node, "validate.mjs"],  # type: ignore[list-item]
        cwd=FOLDER,
        input=json.dumps(documents),
        check=True,
        capture_output=True,
        text=True,
    )
    return json.loads(judged.stdout)
