"""Check a service as a whole: settings, disk, mail, store, clock, deliveries, backups and address.

The command `doctor` and the console's page "Status" show the findings. The checks store nothing.
Two checks need more explanation:

- The clock is compared with the last change of the data file, and with the time in an answer from
  PUBLIC_URL. Offline, only a clock that is behind can be noticed.
- A challenge for a proof of work answers two questions. It is signed with the secret, so it shows
  whether PUBLIC_URL leads to this service. It contains a keyed hash of the caller's network, so it
  shows whether callers can forge their address.
"""

import contextlib
import email.utils
import enum
import http.client
import shutil
import socket
import ssl
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import NamedTuple
from urllib.parse import urlsplit

from comments import config, errors
from comments.accounts import accounts
from comments.accounts.links import first_owner
from comments.domain.crypto import client_networks, proof_of_work
from comments.domain.text.shown_values import quantity
from comments.events import dead_letters
from comments.limits import proof_policy
from comments.notifications.mail import smtp
from comments.sites import mail_server, site_settings
from comments.store import connection
from comments.store.folder import server_address, storage_faults
from comments.upkeep.backups import nightly_backup
from comments.upkeep.integrity import thread_audit

_SOON = 3600  # Seconds within which every delivery should have been tried.
_SPARE = 100_000_000  # Bytes that should be free, in addition to those for a copy of the data.
_DRIFT = timedelta(seconds=30)  # An authenticator code is valid for this time.
_PATIENCE = 10.0  # Seconds to wait for an answer from PUBLIC_URL.
_LARGEST = 65_536  # Maximum number of bytes read of an answer.
_FORGED = "192.0.2.1"  # An example address, which nobody uses (RFC 5737).


class Level(enum.StrEnum):
    """How bad a finding is. Only `WRONG` needs an action."""

    OK = "ok"
    WARNING = "warning"
    WRONG = "wrong"


class ServiceFinding(NamedTuple):
    """A finding about a `subject`, such as "disk". `text` also says what to do, if anything."""

    level: Level
    subject: str
    text: str


def has_files(settings: config.Settings) -> bool:
    """Return whether the store's data is in a file on this machine."""
    return settings.datastore == "embedded" and settings.data_file.exists()


def _ok(subject: str, text: str) -> ServiceFinding:
    return ServiceFinding(Level.OK, subject, text)


def warning(subject: str, text: str) -> ServiceFinding:
    return ServiceFinding(Level.WARNING, subject, text)


def wrong(subject: str, text: str) -> ServiceFinding:
    return ServiceFinding(Level.WRONG, subject, text)


def machine_findings(settings: config.Settings) -> Iterator[ServiceFinding]:
    """Yield what can be found without the store: about settings and disk."""
    yield from [warning("settings", text) for text in settings.advice] or [
        _ok("settings", "All values can be used.")
    ]
    if has_files(settings):
        yield from _disk(settings)


def store_findings(
    settings: config.Settings, now: datetime, *, connects: bool = True
) -> Iterator[ServiceFinding]:
    """Yield what can be found with the store of the current context, then about mail and address.

    Only with `connects` is the mail server asked, and PUBLIC_URL requested, which takes up to
    `_PATIENCE` seconds.

    Raises:
        errors.FlatthreadError: the store does not answer.
    """
    try:
        site_settings.check_levels(settings.scheme)
    except errors.Misconfigured as error:
        yield wrong("store", error.message)
    where = settings.where
    yield _ok("store", f"{where[:1].upper()}{where[1:]} answers.")
    yield from _integrity()
    yield from _clock(settings, now)
    yield from _owner(settings)
    yield from _deliveries(now)
    yield from backup_findings(settings, now)
    if connects:
        yield from _mail(settings)
        site = next(iter(site_settings.every()), None)
        yield from _address(settings, "" if site is None else site.id)


def _disk(settings: config.Settings) -> Iterator[ServiceFinding]:
    folder = settings.data_dir.absolute()
    if fault := storage_faults.writing_fault(folder):
        yield wrong("disk", f"Nothing can be stored in {folder}: {fault.reason}")
    free, size = shutil.disk_usage(folder).free, settings.data_file.stat().st_size
    text = f"{_megabytes(free)} are free, and the data has {_megabytes(size)}"
    if free < size + _SPARE:
        yield warning("disk", f"{text}. A backup copies the data: make space on the disk.")
    elif fault is None:
        yield _ok("disk", f"{text}.")
    secret = folder / "secret"
    others = 0o037 if settings.data_group else 0o077
    if secret.exists() and (mode := secret.stat().st_mode) & others:
        yield wrong(
            "disk",
            f"Other users can read {secret}. Run: chmod {mode & 0o777 & ~others:o} {secret}. If "
            "others use this machine, renew the secret (docs/secrets.md).",
        )


def _megabytes(size: int) -> str:
    return f"{size / 1e6:,.0f} MB"


def _mail(settings: config.Settings) -> Iterator[ServiceFinding]:
    server = mail_server.apply(settings).smtp
    if server is None:
        yield _ok("mail", "Off. Connect a mail server under Mail, or set SMTP_URL (docs/mail.md).")
    elif reason := smtp.fault(server):
        yield wrong("mail", f"{server.host}:{server.port} refuses: {reason}. Check its settings.")
    else:
        yield _ok("mail", f"{server.host}:{server.port} accepts the service. No mail was sent.")


def _integrity() -> Iterator[ServiceFinding]:
    if (lost := connection.current().lost) is not None:
        since, until = (moment.isoformat(timespec="seconds") for moment in lost)
        yield warning("store", f"Changes from {since} to {until} are lost (docs/backups.md).")
    audit = thread_audit.state()
    if audit is not None and audit.found:
        threads = quantity(len(audit.found), "thread")
        yield warning("store", f"{threads} have problems. Run: flatthread repair --fix")


def _clock(settings: config.Settings, now: datetime) -> Iterator[ServiceFinding]:
    if not has_files(settings):
        return
    # Include the write-ahead log, which is beside the data file.
    files = settings.data_dir.glob(f"{settings.data_file.name}*")
    changed = datetime.fromtimestamp(max(file.stat().st_mtime for file in files), UTC)
    if changed > now + _DRIFT:
        yield wrong("clock", _drift(now, changed, "the data was changed"))
    else:
        yield _ok("clock", f"{now:%Y-%m-%d %H:%M} UTC, not before the last change of the data.")


def _drift(now: datetime, other: datetime, what: str) -> str:
    return (
        f"The clock says {now:%Y-%m-%d %H:%M:%S}, but {what} at {other:%Y-%m-%d %H:%M:%S} UTC. Set "
        "the clock, and keep it right with NTP: codes, links and sessions depend on it."
    )


def _owner(settings: config.Settings) -> Iterator[ServiceFinding]:
    kept = first_owner.path(settings).absolute()
    if accounts.is_owned():
        yield _ok("owner", "The service has had an owner.")
    elif settings.datastore == "embedded" and kept.exists():
        yield warning("owner", f"There is no owner yet. Open the link in {kept}")
    else:
        yield warning("owner", "There is no owner yet. Run: flatthread account invite --owner")


def _deliveries(now: datetime) -> Iterator[ServiceFinding]:
    waiting = dead_letters.count_waiting(now)
    if waiting.dead:
        dead = quantity(waiting.dead, "dead letter")
        yield warning("deliveries", f"{dead}. Run: flatthread delivery dead")
    if waiting.oldest > _SOON:
        yield warning(
            "deliveries",
            f"The oldest waits for {waiting.oldest // 60} minutes. Is the service running? On App "
            "Engine, is cron.yaml deployed?",
        )
    if not waiting.dead and waiting.oldest <= _SOON:
        yield _ok(
            "deliveries",
            f"{waiting.events + waiting.messages} wait, and there are no dead letters.",
        )


def backup_findings(settings: config.Settings, now: datetime) -> Iterator[ServiceFinding]:
    """Check the nightly backups."""
    made = nightly_backup.state(settings, now=now)
    if settings.datastore != "embedded":
        yield _ok("backups", "Use those of Datastore (docs/backups.md).")
    elif made is None:
        todo = (
            "On the machine, set BACKUP_DIR to a folder and restart the server (docs/backups.md)."
        )
        yield warning("backups", f"No nightly backups are made. {todo}")
    elif made.is_overdue:
        reason = made.record.reason or "The service did not run, or could not start it."
        yield wrong("backups", f"The last nightly backup is overdue. {reason}")
    elif made.record.failed:
        reason = f"An attempt failed: {made.record.reason} The service tries again every hour."
        yield warning("backups", reason)
    else:
        yield _ok("backups", f"The last one is of {made.record.last:%Y-%m-%d %H:%M} UTC.")


def _address(settings: config.Settings, site: str) -> Iterator[ServiceFinding]:
    if settings.datastore == "embedded":
        if noted := server_address.find(settings.data_dir):
            yield _ok("address", f"A server runs on this store, at {noted}")
        else:
            yield warning("address", "No server runs on this store. Run: flatthread serve")
    if not settings.public_url:
        yield warning(
            "address", "PUBLIC_URL is not set: only this machine can sign in and open links."
        )
        return
    public = urlsplit(settings.public_url)
    if public.scheme == "http" and not _is_here(public.hostname or ""):
        yield wrong("address", "PUBLIC_URL begins with http:, but signing in needs https:.")
    if public.scheme == "https" and not (settings.trusted_proxies or settings.on_app_engine):
        yield wrong(
            "address",
            "TRUSTED_PROXIES is 0, but https: needs a proxy, and all readers behind it share one "
            "limit. Set TRUSTED_PROXIES to the number of proxies, usually 1.",
        )
    yield from _answer(settings, site)


def _is_here(host: str) -> bool:
    return host == "localhost" or client_networks.is_inside(client_networks.of(host))


def _answer(settings: config.Settings, site: str) -> Iterator[ServiceFinding]:
    url = settings.public_url
    try:
        status, date, _ = _fetch(url, "healthz")
    except (OSError, UnicodeError) as error:
        yield wrong("address", f"{url} does not answer: {_unreachable(error)}")
        return
    except http.client.HTTPException as error:
        yield wrong("address", f"{url} does not answer in HTTP: {error!r}")
        return
    if status != http.HTTPStatus.OK:
        yield wrong(
            "address",
            f"{url}/healthz answers {status}. Does the proxy send requests to this service, and is "
            "PUBLIC_URL its exact address?",
        )
        return
    now = datetime.now(UTC)
    if date is not None and abs(date - now) > _DRIFT:
        yield wrong("clock", _drift(now, date, f"{url} answered"))
    yield from _identity(settings, site)


def _unreachable(error: OSError | UnicodeError) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate is not valid: {error.verify_message}"
    if isinstance(error, socket.gaierror | UnicodeError):
        return "its name has no address. Add it to your DNS."
    return f"{error.strerror or error}. Does the proxy run, and is the port open?"


def _identity(settings: config.Settings, site: str) -> Iterator[ServiceFinding]:
    if not site:
        yield warning(
            "address",
            f"{settings.public_url} answers. Add a website, so that this command can tell whether "
            "this service answers.",
        )
        return
    try:
        _, _, body = _fetch(settings.public_url, f"api/v1/sites/{site}/challenge")
        network = proof_of_work.network(body, secret=settings.secret)
    except (OSError, http.client.HTTPException, errors.Forbidden):
        yield wrong(
            "address",
            f"Another service answers at {settings.public_url}, or one with another secret.",
        )
        return
    if network == proof_policy.account(site, client_networks.of(_FORGED), settings.secret):
        yield wrong(
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
