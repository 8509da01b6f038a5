"""List every stored kind that the modules in `store/models` declare."""

import importlib
import pkgutil

from comments.store import models
from comments.store.models import schema


def stored() -> list[type[schema.StoredRow]]:
    """Return the kinds that all modules in `store/models` declare, by name."""
    for each in pkgutil.iter_modules(models.__path__):
        importlib.import_module(f"{models.__name__}.{each.name}")
    ours = (kind for kind in schema.KINDS.values() if kind.__module__.startswith(models.__name__))
    return sorted(ours, key=lambda kind: kind.__name__)
