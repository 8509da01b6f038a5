"""The embedded engine as the backend uses it: its channel, and operations on its data files.

`main.py` imports this module only if the settings name the embedded engine, or if a command copies
or replaces a data file. The module raises the engine's errors as the backend's.
"""

import atexit
import contextlib
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import flatthread
from comments import config, errors
from comments.store import connection
from comments.store.folder import data_folder
from datastore_emulator import data_files, inprocess
from datastore_emulator.errors import DatastoreError

# SQLite's header, and in it the engine's mark, which a new file lacks, and the format.
_HEAD, _MARK, _FORMAT = 100, slice(68, 72), slice(60, 64)
_INDEXES = Path(__file__).parent / "index.yaml"


def channel(settings: config.Settings) -> inprocess.Channel:
    """Open the data file of a service, in a folder that is created if necessary.

    Raises:
        errors.Misconfigured: the file cannot be opened or created.
    """
    folder, group = settings.data_dir, settings.data_group
    try:
        data_folder.begin(group)
        # Create the folder before any file, so that no new file is ever in a folder that others can
        # open.
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        data_folder.protect(folder, group)
        engine = _engine(settings.data_file)
        # A file that the last process has closed needs no log, so it may be copied alone.
        atexit.register(engine.close)
        (folder / config.STARTING).unlink(missing_ok=True)
        if group:
            # The engine makes its files accessible to their owner only
            data_folder.protect(folder, group)
    except (OSError, DatastoreError) as error:
        raise errors.Misconfigured(f"cannot open the data: {error}") from error
    return inprocess.Channel(engine)


def _engine(path: Path) -> inprocess.Engine:
    return inprocess.open_engine(
        path,
        indexes=_INDEXES,
        # Pessimistic locks keep writers of a busy thread from starving (docs/architecture.md,
        # Decisions).
        concurrency="pessimistic",
        # No code reads past versions, and the store must not keep retracted text for such reads.
        history=0,
    )


class DataFiles:
    """Copies, checks and replaces data files: the `EngineFiles` of `comments.upkeep.backups`."""

    def copy(self, path: Path, target: Path) -> None:
        with _reported():
            data_files.backup(path, target)

    def upgrade_of(self, path: Path) -> str:
        # Only a log that has not been merged into the file hides a change of the header. Then the
        # engine itself refuses a newer format.
        found = _format(path)
        if found > data_files.FORMAT:
            raise errors.Misconfigured(
                f"{path} was written by a newer release of Flatthread: it has format {found}, but "
                f"Flatthread {flatthread.__version__} reads formats 1 to {data_files.FORMAT}. "
                "Install the newer release, or restore a backup that was made before the upgrade "
                "(docs/deploying.md)"
            )
        return (
            f"format {found} becomes {data_files.FORMAT}" if 0 < found < data_files.FORMAT else ""
        )

    @contextlib.contextmanager
    def open_store(self, path: Path, settings: config.Settings) -> Iterator[connection.Store]:
        with _reported():
            engine = _engine(path)
        with engine:
            yield connection.Store(
                inprocess.Channel(engine),
                project=settings.project,
                database=settings.database,
                namespace=settings.namespace,
            )

    def problems(self, path: Path) -> Sequence[str]:
        with _reported():
            data_files.seal(path)
            found = data_files.check(path)
        return found.problems

    def check_is_unused(self, path: Path) -> None:
        with _reported():
            data_files.check_is_unused(path)

    def install(self, new: Path, path: Path, *, kept: Path) -> None:
        now = int(time.time() * 1_000_000)
        with _reported():
            data_files.install(new, path, now=now, kept=kept if path.exists() else None)


def _format(path: Path) -> int:
    """Return the format in the header of a closed data file; 0 if there is none."""
    try:
        with path.open("rb") as file:
            head = file.read(_HEAD)
    except OSError:  # A missing file has no format, and for another the engine says why
        return 0
    is_ours = head.startswith(b"SQLite format 3\0") and any(head[_MARK])
    return int.from_bytes(head[_FORMAT], "big") if is_ours else 0


@contextlib.contextmanager
def _reported() -> Iterator[None]:
    try:
        yield
    except DatastoreError as error:
        raise errors.BackupFailed(error.message) from error
