"""Convert rows, and the protobuf messages of rows, to records.

Times are in UTC.
"""

from datetime import UTC, datetime, timedelta
from typing import Any

from comments.domain import decoders, records, site_options
from comments.domain.counters import counting
from comments.domain.ids import sorthash
from comments.domain.moderation import reasons, staff_notices
from comments.store.models.comment_rows import CommentRow, SiteRow, ThreadRow

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def comment_state(row: CommentRow) -> counting.CountedState:
    """Return the part of a stored comment that counters need."""
    return counting.CountedState(
        site=row.site,
        thread=row.thread,
        author=row.author_id,
        status=row.status,
        listed=row.listed,
        up=row.up,
        down=row.down,
        categories=tuple(row.categories),
        day=row.created.date().isoformat(),
        reply=row.reply_to is not None,
        hour=f"{row.created.hour:02}",
    )


def state_from_message(entity: Any) -> counting.CountedState:
    """Return the part of a comment that counters need, directly from its protobuf message."""
    values = entity.properties
    created = _time(values["created"])
    return counting.CountedState(
        site=values["site"].string_value,
        thread=values["thread"].string_value,
        author=values["author_id"].string_value,
        status=values["status"].string_value,
        listed=values["listed"].boolean_value,
        up=values["up"].integer_value,
        down=values["down"].integer_value,
        categories=texts(values["categories"]),
        day=created.date().isoformat(),
        reply=bool(values["reply_to"].string_value),
        hour=f"{created.hour:02}",
    )


def texts(value: Any) -> tuple[str, ...]:
    """Return the texts in a repeated property of a protobuf message."""
    return tuple(item.string_value for item in value.array_value.values)


def parent_id(row: CommentRow) -> str | None:
    """Return the id of a comment's parent in the tree, or None for a root."""
    parent: str | None = row.parent
    return parent


def site_record(row: SiteRow) -> records.Site:
    return records.Site(
        id=row.key.id(),
        origins=tuple(row.origins),
        digits=row.digits,
        width=row.width,
        levels=row.levels or sorthash.DEFAULT_LEVELS,
        query_keys=tuple(row.query_keys),
        keep_trailing_slash=bool(row.keep_trailing_slash),
        ignore_www=bool(row.ignore_www),
        ignore_amp=bool(row.ignore_amp),
        cdn_seconds=row.cdn_seconds or 0,
        freshness=row.freshness or 0,
        categories=tuple(row.categories),
        moderators=tuple(row.moderators),
        guard=decoders.json(records.OwnPostLimits).decode(row.guard or "{}"),
        budget=decoders.json(records.Budget).decode(row.budget or "{}"),
        turnstile=decoders.json(records.Turnstile | None).decode(row.turnstile or "null"),
        options=decoders.json(site_options.SiteOptions).decode(row.options or "{}"),
        has_providers=bool(row.has_providers),
        title=row.title or "",
        alias=row.alias or "",
        moves=row.moves or 0,
        deleted=row.deleted,
        erasing=row.erasing,
        notices=staff_notices.decode(row.notices or ""),
        copy_of=row.copy_of or "",
    )


def thread_record(row: ThreadRow) -> records.Thread:
    return records.Thread(
        name=records.ThreadName(row.site, row.thread),
        title=row.title,
        url=row.url,
        state=records.ThreadState(row.state),
        child_count=row.child_count,
        categories=tuple(row.categories),
        policy=records.Policy(row.policy) if row.policy else None,
        created=row.created,
        named_by=row.named_by or "",
        own=tuple(row.own),
        pins=tuple(row.pins),
        active=row.active,
        alias=row.alias or "",
    )


def shape_of(row: ThreadRow | None) -> int:
    """Return the shape of a thread's tree."""
    return 0 if row is None else row.shape or 0


def scheme_of(row: ThreadRow | None, site: sorthash.Scheme) -> sorthash.Scheme:
    """Return the scheme of a thread's sort hashes, given its site's scheme."""
    return sorthash.decode_scheme(row.scheme) if row is not None and row.scheme else site


def comment_record(row: CommentRow) -> records.Comment:
    return records.Comment(
        id=row.key.id(),
        site=row.site,
        thread=row.thread_id,
        sort_hash=row.sort_hash,
        level=row.level,
        number=row.number,
        child_count=row.child_count,
        parent=row.parent,
        reply_to=row.reply_to,
        slug=row.slug,
        author=records.Author(
            row.author_name, row.author_website, row.author_email, row.author_id, bool(row.by_staff)
        ),
        body=row.body,
        html=row.html,
        status=records.Status(row.status),
        listed=row.listed,
        revision=row.revision,
        created=row.created,
        edited=row.edited,
        changed=row.changed,
        score=row.score,
        up=row.up,
        down=row.down,
        text_revision=row.text_revision or row.revision,
        pinned=bool(row.pinned),
        shape=row.shape or 0,
        edited_by_staff=bool(row.edited_by_staff),
    )


def case_record(row: CommentRow) -> records.Case:
    """Convert a stored comment to the record that moderators see."""
    return records.Case(
        comment=comment_record(row),
        rule=row.rule or "",
        why=row.why or "",
        stood=records.Status(row.stood) if row.stood else None,
        judged=row.judged,
        brought=row.brought or "",
        reasons=reasons.decode(row.reasons or ""),
    )


def comment_from_message(entity: Any) -> records.Comment:
    """Convert a comment's protobuf message to a record; bulk reads use this function."""
    values = entity.properties
    edited, changed = values["edited"], values["changed"]
    return records.Comment(
        id=entity.key.path[-1].name,
        site=values["site"].string_value,
        thread=values["thread_id"].string_value,
        sort_hash=values["sort_hash"].string_value,
        level=values["level"].integer_value,
        number=values["number"].integer_value,
        child_count=values["child_count"].integer_value,
        parent=values["parent"].string_value or None,
        reply_to=values["reply_to"].string_value or None,
        slug=values["slug"].string_value,
        author=records.Author(
            values["author_name"].string_value,
            values["author_website"].string_value,
            values["author_email"].string_value,
            values["author_id"].string_value,
            values["by_staff"].boolean_value,
        ),
        body=values["body"].string_value,
        html=values["html"].string_value,
        status=records.Status(values["status"].string_value),
        listed=values["listed"].boolean_value,
        revision=values["revision"].integer_value,
        created=_time(values["created"]),
        edited=_time(edited) if edited.HasField("timestamp_value") else None,
        changed=_time(changed) if changed.HasField("timestamp_value") else None,
        score=values["score"].integer_value,
        up=values["up"].integer_value,
        down=values["down"].integer_value,
        text_revision=values["text_revision"].integer_value or values["revision"].integer_value,
        pinned=values["pinned"].boolean_value,
        shape=values["shape"].integer_value,
        edited_by_staff=values["edited_by_staff"].boolean_value,
    )


def case_from_message(entity: Any) -> records.Case:
    """Convert a comment's protobuf message to the record that moderators see."""
    values = entity.properties
    stood = values["stood"].string_value
    return records.Case(
        comment=comment_from_message(entity),
        rule=values["rule"].string_value,
        why=values["why"].string_value,
        stood=records.Status(stood) if stood else None,
        judged=_time_or_none(values["judged"]),
        brought=values["brought"].string_value,
        reasons=reasons.decode(values["reasons"].string_value),
        category_terms=texts(values["category_terms"]),
    )


def projected_time(value: Any) -> datetime | None:
    """Return a datetime from a projection's microseconds, or None if the property is unset."""
    if value.WhichOneof("value_type") != "integer_value":
        return None
    return _EPOCH + timedelta(microseconds=value.integer_value)


def stored_time(message: Any, name: str) -> datetime | None:
    """Return a datetime from an entity's message, or None if the property is null or missing."""
    return _time_or_none(message.properties[name]) if name in message.properties else None


def _time(value: Any) -> datetime:
    moment: datetime = value.timestamp_value.ToDatetime(UTC)
    return moment


def _time_or_none(value: Any) -> datetime | None:
    return _time(value) if value.HasField("timestamp_value") else None
