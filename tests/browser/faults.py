"""Ways in which a server call can fail, and the widget's message for each."""

import dataclasses
import re
from collections.abc import Iterator

import playwright.sync_api as playwright

from tests.browser.conftest import Tab

CORS = {"Access-Control-Allow-Origin": "*"}


@dataclasses.dataclass(frozen=True)
class Fault:
    """A response, or none (status 0), and the widget's message for it."""

    name: str
    told: str
    status: int = 0
    body: str = ""
    content_type: str = "application/problem+json"
    headers: dict[str, str] = dataclasses.field(default_factory=dict)

    def meet(self, route: playwright.Route) -> None:
        if not self.status:
            route.abort("connectionreset")
            return
        route.fulfill(
            status=self.status,
            body=self.body,
            content_type=self.content_type,
            headers={**CORS, **self.headers},
        )


SILENT = "The server did not respond."
FAULTS = (
    Fault("cut", SILENT),
    Fault("500", "Something went wrong", 500, '{"status": 500, "code": "internal"}'),
    Fault("500 of a proxy", SILENT, 500, "<h1>Bad gateway</h1>", "text/html"),
    Fault(
        "503",
        "is busy. Try again in 7 seconds.",
        503,
        '{"status": 503, "code": "overloaded"}',
        headers={"Retry-After": "7"},
    ),
    Fault(
        "429",
        "Try again in 20 seconds.",
        429,
        '{"status": 429, "code": "too-many", "params": {"seconds": 20}}',
    ),
    Fault("not JSON", SILENT, 200, "<h1>Welcome to our hotel</h1>", "text/html"),
)


def each(tab: Tab, pattern: str | re.Pattern[str], method: str = "GET") -> Iterator[Fault]:
    """Let the calls to `pattern` fail in each way in turn, and succeed at the end."""
    tab.expected += ["net::ERR_", "responded with a status of"]
    now: list[Fault] = []

    def fail(route: playwright.Route) -> None:
        if route.request.method == method:
            now[-1].meet(route)
        else:
            route.fallback()

    tab.page.route(pattern, fail)
    for fault in FAULTS:
        now.append(fault)
        yield fault
    tab.page.unroute(pattern, fail)
