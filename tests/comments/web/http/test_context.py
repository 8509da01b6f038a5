"""Clients cannot choose the network that their requests count for."""

import dataclasses
import logging

import flask
import pytest

from comments import config
from comments.web.http import context

SETTINGS = config.Settings(secret="a secret of the tests")


def _network(peer: str, proxies: int = 0, *, on_app_engine: bool = False, **headers: str) -> str:
    settings = dataclasses.replace(SETTINGS, trusted_proxies=proxies, on_app_engine=on_app_engine)
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    with flask.Flask("test").test_request_context(
        "/", headers=named, environ_base={"REMOTE_ADDR": peer}
    ):
        return context.network_of(settings, flask.request)


@pytest.mark.parametrize(
    "header", ["X_Forwarded_For", "X_Real_IP", "CF_Connecting_IP", "Forwarded"]
)
def test_headers_that_clients_set_are_ignored(header: str) -> None:
    assert _network("192.0.2.1", **{header: "198.51.100.9"}) == "192.0.2.1"  # type: ignore[arg-type]
    assert _network("192.0.2.1", X_Appengine_User_IP="198.51.100.9") == "192.0.2.1"


@pytest.mark.parametrize(
    "chain", ["203.0.113.5", "1.1.1.1, 203.0.113.5", "x, , 1.1.1.1,203.0.113.5"]
)
def test_behind_our_proxy_the_network_is_the_one_the_proxy_saw(chain: str) -> None:
    assert _network("10.0.0.1", 1, X_Forwarded_For=chain) == "203.0.113.5"


def test_behind_two_proxies_the_network_is_the_one_the_first_saw() -> None:
    chain = "1.1.1.1, 203.0.113.5, 10.0.0.2"
    assert _network("10.0.0.1", 2, X_Forwarded_For=chain) == "203.0.113.5"
    assert _network("10.0.0.1", 2, X_Forwarded_For="203.0.113.5") == "203.0.113.5"
    assert _network("10.0.0.1", 2) == "10.0.0.1"


def test_on_app_engine_the_network_comes_from_its_header() -> None:
    named = {"X_Appengine_User_IP": "203.0.113.5", "X_Forwarded_For": "1.1.1.1"}
    assert _network("169.254.1.1", on_app_engine=True, **named) == "203.0.113.5"  # type: ignore[arg-type]
    assert _network("169.254.1.1", on_app_engine=True) == "unknown"


def test_all_unknown_addresses_are_one_network() -> None:
    assert _network("") == _network("unix:") == "unknown"
    assert _network("2001:db8:1:2:3::4") == "2001:db8:1:2::/64"


def test_an_undeclared_proxy_causes_one_warning(caplog: pytest.LogCaptureFixture) -> None:
    context._warn.cache_clear()
    with caplog.at_level(logging.WARNING, "flatthread"):
        _network("192.0.2.1", X_Forwarded_For="198.51.100.9")
        _network("127.0.0.1", 1, X_Forwarded_For="198.51.100.9")
        _network("127.0.0.1")
        assert caplog.messages == []
        for _ in range(3):
            assert _network("127.0.0.1", X_Forwarded_For="198.51.100.9") == "127.0.0.1"
    assert caplog.messages == [
        "requests come through a proxy, but TRUSTED_PROXIES is 0: all callers share one network"
    ]
