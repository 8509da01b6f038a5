"""The program: open the store that the settings name, and make the application that serves it.

gunicorn loads `app`. Only this module and `embedded_engine`, which it imports on demand, connect
`comments` to `emulator`. This module also runs the checks before serving: the settings must parse,
and SORT_HASH_LEVELS must not be below the levels of an existing site.

Asking this module for `app` opens the store. With any store except the embedded engine, a forking
server must do so after the fork, because a gRPC connection does not survive a fork. On the command
line, a command opens the store itself when it runs, because only the command knows whether it may
create a new store.

Each function imports what it needs: a help text and a refused argument need neither NDB nor the
pages, a cold start pays for every import, and App Engine has no embedded engine.
"""

import gc
import logging
import sys
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from comments import errors, logs
from comments.cli import command_table

if TYPE_CHECKING:
    import flask
    import grpc

    from comments import config
    from comments.store import connection
    from comments.upkeep.backups import engine_files

# gunicorn's exit status for "do not retry": gunicorn stops instead of starting further workers.
_MISCONFIGURED = 3
# Pages are limited by count, not bytes: answers may be larger than gRPC's 4 MiB.
_UNLIMITED = [("grpc.max_send_message_length", -1), ("grpc.max_receive_message_length", -1)]

_log = logging.getLogger("flatthread")


app: "flask.Flask"


def __getattr__(name: str) -> "flask.Flask":
    """Make `app`, the application that serves requests, when it is first asked for."""
    if name != "app":
        raise AttributeError(name)
    # Loading leaves hardly any garbage, and takes a sixth less time without collections. Frozen
    # objects are not collected later either: forked workers go on sharing their memory, and a
    # command ends sooner, because Python collects all other objects at the end of a process.
    gc.disable()
    try:
        made = globals()["app"] = _serving()
    finally:
        gc.freeze()
        gc.enable()
    return made


def commands_app() -> "flask.Flask":
    """Make the application that only has commands."""
    logs.to_stderr(sys.stderr, sys.stdout)
    return command_table.create_app(_open, _data_files)


def _serving() -> "flask.Flask":
    logs.to_stderr(sys.stderr)
    try:
        settings, store = _open(creates=True, serves=True)
        # `_open` has loaded the message types; without them, this imports google.auth.
        from comments.sites import site_settings

        with store.context():
            # Commands run unchecked: one of them helps.
            site_settings.check_levels(settings.scheme)
    except errors.FlatthreadError as error:
        sys.stderr.write(f"flatthread: {error.message}\n")
        sys.exit(_MISCONFIGURED)
    from comments import app

    _log.info("Flatthread stores comments in %s.", settings.where)
    for sentence in settings.advice:
        _log.warning(sentence)
    return app.create_app(settings, store)


def _open(
    *, creates: bool, serves: bool = False, backs_up: bool = True
) -> "tuple[config.Settings, connection.Store]":
    """Open the store. Raise a `FlatthreadError` if the settings or the data cannot be used.

    A data file that opening would upgrade is backed up first if `backs_up` is set. A process that
    `serves` also begins the other changes of a new release.
    """
    from comments import config
    from comments.store import message_loading
    from comments.store.folder import data_folder

    message_loading.load()
    data_folder.begin()
    settings = config.load(creates=creates)
    files = _data_files() if settings.datastore == "embedded" else None
    is_backed_up = files is not None and _is_backed_up(settings, files, backs_up=backs_up)
    store = _store(settings)
    with store.context():
        _check_format()
        if serves:
            _begin_upgrade(settings, files, is_backed_up=is_backed_up)
        _prepare(settings)
    return settings, store


def _is_backed_up(
    settings: "config.Settings", files: "engine_files.EngineFiles", *, backs_up: bool
) -> bool:
    """Back up a data file that opening would change; return whether that was necessary."""
    change = files.upgrade_of(settings.data_file)
    if not (change and backs_up):
        return False
    from comments.upkeep import store_upgrade

    store_upgrade.back_up(settings, files, change, now=datetime.now(UTC))
    return True


def _check_format() -> None:
    """Refuse a store of a newer release, and mark a new store. Other modules are not needed."""
    from comments.upkeep.migrations import store_format

    if store_format.read() is None:
        from comments.upkeep.migrations import upgrades

        upgrades.note_new()


def _begin_upgrade(
    settings: "config.Settings", files: "engine_files.EngineFiles | None", *, is_backed_up: bool
) -> None:
    from comments.upkeep import store_upgrade

    store_upgrade.begin(settings, None if is_backed_up else files, now=datetime.now(UTC))


def _prepare(settings: "config.Settings") -> None:
    """In a fresh installation, add a demo site with a short thread."""
    from comments.posting import sample_thread
    from comments.sites import site_settings

    if settings.datastore == "embedded":
        # This process serves the demo page itself, and pages may always write to their own origin.
        now = datetime.now(UTC)
        site = site_settings.prepare_demo([], scheme=settings.scheme, now=now)
        if site is not None:
            sample_thread.post(site, settings, now=now)


def _store(settings: "config.Settings") -> "connection.Store":
    from comments.store import connection

    return connection.Store(
        _channel(settings),
        project=settings.project,
        database=settings.database,
        namespace=settings.namespace,
        deadline=settings.deadline,
        rpc_timeout=settings.rpc_timeout,
        is_emulator=settings.datastore == "emulator",
    )


def _channel(settings: "config.Settings") -> "grpc.Channel":
    if settings.datastore == "embedded":
        return _embedded(settings)
    if settings.datastore == "emulator":
        return _insecure(settings.emulator_host)
    return _cloud()


def _embedded(settings: "config.Settings") -> "grpc.Channel":
    import embedded_engine

    return embedded_engine.channel(settings)


def _data_files() -> "engine_files.EngineFiles":
    import embedded_engine

    return embedded_engine.DataFiles()


def _insecure(host: str) -> "grpc.Channel":
    import grpc

    return grpc.insecure_channel(host, options=_UNLIMITED)


def _cloud() -> "grpc.Channel":
    import google.auth
    import google.auth.transport.grpc
    import google.auth.transport.requests

    try:
        credentials, _ = google.auth.default(scopes=["https://www.googleapis.com/auth/datastore"])
    except google.auth.exceptions.DefaultCredentialsError as error:
        raise errors.Misconfigured(f"no credentials for Datastore: {error}") from error
    channel: grpc.Channel = google.auth.transport.grpc.secure_authorized_channel(
        credentials,
        google.auth.transport.requests.Request(),
        "datastore.googleapis.com:443",
        options=_UNLIMITED,
    )
    return channel
