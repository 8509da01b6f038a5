"""Load NDB without the libraries that this service does not use.

NDB's cache imports clients for Redis and Memcached, and NDB's client imports `requests` and
Google's authentication. They take a third of the time and of the memory of importing NDB. This
service uses neither the cache nor that client (`wire.ndb_client` has its own channel). While NDB is
imported, stand-ins therefore replace these libraries. Afterwards the stand-ins are removed, so a
process that connects to Google's service imports the actual libraries.

Invariants:

1. After `load`, importing any of these libraries gives the library itself.
2. A stand-in has every class that NDB names, but no object can be made of such a class.
"""

import importlib
import importlib.abc
import importlib.machinery
import sys
import types
from collections.abc import Sequence
from typing import NoReturn

_UNUSED = ("google.auth", "google.oauth2", "pymemcache", "redis", "requests")


def load() -> None:
    """Import NDB. Programs call this before they import a module that imports NDB."""
    if "google.cloud.ndb" in sys.modules:
        return
    finder = _Finder([name for name in _UNUSED if name not in sys.modules])
    sys.meta_path.insert(0, finder)
    try:
        importlib.import_module("google.cloud.ndb")
    finally:
        sys.meta_path.remove(finder)
        _remove_stand_ins()


def _remove_stand_ins() -> None:
    for name, module in list(sys.modules.items()):
        if not isinstance(module, _StandIn):
            continue
        del sys.modules[name]
        package, _, child = name.rpartition(".")
        if package in sys.modules and vars(sys.modules[package]).get(child) is module:
            delattr(sys.modules[package], child)


class _StandIn(types.ModuleType):
    """A module with every class and every module that is looked up in it."""

    __version__ = "0"

    def __getattr__(self, name: str) -> object:
        if name.startswith("__"):
            raise AttributeError(name)
        found = (
            _StandIn(f"{self.__name__}.{name}")
            if name.islower()
            else type(name, (_Unusable,), {"__module__": self.__name__})
        )
        setattr(self, name, found)
        return found


class _Unusable(Exception):
    """The base of the classes: NDB catches some of them, and derives others."""

    def __init__(self, *_: object, **__: object) -> NoReturn:
        raise RuntimeError(f"NDB was loaded without {type(self).__module__}")


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds stand-ins for packages and for everything in them."""

    def __init__(self, packages: Sequence[str]) -> None:
        self._packages = packages

    def find_spec(
        self, fullname: str, _path: object = None, _target: object = None
    ) -> importlib.machinery.ModuleSpec | None:
        """Return the spec of a stand-in, or None for other modules."""
        if any(fullname == each or fullname.startswith(f"{each}.") for each in self._packages):
            return importlib.machinery.ModuleSpec(fullname, self, is_package=True)
        return None

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> types.ModuleType:
        """Make a stand-in."""
        return _StandIn(spec.name)

    def exec_module(self, _module: types.ModuleType) -> None:
        """Do nothing: a stand-in has no code."""
