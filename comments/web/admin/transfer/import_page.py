"""The data of a site: imports with their upload and report, exports, backups, and erasures.

A script (`widget/pages/console/upload.js`) sends the file in parts to `upload_calls`. All other
parts of the page work without a script.
"""

from collections.abc import Sequence

import flask

from comments import errors
from comments.events import audit_log
from comments.sites import site_deletion, site_setup
from comments.transfer.checking import page_mapping
from comments.transfer.formats import format_registry
from comments.transfer.importing import import_journal
from comments.transfer.uploads import upload_store
from comments.upkeep import service_checks, worker_threads
from comments.web.admin import site_visit
from comments.web.admin.form_types import site_forms
from comments.web.admin.transfer import export_page
from comments.web.rendering import labels
from comments.web.sign_in import signed_in

blueprint = site_visit.owner_blueprint("imports")

_MEGABYTE = 1_000_000


@blueprint.page("/imports")
def show(visit: site_visit.Visit, _query: object) -> flask.Response:
    """Show the upload, and list all imports, starting with the newest."""
    return _page(visit)


@blueprint.form("/imports", site_forms.UploadDecisionForm)
def decide(visit: site_visit.Visit, sent: site_forms.UploadDecisionForm) -> flask.Response:
    """Import the checked file, check it again with other page mappings, or discard it.

    If the owner has already decided in another window, show the state of the upload.
    """
    site, mapping = visit.site, tuple(sent.mapping.split())
    if sent.act == "check":
        try:
            page_mapping.PageMapping(mapping, site.origins)
        except errors.ImportRefused as error:
            return _page(visit, labels.problem(error), sent.mapping)
    if sent.act == "import" and _mapping(site.id, sent.upload) not in {None, mapping}:
        return _page(visit, labels.text("admin.imports-unchecked"), sent.mapping)
    try:
        _carry_out(visit, sent.act, sent.upload, mapping)
    except errors.Conflict:
        return site_visit.redirect_with_notice(visit, "imports", "changed")
    worker_threads.nudge_uploads()
    return signed_in.redirect_to(f"admin/sites/{site.id}/imports")


def _mapping(site: str, upload_id: str) -> tuple[str, ...] | None:
    """Return the page mappings with which a file was checked; None if the upload was replaced."""
    upload = upload_store.get(site)
    return None if upload is None or upload.id != upload_id else upload.mapping


def _carry_out(visit: site_visit.Visit, act: str, upload: str, mapping: tuple[str, ...]) -> None:
    site, now = visit.site.id, visit.now
    if act == "discard":
        upload_store.discard(site, upload)
    elif act == "check":
        upload_store.check_again(site, upload, mapping, now=now)
    else:
        by = audit_log.Act(visit.account.actor, "import")
        upload_store.confirm(site, upload, by, now=now)
        if site_setup.get(site).first is not None:  # The import was the last step.
            site_setup.finish(site)


def _page(visit: site_visit.Visit, problem: str = "", mapping: str = "") -> flask.Response:
    """Show the page; after an invalid mapping, also show the problem with this mapping."""
    now = visit.now
    imports = import_journal.recent_imports(visit.site.id)
    response = site_visit.page(
        "imports.html",
        visit,
        imports=[
            (entry, entry.may_still_run(now), entry.undoing is None and entry.can_be_undone(now))
            for entry in imports
        ],
        is_undoing=any(entry.is_being_undone for entry in imports),
        upload=_upload_to_show(upload_store.get(visit.site.id), imports),
        problem=problem,
        mapping=mapping,
        titles={entry.name: entry.title for entry in format_registry.FORMATS},
        uploadable=[entry.title for entry in format_registry.FORMATS],
        exports=export_page.comments_of(visit.site.id) <= export_page.MOST_COMMENTS,
        days=site_deletion.TERM.days,
        backups=service_checks.backup_findings(site_visit.settings(), now),
        most_exported=export_page.MOST_COMMENTS,
        most_bytes=upload_store.MOST_BYTES,
        most_megabytes=upload_store.MOST_BYTES // _MEGABYTE,
    )
    response.status_code = 400 if problem else 200
    return response


def _upload_to_show(
    upload: upload_store.Upload | None, imports: Sequence[import_journal.Import]
) -> upload_store.Upload | None:
    """Return the upload; None if its import is complete and an undo has begun since."""
    if upload is None or upload.state is not upload_store.UploadState.DONE:
        return upload
    undone = (entry.undoing for entry in imports if entry.undoing is not None)
    return None if any(moment > upload.at for moment in undone) else upload
