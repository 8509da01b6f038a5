"""Load the message types of Datastore's API without the client that is installed with them.

The service does not use the client. Importing it takes a third of the time and memory of importing
the service, because it loads `requests` and Google's authentication.

After `load`, importing the package or its client gives the whole package, with the same message
types.
"""

import importlib
import importlib.util
import sys

_PACKAGE = "google.cloud.datastore_v1"


def load() -> None:
    """Import the message types. Call this before importing a module that needs the types."""
    if _PACKAGE in sys.modules:
        return
    spec = importlib.util.find_spec(_PACKAGE)
    if spec is None:
        raise ModuleNotFoundError(_PACKAGE)
    sys.modules[_PACKAGE] = importlib.util.module_from_spec(spec)  # The package's code is not run
    try:
        importlib.import_module(f"{_PACKAGE}.types")
    finally:
        del sys.modules[_PACKAGE]
