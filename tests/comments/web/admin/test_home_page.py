"""Owners of the service add websites on the home page."""

import html

import pytest

from comments.domain import records
from comments.sites import site_settings
from tests.support.html import html_validator
from tests.support.people.console_browser import OWN, Desk


def add(desk: Desk, site: str, origin: str, status: int) -> str:
    data = {"form": desk.token, "short_name": site, "origin": origin}
    response = desk.client.post("/admin/sites", data=data, headers=OWN)
    assert response.status_code == status, response.text
    return response.headers.get("Location", "") if status == 303 else html.unescape(response.text)


def test_an_owner_adds_a_website_and_finds_its_snippet(owner: Desk, site: records.Site) -> None:
    where = add(owner, " blog ", "https://blog.example https://www.blog.example", 303)
    assert where.endswith("admin/sites/blog/imports")
    made = site_settings.get("blog")
    assert made.origins == ("https://blog.example", "https://www.blog.example")
    page = owner.client.get("/admin/sites/blog/imports").text
    assert 'src="http://localhost/widget/flatthread.js" data-site="blog"' in html.unescape(page)
    home = owner.client.get("/admin").text
    assert ">blog</a>" in home
    assert html_validator.complaints([home, page]) == [[], []]


@pytest.mark.parametrize(
    ("name", "origin", "status", "said"),
    [
        ("a b", "https://blog.example", 400, "Short name"),
        ("", "https://blog.example", 400, "Short name"),
        ("blog", "", 400, "Allowed origins is required."),
        ("blog", "https://blog.example/path", 400, "blog.example/path"),
        ("blog", "not an address", 400, "not"),
        ("demo", "https://blog.example", 409, "demo"),
    ],
)
def test_a_refused_website_is_explained_and_the_form_keeps_its_values(
    owner: Desk, site: records.Site, name: str, origin: str, status: int, said: str
) -> None:
    page = add(owner, name, origin, status)
    problem = page.partition('role="alert">')[2].partition("<")[0]
    assert said in problem
    assert f'value="{origin}"' in page
    assert [each.id for each in site_settings.every()] == ["demo"]


def test_moderators_cannot_add_websites(desk: Desk, site: records.Site) -> None:
    assert "Add website" not in desk.client.get("/admin").text
    add(desk, "blog", "https://blog.example", 403)
    assert [each.id for each in site_settings.every()] == ["demo"]
