"""A shim below SQLite that can watch SQLite's file operations and make them fail.

Owns an SQLite VFS that wraps the default VFS through ctypes, in the library that Python's sqlite3
module uses, so the engine runs on it unchanged. Use the shim only in a separate process, because it
remains the default VFS until the process ends.

The shim calls `watch` before each operation that changes the disk. The function returns 0, or the
SQLite result code with which the operation must fail. The log's index (-shm) is mapped memory and
is not watched, because SQLite rebuilds it after a crash.
"""

import _sqlite3
import ctypes
import functools
import os
import sqlite3
import stat
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.support import optional_tools

CHECKPOINT = 20  # Pages of the log, instead of 1,000; the log is therefore checkpointed often
_OPEN_CREATE = 0x4
_OK = 0


@dataclass(frozen=True, slots=True)
class Operation:
    """One disk operation: create, write, truncate, sync (a file), sync folder, or delete."""

    kind: str
    name: str = ""
    offset: int = 0
    data: bytes = b""


Watch = Callable[[Operation], int]

_pointer = ctypes.c_void_p
_int = ctypes.c_int
_int64 = ctypes.c_int64
# Names are pointers, because SQLite keeps the address of the name with which it opened a file.
_Open = ctypes.CFUNCTYPE(_int, _pointer, _pointer, _pointer, _int, ctypes.POINTER(_int))
_Delete = ctypes.CFUNCTYPE(_int, _pointer, _pointer, _int)
_Write = ctypes.CFUNCTYPE(_int, _pointer, _pointer, _int, _int64)
_Truncate = ctypes.CFUNCTYPE(_int, _pointer, _int64)
_Sync = ctypes.CFUNCTYPE(_int, _pointer, _int)
_OpenFolder = ctypes.CFUNCTYPE(_int, ctypes.c_char_p, ctypes.POINTER(_int))
_SetCall = ctypes.CFUNCTYPE(_int, _pointer, ctypes.c_char_p, _pointer)
_GetCall = ctypes.CFUNCTYPE(_pointer, _pointer, ctypes.c_char_p)


class _Vfs(ctypes.Structure):
    _fields_ = [
        ("version", _int),
        ("file_size", _int),
        ("path_size", _int),
        ("next", _pointer),
        ("name", ctypes.c_char_p),
        ("data", _pointer),
        ("open", _Open),
        ("delete", _Delete),
        ("access_to_current_time_int64", _pointer * 11),
        ("set_call", _SetCall),
        ("get_call", _GetCall),
        ("next_call", _pointer),
    ]


class _Methods(ctypes.Structure):
    _fields_ = [
        ("version", _int),
        ("close", _pointer),
        ("read", _pointer),
        ("write", _Write),
        ("truncate", _Truncate),
        ("sync", _Sync),
        ("file_size_to_unfetch", _pointer * 13),
    ]


class _File(ctypes.Structure):
    _fields_ = [("methods", ctypes.POINTER(_Methods))]


def _library() -> ctypes.CDLL:
    found = ctypes.CDLL(getattr(_sqlite3, "__file__", None))
    found.sqlite3_vfs_find.restype = ctypes.POINTER(_Vfs)
    found.sqlite3_vfs_find.argtypes = [ctypes.c_char_p]
    found.sqlite3_vfs_register.argtypes = [ctypes.POINTER(_Vfs), _int]
    return found


def is_possible() -> bool:
    """Return whether Python's SQLite library can be wrapped."""
    try:
        return bool(_library().sqlite3_vfs_find(None))
    except (AttributeError, OSError):
        return False


def require() -> None:
    """Skip the test unless SQLite's operations can be watched."""
    optional_tools.require(
        is_possible(), "Python's SQLite is built in: there is no library to wrap"
    )


class Shim:
    """The wrapped VFS. This object must outlive all connections."""

    def __init__(self, watch: Watch) -> None:
        self._watch = watch
        self._names: dict[int, str] = {}
        self._made: set[str] = set()
        self._patched: dict[int, _Methods] = {}
        library = _library()
        self._usual = library.sqlite3_vfs_find(None)
        self._vfs = _Vfs.from_buffer_copy(self._usual.contents)
        self._vfs.name = b"watched"
        self._vfs.open = self._own_open = _Open(self._open)
        self._vfs.delete = self._own_delete = _Delete(self._delete)
        self._watch_folders()
        assert library.sqlite3_vfs_register(ctypes.byref(self._vfs), 1) == _OK

    def _watch_folders(self) -> None:
        """Watch Python's fsync, and SQLite's opening of a folder, which always precedes a sync."""
        usual = self._usual.contents
        original = _OpenFolder(usual.get_call(self._usual, b"openDirectory"))

        def open_folder(name: bytes, descriptor: object) -> int:
            self._watch(Operation("sync folder"))
            return original(name, descriptor)

        self._own_open_folder = _OpenFolder(open_folder)
        address = ctypes.cast(self._own_open_folder, _pointer)
        assert usual.set_call(self._usual, b"openDirectory", address) == _OK
        fsync = os.fsync

        def sync(descriptor: int) -> None:
            if stat.S_ISDIR(os.fstat(descriptor).st_mode):
                self._watch(Operation("sync folder"))
            fsync(descriptor)

        os.fsync = sync  # type: ignore[assignment]

    def _open(self, _: object, name: int | None, file: int, flags: int, flags_out: object) -> int:
        opened = ctypes.cast(file, ctypes.POINTER(_File)).contents
        if name and flags & _OPEN_CREATE and self._is_new(_path(name)):
            code = self._watch(Operation("create", _path(name).name))
            if code:
                opened.methods = None
                return code
        code = self._usual.contents.open(self._usual, name, file, flags, flags_out)
        if name and code == _OK:
            self._names[file] = _path(name).name
            opened.methods = ctypes.pointer(self._patch(opened.methods))
        return code

    def _is_new(self, path: Path) -> bool:
        """Return whether the file is new: created by this call, or just created by the engine."""
        is_new = not path.exists() or (path.stat().st_size == 0 and path.name not in self._made)
        self._made.add(path.name)
        return is_new

    def _patch(self, usual: "ctypes._Pointer[_Methods]") -> _Methods:
        """Return methods that replace the default ones and call `watch`."""
        address = ctypes.addressof(usual.contents)
        if address in self._patched:
            return self._patched[address]
        made = self._patched[address] = _Methods.from_buffer_copy(usual.contents)
        write, truncate, sync = (
            _Write(ctypes.cast(usual.contents.write, _pointer).value or 0),
            _Truncate(ctypes.cast(usual.contents.truncate, _pointer).value or 0),
            _Sync(ctypes.cast(usual.contents.sync, _pointer).value or 0),
        )

        def own_write(file: int, data: int, size: int, offset: int) -> int:
            content = ctypes.string_at(data, size)
            operation = Operation("write", self._names[file], offset, content)
            return self._watch(operation) or write(file, data, size, offset)

        def own_truncate(file: int, size: int) -> int:
            operation = Operation("truncate", self._names[file], size)
            return self._watch(operation) or truncate(file, size)

        def own_sync(file: int, flags: int) -> int:
            return self._watch(Operation("sync", self._names[file])) or sync(file, flags)

        made.write, made.truncate, made.sync = (
            _Write(own_write),
            _Truncate(own_truncate),
            _Sync(own_sync),
        )
        return made

    def _delete(self, _: object, name: int, is_synced: int) -> int:
        code = self._watch(Operation("delete", _path(name).name))
        if code == _OK:
            code = self._usual.contents.delete(self._usual, name, is_synced)
        return code


def _path(name: int) -> Path:
    return Path(os.fsdecode(ctypes.string_at(name)))


class _Connection(sqlite3.Connection):
    """A connection with a small log, and with a forced value of `synchronous` if one is given.

    Checkpoints run in commits, so that a test can count and repeat the operations of a commit.
    """

    synchronous = ""

    def execute(self, statement: str, *arguments: Any) -> sqlite3.Cursor:
        if "PRAGMA wal_autocheckpoint" in statement:
            statement = f"PRAGMA wal_autocheckpoint = {CHECKPOINT}"
        if "PRAGMA synchronous" in statement:
            super().execute(f"PRAGMA wal_autocheckpoint = {CHECKPOINT}")
            if self.synchronous:
                statement = f"PRAGMA synchronous = {self.synchronous}"
        return super().execute(statement, *arguments)


def use_small_logs(synchronous: str = "") -> None:
    """Make every connection of this process checkpoint its log often."""
    _Connection.synchronous = synchronous
    sqlite3.connect = functools.partial(  # type: ignore[assignment]
        sqlite3.connect, factory=_Connection
    )
