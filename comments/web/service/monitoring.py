"""The service's state for load balancers and monitoring systems.

`/healthz` is open to all callers. `/metrics` and `/metrics.json` contain the numbers of `metrics`
for callers that send `Authorization: Bearer` with `METRICS_TOKEN`. Without that setting, both
answer 404.
"""

import hmac
import http
from datetime import datetime

import flask

from comments import config, errors
from comments.store import connection
from comments.store.folder import storage_faults
from comments.upkeep import metrics
from comments.upkeep.backups import nightly_backup
from comments.upkeep.integrity import thread_audit
from comments.web.http import context, problems

blueprint = flask.Blueprint("monitoring", __name__)

# Load balancers check the health every few seconds, and do not wait for as long as readers do.
_HEALTH_SECONDS = 2.0


@blueprint.get("/healthz")
def health() -> flask.Response:
    """Answer 200 if this process can read its store, otherwise 503.

    The response also contains what prevents writing, which commits are known to be lost, the
    results of the audit, and the state of the nightly backups.
    """
    settings, audit, status = context.settings(), None, 200
    fault = _writing_fault(settings)
    try:
        with connection.within(_HEALTH_SECONDS):
            audit = thread_audit.state()
    except errors.StorageFault as lasting:
        fault, status = lasting, 503
    backups = nightly_backup.state(settings, now=context.now())
    told: dict[str, object] = {"status": "ok"}
    if fault is not None:
        told |= {"status": fault.code, "folder": fault.folder}
    if (lost := connection.current().lost) is not None:
        told["lost"] = {"since": _moment(lost[0]), "until": _moment(lost[1])}
    if audit is not None:
        told["audit"] = _audit_summary(audit)
    if backups is not None:
        told["backup"] = {
            "last": _moment(backups.record.last),
            "is_overdue": backups.is_overdue,
        }
    return flask.make_response(told, status)


def _writing_fault(settings: config.Settings) -> errors.StorageFault | None:
    """Return what this process knows to be wrong with the files of an embedded store."""
    if settings.datastore != "embedded" or not settings.data_dir.exists():
        return None
    damage = connection.current().faults.damage
    return storage_faults.writing_fault(settings.data_dir) or damage


def _audit_summary(audit: thread_audit.AuditState) -> dict[str, object]:
    return {
        "checked": audit.checked,
        "skipped": audit.skipped,
        "last": _moment(audit.last),
        "with_problems": len(audit.found),
    }


def _moment(moment: datetime | None) -> str | None:
    return None if moment is None else moment.isoformat()


@blueprint.get("/metrics")
def prometheus() -> flask.Response:
    """Return the service's numbers in the text format of Prometheus."""
    return flask.Response(metrics.prometheus(_metrics()), content_type=metrics.CONTENT_TYPE)


@blueprint.get("/metrics.json")
def numbers() -> flask.Response:
    """Return the service's numbers in JSON: a list of names, values and labels."""
    return flask.jsonify(
        [{"name": m.name, "value": m.value, "labels": dict(m.labels)} for m in _metrics()]
    )


def _metrics() -> list[metrics.Metric]:
    settings = context.settings()
    if not settings.metrics_token:
        flask.abort(http.HTTPStatus.NOT_FOUND)
    scheme, _, token = flask.request.headers.get("Authorization", "").partition(" ")
    is_right = hmac.compare_digest(token.encode(), settings.metrics_token.encode())
    if scheme.lower() != "bearer" or not is_right:
        raise problems.Unauthenticated("no-token")
    with connection.within(_HEALTH_SECONDS):
        return list(metrics.collect(settings, now=context.now()))
