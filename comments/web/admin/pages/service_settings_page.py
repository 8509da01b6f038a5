"""The settings of the service, for its owners: their values, and where these come from.

The operator of the machine sets these values in the environment or in a file, so the page only
shows them, and never shows a secret. Below them, the page lists the operations that only commands
on the machine offer (`operation_table`).
"""

import flask

from comments.domain.moderation import operation_table, roles
from comments.upkeep.migrations import store_format
from comments.web.admin.form_types import form_fields
from comments.web.http import context
from comments.web.http.decode import query_strings
from comments.web.sign_in import signed_in

blueprint = flask.Blueprint("service", __name__, url_prefix="/admin/service")
signed_in.protect(blueprint)


@blueprint.get("")
def show() -> flask.Response:
    """Show the settings with their sources, and what only the machine's operator can do."""
    signed_in.require(roles.Role.OWNER, roles.SERVICE)
    query_strings.read(form_fields.EmptyQuery)
    settings = context.settings()
    rows = [row for section in operation_table.sections().values() for row in section]
    return signed_in.page(
        "admin/service.html",
        status=200,
        version=store_format.current(),
        store=settings.where,
        listed=settings.listed,
        only=[row for row in rows if row.audience is operation_table.Audience.OPERATOR],
    )
