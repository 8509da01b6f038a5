"""Endpoints for cron: background work on machines that run no threads between requests.

A cron call that compacts threads waits for more than a minute, then clears the compacted rows, and
only then responds, because the instance may be stopped after the response.

Only cron and tasks of the service's queue (`cloud_tasks`) may call these endpoints. On App Engine,
requests from cron and tasks have the header `X-Appengine-Cron` or `X-Appengine-QueueName`, which
App Engine strips from all other requests. On other platforms, such as Cloud Run, anyone can send
these headers, so they are ignored, and the request must present `TASKS_SECRET`. Signed Google
tokens cannot be checked here, because Cloud Run removes their signatures.

A task compacts without waiting for the grace period; the next cron call clears the rows. If each
task waited a minute, delivery tasks in the same queue would be delayed.
"""

import functools
import hmac
import time

import flask

from comments import config, errors
from comments.limits import usage
from comments.transfer.importing import import_undo
from comments.transfer.uploads import upload_steps
from comments.upkeep import scheduler, wiring
from comments.upkeep.integrity import thread_audit
from comments.web.http import context

# Maximum sweeps per call; each sweep delivers up to 200 events. All sweeps of a call together take
# at most two minutes; App Engine allows ten minutes per call.
_MOST_SWEEPS = 20
_MOST_SECONDS = 240.0  # Seconds after which a call starts no further work.

blueprint = flask.Blueprint("tasks", __name__, url_prefix="/tasks")


@blueprint.before_request
def _admit() -> None:
    settings = context.settings()
    if not (_is_cron(settings, flask.request) or _is_task(settings, flask.request)):
        raise errors.Forbidden("cron-only")


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


@blueprint.get("/upkeep")
def upkeep() -> flask.Response:
    """Count votes, compact changed threads and lists, and continue imports and undos.

    If cron makes the call, it also clears the flags of compacted rows after the grace period,
    checks some threads, and deletes expired data.
    """
    process, names = _process(), scheduler.find_due_work()
    if _is_task(context.settings(), flask.request):
        done = process.round(names)
    else:
        done = process.compact_and_clear(names, time.sleep)
        thread_audit.check_threads(context.settings().audit_reads, now=context.now())
    scheduler.continue_jobs(context.now())
    process.plan_digests()
    upload_steps.go_on(context.settings().secret, context.now)
    import_undo.finish(now=context.now())
    usage.settle(now=context.now())
    response = flask.jsonify(folded=done.compacted, cleared=done.cleared, waiting=done.waiting)
    response.headers["Cache-Control"] = "no-store"
    return response


@blueprint.get("/deliver")
def deliver() -> flask.Response:
    """Deliver pending events and send messages to external recipients, within the time limit."""
    end = time.monotonic() + _MOST_SECONDS
    delivered = failed = 0
    process = _process()
    # Without threads between requests, processes do not deliver their own events, so this call also
    # delivers events that no process has tried yet.
    sweep = process.sweep if context.settings().works_between_requests else process.sweep_fresh
    for _ in range(_MOST_SWEEPS):
        done = sweep()
        delivered, failed = delivered + done.delivered, failed + done.failed
        if not done.delivered or time.monotonic() >= end:
            break
    sent = process.send(end - time.monotonic())
    usage.settle(now=context.now())
    waiting = process.waiting_messages()
    response = flask.jsonify(
        delivered=delivered,
        failed=failed,
        sent=sent.told,
        unsent=sent.failed,
        waiting=waiting.events + waiting.messages,
        oldest=waiting.oldest,
        dead=waiting.dead,
    )
    response.headers["Cache-Control"] = "no-store"
    return response


def _process() -> scheduler.Scheduler:
    settings = context.settings()
    handlers = functools.partial(wiring.handlers, settings)
    return scheduler.of_process(handlers, wiring.channels(settings))
