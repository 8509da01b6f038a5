"""Post the comments of a new service: a short thread that the demo page and the examples show."""

from datetime import datetime

from comments import config
from comments.domain import records
from comments.domain.languages import catalogue
from comments.limits import post_limits
from comments.limits.site_request import SiteRequest
from comments.posting import admission, new_comment

THREAD = "demo"
# Each comment: the key of its text, its author, and the number of the comment that it answers.
_COMMENTS = (
    ("examples.sample-welcome", "Robin", None),
    ("examples.sample-nesting", "Kim", 0),
    ("examples.sample-order", "Robin", 1),
    ("examples.sample-formatting", "Sam", None),
)


def post(site: records.Site, settings: config.Settings, *, now: datetime) -> None:
    """Post the sample comments, without the checks and limits that keep bots out."""
    request = SiteRequest(post_limits.without_limits(site), settings, now)
    ids: list[str] = []
    for key, name, answered in _COMMENTS:
        parent = None if answered is None else ids[answered]
        body = catalogue.ENGLISH.text(key)
        sent = admission.Submission(THREAD, parent, records.Author(name), body)
        ids.append(new_comment.post(sent, request).comment.id)
