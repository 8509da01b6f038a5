"""Calls of the script that uploads a file to import and shows the progress of the import."""

import flask

from comments import errors
from comments.domain.moderation import roles
from comments.transfer.importing import import_journal
from comments.transfer.uploads import upload_store
from comments.upkeep import worker_threads
from comments.web.admin import site_visit
from comments.web.admin.form_types import form_fields, site_forms
from comments.web.http import problems
from comments.web.http.decode import query_strings
from comments.web.rendering import labels

blueprint = site_visit.owner_blueprint("uploads")

_TYPE = "application/octet-stream"
_DIGITS = 9


@blueprint.form("/imports/upload", site_forms.UploadForm)
def begin(visit: site_visit.Visit, sent: site_forms.UploadForm) -> flask.Response:
    """Start an upload; return its id and the length of its parts in bytes."""
    upload = upload_store.begin(
        visit.site.id,
        sent.name,
        form_fields.number("size", sent.size, _DIGITS),
        site_visit.settings().max_body,
        now=visit.now,
    )
    return flask.jsonify(upload=upload.id, part=upload.part)


@blueprint.post("/imports/part")
def receive(site_id: str) -> flask.Response:
    """Store a part of the file, which is the request's body."""
    visit = site_visit.enter(site_id, roles.Role.OWNER)
    query = query_strings.read(site_forms.UploadPartQuery)
    if flask.request.mimetype != _TYPE:
        raise problems.UnsupportedMedia(expected=_TYPE)
    data = flask.request.get_data(cache=False)
    if flask.request.content_length not in {None, len(data)}:
        raise errors.BadInput("body", "incomplete-body")
    number = form_fields.number("number", query.number)
    secret = site_visit.settings().secret
    upload_store.receive(visit.site.id, query.upload, number, data, secret=secret, now=visit.now)
    return flask.jsonify(received=number)


@blueprint.form("/imports/finish", site_forms.FinishedUploadForm)
def finish(visit: site_visit.Visit, sent: site_forms.FinishedUploadForm) -> flask.Response:
    """Let a worker check the complete file."""
    upload_store.finish(visit.site.id, sent.upload, now=visit.now)
    worker_threads.nudge_uploads()
    return flask.jsonify(state=upload_store.UploadState.CHECKING.value)


@blueprint.page("/imports/status")
def status(visit: site_visit.Visit, _query: object) -> flask.Response:
    """Return the state of the upload, and the progress of its import with the time left."""
    upload = upload_store.get(visit.site.id)
    if upload is None:
        return flask.jsonify(state="", seen=0, total=0, left="")
    running = [
        entry for entry in import_journal.recent_imports(visit.site.id) if entry.added is None
    ]
    seen = running[0].seen if running else 0
    left = labels.time_left(running[0].seconds_left) if running else ""
    return flask.jsonify(state=upload.state.value, seen=seen, total=upload.comments, left=left)
