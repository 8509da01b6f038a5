"""Laws: an import is what its file has, and any damage of one stored row is named."""

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as some

from comments.domain.ids import sorthash
from comments.sites import site_settings
from comments.store import reads
from comments.store.models import comment_rows
from comments.transfer.importing import import_writer
from comments.transfer.verification import import_verification
from tests.support import datastores
from tests.support.threads import raw_changes, sample_exports
from tests.support.threads.sample_exports import THREAD, plan_of, post, rows

LEVELS = 3
SCHEME = sorthash.Scheme(levels=LEVELS)
MOST = 25

# Each comment: the place of the answered comment (or none), its minute, its thread and its state.
Drawn = tuple[int, int, int, str]
EXPORTS = some.lists(
    some.tuples(
        some.integers(-10, MOST),
        some.integers(0, 5),
        some.integers(1, 3),
        some.sampled_from(["", "", "", "isSpam", "isDeleted"]),
    ),
    min_size=1,
    max_size=MOST,
)
TEXTS = some.text(some.characters(codec="utf-8", exclude_categories=["C"]), max_size=5)
CHANGES = {
    "status": some.sampled_from(["approved", "spam", "pending", "retracted", "broken"]),
    "body": TEXTS,
    "html": TEXTS,
    "author_name": TEXTS,
    "author_website": TEXTS,
    "author_id": TEXTS,
    "reply_to": some.none() | TEXTS,
    "up": some.integers(-1, 3),
    "down": some.integers(-1, 3),
    "score": some.integers(-1, 3),
    "cast_up": some.integers(-1, 3),
    "pinned": some.booleans(),
}


def lines(drawn: list[Drawn]) -> list[str]:
    found = [
        THREAD.replace("roses", f"page{key}").replace('id="1"', f'id="{key}"') for key in (1, 2, 3)
    ]
    for number, (above, minute, thread, state) in enumerate(drawn):
        parent = str(above) if above >= 0 else None  # Perhaps in another thread, or a cycle
        line = post(str(number), parent, minute=minute, thread=str(thread), name=f"reader {minute}")
        found.append(line.replace(f"<{state}>false", f"<{state}>true") if state else line)
    return found


@pytest.mark.slow
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
@given(drawn=EXPORTS, data=some.data())
def test_an_import_is_what_its_file_has_until_a_row_is_damaged(
    new_datastore: Callable[[], datastores.Datastore],
    tmp_path: Path,
    drawn: list[Drawn],
    data: some.DataObject,
) -> None:
    path = sample_exports.saved(tmp_path / "export.xml", *lines(drawn))
    with new_datastore().connect().context():
        site = site_settings.add(
            "garden", sample_exports.SITE.origins, scheme=SCHEME, now=sample_exports.NOW
        )
        with plan_of(path, LEVELS, site) as plan:
            import_writer.write(plan, scheme=SCHEME, now=sample_exports.NOW)
            found = import_verification.verify(plan)
            assert found.differences == ()
            assert found.in_store == found.in_file
            stored = data.draw(some.sampled_from(rows()))
            field = data.draw(some.sampled_from(sorted(CHANGES)))
            value = data.draw(CHANGES[field])
            before = reads.get(comment_rows.comment_key(stored.id))
            raw_changes.comment(stored.id, **{field: value})
            found = import_verification.verify(plan)
            is_same = (getattr(before, field) or None) == (value or None)
            assert found.unexplained_count == 0 if is_same else found.unexplained_count >= 1
            named = {each.comment for group in found.differences for each in group.examples}
            # Approved comments name their thread, so a wrong status may show there as well.
            assert named <= ({stored.id, ""} if field == "status" else {stored.id})
