"""The imports of a site and their progress, for owners.

Imports are started on the command line, on the machine with the file.
"""

from datetime import UTC, datetime

import flask

from comments.domain import roles
from comments.jobs.importers import import_journal
from comments.web.admin import admin_queries, site_visit
from comments.web.http.decode import query_strings

blueprint = site_visit.blueprint("imports")


@blueprint.get("/imports")
def show(site_id: str) -> flask.Response:
    """List all imports, newest first."""
    visit = site_visit.enter(site_id, roles.Role.OWNER)
    query_strings.read(admin_queries.EmptyQuery)
    now = datetime.now(UTC)
    found = [(each, each.goes_on(now)) for each in import_journal.of(visit.site.id)]
    return site_visit.page("imports.html", visit, imports=found)
