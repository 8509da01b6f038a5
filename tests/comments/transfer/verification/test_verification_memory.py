"""The memory of an import and of a verification does not grow with the texts (no timings)."""

import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest

from comments.domain import records
from comments.transfer.checking import import_batches
from comments.transfer.importing import import_writer
from comments.transfer.verification import import_verification
from tests.support.threads.sample_exports import NOW, SCHEME, THREAD, plan_of, post

COMMENTS = 300


@pytest.fixture
def peak() -> Callable[[Callable[[], object]], int]:
    """Return a function that runs a step and returns the most bytes that it used at a time."""

    def measured(step: Callable[[], object]) -> int:
        tracemalloc.start()
        try:
            step()
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    return measured


@pytest.mark.slow
@pytest.mark.embedded
def test_longer_texts_need_no_more_memory(
    garden: records.Site,
    export: Callable[..., Path],
    monkeypatch: pytest.MonkeyPatch,
    peak: Callable[[Callable[[], object]], int],
) -> None:
    monkeypatch.setattr(import_batches, "BATCH", 5)

    def peaks(words: int, first: int) -> tuple[int, int]:
        ids = range(first, first + COMMENTS)
        texts = (post(str(n), message=f"{n} " + "word " * words, minute=n % 60) for n in ids)
        path = export(THREAD.replace("roses", f"page{first}"), *texts)
        reading = peak(lambda: plan_of(path).__exit__())
        with plan_of(path) as plan:
            import_writer.write(plan, scheme=SCHEME, now=NOW)
            found = peak(lambda: import_verification.verify(plan))
            assert import_verification.verify(plan).differences == ()
        return reading, found

    peaks(10, 0)  # Loads modules and fills caches
    short, long = peaks(100, 10_000), peaks(1_500, 20_000)
    added = COMMENTS * 1_400 * len("word ")  # 2.1 MB more text
    for less, more in zip(short, long, strict=True):
        assert more - less < added / 4
