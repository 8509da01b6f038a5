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
    """Import the types. Programs call this before they import a module that needs them."""
    if _PACKAGE in sys.modules:
        return
    spec = importlib.util.find_spec(_PACKAGE)
    if spec is None:
        raise ModuleNotFoundError(_PACKAGE)
    sys.modules[_PACKAGE] = importlib.util.module_from_spec(spec)  # Without running its code
    try:
        importlib.import_module(f"{_PACKAGE}.types")
    finally:
        del sys.modules[_PACKAGE]
