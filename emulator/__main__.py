"""`python -m emulator`: start the emulator quickly.

The command line itself is `command_line`.
"""

import importlib.util
import os
import sys
import types

_CLIENTS = ("google.cloud.datastore_v1", "google.cloud.datastore_admin_v1")

if __name__ == "__main__":
    os.umask(0o077)  # data files, their copies and exports are for their owner only
    # The message definitions are inside the client library, and importing that takes longer than
    # everything else together. This process is not a client: an empty package with the same
    # submodules halves the time to the first answer.
    for name in _CLIENTS:
        found = importlib.util.find_spec(name)
        if found is not None and found.submodule_search_locations is not None:
            package = types.ModuleType(name)
            package.__path__ = list(found.submodule_search_locations)
            sys.modules[name] = package

    from emulator.cli import command_line

    sys.exit(command_line.main())
