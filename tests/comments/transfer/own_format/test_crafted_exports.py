"""A crafted export that an owner uploads is refused, or stored soundly and without trust."""

import json
import random
from pathlib import Path
from typing import Any

import pytest

from comments import errors
from comments.domain import records
from comments.domain.ids import author_ids
from comments.transfer.formats import flatthread
from comments.transfer.verification import import_verification
from comments.upkeep.integrity import repair
from tests.support.histories import counter_oracle
from tests.support.importing.samples import flatthread as samples
from tests.support.threads import sample_exports, sample_votes
from tests.support.threads.sample_exports import SCHEME, SECRET

IDS = [samples.id_of(letter) for letter in "abcdefgh"]
TIMES = ["0001-01-01T00:00:00Z", "2026-01-01T00:00:00+14:00", "9999-12-31T23:59:59.999999Z"]
AUTHORS = [
    {"id": "a:x", "name": "X", "staff": True},
    {"id": "g:y", "name": "Y", "email": "y@y.example"},
    {"name": "Z"},
    {},
]
OF_COMMENT: dict[str, list[Any]] = {
    "id": IDS,
    "parent": [*IDS, None],
    "reply_to": [*IDS, None],
    "thread": [samples.ROSES, samples.TULIPS],
    "number": [1, 2, 5, 7, 999_999, 1_000_000],
    "slug": ["1", "1-1", "9-9"],
    "former_slugs": [["1-1", "3"], ["9-9"]],
    "status": [each.value for each in records.Status],
    "created": TIMES,
    "edited": [*TIMES, None],
    "judged": [*TIMES, None],
    "up": [3, 10**9],
    "down": [1, 10**9],
    "votes": [{"g:v": 1}, {"a:w": -1}],
    "pinned": [True, False],
    "stood": ["approved", None],
    "rule": [records.BY_MODERATOR],
    "text": ["", "x", "<b>y</b>\n\nz", "![i](https://x.example/i.png)"],
    "markup": ["html", "markdown"],
    "page": [None, {"title": "T", "url": "https://other.example/"}, {}],
    "author": AUTHORS,
}
OF_THREAD: dict[str, list[Any]] = {
    "state": ["open", "closed"],
    "policy": ["off", "all", "closed", "read-only", None],
    "own": [["title"], ["url", "categories"], []],
    "named_by": [*IDS, ""],
    "title": ["", "T"],
    "categories": [["a"], ["a/b"], []],
    "created": TIMES,
}


def crafted(rng: random.Random) -> bytes:
    """Return the sample with some other values, each of which is valid alone."""
    lines = [json.loads(each) for each in samples.SANE.data.splitlines()][1:-1]
    changed = [each for each in lines if each["kind"] in {"comment", "thread"}]
    for _ in range(rng.randint(1, 12)):
        line = rng.choice(changed)
        values = OF_COMMENT if line["kind"] == "comment" else OF_THREAD
        name = rng.choice(list(values))
        line[name] = rng.choice(values[name])
    return samples.lines(samples.HEADER, *lines, {"kind": "end"})


@pytest.mark.parametrize("seed", range(30))
def test_a_crafted_file_is_refused_or_stored_soundly(
    garden: records.Site, tmp_path: Path, seed: int
) -> None:
    path = tmp_path / "export.jsonl"
    path.write_bytes(crafted(random.Random(seed)))
    try:
        plan = sample_exports.planned_by(flatthread.read_untrusted, path)
    except errors.BadImport:
        return
    with plan:
        assert sample_exports.write(plan).added == plan.report.comments
        assert import_verification.verify(plan, secret=SECRET).unexplained_count == 0
        assert sample_exports.write(plan).added == 0
    authors = [row.author for row in sample_exports.rows()]
    assert authors
    assert all(not each.id or each.id.startswith(author_ids.IMPORTED) for each in authors)
    assert not any(each.is_staff for each in authors)
    assert sample_votes.cast() == {}
    for thread in (samples.ROSES, samples.TULIPS):
        assert repair.find_problems(SCHEME, records.ThreadName("garden", thread)) == []
    counter_oracle.assert_counted()
