"""URL converters for ids: a path with a malformed id matches no route."""

from werkzeug.routing import BaseConverter


class SiteId(BaseConverter):
    """A site's id."""

    regex = "[a-z0-9-]{1,63}"


class CommentId(BaseConverter):
    """A comment's id (see `comment_rows.is_comment_id`)."""

    regex = "[a-z2-7]{26}"
