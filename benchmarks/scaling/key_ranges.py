"""A sorted key space that splits its busy ranges, as a distributed store does (pure).

A distributed store keeps keys in order and serves each range of keys from one machine. A range that
receives more writes than its limit is split in two, and another machine takes one half. A split
helps only if the writes of the next minute fall on both sides of the split key.

The rules of this simulation:

1. At first, there is one range.
2. Time advances in intervals. All writes of an interval go to the ranges that exist when it begins.
3. At the end of an interval, each range above the limit is split once, at the median of the
   different keys that it received. A range that received only one key cannot be split.

Real services decide differently in detail (they also move and merge ranges, and split by size).
What the simulation shows does not depend on those details: which orders of keys can be spread by
splitting, and which cannot.
"""

import bisect
from collections.abc import Iterable, Sequence

import msgspec

LIMIT = 500.0  # Writes per second to one range, as in Google's 500/50/5 rule.


class Interval(msgspec.Struct, frozen=True):
    """The writes per second of each range in one interval, in key order."""

    loads: tuple[float, ...]

    @property
    def hottest(self) -> float:
        """The load of the busiest range."""
        return max(self.loads)

    def over(self, limit: float = LIMIT) -> float:
        """The writes per second beyond what all ranges together accept."""
        return sum(max(0.0, load - limit) for load in self.loads)


class KeyRanges:
    """The ranges of one key space."""

    def __init__(self, limit: float = LIMIT) -> None:
        self._limit = limit
        self._starts = [b""]  # The first key of each range, in order.

    def __len__(self) -> int:
        return len(self._starts)

    def write(self, keys: Iterable[bytes], weight: float) -> Interval:
        """Write the keys of one interval, then split; each key counts as `weight` writes/s."""
        received: list[list[bytes]] = [[] for _ in self._starts]
        for key in keys:
            received[bisect.bisect_right(self._starts, key) - 1].append(key)
        loads = tuple(len(each) * weight for each in received)
        for each, load in zip(received, loads, strict=True):
            if load > self._limit:
                self._split(each)
        return Interval(loads)

    def _split(self, received: Sequence[bytes]) -> None:
        different = sorted(set(received))
        if len(different) > 1:
            bisect.insort(self._starts, different[len(different) // 2])


def run(intervals: Iterable[Sequence[bytes]], rate: float) -> list[Interval]:
    """Write a stream of intervals at `rate` writes per second."""
    ranges = KeyRanges()
    return [ranges.write(keys, rate / len(keys)) for keys in intervals if keys]


def ramp(intervals: Iterable[Sequence[bytes]], rates: Sequence[float]) -> list[Interval]:
    """Write a stream of intervals, each with its own rate."""
    ranges = KeyRanges()
    return [
        ranges.write(keys, rate / len(keys)) for keys, rate in zip(intervals, rates, strict=True)
    ]
