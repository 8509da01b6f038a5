"""Judges HTML with html-validate, as its lock file pins it (tests/validator)."""

import json
import os
import shutil
import subprocess
from collections.abc import Sequence

import pytest

from tests import programs

FOLDER = programs.ROOT / "tests" / "validator"


def complaints(documents: Sequence[str]) -> list[list[str]]:
    """What is wrong with each document. Skips where there is no validator, which CI refuses."""
    node = shutil.which("node") or shutil.which("nodejs")
    if node is None or not (FOLDER / "node_modules").is_dir():
        message = "no HTML validator: scripts/test without arguments installs it"
        if os.environ.get("CI") == "true":
            pytest.fail(message)
        pytest.skip(message)
    judged = subprocess.run(
        [node, "validate.mjs"],
        cwd=FOLDER,
        input=json.dumps(documents),
        check=True,
        capture_output=True,
        text=True,
    )
    return json.loads(judged.stdout)
