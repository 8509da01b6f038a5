"""Read, post, vote and return in Firefox and WebKitGTK: `scripts/smoke-browsers [NAME ...]`.

The gate runs in Chromium only. This program checks that other engines run the widget at all. It
starts the service with an empty store, and prints a line for each browser.
"""

import sys
import tempfile
from pathlib import Path
from typing import Any

from tests.browser import other_browsers
from tests.browser.other_browsers import until
from tests.support import programs

BROWSERS = {"firefox": other_browsers.firefox, "webkit": other_browsers.webkit}
FIND = "return document.querySelector('#flatthread')?.shadowRoot?.querySelector(arguments[0])"
TEXT = f"{FIND}?.textContent ?? null".replace("return ", "return (") + ")"


def read_post_and_vote(browser: other_browsers.Browser, url: str, name: str) -> str:
    """Use the thread at `url` as a reader does. Return the browser's name and version."""

    def find(selector: str) -> Any:
        return until(selector, lambda: browser.run(FIND, selector))

    def shows(selector: str, text: str) -> None:
        until(f"{text!r} in {selector}", lambda: text in (browser.run(TEXT, selector) or ""))

    body = f"written in {name}"
    browser.goto(url)
    browser.type(find(".ft-input-body"), body)
    browser.type(find(".ft-input-name"), "Ada")
    browser.click(find(".ft-submit"))
    shows(".ft-aside .ft-body", body)
    # The next visitor of this browser is somebody else, who may therefore vote.
    browser.run("localStorage.clear()")
    browser.goto(f"{url}&again")
    shows(".ft-list:not(.ft-aside) .ft-body", body)
    shows(".ft-title", "comment")
    browser.click(find(".ft-vote-up"))
    shows(".ft-score", "1")
    find(".ft-votes:not([aria-disabled]) .ft-vote-up[aria-pressed=true]")
    browser.goto(url)
    find(".ft-vote-up[aria-pressed=true]")
    return str(browser.run("return navigator.userAgent"))


def main(names: list[str]) -> int:
    failed = 0
    for name in names or BROWSERS:
        with (
            tempfile.TemporaryDirectory(prefix="smoke-", ignore_cleanup_errors=True) as folder,
            programs.running(
                [*programs.FLATTHREAD, "serve"],
                environ=programs.environment(PORT="0", FLATTHREAD_DATA=f"{folder}/data"),
            ) as service,
        ):
            home_page = service.wait_for(r"answers at (http://\S+/)")[1]
            url = f"{home_page}?thread=smoke"  # A new service has comments in the thread "demo"
            home = Path(folder, "home")
            home.mkdir()
            try:
                with BROWSERS[name](home) as browser:
                    sys.stdout.write(f"{name}: passed ({read_post_and_vote(browser, url, name)})\n")
            except other_browsers.Missing as missing:
                sys.stdout.write(f"{name}: {missing} is not installed\n")
                failed += 1
            except (TimeoutError, RuntimeError) as error:
                sys.stdout.write(f"{name}: FAILED: {error}\n")
                failed += 1
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
