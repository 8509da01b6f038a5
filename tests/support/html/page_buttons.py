"""Press our pages' buttons as a browser without JavaScript does."""

import html.parser
from urllib.parse import urljoin

from flask.testing import FlaskClient
from werkzeug.test import TestResponse


class _Forms(html.parser.HTMLParser):
    """A page's forms as (action, hidden fields), by their buttons' labels."""

    def __init__(self, source: str) -> None:
        super().__init__()
        self.found: dict[str, tuple[str, dict[str, str]]] = {}
        self._form: tuple[str, dict[str, str]] = ("", {})
        self._is_in_button = False
        self.feed(source)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attrs}
        if tag == "form":
            assert values["method"] == "post"
            self._form = (values["action"], {})
        if tag == "input":
            assert values["type"] in {"hidden", "checkbox"}
            # A checkbox is not checked, so a browser does not send it.
            if values["type"] == "hidden":
                self._form[1][values["name"]] = values["value"]
        self._is_in_button = tag == "button"

    def handle_data(self, data: str) -> None:
        if self._is_in_button:
            self.found[data.strip()] = self._form
            self._is_in_button = False


def buttons(source: str) -> dict[str, tuple[str, dict[str, str]]]:
    """Return the form behind each of a page's buttons as (action, fields), by label."""
    return _Forms(source).found


def press(client: FlaskClient, link: str, label: str, **checked: str) -> TestResponse:
    """Open a link and press a button on its page, with these checkboxes checked."""
    shown = client.get(link)
    assert shown.status_code == 200, shown.text
    action, fields = buttons(shown.text)[label]
    return client.post(urljoin(link, action), data=fields | checked)
