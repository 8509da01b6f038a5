"""A process's cache limits its bytes and the age of its items, and it counts its bytes exactly."""

import sys
import threading
from collections import OrderedDict

import pytest
from hypothesis import given
from hypothesis import strategies as st

from comments.store.memory import caches

MOST = 100
STEPS = st.tuples(st.sampled_from(("keep", "get", "drop")), st.integers(0, 5), st.integers(0, 120))


@given(st.lists(STEPS, max_size=40))
def test_a_cache_keeps_the_most_recently_used_values_up_to_its_bytes(
    steps: list[tuple[str, int, int]],
) -> None:
    cache = caches.Cache[int, int](MOST)
    expected: OrderedDict[int, int] = OrderedDict()
    for verb, key, size in steps:
        if verb == "get":
            assert cache.get(key) == expected.get(key)
            if key in expected:
                expected.move_to_end(key)
            continue
        expected.pop(key, None)
        if verb == "drop":
            cache.drop(key)
            continue
        cache.keep(key, size, size)
        if size <= MOST:
            expected[key] = size
        while sum(expected.values()) > MOST:
            expected.popitem(last=False)
        assert cache.size == sum(expected.values())
    assert {key: cache.get(key) for key in range(6)} == {key: expected.get(key) for key in range(6)}


def test_concurrent_use_leaves_the_byte_count_right() -> None:
    cache, before = caches.Cache[int, int](MOST), sys.getswitchinterval()

    def use(number: int) -> None:
        for step in range(2_000):
            cache.keep((number + step) % 7, step, 1 + step % 40)
            cache.get(step % 7)
            cache.drop((number * step) % 7)

    threads = [threading.Thread(target=use, args=(number,)) for number in range(8)]
    sys.setswitchinterval(1e-6)
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(before)
    assert 0 <= cache.size <= MOST
    for key in range(7):
        cache.drop(key)
    assert cache.size == 0


def test_a_value_that_is_too_old_is_not_returned(monkeypatch: pytest.MonkeyPatch) -> None:
    moment = 1_000.0
    monkeypatch.setattr(caches.time, "monotonic", lambda: moment)  # type: ignore[attr-defined]
    cache = caches.Cache[str, str](MOST, 60.0)
    cache.keep("key", "value")
    moment += 60
    assert cache.get("key") == "value"
    assert cache.get("key", within=59) is None
    moment += 1
    assert cache.get("key") is None


def test_a_value_read_before_a_drop_is_not_stored_after_it() -> None:
    cache = caches.Cache[str, str](MOST)
    drops = cache.drops
    cache.drop("key")
    cache.keep("key", "of before", drops=drops)
    assert cache.get("key") is None
    cache.keep("key", "of after", drops=cache.drops)
    assert cache.get("key") == "of after"
