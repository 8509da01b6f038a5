#!/usr/bin/env python3
"""Print the software bill of materials: what requirements.txt pins, as CycloneDX 1.6 in JSON.

pip-compile notes below each package which ones need it; the bill has these as its dependencies.
"""

import json
import re
import sys
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from flatthread import __version__

# A package with its pin, its hashes, and the packages that need it.
_PINNED = re.compile(r"^([\w.-]+)==(\S+)((?:[^#\n]*\\?\n)+)((?: +#.*\n)+)", re.MULTILINE)


def bill(lock: str) -> dict[str, object]:
    """Return the bill for the text of requirements.txt."""
    root = f"pkg:pypi/flatthread@{__version__}"
    pins = _PINNED.findall(lock)
    purls = {name: f"pkg:pypi/{name}@{version}" for name, version, *_ in pins}
    needed = defaultdict(list)
    for name, _, _, notes in pins:
        for parent in re.findall(r"# +(\S.*)", notes.replace("# via", "# ")):
            needed[root if parent == "-r requirements.in" else purls[parent]].append(purls[name])
    components = [
        {
            "type": "library",
            "bom-ref": purls[name],
            "name": name,
            "version": version,
            "purl": purls[name],
            "externalReferences": [
                {
                    "type": "distribution",
                    "url": f"https://pypi.org/project/{name}/{version}/",
                    "hashes": [
                        {"alg": "SHA-256", "content": digest}
                        for digest in re.findall(r"sha256:(\w+)", hashes)
                    ],
                }
            ],
        }
        for name, version, hashes, _ in pins
    ]
    application = {
        "type": "application",
        "bom-ref": root,
        "name": "flatthread",
        "version": __version__,
        "purl": root,
        "licenses": [{"license": {"id": "Apache-2.0"}}],
    }
    return {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"component": application},
        "components": components,
        "dependencies": [{"ref": ref, "dependsOn": needed[ref]} for ref in (root, *purls.values())],
    }


if __name__ == "__main__":
    print(json.dumps(bill((ROOT / "requirements.txt").read_text()), indent=1))
