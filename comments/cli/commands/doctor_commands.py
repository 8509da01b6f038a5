"""Check a service as a whole, and say what to do: `doctor`.

The command stores nothing. It uses the checks that run at start, in /healthz and in the admin
console. Two checks need more explanation:

- The clock is compared with the last change of the data file, and with the time in an answer from
  PUBLIC_URL. Offline, the command can notice only a clock that is behind.
- A challenge for a proof of work answers two questions. It is signed with the secret, so it shows
  whether PUBLIC_URL leads to this service. It contains a keyed hash of the caller's network, so it
  shows whether callers can forge their address.
"""

import contextlib
import email.utils
import enum
import http.client
import os
import pwd
import shutil
import socket
import ssl
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import NamedTuple
from urllib.parse import urlsplit

import click
import flask

from comments import config, errors
from comments.accounts import accounts, first_owner
from comments.cli import console
from comments.domain.crypto import client_networks, proof_of_work
from comments.events import dead_letters
from comments.limits import proof_policy
from comments.notifications.mail import smtp
from comments.sites import site_settings
from comments.store import connection, message_loading
from comments.store.folder import server_address, storage_faults
from comments.upkeep.backups import nightly_backup
from comments.upkeep.integrity import thread_audit

_SOON = 3600  # Seconds within which every delivery should have been tried.
_SPARE = 100_000_000  # Bytes that should be free, in addition to those for a copy of the data.
_DRIFT = timedelta(seconds=30)  # An authenticator code is valid for this time.
_PATIENCE = 10.0  # Seconds to wait for an answer from PUBLIC_URL.
_LARGEST = 65_536  # Maximum number of bytes read of an answer.
_FORGED = "192.0.2.1"  # An example address, which nobody uses (RFC 5737).


class _Level(enum.StrEnum):
    OK = "ok"
    WARNING = "warning"
    WRONG = "wrong"


class _Finding(NamedTuple):
    level: _Level
    subject: str
    said: str


_Findings = Iterator[_Finding]


def _ok(subject: str, said: str) -> _Finding:
    return _Finding(_Level.OK, subject, said)


def _warning(subject: str, said: str) -> _Finding:
    return _Finding(_Level.WARNING, subject, said)


def _wrong(subject: str, said: str) -> _Finding:
    return _Finding(_Level.WRONG, subject, said)


@click.command("doctor")
@flask.cli.with_appcontext
def doctor() -> None:
    """Check the service: settings, store, disk, mail, clock, address and more.

    Each line says ok, warning or wrong, and what to do. The exit status is 1 if anything is wrong.
    """
    message_loading.load()
    is_wrong = False
    for level, subject, said in _findings():
        click.echo(f"{level:<8} {subject:<11} {console.printable(said)}")
        is_wrong = is_wrong or level is _Level.WRONG
    if is_wrong:
        raise click.exceptions.Exit(1)


def _findings() -> _Findings:
    try:
        settings = config.load(creates=False, makes_secret=False)
    except errors.Misconfigured as error:
        subject = "store" if isinstance(error, errors.NoStore) else "settings"
        yield _wrong(subject, error.message)
        return
    yield from [_warning("settings", said) for said in settings.advice] or [
        _ok("settings", "All values can be used.")
    ]
    if settings.datastore == "embedded":
        owner = settings.data_dir.stat().st_uid
        if owner != os.geteuid():
            # Opening the store as another user may leave files that the service cannot open.
            yield _wrong(
                "disk",
                f"{settings.data_dir.absolute()} belongs to {_user(owner)}. Run commands as this "
                f"user, as in: sudo -u {_user(owner)} flatthread doctor",
            )
            return
        yield from _disk(settings)
    yield from _mail(settings)
    yield from _store(settings)


def _user(number: int) -> str:
    try:
        return pwd.getpwuid(number).pw_name
    except KeyError:
        return f"#{number}"


def _disk(settings: "config.Settings") -> _Findings:
    folder = settings.data_dir.absolute()
    if fault := storage_faults.writing_fault(folder):
        yield _wrong("disk", f"Nothing can be stored in {folder}: {fault.reason}")
    free, size = shutil.disk_usage(folder).free, settings.data_file.stat().st_size
    said = f"{_megabytes(free)} are free, and the data has {_megabytes(size)}"
    if free < size + _SPARE:
        yield _warning("disk", f"{said}. A backup copies the data: make space on the disk.")
    elif fault is None:
        yield _ok("disk", f"{said}.")
    secret = folder / "secret"
    others = 0o037 if settings.data_group else 0o077
    if secret.exists() and (mode := secret.stat().st_mode) & others:
        yield _wrong(
            "disk",
            f"Other users can read {secret}. Run: chmod {mode & 0o777 & ~others:o} {secret}. If "
            "others use this machine, renew the secret (docs/secrets.md).",
        )


def _megabytes(size: int) -> str:
    return f"{size / 1e6:,.0f} MB"


def _mail(settings: "config.Settings") -> _Findings:
    server = settings.smtp
    if server is None:
        yield _ok("mail", "Off. To send mail, set SMTP_URL and MAIL_FROM (docs/mail.md).")
    elif reason := smtp.fault(server):
        yield _wrong("mail", f"{server.host}:{server.port} refuses: {reason}. Check SMTP_URL.")
    else:
        yield _ok("mail", f"{server.host}:{server.port} accepts the service. No mail was sent.")


def _store(settings: "config.Settings") -> _Findings:
    try:
        if settings.datastore == "embedded":
            change = console.data_files().upgrade_of(settings.data_file)
            if change:  # Only a start of the service or `upgrade` may make this change
                yield _warning("store", f"Data file: {change}. Run: flatthread upgrade --check")
                return
        settings, store = console.open_store(creates=False)
        now = datetime.now(UTC)
        with store.context():
            site_settings.check_levels(settings.scheme)
            yield _ok("store", f"{settings.where} answers.")
            yield from _integrity(store)
            yield from _clock(settings, now)
            yield from _owner(settings)
            yield from _deliveries(now)
            yield from _backups(settings, now)
            site = next(iter(site_settings.every()), None)
            yield from _address(settings, "" if site is None else site.id)
    except errors.FlatthreadError as error:
        yield _wrong("store", error.message)


def _integrity(store: "connection.Store") -> _Findings:
    if store.lost is not None:
        since, until = (moment.isoformat(timespec="seconds") for moment in store.lost)
        yield _warning("store", f"Changes from {since} to {until} are lost (docs/backups.md).")
    audit = thread_audit.state()
    if audit is not None and audit.found:
        threads = console.quantity(len(audit.found), "thread")
        yield _warning("store", f"{threads} have problems. Run: flatthread repair --fix")


def _clock(settings: "config.Settings", now: datetime) -> _Findings:
    if settings.datastore != "embedded":
        return
    # Include the write-ahead log, which is beside the data file.
    files = settings.data_dir.glob(f"{settings.data_file.name}*")
    changed = datetime.fromtimestamp(max(file.stat().st_mtime for file in files), UTC)
    if changed > now + _DRIFT:
        yield _wrong("clock", _drift(now, changed, "the data was changed"))
    else:
        yield _ok("clock", f"{now:%Y-%m-%d %H:%M} UTC, not before the last change of the data.")


def _drift(now: datetime, other: datetime, what: str) -> str:
    return (
        f"The clock says {now:%Y-%m-%d %H:%M:%S}, but {what} at {other:%Y-%m-%d %H:%M:%S} UTC. Set "
        "the clock, and keep it right with NTP: codes, links and sessions depend on it."
    )


def _owner(settings: "config.Settings") -> _Findings:
    kept = first_owner.path(settings).absolute()
    if accounts.is_owned():
        yield _ok("owner", "The service has had an owner.")
    elif settings.datastore == "embedded" and kept.exists():
        yield _warning("owner", f"There is no owner yet. Open the link in {kept}")
    else:
        yield _warning("owner", "There is no owner yet. Run: flatthread account invite --owner")


def _deliveries(now: datetime) -> _Findings:
    waiting = dead_letters.count_waiting(now)
    if waiting.dead:
        dead = console.quantity(waiting.dead, "dead letter")
        yield _warning("deliveries", f"{dead}. Run: flatthread delivery dead")
    if waiting.oldest > _SOON:
        yield _warning(
            "deliveries",
            f"The oldest waits for {waiting.oldest // 60} minutes. Is the service running? On App "
            "Engine, is cron.yaml deployed?",
        )
    if not waiting.dead and waiting.oldest <= _SOON:
        yield _ok(
            "deliveries",
            f"{waiting.events + waiting.messages} wait, and there are no dead letters.",
        )


def _backups(settings: "config.Settings", now: datetime) -> _Findings:
    made = nightly_backup.state(settings, now=now)
    if settings.datastore != "embedded":
        yield _ok("backups", "Use those of Datastore (docs/backups.md).")
    elif made is None:
        yield _warning("backups", "None are made every night: set BACKUP_DIR (docs/backups.md).")
    elif made.is_overdue:
        reason = made.record.reason or "The service did not run, or could not start it."
        yield _wrong("backups", f"The last nightly backup is overdue. {reason}")
    else:
        yield _ok("backups", f"The last one is of {made.record.last:%Y-%m-%d %H:%M} UTC.")


def _address(settings: "config.Settings", site: str) -> _Findings:
    if settings.datastore == "embedded":
        if noted := server_address.find(settings.data_dir):
            yield _ok("address", f"A server runs on this store, at {noted}")
        else:
            yield _warning("address", "No server runs on this store. Run: flatthread serve")
    if not settings.public_url:
        yield _warning(
            "address", "PUBLIC_URL is not set: only this machine can sign in and open links."
        )
        return
    public = urlsplit(settings.public_url)
    if public.scheme == "http" and not _is_here(public.hostname or ""):
        yield _wrong("address", "PUBLIC_URL begins with http:, but signing in needs https:.")
    if public.scheme == "https" and not (settings.trusted_proxies or settings.on_app_engine):
        yield _wrong(
            "address",
            "TRUSTED_PROXIES is 0, but https: needs a proxy, and all readers behind it share one "
            "limit. Set TRUSTED_PROXIES to the number of proxies, usually 1.",
        )
    yield from _answer(settings, site)


def _is_here(host: str) -> bool:
    return host == "localhost" or client_networks.is_inside(client_networks.of(host))


def _answer(settings: "config.Settings", site: str) -> _Findings:
    url = settings.public_url
    try:
        status, date, _ = _fetch(url, "healthz")
    except (OSError, UnicodeError) as error:
        yield _wrong("address", f"{url} does not answer: {_unreachable(error)}")
        return
    except http.client.HTTPException as error:
        yield _wrong("address", f"{url} does not answer in HTTP: {error!r}")
        return
    if status != http.HTTPStatus.OK:
        yield _wrong(
            "address",
            f"{url}/healthz answers {status}. Does the proxy send requests to this service, and is "
            "PUBLIC_URL its exact address?",
        )
        return
    now = datetime.now(UTC)
    if date is not None and abs(date - now) > _DRIFT:
        yield _wrong("clock", _drift(now, date, f"{url} answered"))
    yield from _identity(settings, site)


def _unreachable(error: OSError | UnicodeError) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate is not valid: {error.verify_message}"
    if isinstance(error, socket.gaierror | UnicodeError):
        return "its name has no address. Add it to your DNS."
    return f"{error.strerror or error}. Does the proxy run, and is the port open?"


def _identity(settings: "config.Settings", site: str) -> _Findings:
    if not site:
        yield _warning(
            "address",
            f"{settings.public_url} answers. Add a website, so that this command can tell whether "
            "this service answers.",
        )
        return
    try:
        _, _, body = _fetch(settings.public_url, f"api/v1/sites/{site}/challenge")
        network = proof_of_work.network(body, secret=settings.secret)
    except (OSError, http.client.HTTPException, errors.Forbidden):
        yield _wrong(
            "address",
            f"Another service answers at {settings.public_url}, or one with another secret.",
        )
        return
    if network == proof_policy.account(site, client_networks.of(_FORGED), settings.secret):
        yield _wrong(
            "address",
            f"TRUSTED_PROXIES is {settings.trusted_proxies}, which is too many: everybody can "
            "choose the address that the limits count. Set it to the number of your proxies.",
        )
    else:
        yield _ok("address", f"{settings.public_url} leads to this service.")


def _fetch(url: str, path: str) -> tuple[int, datetime | None, bytes]:
    """Request a page below a URL. Return the status, the date and the body of the answer."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    session = (
        http.client.HTTPSConnection(host, parts.port, timeout=_PATIENCE)
        if parts.scheme == "https"
        else http.client.HTTPConnection(host, parts.port, timeout=_PATIENCE)
    )
    try:
        target = f"{parts.path.rstrip('/')}/{path}"
        session.request("GET", target, headers={"X-Forwarded-For": _FORGED})
        answer = session.getresponse()
        date = None
        with contextlib.suppress(ValueError):
            date = email.utils.parsedate_to_datetime(answer.getheader("Date", "")).astimezone(UTC)
        return answer.status, date, answer.read(_LARGEST)
    finally:
        session.close()
