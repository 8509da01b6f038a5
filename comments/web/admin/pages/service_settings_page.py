"""The settings of the service, for its owners: their values, and where these come from.

The operator of the machine sets these values in the environment or in a file, so the page only
shows them, and never shows a secret. Below them, the page lists the operations that only commands
on the machine offer (`operation_table`), and the last changes of providers and the mail server.
"""

import flask

from comments.domain.moderation import operation_table, roles
from comments.events import audit_log
from comments.store.models import comment_rows
from comments.upkeep.migrations import store_format
from comments.web.admin import site_visit
from comments.web.http import context
from comments.web.rendering import labels
from comments.web.sign_in import signed_in

blueprint = site_visit.service_blueprint("service", "service")


@blueprint.page("")
def show(_owner: object, _query: object) -> flask.Response:
    """Show the settings with their sources, and what only the machine's operator can do."""
    settings = context.settings()
    rows = [row for section in operation_table.sections().values() for row in section]
    return signed_in.page(
        "admin/service.html",
        status=200,
        version=store_format.current(),
        store=settings.where,
        listed=settings.listed,
        entries=audit_log.log(roles.SERVICE),
        is_comment=comment_rows.is_comment_id,
        is_undoable=lambda *_: False,
        subject=labels.subject,
        change=labels.change,
        visit=None,
        only=[row for row in rows if row.audience is operation_table.Audience.OPERATOR],
    )
