"""Stored buckets and directories have stable formats, and directory lines are correct."""

import tracemalloc
from datetime import UTC, datetime

import msgspec
import pytest

from comments.domain.ids import sorthash
from comments.reading.materialized import buckets, merged_view

SCHEME = sorthash.Scheme()
# These stored bytes must stay readable. To change the format, increase the format number instead.
GOLDEN_BUCKET = (
    "789c9b3c6591a3e3ae449c80f10857b552668a929552a252ed94258e8e8e4ebb92700266b8ea24a0ea4540b5"
    "c93801135c6db2522d007f543177"
)
GOLDEN_CONTENT = (
    "789c9b3a71dae2125d83458e8e8b1c9d98274e62629c3409c86100124e4c13a72e7274de958213301e61aaae"
    "3d3471323e2587272e2ed635bcfe7fe19d2b0a99e1a64b010efb2f03"
)
GOLDEN_WHOLE = (
    "789c9b3171dae2125d83458e8e8b1c9d98274e62629c3409c86100124e4c13a72e7274de958213301e61aaae"
    "3d3471323e2587272e2ed635bcfe7fe19d2b0a99e1a64b272d2c5a5ca46b7860d2a48585d7fe678673354c5a"
    "5800610000cc2a3cf5"
)
# The same with the ranked discussions, which older releases did not write.
GOLDEN_LISTING = (
    "789c9b3971dae2125d83458e8e8b1c9d98274e62629c3409c86100124e4c13a72e7274de958213301e61aaae"
    "3d3471323e2587272e2ed635bcfe7fe19d2b0a99e1a64b272f2c5a5ca46b0834df1968cf81499316165efb9f"
    "19ced53069610184310100b2264063"
)

ENTRIES = [
    buckets.ListedEntry("AA", "a" * 26, 1, b'{"id":"a"}'),
    buckets.ListedEntry("AAAB", "b" * 26, 3, b'{"id":"b"}'),
    buckets.ListedEntry("AB", "c" * 26, 2, b'{"id":"c"}'),
]


def test_a_bucket_survives_encoding_and_decoding() -> None:
    assert buckets.decode_bucket(buckets.encode_bucket(ENTRIES)).entries == tuple(ENTRIES)


def test_the_format_of_a_bucket_is_stable() -> None:
    assert buckets.decode_bucket(bytes.fromhex(GOLDEN_BUCKET)).entries == tuple(ENTRIES)


def test_the_format_of_a_directory_is_stable() -> None:
    assert buckets.decode_content(bytes.fromhex(GOLDEN_CONTENT)) == CONTENT_OF


def test_a_directory_with_all_fields_survives_encoding_and_decoding() -> None:
    moment = datetime(2026, 1, 2, tzinfo=UTC)
    whole = msgspec.structs.replace(
        CONTENT_OF,
        best=buckets.RankingKeys("r", "r-1"),
        replaced=(buckets.ReplacedRanking("q", moment), buckets.ReplacedRanking("p", moment)),
    )
    assert buckets.decode_content(buckets.encode_content(whole)) == whole
    assert buckets.decode_content(bytes.fromhex(GOLDEN_WHOLE)) == whole
    listing = msgspec.structs.replace(whole, best=buckets.RankingKeys("r", "r-1", ("AC", "AA")))
    assert buckets.decode_content(buckets.encode_content(listing)) == listing
    assert buckets.decode_content(bytes.fromhex(GOLDEN_LISTING)) == listing


def test_a_line_counts_the_rows_below_each_ancestor() -> None:
    run = [
        buckets.ListedEntry(sort_hash, sort_hash, 1, b"{}")
        for sort_hash in ("AAABAC", "AAABAD", "AAAC", "AB", "ABAB", "AC")
    ]
    line = buckets.line(SCHEME, "k", run, previous="AAABAB")
    assert (line.first, line.last, line.count) == ("AAABAC", "AC", 6)
    assert line.heads == ((2, 3), (4, 2))
    assert line.roots == (("AB", 3), ("AC", 5))


def test_a_line_that_starts_a_discussion_names_it() -> None:
    run = [buckets.ListedEntry("AB", "x", 1, b"{}"), buckets.ListedEntry("ABAB", "y", 1, b"{}")]
    assert buckets.line(SCHEME, "k", run, previous="AAAB").roots == (("AB", 0),)
    assert buckets.line(SCHEME, "k", run, previous="").heads == ()


def test_a_mark_weighs_the_rows_it_adds_to_the_buckets() -> None:
    weights = {
        (json, held): merged_view.weight_of(buckets.ChangedEntry("AA", "a", 1, json, held))
        for json in (b"", b"{}")
        for held in (False, True)
    }
    assert weights == {(b"", False): 0, (b"", True): -1, (b"{}", False): 1, (b"{}", True): 0}


CONTENT_OF = buckets.DirectoryContent(
    lines=(
        buckets.BucketSummary(
            "t-0", "AA", "AB", 3, ((2, 1),), buckets.pack_roots((("AA", 0), ("AB", 2)))
        ),
    ),
    tail=(buckets.ChangedEntry("AC", "d" * 26, 1, b"{}", held=False),),
    clearing=(buckets.Clearing("d" * 26, 1, is_listed=True),),
    dead=("s-1",),
    changed=datetime(2026, 1, 2, 3, 4, 5, 678901, UTC),
)


@pytest.mark.parametrize(
    "content",
    [
        buckets.DirectoryContent(
            lines=tuple(buckets.line(SCHEME, f"{n:026}", ENTRIES, "") for n in range(900))
        ),
        buckets.DirectoryContent(
            tail=tuple(
                buckets.ChangedEntry(f"{n:04}", f"{n:026}", 1000 + n, b"j" * 600, held=False)
                for n in range(900)
            )
        ),
        buckets.DirectoryContent(
            clearing=tuple(
                buckets.Clearing(f"{n:026}", 1000 + n, is_listed=True) for n in range(900)
            )
        ),
    ],
    ids=["lines", "tail", "rows to be cleared"],
)
def test_the_weight_of_a_directory_is_about_its_memory(content: buckets.DirectoryContent) -> None:
    """A cache with a limit in bytes needs a realistic size for each item."""
    stored = buckets.encode_content(content)
    tracemalloc.start()
    try:
        read = buckets.Directory("v", stored)
        worked_out = read.rows_to_clear, read.roots, read.before, read.firsts
        taken, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(worked_out) == 4
    assert taken / 2 < read.weight < taken * 2
