"""Enqueue Cloud Tasks that start delivery and compaction soon after a commit.

On App Engine, no code runs after a response, so a process cannot work through its backlog
(`backlog`). `TaskQueue` replaces the backlog; it enqueues tasks that call `/tasks/deliver` and
`/tasks/upkeep`.

Edits and retractions request the compaction of their thread, marks in a large set request the
compaction of that set, and undos of imports request their next part. Other changes wait for cron,
because compacting after each change would cost writes without benefiting readers.

This module does not use the google-cloud-tasks library, because a single POST is enough. The
library would add 33 ms and 8 MB to the start of an instance. The session of google-auth adds
nothing, because the store needs it anyway.

Correctness does not depend on the tasks: within about a minute, cron's sweep finds all work for
which no task was enqueued. No request waits longer than `WITHIN` for a task to be enqueued. After a
failure, the process enqueues no tasks for `REST` seconds, or for as long as the service requests. A
service that hangs therefore delays only one request.

Many commits share one task. A task's name consists of its path and the end of a time span of a few
seconds. The task runs at the end of the span, after all commits that any instance makes within the
span. If a task with that name already exists (409), the call counts as a success. Each instance
enqueues at most one task per path and span.
"""

import hashlib
import logging
import math
import threading
from collections.abc import Callable
from concurrent import futures
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import msgspec

from comments.events import backlog

if TYPE_CHECKING:
    from google.auth.transport.requests import AuthorizedSession

_log = logging.getLogger("flatthread")

SERVICE = "https://cloudtasks.googleapis.com"
SCOPE = "https://www.googleapis.com/auth/cloud-platform"
WITHIN = 0.5  # Maximum seconds that a request waits for a task to be enqueued.
REST = 30.0  # Seconds after a failure before the next attempt.
LONGEST_REST = 600.0
DELIVER, UPKEEP = "/tasks/deliver", "/tasks/upkeep"
SPANS = {DELIVER: 2, UPKEEP: 10}  # Length of a span in seconds; each span has one task.
TIMEOUT = 5.0  # Seconds per step of a call, which goes on after the request has stopped waiting
_OK, _EXISTS = 200, 409


class TaskQueue:
    """A queue of Cloud Tasks with the interface of a backlog. This class is thread-safe.

    Args:
        name: the queue's name, projects/PROJECT/locations/LOCATION/queues/QUEUE.
        service: the App Engine service that runs the tasks; "" for the default service.
        connect: returns a session that signs requests; called once, on first use.
        now: returns the current time.
        address: the address of the API.
    """

    def __init__(
        self,
        name: str,
        service: str,
        *,
        connect: Callable[[], "AuthorizedSession"] | None = None,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
        address: str = SERVICE,
    ) -> None:
        self._name = name
        self._service = service
        self._connect = connect or _session
        self._now = now
        self._address = address
        self._lock = threading.Lock()  # No thread blocks while it holds this lock.
        self._connecting = threading.Lock()
        self._session: AuthorizedSession | None = None
        self._asked: dict[str, int] = {}
        self._rests_until = -math.inf

    def tell(self, _event: str) -> None:
        """Request the delivery of events."""
        self._ask(DELIVER)

    def add(self, _name: backlog.Name, *, changes: int = 1, within: float = math.inf) -> None:
        """Request the compaction of a thread or list, or the next undo step, unless it can wait."""
        del changes
        if within <= backlog.ERASE_AFTER:
            self._ask(UPKEEP)

    def _ask(self, path: str) -> None:
        now = self._now().timestamp()
        end = (int(now) // SPANS[path] + 1) * SPANS[path]
        with self._lock:
            if now < self._rests_until or self._asked.get(path) == end:
                return
            self._asked[path] = end
        enqueued: futures.Future[None] = futures.Future()
        # The call runs in a thread, because a request's timeout restarts with every byte and every
        # retry.
        threading.Thread(target=self._enqueue, args=(path, end, enqueued), daemon=True).start()
        try:
            enqueued.result(timeout=WITHIN)
        except TimeoutError:
            self._rest(path, "no answer yet", REST)

    def _enqueue(self, path: str, end: int, enqueued: "futures.Future[None]") -> None:
        try:
            self._post(path, end)
        except Exception as error:  # noqa: BLE001 - cron does the work after any failure
            self._rest(path, type(error).__name__, REST)
        finally:
            enqueued.set_result(None)

    def _post(self, path: str, end: int) -> None:
        with self._connecting:
            self._session = self._session or self._connect()
        response = self._session.post(
            f"{self._address}/v2/{self._name}/tasks",
            data=msgspec.json.encode({"task": self._task(path, end)}),
            headers={"Content-Type": "application/json"},
            timeout=TIMEOUT,
            allow_redirects=False,
            stream=True,  # Only the status of the response is needed.
        )
        response.close()
        if response.status_code not in {_OK, _EXISTS}:
            asked = _seconds(response.headers.get("Retry-After", ""))
            self._rest(path, f"answered {response.status_code}", asked)

    def _task(self, path: str, end: int) -> dict[str, object]:
        # Looking up names with a common prefix is slow, so each name starts with a digest.
        digest = hashlib.sha256(f"{path} {end}".encode()).hexdigest()[:12]
        routing = {"appEngineRouting": {"service": self._service}} if self._service else {}
        return {
            "name": f"{self._name}/tasks/{digest}{path.replace('/', '-')}-{end}",
            "scheduleTime": datetime.fromtimestamp(end, UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
            "appEngineHttpRequest": {"httpMethod": "GET", "relativeUri": path, **routing},
        }

    def _rest(self, path: str, reason: str, seconds: float) -> None:
        _log.warning("Could not enqueue a task for %s; cron will do it: %s", path, reason)
        with self._lock:
            self._rests_until = self._now().timestamp() + seconds
            self._asked.pop(path, None)


def _seconds(asked: str) -> float:
    """Return the seconds in a Retry-After header, at least `REST` and at most `LONGEST_REST`."""
    if not asked.isascii() or not asked.isdecimal():
        return REST
    return min(max(REST, float(asked[:9])), LONGEST_REST)


def _session() -> "AuthorizedSession":
    # Imported with the first task, to keep cold starts fast.
    import google.auth  # noqa: PLC0415
    from google.auth.transport.requests import AuthorizedSession  # noqa: PLC0415

    credentials, _ = google.auth.default(scopes=[SCOPE])
    session = AuthorizedSession(credentials, refresh_timeout=TIMEOUT)
    session.trust_env = False
    return session
