"""Settings: the only module that reads the environment.

The module defines the name, default and unit of every setting. A test compares these definitions
with docs/settings.md. Settings come from the environment and from a file of `NAME=value` lines,
whose path is in FLATTHREAD_CONFIG. The environment overrides the file. Settings are read once, at
start.
"""

import contextlib
import dataclasses
import os
import secrets
from collections.abc import Mapping
from datetime import time
from pathlib import Path

from comments import errors, setting_values
from comments.domain.crypto import secret_rotation
from comments.domain.ids import sorthash

# Settings that are whole numbers, each with its default, least and greatest value.
_NUMBERS = {
    "BACKUP_KEEP": (7, 1, 1000),
    "DEADLINE": (20, 1, 300),
    "RPC_TIMEOUT": (10, 1, 60),
    "MAX_BODY": (64 * 1024, 1024, 1024 * 1024),
    "EDIT_WINDOW": (15 * 60, 0, 7 * 24 * 3600),
    "GUEST_TOKEN_SECONDS": (24 * 3600, 60, 24 * 3600),
    "TRUSTED_PROXIES": (0, 0, 10),
    "VOTERS_PER_NETWORK": (5, 1, 1000),
    "FOLLOWS_PER_NETWORK": (60, 1, 10_000),
    "MAILS_PER_DAY": (50, 1, 10_000),
    "PROOF_OF_WORK": (50_000, 0, 2_000_000),
    "FORM_SECONDS": (3, 0, 60),
    "POSTS_PER_NETWORK": (20, 0, 10_000),
    "POSTS_PER_AUTHOR": (10, 0, 10_000),
    "POSTS_PER_THREAD": (300, 0, 10_000),
    "SAME_TEXTS": (3, 0, 10_000),
    "PREVIEWS_PER_NETWORK": (30, 0, 10_000),
    "AUDIT_READS": (10_000, 0, 10_000_000),
}
# App Engine's GAE_ENV and GAE_SERVICE and Cloud Run's K_SERVICE are also read.
_TEXTS = """
    BACKUP_AT BACKUP_DIR DATASTORE DATASTORE_DATABASE DATASTORE_EMULATOR_HOST DATASTORE_NAMESPACE
    DATASTORE_PROJECT_ID DATA_GROUP FLATTHREAD_DATA GOOGLE_CLOUD_PROJECT HOSTS MAIL_FROM
    METRICS_TOKEN PUBLIC_URL SECRET SECRET_OLD SMTP_CA_FILE SMTP_URL SORT_HASH_DIGITS
    SORT_HASH_LEVELS SORT_HASH_WIDTH TASKS_QUEUE TASKS_SECRET
"""
NAMES = frozenset((*_NUMBERS, *_TEXTS.split()))
# The defaults as texts; settings without a default have "".
_DEFAULTS = {
    **dict.fromkeys(NAMES, ""),
    **{name: str(row[0]) for name, row in _NUMBERS.items()},
    "BACKUP_AT": "03:00",
    "FLATTHREAD_DATA": "data",
    "SORT_HASH_DIGITS": sorthash.DEFAULT_DIGITS,
    "SORT_HASH_LEVELS": str(sorthash.DEFAULT_LEVELS),
    "SORT_HASH_WIDTH": str(sorthash.DEFAULT_WIDTH),
}
_DATA_FILE = "flatthread.db"
STARTING = "starting"  # Exists from the creation of the secret until the store is open.
# SQLite's header, and the position of the application's id in the header. The id is 0 in a file
# that no engine has prepared.
_SQLITE, _SQLITE_HEAD, _APPLICATION = b"SQLite format 3\0", 100, slice(68, 72)
_GOOD_SECRET = 32  # In characters; generated secrets have 43, which encode 32 random bytes.


@dataclasses.dataclass(frozen=True, slots=True)
class Settings:
    """The settings of a process. Sizes are in bytes, times in seconds."""

    secret: str = dataclasses.field(repr=False)
    scheme: sorthash.Scheme = sorthash.Scheme()  # noqa: RUF009 - a frozen value
    datastore: str = "embedded"
    project: str = "flatthread"
    database: str = ""
    namespace: str = ""
    emulator_host: str = ""
    data_dir: Path = Path("data")
    data_group: str = ""
    backup_dir: Path | None = None
    backup_at: time = time(3)
    backup_keep: int = 7
    deadline: float = 20.0
    rpc_timeout: float = 10.0
    max_body: int = 64 * 1024
    edit_window: int = 15 * 60
    guest_token_seconds: int = 24 * 60 * 60
    trusted_proxies: int = 0
    voters_per_network: int = 5
    follows_per_network: int = 60
    on_app_engine: bool = False
    on_cloud_run: bool = False
    tasks_secret: str = ""
    tasks_queue: str = ""
    metrics_token: str = ""
    service: str = ""
    smtp: setting_values.Smtp | None = None
    smtp_ca_file: str = ""
    mail_from: str = ""
    mails_per_day: int = 50
    public_url: str = ""
    hosts: tuple[str, ...] = ()
    # These limits are off unless `load` sets them to the defaults of the service.
    proof_of_work: int = 0
    form_seconds: int = 0
    posts_per_network: int = 0
    posts_per_author: int = 0
    posts_per_thread: int = 0
    same_texts: int = 0
    previews_per_network: int = 0
    audit_reads: int = 0
    # All settings with their sources, for the console.
    listed: tuple[setting_values.ListedSetting, ...] = dataclasses.field(
        default=(), compare=False, repr=False
    )

    @property
    def sends_mail(self) -> bool:
        return self.smtp is not None

    @property
    def works_between_requests(self) -> bool:
        """Whether this platform runs threads while there is no request."""
        return not (self.on_app_engine or self.on_cloud_run)

    @property
    def data_file(self) -> Path:
        """The embedded engine's data file."""
        return self.data_dir / _DATA_FILE

    @property
    def advice(self) -> tuple[str, ...]:
        """Advice for the operator, in sentences that are logged at each start."""
        sentences = []
        if len(self.secret) < _GOOD_SECRET:
            sentences.append(
                f"SECRET has {len(self.secret)} characters. Anyone who guesses it can sign in "
                "as anybody. Make one of 32 random bytes, and keep this one as "
                "SECRET_OLD (docs/secrets.md)."
            )
        if self.backup_dir is not None and self.datastore != "embedded":
            sentences.append(
                "BACKUP_DIR has no effect, because this service stores its data in Datastore. Use "
                "its backups (docs/backups.md)."
            )
        elif self.backup_dir is not None and not os.access(self.backup_dir, os.W_OK | os.X_OK):
            sentences.append(
                f"BACKUP_DIR={self.backup_dir} is not a folder in which this service can write: "
                "there will be no nightly backups. Create the folder, or mount its disk."
            )
        return tuple(sentences)

    @property
    def where(self) -> str:
        """Describe the store in one line, for the log."""
        if self.datastore == "embedded":
            return f"the embedded engine in {self.data_dir.absolute()}"
        if self.datastore == "emulator":
            return f"the emulator at {self.emulator_host}"
        return f"Datastore, project {self.project}"


def load(
    environ: Mapping[str, str] | None = None,
    *,
    creates: bool = True,
    makes_secret: bool = True,
    is_restoring: bool = False,
) -> Settings:
    """Read the settings of this process. An embedded store must exist unless `creates` is set.

    Without `makes_secret`, the secret of an embedded store is "" if there is none. The secret and
    the data that belongs to it must either both exist or both be missing, unless `is_restoring` is
    set.

    Raises:
        errors.Misconfigured: a value cannot be parsed, a file cannot be read, or a required secret
            or its data is missing.
        errors.NoStore: there is no embedded store, and this process must not create one.
    """
    source = os.environ if environ is None else environ
    file = _file(source.get("FLATTHREAD_CONFIG", ""))
    values = {**file, **source}
    kind = _kind(values)
    if source.get("DATA_DIR") and not values.get("FLATTHREAD_DATA"):
        # FLATTHREAD_DATA had this name before the first release. If the old name were ignored, a
        # new store would be created.
        raise errors.Misconfigured("DATA_DIR is not a setting: set FLATTHREAD_DATA instead")
    data_dir = Path(values.get("FLATTHREAD_DATA") or "data")
    # Check before `_secret`, which would create the folder and a secret in it.
    if not creates and kind == "embedded" and not _has_content(data_dir / _DATA_FILE):
        raise errors.NoStore(str(data_dir.absolute()))
    if kind == "embedded" and makes_secret and not is_restoring and not values.get("SECRET"):
        _check_files(data_dir.absolute(), has_old=bool(values.get("SECRET_OLD")))
    return Settings(
        secret=_secret(values, kind, data_dir, makes=makes_secret),
        scheme=_scheme(values),
        datastore=kind,
        project=_project(values),
        database=values.get("DATASTORE_DATABASE", ""),
        namespace=values.get("DATASTORE_NAMESPACE", ""),
        emulator_host=values.get("DATASTORE_EMULATOR_HOST", ""),
        data_dir=data_dir,
        data_group=setting_values.group(values.get("DATA_GROUP", "")),
        backup_dir=Path(values["BACKUP_DIR"]) if values.get("BACKUP_DIR") else None,
        backup_at=setting_values.time_of_day(values, "BACKUP_AT", time(3)),
        # Read these from the environment only: a settings file must not claim to run on App Engine,
        # whose headers the service trusts.
        on_app_engine=bool(source.get("GAE_ENV")),
        on_cloud_run=bool(source.get("K_SERVICE")),
        tasks_secret=setting_values.long_enough("TASKS_SECRET", values.get("TASKS_SECRET", "")),
        metrics_token=setting_values.long_enough("METRICS_TOKEN", values.get("METRICS_TOKEN", "")),
        tasks_queue=setting_values.queue(values.get("TASKS_QUEUE", "")),
        service=source.get("GAE_SERVICE", ""),
        smtp=setting_values.smtp(values),
        smtp_ca_file=values.get("SMTP_CA_FILE", ""),
        mail_from=setting_values.mail_from(values),
        public_url=setting_values.public_url(values),
        hosts=setting_values.hosts(values.get("HOSTS", "")),
        listed=tuple(setting_values.list_all(_DEFAULTS, file, source)),
        **_numbers(values, kind),
    )


def _numbers(values: Mapping[str, str], kind: str) -> dict[str, int]:
    """Return the settings that are numbers, by field."""
    numbers = {
        name.lower(): setting_values.number(values, name, *_NUMBERS[name]) for name in _NUMBERS
    }
    if kind != "embedded" and not values.get("AUDIT_READS"):
        numbers["audit_reads"] = 0  # Other stores bill each read, so audits are off by default.
    return numbers


def _file(path: str) -> dict[str, str]:
    if not path:
        return {}
    try:
        lines = Path(path).read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise errors.Misconfigured(f"FLATTHREAD_CONFIG={path} cannot be read: {error}") from error
    values: dict[str, str] = {}
    for number, line in enumerate(lines, 1):
        name, equals, value = line.partition("=")
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        if not equals:
            raise errors.Misconfigured(f"{path}:{number}: expected NAME=value")
        if name.strip() not in NAMES:
            # Ignoring unknown names would hide misspelled settings.
            raise errors.Misconfigured(f"{path}:{number}: no such setting: {name.strip()}")
        values[name.strip()] = value.strip()
    return values


def _kind(values: Mapping[str, str]) -> str:
    if values.get("DATASTORE_EMULATOR_HOST"):
        return "emulator"
    chosen = values.get("DATASTORE", "")
    if chosen not in {"", "cloud", "embedded"}:
        raise errors.Misconfigured(
            f"DATASTORE must be 'cloud', 'embedded' or unset, not {chosen!r}"
        )
    if chosen:
        return chosen
    # App Engine and Cloud Run set these variables on every instance. The disk of an instance is
    # lost with the instance.
    return "cloud" if values.get("GAE_ENV") or values.get("K_SERVICE") else "embedded"


def _project(values: Mapping[str, str]) -> str:
    names = ("DATASTORE_PROJECT_ID", "GOOGLE_CLOUD_PROJECT")
    return next((values[name] for name in names if values.get(name)), "flatthread")


def _scheme(values: Mapping[str, str]) -> sorthash.Scheme:
    try:
        return sorthash.Scheme(
            digits=values.get("SORT_HASH_DIGITS") or sorthash.DEFAULT_DIGITS,
            width=setting_values.number(
                values, "SORT_HASH_WIDTH", sorthash.DEFAULT_WIDTH, 1, sorthash.MOST_WIDTH
            ),
            levels=setting_values.number(
                values, "SORT_HASH_LEVELS", sorthash.DEFAULT_LEVELS, 1, sorthash.MOST_LEVELS
            ),
        )
    except sorthash.BadSortHash as error:
        raise errors.Misconfigured(f"SORT_HASH_*: {error}") from error


def _secret(values: Mapping[str, str], kind: str, data_dir: Path, *, makes: bool) -> str:
    """Return SECRET or, with the embedded store, a secret that is created in the data folder.

    With other stores, a service without SECRET must not start: each instance would make its own
    secret and refuse tokens from the other instances.
    """
    given, old = values.get("SECRET", ""), values.get("SECRET_OLD", "")
    if not given and kind != "embedded":
        raise errors.Misconfigured("SECRET is not set: use one random text for all instances")
    kept = data_dir / "secret"
    if not given and not makes and not kept.exists():
        return ""
    return secret_rotation.Secret(given or _stored_secret(kept), old)


def _has_content(path: Path) -> bool:
    """Return whether a data file exists and is neither empty nor a database without a store.

    A damaged file has content. So does a file whose content may still be entirely in its log.
    """
    if not _size(path):
        return False
    try:
        # Settings are read before the engine opens the file and locks it.
        with path.open("rb") as file:
            head = file.read(_SQLITE_HEAD)
    except OSError:  # The engine will report the reason
        return True
    has_store = not head.startswith(_SQLITE) or any(head[_APPLICATION])
    return has_store or _size(path.with_name(f"{path.name}-wal")) > 0


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def _check_files(folder: Path, *, has_old: bool) -> None:
    """Refuse to create the store or the secret if only the other one exists.

    Such a service would seem to work, but would have lost its comments or its accounts. `STARTING`
    exists during a first start, which may be killed between creating the two files. The order of
    the checks allows another process to start at the same time.
    """
    data, secret = folder / _DATA_FILE, folder / "secret"
    if secret.exists() and not (folder / STARTING).exists() and not _has_content(data):
        raise errors.Misconfigured(
            f"{data} is missing or empty, but {secret} exists. If the data is on another disk, "
            "mount that disk. To restore a backup, run `flatthread restore FILE` "
            f"(docs/backups.md). To begin with an empty service, delete {secret}, and {data} if it "
            "exists."
        )
    if not has_old and _has_content(data) and not secret.exists():
        raise errors.Misconfigured(
            f"{secret} is missing, but {data} exists. Copy the secret back, or set SECRET to it. "
            "If it is lost, set SECRET to a new random text: everyone is then signed out, and "
            "encrypted addresses cannot be read (docs/secrets.md)."
        )


def _stored_secret(path: Path) -> str:
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not path.exists():
            if not _has_content(path.with_name(_DATA_FILE)):
                path.with_name(STARTING).touch(mode=0o600)
            _make_secret(path)
        kept = path.read_text(encoding="ascii", errors="replace").strip()
    except OSError as error:
        raise errors.Misconfigured(f"{path} cannot be read or created: {error}") from error
    if len(kept) < setting_values.SECRET_BYTES or not kept.isascii():
        raise errors.Misconfigured(
            f"{path} is damaged: restore it. If it is lost, delete it and set SECRET to a new "
            "random text (docs/secrets.md)"
        )
    return kept


def _make_secret(path: Path) -> None:
    """Write a new secret unless another process has already written one."""
    own = path.with_name(f"{path.name}.{os.getpid()}")
    with os.fdopen(os.open(own, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
        file.write(secrets.token_urlsafe(32))
        file.flush()
        os.fsync(file.fileno())
    # A hard link is created atomically, so no process can read half a secret.
    try:
        with contextlib.suppress(FileExistsError):
            path.hardlink_to(own)
    finally:
        own.unlink()
