"""What a site took over from other systems, and how far that came; for its owners.

Imports are run by the command line, where the file is; here one sees whether they are done.
"""

from datetime import UTC, datetime

import flask

from comments import imports, roles
from comments.web import queries
from comments.web.desk import asked, visits

blueprint = visits.blueprint("imports")


@blueprint.get("/imports")
def show(site_id: str) -> flask.Response:
    """Every import, those that began last first."""
    visit = visits.enter(site_id, roles.Role.OWNER)
    queries.read(asked.Nothing)
    now = datetime.now(UTC)
    found = [(each, each.goes_on(now)) for each in imports.of(visit.site.id)]
    return visits.page("imports.html", visit, imports=found)
