"""The dependencies of the package: those of requirements.in, each from its pinned version on."""

import re
from pathlib import Path

from hatchling.metadata.plugin.interface import MetadataHookInterface


class Dependencies(MetadataHookInterface):
    """Reads the dependencies, so that they have one list."""

    PLUGIN_NAME = "custom"

    def update(self, metadata: dict[str, object]) -> None:
        """Add the dependencies to the metadata in pyproject.toml."""
        folder = Path(self.root)
        pins = dict(
            re.findall(r"^(\S+)==(\S+)", (folder / "requirements.txt").read_text(), re.MULTILINE)
        )
        lines = (folder / "requirements.in").read_text().splitlines()
        given = [line.partition("#")[0].split() for line in lines]
        metadata["dependencies"] = [
            ",".join((f"{name}>={pins[name]}", *limits)) for name, *limits in filter(None, given)
        ]
