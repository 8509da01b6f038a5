"""Real exports. They are not ours to publish: they lie beside the repository, or tests skip.

This is the only skip that CI allows, and `scripts/test` knows it by its reason.
"""

from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "shared" / "data"


def path_of(name: str) -> Path:
    """The path of a real export; skips the test that asks where it is missing."""
    path = FOLDER / name
    if not path.exists():
        pytest.skip(f"needs {name} of the shared data beside the repository")
    return path
