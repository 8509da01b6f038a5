"""The exceptions of the service, in one class hierarchy.

    FlatthreadError            for operators and developers: a message
    |- BadImport               a line of an import file
    |  `- UnknownFormat        a file that no import format recognizes
    |- ImportRefused           an import, or its undo, that the stored imports do not allow
    |  `- UndoRunning          an import while an earlier one is being undone
    |- MoveRefused            a move of threads, or its undo, that is not possible
    |- ThreadMoved            a new thread or reply that belongs to another thread
    |- BackupFailed            a backup that cannot be made or restored
    |- ExportFailed            an export whose file cannot be written
    |- UnownedWrite            a write that bypasses the owner of a kind: a bug in this program
    |- Misconfigured           settings or stored data that the process must not start with
    |  `- NoStore              a command was given a folder without a store
    `- CodedError              for clients: a code, a field and parameters
       |- BadInput             a value that a caller sent
       |  |- BadCursor         a page cursor that is damaged, forged or for a different listing
       |  |  `- CursorExpired  a page cursor for a ranking or a tree that no longer exists
       |  |- BadLink           a link from a mail that is damaged, forged, used or expired
       |  `- UnsafeAddress     a URL that the service must not send requests to
       |- NotFound             a site, thread or comment that this caller may not see
       |- Forbidden            the caller has no permission
       |- Conflict             the stored state does not allow the change
       |  |- KeyReused         an idempotency key that was used with other content
       |  `- RevisionMismatch  If-Match names a revision that is no longer current
       |- TooLarge             a request body beyond the size limit
       |- TooMany              a rate limit or a budget is used up
       |- Overloaded           the store did not answer in time; the caller should retry
       |  `- StorageFault       the store's disk or data fails; retries do not help
       |- Unchecked            a service that checks posts did not answer; the caller should retry
       `- Unreachable          a remote host did not answer; the caller should retry

Codes are part of the API, and clients translate them. docs/errors.md lists all codes, and
`domain/languages/en/errors.json` has a sentence for each (see `domain.languages.error_texts`). The
HTTP statuses are in `web/http/problems.py`.
"""

from typing import TypeAlias

Param: TypeAlias = str | int


class FlatthreadError(Exception):
    """The base class. `message` is for operators and developers."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


class BadImport(FlatthreadError):
    """An import file is not valid.

    `line` counts lines, or other units of the file, from 1; it is None if the error is not in one
    particular place.
    """

    def __init__(self, file: str, line: int | None, message: str, unit: str = "line") -> None:
        place = file if line is None else f"{file}:{line}"
        if line is not None and unit != "line":
            place = f"{file}, {unit} {line}"
        super().__init__(f"{place}: {message}")
        self.file = file
        self.line = line


class UnknownFormat(BadImport):
    """No import format recognizes a file."""


class ImportRefused(FlatthreadError):
    """An import, or undoing an import, is not possible now, or is no longer possible."""


class UndoRunning(ImportRefused):
    """An import is not possible while an earlier import is being undone."""


class MoveRefused(FlatthreadError):
    """Moving threads, or undoing a move, is not possible. The message says why.

    `field` is the field of a form with the problem, or "".
    """

    def __init__(self, message: str, field: str = "") -> None:
        super().__init__(message)
        self.field = field


class ThreadMoved(FlatthreadError):
    """A new thread has an id of a moved thread, or a reply answers another thread's comment.

    `stored` is the stored id of that thread. `posting` posts to that thread instead. An import
    fails; a repeated import finds the thread.
    """

    def __init__(self, thread: str, stored: str) -> None:
        super().__init__(f"The thread {thread} has moved in the meantime. Try again.")
        self.stored = stored


class BackupFailed(FlatthreadError):
    """A backup cannot be made, or cannot be restored. The message says what to do."""


class ExportFailed(FlatthreadError):
    """The file of an export cannot be written. An older file with the same name is unchanged."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"{path} was not written: {reason}")


class UnownedWrite(FlatthreadError):
    """A commit contains an entity that was not written by the owner of its kind."""


class Misconfigured(FlatthreadError):
    """A process must not start: its settings are wrong or do not match the stored data."""


class NoStore(Misconfigured):
    """A command that must not create a store was given a folder without a store."""

    def __init__(self, folder: str) -> None:
        super().__init__(
            f"There is no store in {folder}. Set FLATTHREAD_DATA to the folder of your store, or "
            "create one with `flatthread serve` or `flatthread site add`."
        )


class CodedError(FlatthreadError):
    """An error that clients may see.

    `code` says what is wrong, `field` is the caller's name for the wrong value, and `params` fill
    the placeholders in the code's sentence.
    """

    code = ""

    def __init__(self, code: str = "", *, field: str = "", **params: Param) -> None:
        self.code = code or type(self).code
        self.field = field
        self.params: dict[str, Param] = params
        # The form for logs and tracebacks: "limit: out-of-range (minimum=1, maximum=200)".
        shown = ", ".join(f"{name}={value}" for name, value in params.items())
        named = f"{field}: {self.code}" if field else self.code
        super().__init__(f"{named} ({shown})" if shown else named)


class BadInput(CodedError):
    """The caller sent a value that is not valid."""

    def __init__(self, field: str, code: str, **params: Param) -> None:
        super().__init__(code, field=field, **params)

    def about(self, field: str) -> "BadInput":
        """Return the same error with the caller's name for the field."""
        return BadInput(field, self.code, **self.params)


class BadCursor(BadInput):
    """A page cursor is damaged, forged, or belongs to a different listing."""

    code = "bad-cursor"

    def __init__(self) -> None:
        super().__init__("cursor", type(self).code)


class CursorExpired(BadCursor):
    """A page cursor belongs to a ranking or a tree that no longer exists."""

    code = "cursor-expired"


class BadLink(BadInput):
    """A link from a mail is damaged, forged, expired, already used, or has a different purpose."""

    code = "bad-link"

    def __init__(self, code: str = "") -> None:
        super().__init__("token", code)


class UnsafeAddress(BadInput):
    """The service must not send requests to this URL (`events.safe_http`)."""

    def __init__(self, code: str, **params: Param) -> None:
        super().__init__("url", code, **params)


class NotFound(CodedError):
    """`value` does not exist or is hidden from this caller. The code names what was requested."""

    def __init__(self, noun: str, value: str) -> None:
        super().__init__(f"{noun}-not-found", value=value)


class Forbidden(CodedError):
    """The caller has no permission."""


class Conflict(CodedError):
    """The stored state does not allow the change."""


class KeyReused(Conflict):
    """The idempotency key was used before with different content."""

    code = "idempotency-key-reused"


class RevisionMismatch(Conflict):
    """If-Match names a revision that is no longer current."""

    code = "revision-mismatch"

    def __init__(self, expected: int, current: int) -> None:
        super().__init__(expected=expected, current=current)


class TooLarge(CodedError):
    """A request body is larger than `limit` bytes."""

    code = "too-large"

    def __init__(self, field: str, limit: int) -> None:
        super().__init__(field=field, limit=limit)


class TooMany(CodedError):
    """A rate limit or a budget is used up. The caller may retry after `retry_after` seconds."""

    code = "too-many"

    def __init__(self, code: str = "", *, retry_after: int) -> None:
        super().__init__(code, seconds=retry_after)
        self.retry_after = retry_after


class Overloaded(CodedError):
    """The store did not answer in time. The caller cannot know whether anything was stored.

    `reason` is for logs and commands. `retry_after` is in seconds.
    """

    code = "overloaded"

    def __init__(self, reason: str, *, retry_after: int = 2, code: str = "") -> None:
        super().__init__(code, seconds=retry_after)
        self.reason = reason
        self.args = (f"{self.message}: {reason}",)
        self.retry_after = retry_after


class StorageFault(Overloaded):
    """The disk of the store is full or read-only, or its data is damaged.

    Waiting does not help until an operator acts, so only callers without a deadline try again.
    `folder` contains the data.
    """

    def __init__(self, code: str, reason: str, folder: str) -> None:
        super().__init__(reason, retry_after=60, code=code)
        self.folder = folder


class Unchecked(CodedError):
    """A service that must check a post did not answer. `retry_after` is in seconds."""

    def __init__(self, code: str, *, retry_after: int) -> None:
        super().__init__(code, seconds=retry_after)
        self.retry_after = retry_after


class Unreachable(CodedError):
    """A remote host did not answer in time, or its answer broke the protocol."""
