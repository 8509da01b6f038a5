"""Run a real OpenID Connect provider as a process, for browser tests (tests/provider).

Like the service in these tests, the provider has a localhost name (RFC 6761), which Chromium treats
as secure without HTTPS. The website uses an IP address, so all three are different sites.
"""

import contextlib
import json
import shutil
from collections.abc import Iterator

from comments.accounts.oidc import providers
from comments.events import safe_http
from tests.support import loopback_servers, optional_tools, programs
from tests.support.people.account_holders import SECRET, here

FOLDER = programs.ROOT / "tests" / "provider"
HOST = "provider.localhost"
CLIENT, CLIENT_SECRET = "flatthread", "a client's secret: 100% + more"


@contextlib.contextmanager
def answering(redirect: str) -> Iterator[str]:
    """Run the provider for a client with this redirect URI; yield its issuer."""
    node = shutil.which("node") or shutil.which("nodejs")
    optional_tools.require(
        node and (FOLDER / "node_modules").is_dir(),
        "no OpenID Connect provider: scripts/test without arguments installs it, given npm",
    )
    told = {"host": HOST, "client": CLIENT, "secret": CLIENT_SECRET, "redirect": redirect}
    command = [str(node), "--no-warnings", "server.mjs", json.dumps(told)]
    with programs.running(command, environ=programs.environment(), cwd=FOLDER) as program:
        yield program.wait_for(r"answers at (http://\S+)")[1]


def reaching(issuer: str) -> safe_http.HttpClient:
    """Return an HTTP client that may connect to the provider."""
    return loopback_servers.client(
        int(issuer.rpartition(":")[2]), limits=safe_http.RequestLimits(total=60.0)
    )


def register(issuer: str, *, at_desk: bool) -> None:
    """Register the provider with the service and offer it to readers of "demo"."""
    given = providers.Registration("acme", "Acme", issuer, CLIENT, CLIENT_SECRET)
    providers.add(providers.make(given, SECRET, now=here()))
    providers.offer("acme", ("demo",), at_desk=at_desk)
