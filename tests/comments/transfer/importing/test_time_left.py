"""Estimates of the time that a task still takes, and how people read them."""

import pytest

from comments.transfer.importing import time_left


@pytest.mark.parametrize(
    ("done", "total", "elapsed", "left"),
    [
        (0, 10, 5.0, None),
        (5, 10, 0.0, None),
        (5, 10, 20.0, 20.0),
        (25, 100, 10.0, 30.0),
        (10, 10, 3.0, 0.0),
        (11, 10, 3.0, 0.0),
    ],
)
def test_the_rest_takes_as_long_as_what_is_done(
    done: int, total: int, elapsed: float, left: float | None
) -> None:
    assert time_left.seconds(done, total, elapsed) == left


@pytest.mark.parametrize(
    ("left", "said"),
    [
        (0.0, (1, "second")),
        (29.6, (30, "second")),
        (89.0, (89, "second")),
        (91.0, (2, "minute")),
        (240.0, (4, "minute")),
        (5_300.0, (88, "minute")),
        (5_400.0, (2, "hour")),
        (36_000.0, (10, "hour")),
    ],
)
def test_times_are_rounded_for_people(left: float, said: tuple[int, str]) -> None:
    assert time_left.round_seconds(left) == said


@pytest.mark.parametrize(
    ("done", "total", "percent"), [(0, 10, 0), (999, 1_000, 99), (10, 10, 100), (0, 0, 100)]
)
def test_only_a_finished_task_has_100_percent(done: int, total: int, percent: int) -> None:
    assert time_left.percent(done, total) == percent
