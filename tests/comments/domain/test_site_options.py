"""Test the values, defaults and limits of a site's options."""

from typing import Any

import msgspec
import pytest

from comments import errors
from comments.domain import site_options
from comments.domain.languages import catalogue
from comments.domain.site_options import SiteOptions
from comments.reading.thread_pages import ListingOrder


def test_options_change_one_by_one() -> None:
    options = site_options.change(SiteOptions(), {"votes": False})
    options = site_options.change(options, {"live": 10, "order": "best", "theme": "dark"})
    options = site_options.change(options, {"language": "en"})
    assert options == SiteOptions(votes=False, live=10, order="best", theme="dark", language="en")
    assert site_options.change(options, {"live": 0, "language": ""}).live == 0


def test_image_origins_are_kept_as_browsers_write_them() -> None:
    given = ("HTTPS://Img.example/", "https://img.example:443", "https://cdn.example:8443")
    options = site_options.change(SiteOptions(), {"images": given})
    assert options.images == ("https://img.example", "https://cdn.example:8443")


@pytest.mark.parametrize(
    ("name", "value", "code"),
    [
        ("live", 9, "zero-or-range"), ("live", 3601, "zero-or-range"),
        ("live", -1, "zero-or-range"),
        ("order", "random", "unknown-value"), ("theme", "pink", "unknown-value"),
        ("language", "tlh", "unknown-value"), ("language", "../en", "unknown-value"),
        ("images", ("http://img.example",), "not-https"),
        ("images", ("https://*.example",), "bad-origin"),
        ("images", ("https://img.example/path",), "bad-origin"),
        ("images", tuple(f"https://{n}.img.example" for n in range(21)), "too-many-items"),
    ],
)  # fmt: skip
def test_a_value_that_is_not_allowed_is_refused_by_name(name: str, value: Any, code: str) -> None:
    with pytest.raises(errors.BadInput) as refused:
        site_options.change(SiteOptions(), {name: value})
    assert (refused.value.field, refused.value.code) == (name, code)


def test_the_orders_are_those_of_listings() -> None:
    assert set(site_options.ORDERS) == set(ListingOrder)


def test_every_catalogue_is_a_language_to_choose() -> None:
    assert site_options.languages()[0] == ""
    assert "en" in catalogue.languages()
    assert set(catalogue.languages()) < set(site_options.languages())


def test_only_changed_options_are_stored() -> None:
    # A change to this form would lose every site's options.
    stored = b'{"votes":false,"images":["https://img.example"]}'
    options = SiteOptions(votes=False, images=("https://img.example",))
    assert msgspec.json.encode(options) == stored
    assert msgspec.json.decode(stored, type=SiteOptions) == options
    assert msgspec.json.encode(SiteOptions()) == b"{}"
