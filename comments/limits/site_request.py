"""Define the context of one request to a website: site, settings, time and sender.

The entry point creates the context once and passes it down, so lower layers need not look up the
site, the settings or the time again.
"""

import dataclasses
from datetime import datetime

from comments import config
from comments.domain import records
from comments.domain.moderation import classifier_verdicts


@dataclasses.dataclass(frozen=True, slots=True)
class SiteRequest:
    """A request to a website, with its time and sender.

    `sender` contains the network and the browser. `sender` is empty for requests that do not come
    from a browser.
    """

    site: records.Site
    settings: config.Settings
    now: datetime
    sender: classifier_verdicts.Sender = classifier_verdicts.Sender()  # noqa: RUF009 - a plain value
