"""No route grants access because of forged headers or an unavailable store.

The tests use the routes in `every_route`, so new routes are included. The service ignores every
header in which callers claim an identity. While the service cannot look up roles, it refuses
requests that need a role.
"""

import ast
import re

import pytest
from werkzeug.test import EnvironBuilder, run_wsgi_app

from comments.moderation import decisions
from datastore_emulator import faults
from tests.conftest import ROOT
from tests.support import datastores
from tests.support.every_route import ROWS, AllRoles, Row, path_of

pytestmark = pytest.mark.slow

# Headers in which App Engine, its tasks, its identity proxy and other proxies describe callers.
FORGED = {
    "X-Appengine-User-IP": "127.0.0.1",
    "X-Appengine-Cron": "true",
    "X-Appengine-QueueName": "flatthread",
    "X-Appengine-TaskName": "a-task",
    "X-Appengine-TaskRetryCount": "0",
    "X-AppEngine-Inbound-Appid": "flatthread",
    "X-Appengine-User-Is-Admin": "1",
    "X-CloudTasks-QueueName": "flatthread",
    "X-CloudScheduler": "true",
    "X-Goog-IAP-JWT-Assertion": "eyJhbGciOiJub25lIn0.eyJzdWIiOiIxIn0.",
    "X-Goog-Authenticated-User-Email": "accounts.google.com:owner@demo.example",
    "X-Goog-Authenticated-User-ID": "accounts.google.com:1",
    "X-Forwarded-For": "127.0.0.1, 127.0.0.1",
    "X-Forwarded-Host": "localhost",
    "X-Forwarded-User": "owner",
    "X-Remote-User": "owner",
    "Remote-User": "owner",
    "X-Real-IP": "127.0.0.1",
    "X-Original-URL": "/admin",
    "X-Rewrite-URL": "/admin",
    "X-HTTP-Method-Override": "DELETE",
    "Forwarded": "for=127.0.0.1;host=localhost;proto=https",
    "CF-Connecting-IP": "127.0.0.1",
    "True-Client-IP": "127.0.0.1",
    "X-Client-IP": "127.0.0.1",
    "X-Cluster-Client-IP": "127.0.0.1",
    "Fastly-Client-IP": "127.0.0.1",
}
# The deadline is shorter than usual, because the tests send a few hundred requests.
DEADLINE = 0.03


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.method} {row.rule}")
def test_forged_identity_headers_open_nothing(
    all_roles: AllRoles, monkeypatch: pytest.MonkeyPatch, row: Row
) -> None:
    """The caller moderates a different site where sessions count, and is anonymous elsewhere."""
    caller = "elsewhere" if row.rule.startswith("/admin") else "nobody"
    comment = all_roles.comment()
    client = all_roles.client(caller)
    for name, value in FORGED.items():
        client.environ_base[f"HTTP_{name.upper().replace('-', '_')}"] = value
    monkeypatch.setattr(all_roles, "client", lambda _: client)
    answer = all_roles.ask(row, caller, comment.id)
    assert answer.status_code == row.statuses.get(caller, row.others), answer.text
    if answer.status_code >= 400:
        assert decisions.case("demo", comment.id).comment == comment


@pytest.mark.embedded
@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.method} {row.rule}")
def test_nothing_that_needs_a_role_is_allowed_while_the_store_is_unavailable(
    all_roles: AllRoles, row: Row
) -> None:
    """Requests that need a role get 503.

    The service never grants a role that it cannot look up.
    """
    assert isinstance(all_roles.datastore, datastores.Embedded)
    engine = all_roles.datastore.engine
    comment, deadline = all_roles.comment(), all_roles.store.deadline
    nobodys = row.statuses.get("nobody", row.others)

    def fail() -> None:
        all_roles.store.deadline = DEADLINE
        rules = [{"status": "UNAVAILABLE"}]
        engine.install_faults(faults.Plan.parse({"seed": 1, "rules": rules}))

    for caller in ("author", "owner"):
        usual = row.statuses.get(caller, row.others)
        try:
            found = all_roles.ask(row, caller, comment.id, before=fail).status_code
        finally:
            engine.install_faults(None)
            all_roles.store.deadline = deadline
        # Requests that do not need the store get the same response as for anonymous callers.
        assert found == 503 or (found == usual and (usual >= 400 or usual == nobodys)), caller
    assert decisions.case("demo", comment.id).comment == comment


@pytest.mark.parametrize(
    ("method", "host"),
    [
        *((method, f"xn--{'a' * 80}") for method in ("GET", "POST", "OPTIONS")),
        *(("POST", host) for host in ("xn--", "\xe9.example", "[", "a:b:c", "a..b", "")),
    ],
)
def test_an_unreadable_host_never_causes_a_500(all_roles: AllRoles, method: str, host: str) -> None:
    for rule in sorted({row.rule for row in ROWS if not row.rule.startswith("/tasks")}):
        path, sent = path_of(rule, "a" * 26), {} if method == "POST" else None
        environ = EnvironBuilder(path, method=method, json=sent).get_environ()
        environ |= {"HTTP_HOST": host, "HTTP_ORIGIN": "https://demo.example"}
        # Bypass werkzeug's client, which fails if it cannot parse the host.
        _, status, _ = run_wsgi_app(all_roles.app, environ)
        assert int(status[:3]) < 500, rule


def test_only_one_module_reads_the_callers_address() -> None:
    """Limits, rules and votes use this module's result, so only it must ignore forgeries."""
    naming = re.compile(
        r"remote_addr|access_route|remote_user|REMOTE_|X-Forwarded(?!-Proto)|X-Real"
    )
    found = {
        str(path.relative_to(ROOT / "comments"))
        for path in (ROOT / "comments").rglob("*.py")
        if naming.search(text := path.read_text(encoding="utf-8"))
        for node in ast.walk(ast.parse(text))
        if naming.search(getattr(node, "attr", "") or str(getattr(node, "value", "")))
        and not _is_docstring(node)
    }
    # Isso's database has a column with this name, which is not imported, and the doctor sends a
    # forged header.
    others = {"transfer/formats/isso.py", "upkeep/service_checks.py"}
    assert found - others == {"web/http/context.py"}


def _is_docstring(node: ast.AST) -> bool:
    return isinstance(node, ast.Expr) or "\n" in str(getattr(node, "value", ""))
