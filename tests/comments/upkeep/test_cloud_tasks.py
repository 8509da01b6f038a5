"""One cloud task serves many commits, and creating it does not delay requests.

A loopback server follows the API's documentation: it accepts a task for a queue by POST with a
bearer token, refuses a known name with 409 ALREADY_EXISTS, and fails when a test tells it to. The
tests send accepted tasks to the application as App Engine does.
"""

import contextlib
import http.server
import json
import re
import threading
from collections.abc import Iterator
from datetime import UTC, datetime

import flask
import flask.testing
import pytest
from google.auth.transport.requests import AuthorizedSession
from google.oauth2.credentials import Credentials

from comments import app as apps
from comments import config, errors
from comments.domain import records
from comments.events import backlog
from comments.posting import own_comment
from comments.store import connection
from comments.upkeep import cloud_tasks
from tests.comments.conftest import Clock
from tests.support import loopback_servers
from tests.support.histories import counter_oracle
from tests.support.threads import sample_threads

QUEUE = "projects/p-1/locations/europe-west1/queues/flatthread"
NAME = records.ThreadName("demo", "page")
TOKEN = "a token of the metadata server"


class Peer:
    """The Cloud Tasks API for one queue."""

    def __init__(self) -> None:
        self.url = ""
        self.tasks: dict[str, dict[str, object]] = {}
        self.answers: list[int] = []
        self.status = 0  # The status of every answer, or 0 for regular answers
        self.headers: dict[str, str] = {}
        self.may_answer = threading.Event()
        self.may_answer.set()
        self.heard = threading.Semaphore(0)

    def take(self, path: str, token: str | None, body: bytes) -> tuple[int, dict[str, object]]:
        if path != f"/v2/{QUEUE}/tasks":
            return self._error(404, "NOT_FOUND")
        if token != f"Bearer {TOKEN}":
            return self._error(401, "UNAUTHENTICATED")
        if self.status:
            return self._error(self.status, "PLANNED")
        asked = json.loads(body)
        task = asked["task"]
        is_one = (
            set(asked) <= {"task", "responseView"}
            and set(task) <= {"name", "scheduleTime", "dispatchDeadline", "appEngineHttpRequest"}
            and set(task["appEngineHttpRequest"])
            <= {"httpMethod", "relativeUri", "appEngineRouting", "headers", "body"}
            and re.fullmatch(rf"{QUEUE}/tasks/[A-Za-z0-9_-]{{1,500}}", task["name"])
            and re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", task["scheduleTime"])
            and re.fullmatch(r"/\S*", task["appEngineHttpRequest"]["relativeUri"])
        )
        if not is_one:
            return self._error(400, "INVALID_ARGUMENT")
        if task["name"] in self.tasks:
            return self._error(409, "ALREADY_EXISTS")
        self.tasks[task["name"]] = task
        return 200, task | {"createTime": task["scheduleTime"], "view": "BASIC"}

    @staticmethod
    def _error(code: int, status: str) -> tuple[int, dict[str, object]]:
        return code, {"error": {"code": code, "message": "planned", "status": status}}

    def paths(self) -> list[str]:
        """The paths that the tasks call, in order of creation."""
        return [task["appEngineHttpRequest"]["relativeUri"] for task in self.tasks.values()]


@pytest.fixture
def peer() -> Iterator[Peer]:
    """Serve the API until the test ends."""
    made = Peer()

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            made.heard.release()
            made.may_answer.wait(60)
            status, answer = made.take(self.path, self.headers["Authorization"], body)
            made.answers.append(status)
            content = json.dumps(answer).encode()
            with contextlib.suppress(OSError):
                self.send_response(status)
                for name, value in made.headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Type", "application/json; charset=UTF-8")
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

        def log_message(self, *_: object) -> None:
            """Write nothing to the log."""

    server = http.server.ThreadingHTTPServer((loopback_servers.LOOPBACK, 0), Handler)
    server.handle_error = lambda *_: None
    made.url = f"http://{loopback_servers.LOOPBACK}:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield made
    finally:
        made.may_answer.set()
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.fixture(autouse=True)
def _patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wait longer for answers than in production, because the machine may be busy."""
    monkeypatch.setattr(cloud_tasks, "WITHIN", 30.0)


def session() -> AuthorizedSession:
    made = AuthorizedSession(Credentials(TOKEN))
    made.trust_env = False
    return made


def instance(peer: Peer, clock: Clock, service: str = "") -> cloud_tasks.TaskQueue:
    """Return the task queue of one instance."""
    return cloud_tasks.TaskQueue(
        QUEUE,
        service,
        connect=session,
        now=lambda: datetime.fromtimestamp(clock.now, UTC),
        address=peer.url,
    )


@pytest.fixture
def queue(open_store: connection.Store, peer: Peer, clock: Clock) -> cloud_tasks.TaskQueue:
    """The task queue of the application's instance."""
    made = instance(peer, clock)
    backlog.ELSEWHERE.put(open_store, made)
    return made


@pytest.fixture
def client(
    queue: cloud_tasks.TaskQueue, open_store: connection.Store, site: records.Site
) -> flask.testing.FlaskClient:
    """A test client for the application on App Engine."""
    settings = config.Settings(
        secret="a secret of the tests", on_app_engine=True, tasks_queue=QUEUE
    )
    return apps.create_app(settings, open_store).test_client()


def post(client: flask.testing.FlaskClient, text: str = "text") -> str:
    answer = client.post(
        "/api/v1/sites/demo/comments?thread=page", json={"name": "Ann", "body": text}
    )
    assert answer.status_code == 201, answer.text
    assert answer.json is not None
    found: str = answer.json["comment"]["id"]
    return found


def test_a_task_delivers_a_post_before_a_sweep_would(
    client: flask.testing.FlaskClient, peer: Peer, open_store: connection.Store
) -> None:
    post(client)
    (task,) = peer.tasks.values()
    call = {"httpMethod": "GET", "relativeUri": "/tasks/deliver"}
    assert task["appEngineHttpRequest"] == call
    answer = client.get("/tasks/deliver", headers={"X-AppEngine-QueueName": "flatthread"})
    assert answer.json is not None
    assert (answer.json["delivered"], answer.json["waiting"]) == (1, 0)
    with open_store.context():
        counter_oracle.assert_all_counted()


def test_a_task_compacts_a_retraction_without_waiting_for_the_grace(
    client: flask.testing.FlaskClient,
    queue: cloud_tasks.TaskQueue,
    peer: Peer,
    open_store: connection.Store,
    site: records.Site,
) -> None:
    with open_store.context():
        row = sample_threads.post(site, "text")
        assert peer.paths() == ["/tasks/deliver"]
        own_comment.retract(
            row.id, author_id=row.author.id, revision=None, now=sample_threads.START
        )
    assert peer.paths() == ["/tasks/deliver", "/tasks/upkeep"]
    answer = client.get("/tasks/upkeep", headers={"X-AppEngine-QueueName": "flatthread"})
    assert answer.json == {"folded": 1, "cleared": 0, "waiting": 1}


def test_many_commits_within_a_span_are_one_task_that_runs_after_them(
    queue: cloud_tasks.TaskQueue, peer: Peer, clock: Clock
) -> None:
    other = instance(peer, clock)
    clock.now = 1_000.0
    for _ in range(5):
        queue.tell("event")
        other.tell("event")
    assert peer.answers == [200, 409]  # Each instance sends one request
    clock.now += 1.9
    queue.tell("event")
    assert peer.answers == [200, 409]
    clock.now += 0.1
    queue.tell("event")
    assert peer.answers == [200, 409, 200]
    assert [task["scheduleTime"] for task in peer.tasks.values()] == [
        "1970-01-01T00:16:42Z", "1970-01-01T00:16:44Z",
    ]  # fmt: skip
    # A name in use does not count as a failure, so it causes no pause.
    clock.now += 2
    other.tell("event")
    assert peer.answers == [200, 409, 200, 200]


def test_work_that_can_wait_for_cron_is_not_enqueued(
    queue: cloud_tasks.TaskQueue, peer: Peer
) -> None:
    queue.add(NAME)
    queue.add(NAME, changes=0, within=10.0)
    assert peer.answers == []
    queue.add(NAME, within=backlog.ERASE_AFTER)
    queue.add(records.SetName("list"), within=0.0)
    assert peer.paths() == ["/tasks/upkeep"]


def test_tasks_run_in_the_configured_service(peer: Peer, clock: Clock) -> None:
    instance(peer, clock, "comments").tell("event")
    (task,) = peer.tasks.values()
    assert task["appEngineHttpRequest"]["appEngineRouting"] == {"service": "comments"}


@pytest.mark.parametrize(
    ("status", "asked", "rest"),
    [
        (429, "", 30), (503, "", 30), (503, "120", 120), (429, "1", 30), (503, "99999999999", 600),
        (503, "soon", 30), (500, "", 30), (403, "", 30), (404, "", 30), (302, "", 30),
    ],
)  # fmt: skip
def test_after_a_failure_requests_pause_and_no_post_fails(
    *,
    client: flask.testing.FlaskClient,
    peer: Peer,
    clock: Clock,
    open_store: connection.Store,
    status: int,
    asked: str,
    rest: int,
) -> None:
    clock.now = 1_000.0
    peer.status = status
    peer.headers = {"Retry-After": asked} if asked else {}
    post(client)
    assert peer.answers == [status]
    peer.status = 0
    clock.now += rest - 1
    post(client)
    assert peer.answers == [status]
    clock.now += 1
    post(client)
    assert peer.answers == [status, 200]
    # The event is still in the store, and cron delivers it.
    answer = client.get("/tasks/deliver", headers={"X-AppEngine-Cron": "true"})
    assert answer.json is not None
    assert answer.json["delivered"] == 3
    with open_store.context():
        counter_oracle.assert_all_counted()


def test_a_hanging_task_service_delays_no_request(
    client: flask.testing.FlaskClient, peer: Peer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The application answers all requests before the task service answers its first request."""
    monkeypatch.setattr(cloud_tasks, "WITHIN", 0.1)
    monkeypatch.setattr(cloud_tasks, "TIMEOUT", 300.0)
    peer.may_answer.clear()
    for number in range(5):
        post(client, f"{number}")
    assert peer.heard.acquire(timeout=60)
    assert peer.answers == []
    assert not peer.heard.acquire(blocking=False)  # The queue sent only one request


def test_hanging_credentials_delay_no_request(
    open_store: connection.Store,
    site: records.Site,
    peer: Peer,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(cloud_tasks, "WITHIN", 0.1)
    may_connect = threading.Event()
    waited: list[bool] = []

    def connect() -> AuthorizedSession:
        waited.append(may_connect.wait(60))
        return session()

    moments = iter(datetime.fromtimestamp(1_000 + 100 * n, UTC) for n in range(100))
    made = cloud_tasks.TaskQueue(
        QUEUE, "", connect=connect, now=lambda: next(moments), address=peer.url
    )
    backlog.ELSEWHERE.put(open_store, made)
    with open_store.context():
        for number in range(3):  # Each post comes after the previous pause
            sample_threads.post(site, f"{number}")
    assert waited == []
    may_connect.set()
    assert peer.heard.acquire(timeout=60)


def test_an_unreachable_task_service_fails_no_request(
    open_store: connection.Store, site: records.Site, clock: Clock
) -> None:
    with loopback_servers.unused_port() as port, open_store.context():
        made = cloud_tasks.TaskQueue(
            QUEUE,
            "",
            connect=session,
            now=lambda: datetime.fromtimestamp(clock.now, UTC),
            address=f"http://{loopback_servers.LOOPBACK}:{port}",
        )
        backlog.ELSEWHERE.put(open_store, made)
        sample_threads.post(site, "text")
        assert len(counter_oracle.events()) == 1


def test_without_credentials_no_request_fails(
    open_store: connection.Store, site: records.Site, peer: Peer, caplog: pytest.LogCaptureFixture
) -> None:
    def refuse() -> AuthorizedSession:
        raise OSError("a canary")

    made = cloud_tasks.TaskQueue(QUEUE, "", connect=refuse, address=peer.url)
    backlog.ELSEWHERE.put(open_store, made)
    with open_store.context():
        sample_threads.post(site, "text")
    assert "Could not enqueue a task for /tasks/deliver; cron will do it: OSError" in caplog.text
    assert "canary" not in caplog.text


def test_an_uncommitted_change_enqueues_nothing(
    queue: cloud_tasks.TaskQueue, store: connection.Store, peer: Peer, site: records.Site
) -> None:
    with pytest.raises(errors.NotFound):
        sample_threads.post(site, "text", "a" * 26)
    assert peer.answers == []


# --- Permissions --------------------


@pytest.mark.parametrize("path", ["/tasks/deliver", "/tasks/upkeep"])
@pytest.mark.parametrize("name", ["", "default", "flatthread2", "Flatthread", QUEUE])
def test_tasks_of_another_queue_are_refused(
    client: flask.testing.FlaskClient, path: str, name: str
) -> None:
    assert client.get(path, headers={"X-AppEngine-QueueName": name}).status_code == 403


@pytest.mark.parametrize(
    "given",
    [
        {"on_app_engine": True},
        {"tasks_queue": QUEUE},
        {"tasks_queue": QUEUE, "tasks_secret": "a secret of the tasks"},
    ],
)
def test_without_a_queue_or_off_app_engine_the_queue_header_is_ignored(
    open_store: connection.Store, given: dict[str, object]
) -> None:
    settings = config.Settings(secret="a secret of the tests", **given)  # type: ignore[arg-type]
    client = apps.create_app(settings, open_store).test_client()
    for name in ("flatthread", ""):
        headers = {"X-AppEngine-QueueName": name, "X-AppEngine-TaskName": "task"}
        assert client.get("/tasks/deliver", headers=headers).status_code == 403


def test_only_app_engine_with_a_queue_enqueues(open_store: connection.Store) -> None:
    for given in ({"on_app_engine": True}, {"tasks_queue": QUEUE}):
        settings = config.Settings(secret="a secret of the tests", **given)
        apps.create_app(settings, open_store)
        assert backlog.ELSEWHERE.of(open_store) is None


def test_the_queues_full_name_is_required() -> None:
    given = {"SECRET": "0123456789abcdef", "GAE_SERVICE": "comments"}
    found = config.load(given | {"TASKS_QUEUE": QUEUE})
    assert (found.tasks_queue, found.service) == (QUEUE, "comments")
    for wrong in ("flatthread", QUEUE + "/tasks/x", QUEUE + "?x", "https://x/" + QUEUE):
        with pytest.raises(errors.Misconfigured, match=r"^TASKS_QUEUE must look like projects/"):
            config.load(given | {"TASKS_QUEUE": wrong})
