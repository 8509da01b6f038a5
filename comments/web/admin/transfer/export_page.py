"""Download all data of a site as one file, for owners.

The compressed file is created in memory, so the site may have at most `MOST_COMMENTS` comments; the
command line exports larger sites.
"""

import contextlib
import gzip
import io
from collections.abc import Iterator

import flask

from comments import errors
from comments.domain import records
from comments.transfer.exporting import export_folder, site_contents, site_export
from comments.tree.counters import totals
from comments.web.admin import site_visit
from comments.web.admin.form_types import site_forms

blueprint = site_visit.owner_blueprint("exports")

# Compressed, 100,000 comments take about 20 MB; App Engine limits a response to 32 MB.
MOST_COMMENTS = 100_000
_EXTENSIONS = {"jsonl": ".jsonl.gz", "wxr": ".xml.gz"}


@blueprint.page("/export", site_forms.ExportQuery)
def download(visit: site_visit.Visit, query: site_forms.ExportQuery) -> flask.Response:
    """Return the export of the site, compressed with gzip.

    Raises:
        errors.Conflict: the site has too many comments.
    """
    if comments_of(visit.site.id) > MOST_COMMENTS:
        raise errors.Conflict("export-too-large", limit=MOST_COMMENTS)
    buffer = io.BytesIO()

    @contextlib.contextmanager
    def open_gzip() -> Iterator[gzip.GzipFile]:
        buffer.seek(0)
        buffer.truncate()
        with gzip.GzipFile(filename="", fileobj=buffer, mode="wb", mtime=0) as file:
            yield file

    run = site_export.SiteExport(
        visit.site.id,
        site_export.FORMATS[query.format],
        site_contents.Choices(audit_log=bool(query.audit_log) and query.format == "jsonl"),
        site_visit.settings().secret,
        visit.now,
    )
    run.write(open_gzip)
    name = export_folder.file_name(visit.site.id, _EXTENSIONS[query.format], run.now)
    response = flask.Response(buffer.getvalue(), content_type="application/gzip")
    response.headers.set("Content-Disposition", "attachment", filename=name)
    return response


def comments_of(site: str) -> int:
    """Return the number of stored comments of a site, with any status."""
    numbers = totals.of_site(site)
    return sum(numbers.get(status.value, 0) for status in records.Status)
