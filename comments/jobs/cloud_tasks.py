"""Cloud Tasks: on App Engine, where nothing runs after an answer, who begins what waits.

Owns the tasks that call `/tasks/deliver` and `/tasks/compact` soon after a commit. It takes the
place of the backlog of a process (`tasks`), which only a worker would empty. What must stay true:

- Nothing depends on it. What is not enqueued is found by cron's sweep, within a minute or so.
- No request fails for it, and none waits for it longer than `WITHIN` for each task. After a failure
  nobody asks for `REST` seconds, or as long as the service wants, so a service that hangs costs one
  request `WITHIN`, and the others nothing.
- Many commits are one task. A task is named by its path and the end of a span of some seconds,
  and runs then: each commit of the span was before it, on whatever instance. A name that exists
  (409) is a success, and an instance asks once for each span.

An edit or a retraction has its thread folded; so does a list that asks. Other changes can wait for
cron: folding each at once would cost writes and gain readers nothing.

Why not google-cloud-tasks: what is needed of it is one POST. Beside what the store needs anyway,
its client takes 33 ms and 8 MB of an instance that starts, and the session of google-auth none.
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
WITHIN = 0.5  # seconds that a request waits for a task to be enqueued
REST = 30.0  # seconds without an attempt after one that failed
LONGEST_REST = 600.0
DELIVER, COMPACT = "/tasks/deliver", "/tasks/compact"
SPANS = {DELIVER: 2, COMPACT: 10}  # seconds, each a task
TIMEOUT = 5.0  # seconds of each step of a call, which goes on when nobody waits for it
_OK, _EXISTS = 200, 409


class TaskQueue:
    """A queue of Cloud Tasks, in the place of a backlog. Safe for many threads.

    Args:
        name: projects/PROJECT/locations/LOCATION/queues/QUEUE.
        service: of App Engine, that runs the tasks; the default one if empty.
        connect: a session that signs requests; called once, when it is needed.
        now: the time of day.
        address: of the API.
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
        self._lock = threading.Lock()  # never held while somebody else is waited for
        self._connecting = threading.Lock()
        self._session: AuthorizedSession | None = None
        self._asked: dict[str, int] = {}
        self._rests_until = -math.inf

    def tell(self, _event: str) -> None:
        """Have events delivered soon."""
        self._ask(DELIVER)

    def add(self, _name: backlog.Name, *, changes: int = 1, within: float = math.inf) -> None:
        """Have a thread or a list folded soon, if it cannot wait for cron."""
        del changes
        if within <= backlog.ERASE_AFTER:
            self._ask(COMPACT)

    def _ask(self, path: str) -> None:
        now = self._now().timestamp()
        end = (int(now) // SPANS[path] + 1) * SPANS[path]
        with self._lock:
            if now < self._rests_until or self._asked.get(path) == end:
                return
            self._asked[path] = end
        enqueued: futures.Future[None] = futures.Future()
        # A thread, because time-outs of a request begin anew with every byte and every retry.
        threading.Thread(target=self._enqueue, args=(path, end, enqueued), daemon=True).start()
        try:
            enqueued.result(timeout=WITHIN)
        except TimeoutError:
            self._rest(path, "no answer yet", REST)

    def _enqueue(self, path: str, end: int, enqueued: "futures.Future[None]") -> None:
        try:
            self._post(path, end)
        except Exception as error:  # noqa: BLE001 - whatever it is, cron comes
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
            stream=True,  # what it says beside the status is not read
        )
        response.close()
        if response.status_code not in {_OK, _EXISTS}:
            asked = _seconds(response.headers.get("Retry-After", ""))
            self._rest(path, f"answered {response.status_code}", asked)

    def _task(self, path: str, end: int) -> dict[str, object]:
        # Names that begin alike are slow to be looked up, so they begin with a digest.
        digest = hashlib.sha256(f"{path} {end}".encode()).hexdigest()[:12]
        routing = {"appEngineRouting": {"service": self._service}} if self._service else {}
        return {
            "name": f"{self._name}/tasks/{digest}{path.replace('/', '-')}-{end}",
            "scheduleTime": datetime.fromtimestamp(end, UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
            "appEngineHttpRequest": {"httpMethod": "GET", "relativeUri": path, **routing},
        }

    def _rest(self, path: str, reason: str, seconds: float) -> None:
        _log.warning("a task for %s was not enqueued, cron will do it: %s", path, reason)
        with self._lock:
            self._rests_until = self._now().timestamp() + seconds
            self._asked.pop(path, None)


def _seconds(asked: str) -> float:
    """The rest that an answer asks for, within bounds."""
    if not asked.isascii() or not asked.isdecimal():
        return REST
    return min(max(REST, float(asked[:9])), LONGEST_REST)


def _session() -> "AuthorizedSession":
    # Imported when the first task is enqueued: a cold start pays for what it uses.
    import google.auth  # noqa: PLC0415
    from google.auth.transport.requests import AuthorizedSession  # noqa: PLC0415

    credentials, _ = google.auth.default(scopes=[SCOPE])
    session = AuthorizedSession(credentials, refresh_timeout=TIMEOUT)
    session.trust_env = False
    return session
