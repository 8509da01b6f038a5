"""A batch of an import has at most as many comments and bytes as fit into one transaction."""

from collections.abc import Callable
from pathlib import Path

import pytest

from comments.domain.text import sanitizing
from comments.transfer.checking import import_batches
from tests.support.threads.sample_exports import THREAD, plan_of, post


def test_a_batch_is_bounded_in_comments_and_in_bytes(export: Callable[..., Path]) -> None:
    many = [post(str(n)) for n in range(import_batches.BATCH + 1)]
    long = [post(f"1{n:04}", message="x" * sanitizing.MAX_HTML) for n in range(20)]
    with plan_of(export(THREAD, *many, *long)) as plan:
        batches = [thread.nodes for (thread,) in plan.batches()]
    assert max(map(len, batches)) == import_batches.BATCH
    sizes = [sum(len(each.body) + len(each.html) for each in batch) for batch in batches]
    assert max(sizes) <= import_batches.BATCH_BYTES


def test_short_threads_share_a_batch_and_a_long_thread_fills_several(
    export: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(import_batches, "BATCH", 4)
    sizes = {"1": 1, "2": 2, "3": 6, "4": 1, "5": 3}
    threads = (THREAD.replace("roses", key).replace('id="1"', f'id="{key}"') for key in sizes)
    posts = (post(f"{key}{n}", thread=key) for key, size in sizes.items() for n in range(size))
    with plan_of(export(*threads, *posts)) as plan:
        batches = [
            [(each.name.id[-1], [node.source[7:] for node in each.nodes]) for each in batch]
            for batch in plan.batches()
        ]
    assert batches == [
        [("1", ["10"]), ("2", ["20", "21"]), ("3", ["30"])],
        [("3", ["31", "32", "33", "34"])],
        [("3", ["35"]), ("4", ["40"]), ("5", ["50", "51"])],
        [("5", ["52"])],
    ]
