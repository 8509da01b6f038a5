"""Addresses map to networks, and the networks' keyed hashes reveal nothing."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from comments.domain.crypto import client_networks


@pytest.mark.parametrize(
    ("address", "network"),
    [
        ("192.0.2.1", "192.0.2.1"),
        ("192.0.2.1:4711", "192.0.2.1"),
        (" 192.0.2.1 ", "192.0.2.1"),
        ("::ffff:192.0.2.1", "192.0.2.1"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("2001:DB8:1:2::", "2001:db8:1:2::/64"),
        ("[2001:db8:1:2::9]:443", "2001:db8:1:2::/64"),
        ("fe80::1%eth0", "fe80::/64"),
        ("", "unknown"),
        ("unknown", "unknown"),
        ("_hidden", "unknown"),
        ("192.0.2.1, 192.0.2.2", "unknown"),
        ("192.0.2.256", "unknown"),
        ("[", "unknown"),
    ],
)
def test_an_address_belongs_to_one_network(address: str, network: str) -> None:
    assert client_networks.of(address) == network


@given(st.text(max_size=60))
def test_any_text_maps_to_a_network(address: str) -> None:
    found = client_networks.of(address)
    assert found == client_networks.UNKNOWN or client_networks.of(found.partition("/")[0]) == found
    assert client_networks.is_inside(found) in {True, False}


@given(st.ip_addresses(v=6), st.integers(0, 2**64 - 1))
def test_a_whole_64_is_one_network(address: object, other: int) -> None:
    number = int(address)  # type: ignore[call-overload]
    moved = (number >> 64 << 64) + other
    one, two = (client_networks.of(str(type(address)(each))) for each in (number, moved))  # type: ignore[call-arg]
    assert one == two or number >> 32 == 0xFFFF or moved >> 32 == 0xFFFF


def test_the_digest_of_a_network_is_stable_and_for_one_purpose() -> None:
    assert client_networks.digest("secret", "votes", "192.0.2.1") == "iwtqk7e73ftpvsr7u2r3evh4ui"
    made = {
        client_networks.digest(*each)
        for each in [
            ("secret", "votes", "192.0.2.1"),
            ("secret", "votes", "192.0.2.2"),
            ("secret", "other", "192.0.2.1"),
            ("other", "votes", "192.0.2.1"),
        ]
    }
    assert len(made) == 4


@pytest.mark.parametrize(
    ("network", "around", "area"),
    [
        ("192.0.2.1", (), "192.0.0.0/16"),
        (
            "2001:db8:1:2ff::/64",
            (("2001:db8:1:200::/56", 4), ("2001:db8:1::/48", 16)),
            "2001:db8::/32",
        ),
        (client_networks.UNKNOWN, (), client_networks.UNKNOWN),
    ],
)
def test_a_network_lies_in_wider_ones(network: str, around: object, area: str) -> None:
    assert client_networks.around(network) == around
    assert client_networks.area(network) == area
