"""Test server.limits and server.holding: connection counts, and memory for responses."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from server import holding, limits


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


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 4)), max_size=40))
def test_the_held_size_counts_only_referenced_data(steps: Any) -> None:
    pieces = [b"x" * (1 << number) for number in range(5)]
    held, holders = holding.Holding(), [0] * 5
    for is_hold, number in steps:
        if is_hold:
            held.hold([pieces[number], pieces[number]])
            holders[number] += 1
        elif holders[number]:
            held.release([pieces[number], pieces[number]])
            holders[number] -= 1
        assert held.size == sum(1 << n for n, count in enumerate(holders) if count)
