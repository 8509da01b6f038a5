"""Wait in a tab until the page has sent the requests that a test holds back.

Playwright calls a test's functions for routes only while the test waits for the tab.
"""

from collections.abc import Sequence

import playwright.sync_api as playwright

from tests.browser.conftest import PATIENCE

_STEP = 20  # Milliseconds


def wait_until_sent(page: playwright.Page, held: Sequence[playwright.Route]) -> None:
    """Wait until a held request exists."""
    for _ in range(PATIENCE // _STEP):
        if held:
            return
        page.wait_for_timeout(_STEP)
    raise TimeoutError("the page has not sent the request")
