"""Check and import uploaded files, and copy the comments of a site to its staging copy.

`do_next_step` does one step for one upload: it checks the file, or imports it after an owner has
confirmed the report. A staging copy imports an export of the original, which the step before it
stores as if an owner had uploaded it: the copy contains the comments of one moment, whatever
interrupts the import. Each comment of the copy has a new id, derived from the original's, and keeps
its place, its author and its votes. While a process has claimed an upload, other processes leave it
alone (`upload_store`). If a process ends in the middle of a step, another process repeats the step
once the claim has expired; a repeated import adds only what is missing. If a process is suspended
for longer than its claim, it ends its step as soon as it resumes.
"""

import functools
import logging
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec

from comments import errors
from comments.domain.ids import imported_ids
from comments.domain.languages import error_texts
from comments.sites import site_settings
from comments.store import reads
from comments.transfer import import_source, personal_data
from comments.transfer.checking import checked_import
from comments.transfer.exporting import (
    export_file,
    json_lines_export,
    site_contents,
    site_export,
)
from comments.transfer.formats import format_registry
from comments.transfer.importing import import_journal, import_writer, running_import
from comments.transfer.moves import doubled_threads
from comments.transfer.own_format import site_restore
from comments.transfer.parsing import source_files
from comments.transfer.proposals import mapping_proposals
from comments.transfer.proposals.imported_pages import Proposal
from comments.transfer.uploads import upload_store, working_folder
from comments.transfer.uploads.upload_store import ProposedMapping, Upload, UploadState
from comments.transfer.verification import import_verification

_MOST_LINES = 300  # Maximum number of stored lines of a report.
_MOST_PROPOSED = 20  # Maximum number of stored proposals.
_LONGEST = 300  # Maximum number of characters of a stored reason.
# The maximum number of bytes of an unpacked file. Exports shrink to about a tenth when packed.
_MOST_UNPACKED = 10 * upload_store.MOST_BYTES
_RENEW = timedelta(seconds=15)  # A claim is extended at most this often.

_log = logging.getLogger("flatthread")

Clock = Callable[[], datetime]


def _now() -> datetime:
    return datetime.now(UTC)


class Stopped(Exception):
    """The process is ending; another process will continue the upload."""


def go_on(secret: str, now: Clock, is_open: Callable[[], bool] = lambda: True) -> int:
    """Work on all uploads that no other process works on, and delete old uploads and copies.

    Return the number of finished steps.
    """
    done = 0
    try:
        working_folder.remove_leftovers()
        for site in filter(site_settings.is_active, upload_store.waiting_sites(now())):
            while do_next_step(site, secret, clock=now, is_open=is_open):
                done += 1  # The import of a copy follows its export at once.
        upload_store.expire(now())
    except Stopped:
        pass
    except errors.Overloaded as error:
        _log.warning("Working on an uploaded file failed and will be retried: %s", error)
    except Exception:  # noqa: BLE001 - the next round tries again
        _log.exception("Working on an uploaded file failed and will be retried")
    return done


def do_next_step(
    site: str, secret: str, *, clock: Clock = _now, is_open: Callable[[], bool] = lambda: True
) -> bool:
    """Do the next step of a site's upload; return False if there is none, or it is claimed.

    `is_open` is called between batches; when it returns False, the step stops.

    Raises:
        Stopped: `is_open` returned False.
        errors.Overloaded: the store is busy; the step can be repeated once the claim has expired.
    """
    upload = upload_store.claim(site, clock())
    if upload is None:
        return False
    try:
        _do_step(upload, secret, _Claim(upload, clock, is_open))
    except upload_store.ClaimLost:
        _log.info("The import of an uploaded file goes on in another process, or was discarded.")
    return True


def _do_step(upload: Upload, secret: str, claim: "_Claim") -> None:
    step = _STEPS[upload.state]
    with working_folder.create() as folder:
        try:
            path = upload_store.copy(upload, folder, secret, claim.now)
            with source_files.watching(_MOST_UNPACKED, claim.renew):
                step(upload, path, secret, claim)
        except errors.UnknownFormat:
            _refuse(upload, claim, failure=upload_store.Failure.FORMAT)
        except errors.UndoRunning:
            _postpone(upload, claim)
        except (
            errors.BadImport, errors.ImportRefused, errors.ExportFailed, errors.NotFound,
        ) as error:  # fmt: skip
            _refuse(upload, claim, problem=error_texts.sentence(error).replace(f"{folder}/", ""))
        except errors.BadLink:
            _refuse(upload, claim, failure=upload_store.Failure.SECRET)
        except (Stopped, errors.Overloaded, upload_store.ClaimLost):
            raise
        except Exception:
            _refuse(upload, claim, failure=upload_store.Failure.ERROR)
            raise


def _refuse(upload: Upload, claim: "_Claim", **reason: str) -> None:
    upload_store.end(upload, now=claim.now(), state=UploadState.REFUSED, **reason)


def _postpone(upload: Upload, claim: "_Claim") -> None:
    """Keep a file whose import was confirmed while an undo is running."""
    checked, undoing = UploadState.CHECKED, upload_store.Failure.UNDOING
    upload_store.record(upload, now=claim.now(), state=checked, failure=undoing)


class _Claim:
    """A claimed upload; its claim is extended while the work continues."""

    def __init__(self, upload: Upload, clock: Clock, is_open: Callable[[], bool]) -> None:
        self._upload = upload
        self.now = clock
        self._is_open = is_open
        self._renewed = clock()

    def renew(self, _done: int = 0) -> None:
        """Extend the claim; if the process is stopping, end the claim and raise `Stopped`."""
        if not self._is_open():
            upload_store.record(self._upload, now=self.now())
            raise Stopped
        now = self.now()
        if now - self._renewed >= _RENEW:
            self._renewed = now
            upload_store.renew(self._upload, now=now)


def _check(upload: Upload, path: Path, secret: str, claim: _Claim) -> None:
    file_format = format_registry.recognize(path)
    with _plan(file_format, upload, path, secret, claim) as plan:
        problem = failure = ""
        try:
            import_writer.check(plan, claim.renew)
        except errors.UndoRunning:
            failure = upload_store.Failure.UNDOING
        except errors.BadImport as error:  # Another mapping may help, so the file is kept.
            problem = error_texts.sentence(error).replace(str(path), upload.name)
        lines = plan.report.lines()
        report = tuple(line.replace(str(path), upload.name) for line in lines)[:_MOST_LINES]
        site = site_settings.get(upload.site)
        proposals = mapping_proposals.propose(plan.threads, site, plan.report.empty_pages)
        proposed = (
            _earlier_mappings(upload, file_format.name)
            if problem
            else _proposed_mappings(proposals)
        )
        upload_store.record(
            upload,
            now=claim.now(),
            state=UploadState.CHECKED,
            system=file_format.name,
            comments=plan.report.comments,
            report=report,
            problem=problem,
            failure=failure,
            proposed=proposed,
        )


def _earlier_mappings(upload: Upload, system: str) -> tuple[ProposedMapping, ...]:
    """Return the page mappings of the latest import from the same system; empty if it had none."""
    for earlier in import_journal.recent_imports(upload.site):
        if earlier.system == system and earlier.undone is None:
            return tuple(ProposedMapping(text, "", earlier.file) for text in earlier.mapping)
    return ()


def _proposed_mappings(proposals: Sequence[Proposal]) -> tuple[ProposedMapping, ...]:
    """Return proposals with a mapping, then those without one, up to a maximum number of each."""
    with_mapping = [proposal for proposal in proposals if proposal.mapping][:_MOST_PROPOSED]
    without = [proposal for proposal in proposals if not proposal.mapping][:_MOST_PROPOSED]
    return tuple(
        ProposedMapping(proposal.mapping, proposal.reason[:_LONGEST])
        for proposal in (*with_mapping, *without)
    )


def _export(upload: Upload, path: Path, secret: str, claim: _Claim) -> None:
    """Store an export of the original, without addresses."""
    site_settings.get(upload.source)  # A deleted site is not copied.
    term = timedelta(seconds=reads.LONGEST) + upload_store.CLAIM
    upload_store.renew(upload, now=claim.now(), term=term)
    writer, choices = json_lines_export.write, site_contents.Choices()
    run = site_export.SiteExport(upload.source, writer, choices, secret, claim.now())
    exported = run.write(lambda: export_file.create(path))
    with path.open("rb") as file:
        upload_store.store(
            upload, file, secret, claim.now,
            state=UploadState.IMPORTING, comments=exported.comments,
        )  # fmt: skip


def _import(upload: Upload, path: Path, secret: str, claim: _Claim) -> None:
    file_format = format_registry.get(upload.system)
    with _plan(file_format, upload, path, secret, claim) as plan:
        scheme = site_settings.get(upload.site).scheme
        import_writer.check(plan, claim.renew)
        summary = import_writer.write(
            plan,
            scheme=scheme,
            now=claim.now(),
            progress=claim.renew,
            clock=claim.now,
            prepare=functools.partial(_declare_counters, path, claim) if upload.source else None,
        )
        if upload.source:
            _retract_again(upload, claim)
        verified = import_verification.verify(plan, secret=secret, progress=claim.renew)
    if not upload.source:
        doubled_threads.begin(upload.site, now=claim.now())
    upload_store.end(
        upload,
        now=claim.now(),
        state=UploadState.DONE,
        added=summary.added,
        present=summary.present,
        explained=verified.explained_count,
        unexplained=verified.unexplained_count,
    )


def _declare_counters(path: Path, claim: _Claim, journal: running_import.RunningImport) -> None:
    site_restore.declare_counters(journal, site_restore.read(path), now=claim.now())


def _retract_again(upload: Upload, claim: _Claim) -> None:
    """Retract the comments that people retracted from the original after the export."""
    for comment_id in personal_data.retracted_comments(upload.source):
        claim.renew()
        copied = imported_ids.comment_id(upload.site, imported_ids.OWN, comment_id)
        personal_data.retract_again(copied, claim.now())


_STEPS = {
    UploadState.CHECKING: _check,
    UploadState.COPYING: _export,
    UploadState.IMPORTING: _import,
}


def _plan(
    found: format_registry.Format, upload: Upload, path: Path, secret: str, claim: _Claim
) -> checked_import.CheckedImport:
    site = site_settings.get(upload.site)

    def read(path: Path) -> Iterator[import_source.Item]:
        for item in (found.read if upload.source else found.read_untrusted)(path):
            claim.renew()
            if upload.source and isinstance(item, import_source.SourceThread):
                # The ids belong to the original, even if it loses a comment in the meantime.
                yield msgspec.structs.replace(item, keeps_ids=False)
            else:
                yield item

    return checked_import.plan(
        read,
        path,
        site=site,
        scheme=site.scheme,
        secret=secret,
        unit=found.unit,
        mapping=upload.mapping,
    )
