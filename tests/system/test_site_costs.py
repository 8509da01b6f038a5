"""The operations on websites bill what docs/costs.md says, as the engine measures it."""

import re
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta

import pytest

from comments.domain import records
from comments.sites import site_aliases, site_deletion
from comments.store import connection
from comments.transfer.uploads import site_copy, upload_steps
from comments.upkeep import scheduler, site_erasure
from datastore_emulator import inprocess, testing
from tests.support import programs
from tests.support.histories import counter_oracle
from tests.support.threads import sample_threads
from tests.system import test_cost_table

DOCS = programs.ROOT / "docs" / "costs.md"
COMMENTS, AUTHORS = 100, 4
ADA = sample_threads.ADA
NEW = "demo-staging"


def _measured(engine: inprocess.Engine) -> Iterator[str]:
    now = datetime.now(UTC)
    later = now + site_erasure.SETTLING

    def line(name: str, *steps: Callable[[], object]) -> str:
        with testing.meter(engine) as cost:
            for step in steps:
                step()
        reads = test_cost_table.Reads(cost.reads, cost.reads + cost.empty)
        return f"| {name} | {reads} | {cost.writes + cost.deletes} |"

    def copy(new: str, *, with_comments: bool) -> None:
        origins = ["https://staging.example"]
        site_copy.copy("demo", new, origins, ADA, now=now, with_comments=with_comments)

    def copy_comments() -> None:
        assert upload_steps.do_next_step(NEW, sample_threads.SETTINGS.secret)

    yield line("rename", lambda: site_aliases.rename("demo", "garden", ADA, now=now))
    yield line("staging copy", lambda: copy("other", with_comments=False))
    copy(NEW, with_comments=True)
    yield line("copying of 100 comments by 4 people", copy_comments, copy_comments)
    yield line("deletion", lambda: site_deletion.delete("demo", ADA, now=now))
    yield line("taking back", lambda: site_deletion.restore("demo", ADA, now=now))
    site_deletion.delete("demo", ADA, now=now)
    yield line(
        "erasure of 100 comments by 4 people",
        lambda: site_erasure.begin("demo", now=now),
        lambda: site_erasure.go_on("demo", now=now),
        lambda: site_erasure.go_on("demo", now=later),
    )


@pytest.mark.slow
def test_the_table_of_websites_is_what_the_meter_measures(
    store: connection.Store, engine: inprocess.Engine, site: records.Site
) -> None:
    for number in range(COMMENTS):
        author = sample_threads.author(f"reader {number % AUTHORS}")
        now = sample_threads.START + timedelta(minutes=number)
        sample_threads.post(site, f"c{number}", author=author, now=now)
    scheduler.Scheduler().deliver(counter_oracle.events())
    text = DOCS.read_text().partition("### Websites")[2].partition("\n### ")[0]
    listed = re.findall(r"^\| .* / .* \| \d+ \|$", text, re.MULTILINE)
    assert list(_measured(engine)) == listed
