"""What cron asks of the service: upkeep, on machines where no thread of ours outlives an answer.

A call that folded something is answered when it has cleared that too, a good minute later: nobody
else could, if the instance is gone after it.

Refused unless the request is cron's own, or a task's of our queue (`cloud_tasks`). On App Engine
that is the header `X-Appengine-Cron`, or `X-Appengine-QueueName`, which App Engine strips from
everybody else's requests; elsewhere anyone can send them, so they count for nothing there and
`TASKS_SECRET` has to be presented.

A task folds and waits for no grace: the next call of cron clears what it folded. Tasks that
waited a minute each would leave no room in the queue for those that deliver.
"""

import functools
import hmac
import logging
import time
from datetime import UTC, datetime

import flask

from comments import config, errors
from comments.jobs import scheduler, wiring
from comments.sites import usage
from comments.web.http import context

# Of 200 events each: two minutes at the slowest, of the ten that App Engine gives a call.
_MOST_SWEEPS = 20
_MOST_SECONDS = 240.0  # after which nothing is begun

_log = logging.getLogger("flatthread")
blueprint = flask.Blueprint("tasks", __name__, url_prefix="/tasks")


@blueprint.before_request
def _admit() -> None:
    settings = context.settings()
    if not (_is_cron(settings, flask.request) or _is_task(settings, flask.request)):
        raise errors.Forbidden("this is for the service's own cron")


def _is_cron(settings: config.Settings, request: flask.Request) -> bool:
    if settings.on_app_engine:
        return request.headers.get("X-Appengine-Cron") == "true"
    presented = request.headers.get("Authorization", "").encode()
    expected = f"Bearer {settings.tasks_secret}".encode()
    return bool(settings.tasks_secret) and hmac.compare_digest(presented, expected)


def _is_task(settings: config.Settings, request: flask.Request) -> bool:
    if not (settings.on_app_engine and settings.tasks_queue):
        return False
    queue = settings.tasks_queue.rpartition("/")[2]
    return request.headers.get("X-Appengine-QueueName") == queue


@blueprint.get("/fold")
def fold() -> flask.Response:
    """Answer under the name that `compact` had before; it works until 1.0."""
    _warn_of_old_name()
    return compact()


@functools.cache
def _warn_of_old_name() -> None:
    _log.warning("/tasks/fold is called /tasks/compact now: deploy cron.yaml again")


@blueprint.get("/compact")
def compact() -> flask.Response:
    """Compact changed threads and lists, and clear their flags after the grace."""
    process, names = _process(), scheduler.look()
    if _is_task(context.settings(), flask.request):
        done = process.round(names)
    else:
        done = process.visit(names, time.sleep)
    scheduler.settle(datetime.now(UTC))
    usage.settle(now=datetime.now(UTC))
    response = flask.jsonify(folded=done.folded, cleared=done.cleared, waiting=done.waiting)
    response.headers["Cache-Control"] = "no-store"
    return response


@blueprint.get("/deliver")
def deliver() -> flask.Response:
    """Deliver the events that wait and tell those outside, as many as fit one call."""
    end = time.monotonic() + _MOST_SECONDS
    delivered = failed = 0
    process = _process()
    # On App Engine no process delivers its own events, so none is left time to.
    sweep = process.sweep_fresh if context.settings().on_app_engine else process.sweep
    for _ in range(_MOST_SWEEPS):
        done = sweep()
        delivered, failed = delivered + done.delivered, failed + done.failed
        if not done.delivered or time.monotonic() >= end:
            break
    sent = process.send(end - time.monotonic())
    usage.settle(now=datetime.now(UTC))
    letters = process.waiting_letters()
    response = flask.jsonify(
        delivered=delivered,
        failed=failed,
        sent=sent.told,
        unsent=sent.failed,
        waiting=letters.events + letters.messages,
        oldest=letters.oldest,
        dead=letters.dead,
    )
    response.headers["Cache-Control"] = "no-store"
    return response


def _process() -> scheduler.Scheduler:
    settings = context.settings()
    return scheduler.of_process(
        settings.scheme, wiring.handlers(settings), wiring.channels(settings)
    )
