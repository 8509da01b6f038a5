"""Everything that can be wrong, as one tree.

    FlatthreadError
    |- BadInput               a value a caller sent; names the field
    |  |- BadCursor           a page cursor that is damaged, forged or of another listing
    |  |  `- CursorExpired    a page cursor of a ranking that is not kept any more
    |  |- BadLink             a link of a mail that is damaged, forged or too old
    |  |- BadImport           a line of an import file
    |  `- UnsafeAddress       an address that we must not be sent to
    |- NotFound               a site, thread or comment that is not there (for this caller)
    |- Forbidden              the caller may not do this
    |- Conflict               the state of what is stored does not allow it
    |  |- KeyReused           an idempotency key that was used with other content
    |  `- RevisionMismatch    If-Match named a revision that is no longer current
    |- TooLarge               a body above the limit
    |- TooMany                a limit that more time than a retry's has to pass for
    |- Overloaded             the store did not answer in time; worth a retry
    |- Unchecked              whoever is to check this did not answer; worth a retry
    |- Unreachable            a peer of ours did not answer; worth a retry
    |- UnownedWrite           a write around a kind's owner: a bug here, never a caller's
    `- Misconfigured          settings or stored data that the process must not start with
       `- NoStore             a command was pointed at a folder without a store

`code` is stable: clients and tests rely on it. HTTP statuses live in `web/errors.py`.
"""


class FlatthreadError(Exception):
    """The root. `code` names the kind of fault; the message is for people."""

    code = "error"

    def __init__(self, message: str, *, code: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        if code is not None:
            self.code = code


class BadInput(FlatthreadError):
    """A value a caller sent is refused: `field`, as the caller knows it, and the `reason`."""

    code = "bad-input"

    def __init__(self, field: str, message: str, *, code: str | None = None) -> None:
        super().__init__(f"{field}: {message}", code=code)
        self.field = field
        self.reason = message


class BadCursor(BadInput):
    """A page cursor is damaged, forged, or belongs to another listing."""

    code = "bad-cursor"

    def __init__(self, message: str = "is not a cursor of this listing") -> None:
        super().__init__("cursor", message)


class CursorExpired(BadCursor):
    """A page cursor names a ranking that is not kept any more: start again."""

    code = "cursor-expired"

    def __init__(self) -> None:
        super().__init__("is of a ranking that is not kept any more; start from the first page")


class BadLink(BadInput):
    """A link of a mail is damaged, forged, made for something else, or too old."""

    code = "bad-link"

    def __init__(self, message: str = "is no link of ours", *, code: str | None = None) -> None:
        super().__init__("token", message, code=code)


class BadImport(FlatthreadError):
    """An import file is refused. `line` counts from 1; None where the fault has no place."""

    code = "bad-import"

    def __init__(self, file: str, line: int | None, message: str) -> None:
        place = file if line is None else f"{file}:{line}"
        super().__init__(f"{place}: {message}")
        self.file = file
        self.line = line


class UnsafeAddress(BadInput):
    """An address is not one of the Internet that requests may be sent to (`safe_http`)."""

    code = "unsafe-address"

    def __init__(self, message: str) -> None:
        super().__init__("url", message)


class NotFound(FlatthreadError):
    """What was asked for is not there, or not for this caller. `noun` says what it was."""

    code = "not-found"

    def __init__(self, noun: str, value: str) -> None:
        super().__init__(f"no such {noun}: {value}", code=f"{noun}-not-found")
        self.noun = noun
        self.value = value


class Forbidden(FlatthreadError):
    """The caller may not do this."""

    code = "forbidden"


class Conflict(FlatthreadError):
    """The state of what is stored does not allow this."""

    code = "conflict"


class KeyReused(Conflict):
    """The idempotency key was used before, with other content."""

    code = "idempotency-key-reused"


class RevisionMismatch(Conflict):
    """If-Match named a revision that is no longer the current one."""

    code = "revision-mismatch"

    def __init__(self, expected: int, current: int) -> None:
        super().__init__(f"the comment is at revision {current}, not {expected}")
        self.expected = expected
        self.current = current


class TooLarge(FlatthreadError):
    """A body above the limit, in bytes."""

    code = "too-large"

    def __init__(self, field: str, limit: int) -> None:
        super().__init__(f"{field}: longer than {limit} bytes")
        self.field = field
        self.limit = limit


class TooMany(FlatthreadError):
    """A limit is reached. `retry_after` is the seconds until there is room again."""

    code = "too-many"

    def __init__(self, message: str, *, retry_after: int, code: str | None = None) -> None:
        super().__init__(message, code=code)
        self.retry_after = retry_after


class Overloaded(FlatthreadError):
    """The store did not answer in time. Nothing is known to be stored; `retry_after` is seconds."""

    code = "overloaded"

    def __init__(self, message: str, *, retry_after: int = 2) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class Unchecked(FlatthreadError):
    """A service that has to check this did not answer. `retry_after` is seconds."""

    code = "unchecked"

    def __init__(self, message: str, *, retry_after: int, code: str | None = None) -> None:
        super().__init__(message, code=code)
        self.retry_after = retry_after


class Unreachable(FlatthreadError):
    """A peer did not answer, or not in time, or with something else than its protocol."""

    code = "unreachable"


class UnownedWrite(FlatthreadError):
    """A commit holds an entity of a kind whose owner did not ask for it."""

    code = "unowned-write"


class Misconfigured(FlatthreadError):
    """Settings, or data under other settings, that a process must not start with."""

    code = "misconfigured"


class NoStore(Misconfigured):
    """A command was pointed at a folder without a store, and must not make one."""

    def __init__(self, folder: str) -> None:
        super().__init__(
            f"There is no store in {folder}. Set DATA_DIR to the folder of your store, or make one "
            "with `scripts/serve` or `flask --app main site add`."
        )
