"""Test server.limits: the client that a connection counts toward."""

import pytest

from server import limits


@pytest.mark.parametrize(
    ("address", "counted"),
    [
        ("203.0.113.7", "203.0.113.7"),
        ("::ffff:203.0.113.7", "203.0.113.7"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("fe80::1%eth0", "fe80::/64"),
        ("127.0.0.1", ""),
        ("127.255.0.1", ""),
        ("::1", ""),
        ("::ffff:127.0.0.1", ""),
        ("", ""),
        ("a name", ""),
    ],
)
def test_an_address_is_counted_with_its_network_and_loopback_is_not_counted(
    address: str, counted: str
) -> None:
    assert limits.peer(address) == counted
