"""Exports of Flatthread that are not trusted, as files that owners upload.

The same comments are stored as from a trusted file, but under other ids and by other authors
(`test_untrusted_import`).
"""

import dataclasses

from tests.support.importing.samples import flatthread

SANE = dataclasses.replace(
    flatthread.SANE,
    says=(
        "Left out: author ids, so authors cannot edit these comments (5)",
        "Left out: counters, which an operator can declare again (1)",
        "Left out: decisions about comments, and their reasons (1)",
        "Left out: marks of staff (1)",
        "Left out: settings, so enter them again (1)",
        "Left out: single votes, but their numbers are kept (2)",
    ),
)
CROOKED = flatthread.CROOKED
_NOT_READ = {"an origin", "a counter"}  # Settings and counters
REFUSED = {fault: each for fault, each in flatthread.REFUSED.items() if fault not in _NOT_READ}
