"""The errors of the service, as one tree.

    FlatthreadError            for operators and developers: a message
    |- BadImport               a line of an import file
    |- UnownedWrite            a write that bypasses the owner of a kind: a bug in this program
    |- Misconfigured           settings or stored data that the process must not start with
    |  `- NoStore              a command was given a folder without a store
    `- CodedError              for clients: a code, a field and parameters
       |- BadInput             a value that a caller sent
       |  |- BadCursor         a page cursor that is damaged, forged or of another listing
       |  |  `- CursorExpired  a page cursor of a ranking that is no longer kept
       |  |- BadLink           a link from a mail that is damaged, forged, used or expired
       |  `- UnsafeAddress     a URL that the service must not send requests to
       |- NotFound             a site, thread or comment that does not exist for this caller
       |- Forbidden            the caller has no permission
       |- Conflict             the stored state does not allow the change
       |  |- KeyReused         an idempotency key that was used with other content
       |  `- RevisionMismatch  If-Match names a revision that is no longer current
       |- TooLarge             a body above the limit
       |- TooMany              a rate limit or a budget
       |- Overloaded           the store did not answer in time; worth a retry
       |- Unchecked            a service that must check this did not answer; worth a retry
       `- Unreachable          a remote host did not answer; worth a retry

Codes are part of the API: clients translate them. docs/errors.md lists them all, and
`domain/languages/en/errors.json` has a sentence for each (`domain.languages.error_texts`). HTTP
statuses are in `web/http/problems.py`.
"""

from typing import TypeAlias

Param: TypeAlias = str | int


class FlatthreadError(Exception):
    """The root of the tree. `message` is for operators and developers."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


class BadImport(FlatthreadError):
    """An import file is refused. `line` counts from 1; None where the error has no line."""

    def __init__(self, file: str, line: int | None, message: str) -> None:
        place = file if line is None else f"{file}:{line}"
        super().__init__(f"{place}: {message}")
        self.file = file
        self.line = line


class UnownedWrite(FlatthreadError):
    """A commit holds an entity of a kind whose owner did not ask for the write."""


class Misconfigured(FlatthreadError):
    """A process must not start with these settings, or with data stored under other settings."""


class NoStore(Misconfigured):
    """A command was given a folder without a store, and must not create one."""

    def __init__(self, folder: str) -> None:
        super().__init__(
            f"There is no store in {folder}. Set DATA_DIR to the folder of your store, or create "
            "one with `scripts/serve` or `flask --app main site add`."
        )


class CodedError(FlatthreadError):
    """An error that clients may see.

    `code` says what is wrong, `field` names the value as the caller knows it, and `params` fill
    the placeholders of the code's sentence.
    """

    code = ""

    def __init__(self, code: str = "", *, field: str = "", **params: Param) -> None:
        self.code = code or type(self).code
        self.field = field
        self.params: dict[str, Param] = params
        # For logs and tracebacks: "limit: out-of-range (minimum=1, maximum=200)".
        shown = ", ".join(f"{name}={value}" for name, value in params.items())
        named = f"{field}: {self.code}" if field else self.code
        super().__init__(f"{named} ({shown})" if shown else named)


class BadInput(CodedError):
    """A value that a caller sent is refused."""

    def __init__(self, field: str, code: str, **params: Param) -> None:
        super().__init__(code, field=field, **params)

    def about(self, field: str) -> "BadInput":
        """Return the same error about another field, by which the caller knows the value."""
        return BadInput(field, self.code, **self.params)


class BadCursor(BadInput):
    """A page cursor is damaged, forged, or belongs to another listing."""

    code = "bad-cursor"

    def __init__(self) -> None:
        super().__init__("cursor", type(self).code)


class CursorExpired(BadCursor):
    """A page cursor belongs to a ranking that is no longer kept."""

    code = "cursor-expired"


class BadLink(BadInput):
    """A link from a mail is damaged, forged, made for something else, used or expired."""

    code = "bad-link"

    def __init__(self, code: str = "") -> None:
        super().__init__("token", code)


class UnsafeAddress(BadInput):
    """The service must not send requests to this URL (`events.safe_http`)."""

    def __init__(self, code: str, **params: Param) -> None:
        super().__init__("url", code, **params)


class NotFound(CodedError):
    """`value` names nothing that this caller may see. The code says what was asked for."""

    def __init__(self, noun: str, value: str) -> None:
        super().__init__(f"{noun}-not-found", value=value)


class Forbidden(CodedError):
    """The caller has no permission."""


class Conflict(CodedError):
    """The stored state does not allow the change."""


class KeyReused(Conflict):
    """The idempotency key was used before, with other content."""

    code = "idempotency-key-reused"


class RevisionMismatch(Conflict):
    """If-Match names a revision that is no longer current."""

    code = "revision-mismatch"

    def __init__(self, expected: int, current: int) -> None:
        super().__init__(expected=expected, current=current)


class TooLarge(CodedError):
    """A body above the limit, in bytes."""

    code = "too-large"

    def __init__(self, field: str, limit: int) -> None:
        super().__init__(field=field, limit=limit)


class TooMany(CodedError):
    """A rate limit or a budget is reached. `retry_after` is the seconds until there is room."""

    code = "too-many"

    def __init__(self, code: str = "", *, retry_after: int) -> None:
        super().__init__(code, seconds=retry_after)
        self.retry_after = retry_after


class Overloaded(CodedError):
    """The store did not answer in time. The caller cannot know whether anything was stored.

    `reason` is for logs and commands. `retry_after` is in seconds.
    """

    code = "overloaded"

    def __init__(self, reason: str, *, retry_after: int = 2) -> None:
        super().__init__(seconds=retry_after)
        self.reason = reason
        self.args = (f"{self.message}: {reason}",)
        self.retry_after = retry_after


class Unchecked(CodedError):
    """A service that must check this did not answer. `retry_after` is in seconds."""

    def __init__(self, code: str, *, retry_after: int) -> None:
        super().__init__(code, seconds=retry_after)
        self.retry_after = retry_after


class Unreachable(CodedError):
    """A remote host did not answer, not in time, or not with its protocol."""
