"""Real exports are verified after their import; the tests run only if exports are available."""

import pytest

from comments.domain import records
from comments.transfer.checking import checked_import
from comments.transfer.formats import format_registry
from comments.transfer.verification import comment_comparison, import_verification
from tests.support import optional_tools
from tests.support.threads.sample_exports import SCHEME, SECRET, rows, write

EXPORTS = {
    "disqus/benbalter-1145.xml": "disqus",
    "disqus/laisky-209.xml": "disqus",
    "disqus/evanlin-189.xml": "disqus",
    "wxr/themeunittestdata-33.xml": "wordpress",
    "other/isso-incolumitas-434.db": "isso",
    "other/remark42-176.jsonl": "remark42",
    "other/twikoo-zl88-61.json": "twikoo",
    "other/valine-leancloud-xiaoload-5.jsonl": "valine",
    "other/waline-jonie-27.json": "waline",
}


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", [name for name, system in EXPORTS.items() if system in format_registry.NAMES]
)
def test_a_real_export_is_verified(garden: records.Site, name: str) -> None:
    path = optional_tools.real_export(name)
    found = format_registry.get(EXPORTS[name])
    with checked_import.plan(
        found.read, path, site=garden, scheme=SCHEME, secret=SECRET, unit=found.unit
    ) as plan:
        write(plan)
        verified = import_verification.verify(plan)
    assert {group.reason for group in verified.differences} <= {comment_comparison.PIN_LIMIT}
    assert verified.in_store == verified.in_file
    assert verified.in_file.comments == len(rows()) > 0
