"""Store the uploaded file of a site, and the progress of its import.

For a staging copy with comments (`site_copy`), the file is an export of the original, which a
worker stores instead of an owner.

This module owns the kind ImportPart and the Job rows of uploads. A site has at most one upload; a
new one replaces it. Browsers send the file in parts that fit into a request body, so proxies and
App Engine need no higher limit for bodies.

    Job         key: "upload/{site id}"; `position` is an Upload as JSON
    ImportPart  key: "{site id}/{upload id}/{number of the part}"; `content` is the part, encrypted
                and in base64

Each transaction that stores a part also reads the upload, so an upload that was replaced leaves no
parts behind. Only one process at a time works on an upload: it claims the upload until a certain
time, and extends the claim while it works. A claim also ends when its process ends, if another
process on the same machine can detect this. Each claim has an id. If a claim expires and another
process claims the upload, the first process can therefore no longer change it.
"""

import base64
import enum
import functools
import secrets
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import BinaryIO

import msgspec

from comments import errors
from comments.domain import decoders
from comments.domain.crypto import encryption
from comments.domain.ids import imported_ids
from comments.events import audit_log
from comments.store import ownership, reads, transactions
from comments.store.models import event_rows, schema
from comments.transfer.importing import import_process

_OWNER = "upload_store"
_JOBS = "upload/"
_BEHIND = "\U0010ffff"
_PURPOSE = "uploaded export"
MOST_BYTES = 100_000_000  # Larger files must be imported on the command line.
# Maximum number of bytes in one part. A part has to fit into one row of the store after it is
# encrypted and encoded in base64.
_MOST_IN_PART = 500_000
_LONGEST_NAME = 60  # Characters; file systems accept names of up to 255 bytes.
KEPT = timedelta(days=1)  # An upload that nobody confirms is deleted after this time.
CLAIM = timedelta(seconds=60)
MOST_LOST = 5  # Number of claims of one upload that may be lost because their processes ended.
_AT_ONCE = 100  # Maximum number of parts that one transaction deletes.


class UploadState(enum.StrEnum):
    """The progress of an upload. The states are stored as text.

    A worker moves `COPYING` to `IMPORTING` or `REFUSED`, `CHECKING` to `CHECKED` or `REFUSED`, and
    `IMPORTING` to `DONE` or `REFUSED`. Parts are stored only until the state becomes `DONE` or
    `REFUSED`.
    """

    COPYING = "copying"
    RECEIVING = "receiving"
    CHECKING = "checking"
    CHECKED = "checked"
    IMPORTING = "importing"
    DONE = "done"
    REFUSED = "refused"


_ENDED = {UploadState.DONE, UploadState.REFUSED}
_CONFIRMED = {UploadState.COPYING, UploadState.IMPORTING}


class Failure(enum.StrEnum):
    """Why a file cannot be imported when the reason is not a place in the file.

    `FORMAT`: no format recognizes the file. `SECRET`: the service's secret has changed. `ERROR`: an
    error that the log describes. `UNDOING`: an earlier import is being undone.
    """

    FORMAT = "format"
    SECRET = "secret"  # noqa: S105 - the name of a reason
    ERROR = "error"
    UNDOING = "undoing"  # The file is kept, and can be checked again after the undo.


class ClaimLost(Exception):
    """The upload was replaced or has ended, or another process has claimed it."""


class ProposedMapping(msgspec.Struct, frozen=True):
    """A proposed page mapping and its reason.

    If `mapping` is empty, the reason says why there is none.

    If an earlier import used the mapping, `file` is the name of that import's file, and there is no
    reason.
    """

    mapping: str
    reason: str
    file: str = ""


class Upload(msgspec.Struct, frozen=True):
    """An uploaded file, or an export of the site `source`, of which the upload's site is a copy.

    `size` is the length of the file in bytes, and `part` is the length of each part except the
    last. `system` is the recognized format, and `report` contains the lines of the report about the
    file. `added` is the number of comments that the import added, and `present` the number of those
    that already existed. `explained` and `unexplained` are the numbers of differences that the
    verification found. `problem` says why a file was refused, or why it cannot be imported
    unchanged; `failure` names a reason that lies outside the file (`Failure`). `mapping` contains
    page mappings in the form used on the command line. `claimed` is the time until which a process
    has claimed the work, `holder` is the id of this claim, `process` is the mark of the process
    (`import_process`), and `lost` is the number of claims that ended without a result.
    """

    id: str
    site: str
    name: str
    size: int
    part: int
    at: datetime
    state: UploadState = UploadState.RECEIVING
    system: str = ""
    comments: int = 0
    added: int = 0
    present: int = 0
    explained: int = 0
    unexplained: int = 0
    report: tuple[str, ...] = ()
    problem: str = ""
    failure: str = ""
    mapping: tuple[str, ...] = ()
    proposed: tuple[ProposedMapping, ...] = ()
    claimed: datetime | None = None
    holder: str = ""
    process: str = ""
    lost: int = 0
    source: str = ""

    @property
    def parts(self) -> int:
        """Return the number of parts."""
        return -(-self.size // self.part)

    def length(self, number: int) -> int:
        """Return the length of a part in bytes."""
        return min(self.part, self.size - number * self.part)


def get(site: str) -> Upload | None:
    """Return the upload of a site."""
    row = reads.get(_key(site))
    return None if row is None else decoders.json(Upload).decode(row.position)


def waiting_sites(now: datetime) -> list[str]:
    """Return the sites whose upload has work to do and is not claimed."""
    return [upload.site for upload in _all_uploads() if _is_waiting(upload, now)]


def begin(site: str, name: str, size: int, part: int, *, now: datetime) -> Upload:
    """Start an upload, which replaces the site's previous one.

    `part` is the number of bytes that fit into a request.

    Raises:
        errors.BadInput: the file is empty or too large.
        errors.Conflict: the previous file is being imported.
    """
    if not 0 < size <= MOST_BYTES:
        raise errors.BadInput("size", "out-of-range", minimum=1, maximum=MOST_BYTES)
    discard(site)
    length = min(part, _MOST_IN_PART)
    upload = Upload(secrets.token_hex(8), site, _file_name(name), size, length, now)
    transactions.transaction(lambda: transactions.apply(_upload_writes(upload)))
    return upload


def copy_writes(site: str, source: str, *, now: datetime) -> ownership.Writes:
    """Return the writes that let a worker copy the comments of the site `source` to a new site."""
    name = _file_name(f"{source}.jsonl.gz")
    upload = Upload(secrets.token_hex(8), site, name, size=0, part=_MOST_IN_PART, at=now)
    copying = {"state": UploadState.COPYING, "system": imported_ids.OWN, "source": source}
    return _upload_writes(msgspec.structs.replace(upload, **copying))


def receive(
    site: str, upload_id: str, number: int, data: bytes, secret: str, now: datetime
) -> None:
    """Store a part. After the last missing part has been sent, call `finish`.

    Raises:
        errors.Conflict: the upload was replaced, or no longer needs parts.
        errors.BadInput: the part does not belong to the file, or has the wrong length.
    """

    def body() -> None:
        upload = _in_state(site, upload_id, UploadState.RECEIVING)
        if not 0 <= number < upload.parts:
            raise errors.BadInput("part", "out-of-range", minimum=0, maximum=upload.parts - 1)
        if len(data) != upload.length(number):
            raise errors.BadInput("part", "incomplete-body")
        transactions.apply(part)

    part = _part_writes(site, upload_id, number, data, secret, now)
    transactions.transaction(body)


def finish(site: str, upload_id: str, *, now: datetime) -> None:
    """Let a worker check the file, once all parts are stored. Calling this again has no effect.

    Raises:
        errors.Conflict: the upload was replaced, or parts are missing.
    """
    current = get(site)
    if (
        current is not None
        and current.id == upload_id
        and current.state is not UploadState.RECEIVING
    ):
        return
    upload = _in_state(site, upload_id, UploadState.RECEIVING)
    if len(_part_names(upload)) != upload.parts:
        raise errors.Conflict("upload-incomplete")
    _change(site, upload_id, UploadState.RECEIVING, at=now, state=UploadState.CHECKING)


def check_again(site: str, upload_id: str, mapping: tuple[str, ...], *, now: datetime) -> None:
    """Let a worker check a file again, with other page mappings.

    Raises:
        errors.Conflict: the upload was replaced, or its file is not in the state "checked".
    """
    checking = UploadState.CHECKING
    _change(site, upload_id, UploadState.CHECKED, at=now, state=checking, mapping=mapping)


def confirm(site: str, upload_id: str, act: audit_log.Act, *, now: datetime) -> None:
    """Let a worker import a checked file, and record this in the audit log.

    Raises:
        errors.Conflict: the upload was replaced, or its file is not in the state "checked".
    """

    def body() -> None:
        if audit_log.is_done(act):
            return
        upload = _in_state(site, upload_id, UploadState.CHECKED)
        importing = msgspec.structs.replace(upload, at=now, state=UploadState.IMPORTING)
        noted = audit_log.entry_writes(act, site, "site", before="", after=upload.name, now=now)
        transactions.apply(_upload_writes(importing), noted)

    transactions.transaction(body)


def discard(site: str, upload_id: str = "") -> None:
    """Delete a site's upload and its parts; if an id is given, only an upload with this id.

    First the upload is changed to refuse further parts. If the process is killed after that,
    `expire` deletes the rest.

    Raises:
        errors.Conflict: the file is being imported.
    """

    def close() -> Upload | None:
        upload = get(site)
        if upload is None or (upload_id and upload.id != upload_id):
            return None
        if upload.state in _CONFIRMED:
            raise errors.Conflict("upload-importing")
        closed = msgspec.structs.replace(upload, state=UploadState.REFUSED)
        transactions.apply(_upload_writes(closed))
        return closed

    def remove() -> None:
        if get(site) == closed:
            transactions.apply(ownership.Writes(_OWNER, delete=(_key(site),)))

    closed: Upload | None = transactions.transaction(close)
    if closed is not None:
        _delete_parts(closed)
        transactions.transaction(remove)


def claim(site: str, now: datetime) -> Upload | None:
    """Claim an upload that waits for a worker; return None if another process works on it.

    If the work on a file ended `MOST_LOST` processes, for example because it needs too much memory,
    the file is refused.
    """
    holder = secrets.token_hex(8)

    def body() -> Upload | None:
        upload = get(site)
        if upload is not None and upload.holder == holder:
            return upload  # The response to the commit was lost.
        if upload is None or not _is_waiting(upload, now):
            return None
        lost = upload.lost + (upload.claimed is not None)
        if lost > MOST_LOST:
            refused = {"state": UploadState.REFUSED, "failure": Failure.ERROR.value}
            transactions.apply(
                _upload_writes(msgspec.structs.replace(upload, claimed=None, **refused))
            )
            return None
        mine = {"claimed": now + CLAIM, "holder": holder, "process": import_process.own_mark()}
        claimed = msgspec.structs.replace(upload, **mine, lost=lost)
        transactions.apply(_upload_writes(claimed))
        return claimed

    claimed: Upload | None = transactions.transaction(body)
    return claimed


def renew(upload: Upload, *, now: datetime, term: timedelta = CLAIM) -> None:
    """Extend the claim of this process.

    Raises:
        ClaimLost: this process no longer has the claim.
    """
    _record(upload, at=now, claimed=now + term)


def record(upload: Upload, *, now: datetime, **changed: object) -> None:
    """Change an upload that this process has claimed, and end the claim.

    Raises:
        ClaimLost: this process no longer has the claim.
    """
    _record(upload, at=now, claimed=None, holder="", **changed)


def end(upload: Upload, *, now: datetime, **changed: object) -> None:
    """Record the end of an upload that this process has claimed, and delete its parts.

    Raises:
        ClaimLost: this process no longer has the claim.
    """
    record(upload, now=now, **changed)
    _delete_parts(upload)


def store(
    upload: Upload, file: BinaryIO, secret: str, clock: Callable[[], datetime], **changed: object
) -> None:
    """Store the parts of a file for an upload that this process has claimed, and end the claim.

    Parts of an earlier attempt are overwritten. Until the last transaction, a file of another
    attempt may replace this one.

    Raises:
        ClaimLost: this process no longer has the claim.
    """
    size = 0
    for number, data in enumerate(iter(functools.partial(file.read, upload.part), b"")):
        size += len(data)
        now = clock()
        part = _part_writes(upload.site, upload.id, number, data, secret, now)
        _record(upload, part, at=now, claimed=now + CLAIM)
    record(upload, now=clock(), size=size, **changed)


def copy(upload: Upload, folder: Path, secret: str, now: Callable[[], datetime]) -> Path:
    """Write the file into a folder, and return its path.

    Raises:
        errors.BadLink: a part was encrypted with a secret that the service no longer has.
        errors.Conflict: parts are missing.
    """
    path = folder / upload.name
    with path.open("wb") as file:
        for data in _parts(upload, secret, now):
            file.write(data)
    if path.stat().st_size != upload.size:
        raise errors.Conflict("upload-incomplete")
    return path


def expire(now: datetime) -> None:
    """Delete uploads that nobody has continued for `KEPT`, and parts that are no longer needed.

    Such parts exist if a process is killed after it has recorded the end of an upload.
    """
    for upload in _all_uploads():
        if upload.at <= now - KEPT and upload.state not in _CONFIRMED:
            discard(upload.site)
        elif upload.state in _ENDED:
            _delete_parts(upload)


def _all_uploads() -> list[Upload]:
    where = (("__key__", ">", _JOBS), ("__key__", "<", f"{_JOBS}{_BEHIND}"))
    return [
        decoders.json(Upload).decode(message.properties["position"].string_value)
        for message in reads.fetch(reads.Query("Job", where, ("__key__",)))
    ]


def _file_name(name: str) -> str:
    """Return the last part of a path in a form that every file system accepts as a name."""
    last = Path(name.replace("\\", "/")).name.lstrip(".")[-_LONGEST_NAME:]
    return "".join(character if character.isprintable() else "_" for character in last) or "file"


def _in_state(site: str, upload_id: str, state: UploadState) -> Upload:
    upload = get(site)
    if upload is None or upload.id != upload_id or upload.state is not state:
        raise errors.Conflict("upload-replaced")
    return upload


def _change(site: str, upload_id: str, expected: UploadState, **changed: object) -> None:
    """Change an upload that no process is working on."""

    def body() -> None:
        upload = _in_state(site, upload_id, expected)
        transactions.apply(_upload_writes(msgspec.structs.replace(upload, **changed)))

    transactions.transaction(body)


def _record(upload: Upload, *writes: ownership.Writes, **changed: object) -> None:
    def body() -> None:
        stored = get(upload.site)
        if stored is None or _claim_of(stored) != _claim_of(upload):
            raise ClaimLost
        transactions.apply(_upload_writes(msgspec.structs.replace(stored, **changed)), *writes)

    transactions.transaction(body)


def _claim_of(upload: Upload) -> tuple[str, UploadState, str]:
    return upload.id, upload.state, upload.holder


def _is_waiting(upload: Upload, now: datetime) -> bool:
    has_work = upload.state in {UploadState.CHECKING, *_CONFIRMED}
    is_free = upload.claimed is None or upload.claimed <= now
    return has_work and (is_free or import_process.has_ended(upload.process))


def _parts(upload: Upload, secret: str, now: Callable[[], datetime]) -> Iterator[bytes]:
    for number in range(upload.parts):
        key = event_rows.import_part_key(f"{upload.site}/{upload.id}/{number:06}")
        row = reads.get(key)
        if row is None:
            return
        yield base64.b64decode(encryption.unseal(row.content, _PURPOSE, secret, now=now()))


def _part_writes(
    site: str, upload_id: str, number: int, data: bytes, secret: str, now: datetime
) -> ownership.Writes:
    sealed = encryption.seal(base64.b64encode(data).decode(), _PURPOSE, secret, now=now)
    key = event_rows.import_part_key(f"{site}/{upload_id}/{number:06}")
    row = event_rows.ImportPartRow(key=key, content=sealed)
    return ownership.Writes(_OWNER, put=(row,))


def _part_names(upload: Upload, limit: int | None = None) -> list[str]:
    start = f"{upload.site}/{upload.id}/"
    where = (("__key__", ">", start), ("__key__", "<", f"{start}{_BEHIND}"))
    return reads.names("ImportPart", where, order=("__key__",), limit=limit)


def _delete_parts(upload: Upload) -> None:
    while names := _part_names(upload, _AT_ONCE):
        keys = tuple(map(event_rows.import_part_key, names))
        writes = ownership.Writes(_OWNER, delete=keys)
        transactions.transaction(functools.partial(transactions.apply, writes))


def _key(site: str) -> schema.RowKey:
    return event_rows.job_key(f"{_JOBS}{site}")


def _upload_writes(upload: Upload) -> ownership.Writes:
    row = event_rows.JobRow(key=_key(upload.site), position=msgspec.json.encode(upload).decode())
    return ownership.Writes(_OWNER, put=(row,))
