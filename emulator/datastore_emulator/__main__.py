"""`datastore-emulator`: start the emulator with few imports.

`command_line` implements the command line itself.
"""

import importlib.util
import os
import sys
import types

_CLIENTS = ("google.cloud.datastore_v1", "google.cloud.datastore_admin_v1")


def main() -> int:
    """Run the command line, and return the exit status."""
    os.umask(0o077)  # Only the owner may read data files, backups and exports.
    # The message definitions are part of the client library, which takes longer to import than
    # everything else together. This process uses no client, so it replaces the library with an
    # empty package that has the same submodules. The replacement halves the time to the first
    # answer.
    for name in _CLIENTS:
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.submodule_search_locations is not None:
            package = types.ModuleType(name)
            package.__path__ = list(spec.submodule_search_locations)
            sys.modules[name] = package

    from datastore_emulator.cli import command_line  # noqa: PLC0415 - after the replacement

    return command_line.main()


if __name__ == "__main__":
    sys.exit(main())
