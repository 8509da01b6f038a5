"""Every stored kind there is, found in the modules that define them."""

import importlib
import pkgutil

from google.cloud import ndb

from comments.store import models


def stored() -> list[type[ndb.Model]]:
    """The kinds of all modules in `store/models`."""
    modules = (
        importlib.import_module(f"{models.__name__}.{each.name}")
        for each in pkgutil.iter_modules(models.__path__)
    )
    found = {
        value
        for module in modules
        for value in vars(module).values()
        if isinstance(value, type(ndb.Model)) and value is not ndb.Model
    }
    return sorted(found, key=lambda kind: kind.__name__)
