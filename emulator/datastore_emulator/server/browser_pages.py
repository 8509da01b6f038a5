"""The data browser's pages: kinds, entities with their index entries, and indexes.

Owns the HTML. The pages only read data, need no scripts and load no resources; the headers of
`http_server` forbid scripts and resources.

The function `_text` escapes all stored text, writes unprintable characters as numbers, and keeps
right-to-left text from reordering the text around it.
"""

from __future__ import annotations

import base64
import binascii
import datetime as dt
import html
import urllib.parse
from collections.abc import Callable, Iterable
from http import HTTPStatus

from datastore_emulator import engine as engines
from datastore_emulator import protobufs
from datastore_emulator.encoding import indexes, keys
from datastore_emulator.server import browser_styles, data_browser, http_server

HTML = "text/html; charset=utf-8"
_PREVIEW = 80  # Maximum number of characters of a value in a list.
_BLOB_PREVIEW = 64  # Maximum number of bytes.
_COLUMNS = 4  # Number of properties that a list shows for each entity.


def answer(engine: engines.Engine, request: http_server.Request) -> http_server.Response:
    """Answer a page request."""
    make = _PAGES.get(request.path)
    if make is None:
        raise http_server.BadRequest(f"There is no {request.path}.", HTTPStatus.NOT_FOUND)
    title, body, status = make(engine, request)
    return http_server.Response(_page(title, body).encode(), status, HTML)


_Made = tuple[str, str, int]


def _home(engine: engines.Engine, _request: http_server.Request) -> _Made:
    with engine.storage.read() as snapshot:
        kinds = data_browser.kinds(snapshot)
    by_partition: dict[keys.Partition, list[data_browser.Kind]] = {}
    for kind in kinds:
        by_partition.setdefault(kind.partition, []).append(kind)
    parts = [
        _section(
            _partition(partition),
            _table(
                ("Kind", "Entities"),
                ((_kind_link(partition, kind.name), _number(kind.entities)) for kind in listed),
            ),
        )
        for partition, listed in by_partition.items()
    ]
    empty = '<p class="quiet">No entities yet. Connect a client and store one.</p>'
    return "Kinds", "".join(parts) or empty, HTTPStatus.OK


def _kind(engine: engines.Engine, request: http_server.Request) -> _Made:
    given = request.query
    partition = keys.Partition(
        given.get("project", ""), given.get("database", ""), given.get("namespace", "")
    )
    name = given.get("kind", "")
    with engine.storage.read() as snapshot:
        stored, after = data_browser.page(
            snapshot, partition, name, _decode(given.get("after", ""))
        )
    rows = ((_key_link(entity), _summary(entity), _time(entity.updated)) for entity in stored)
    body = _table(("Key", "Properties", "Updated"), rows, look="stacked")
    if not stored:
        body = '<p class="quiet">No entities.</p>'
    if after:
        link = _kind_url(partition, name, after=_encode(after))
        body += f'<p><a class="next" href="{link}">Next {data_browser.PAGE}</a></p>'
    where = f'<p class="where">{_partition(partition)}</p>'
    return name, where + body, HTTPStatus.OK


def _entity(engine: engines.Engine, request: http_server.Request) -> _Made:
    key = _decode(request.query.get("key", ""))
    try:
        partition, path = keys.decode(key)
        keys.path_ends(path)
    except (ValueError, IndexError) as error:
        raise http_server.BadRequest("The key in the URL is not valid.") from error
    with engine.storage.read() as snapshot:
        stored = data_browser.entity(snapshot, key)
        listed = [] if stored is None else data_browser.entries(snapshot, stored)
    if stored is None:
        return "Missing", "<p>This entity does not exist, or was deleted.</p>", HTTPStatus.NOT_FOUND
    kind = stored.entity.key.path[-1].kind
    properties = _table(
        ("Property", "Type", "Value"),
        ((_text(name), _type(value), _value(value, full=True))
         for name, value in sorted(stored.entity.properties.items())),
        look="stacked",
    )  # fmt: skip
    shown = _table(
        ("Index", "Entries", "Values"),
        ((_index(entry.index), _number(entry.entries), _entry_values(entry)) for entry in listed),
    )
    where = (
        f'<p class="where">{_partition(partition)} · {_kind_link(partition, kind)}<br>'
        f"created {_time(stored.created)}, updated {_time(stored.updated)}</p>"
    )
    body = where + _section("Properties", properties) + _section("Index entries", shown)
    return _path(stored.entity.key), body, HTTPStatus.OK


def _indexes(engine: engines.Engine, _request: http_server.Request) -> _Made:
    with engine.storage.read() as snapshot:
        listed = data_browser.sizes(snapshot)
        defined = snapshot.definitions.composites
    filled = {size.index for size in listed}
    unused = [(_index(index), "", _number(0), _number(0)) for index in defined
              if index not in filled]  # fmt: skip
    composite = [_size(size) for size in listed if not size.index.is_builtin]
    builtin = [_size(size) for size in listed if size.index.is_builtin]
    titles = ("Index", "Where", "Entries", "Bytes")
    none = '<p class="quiet">None.</p>'
    return (
        "Indexes",
        _section("Composite", _table(titles, composite + unused) if composite or unused else none)
        + _section("Built in", _table(titles, builtin) if builtin else none),
        HTTPStatus.OK,
    )


_PAGES: dict[str, Callable[[engines.Engine, http_server.Request], _Made]] = {
    "/ui": _home,
    "/ui/": _home,
    "/ui/kind": _kind,
    "/ui/entity": _entity,
    "/ui/indexes": _indexes,
}


def _page(title: str, body: str) -> str:
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{html.escape(_printable(title))} · Datastore emulator</title>"
        f"<style>{browser_styles.CSS}</style></head><body>"
        '<header><a href="/ui">Datastore emulator</a>'
        '<nav><a href="/ui">Kinds</a><a href="/ui/indexes">Indexes</a></nav></header>'
        f"<main><h1>{_text(title)}</h1>{body}</main></body></html>\n"
    )


def _section(title: str, body: str) -> str:
    return f"<section><h2>{title}</h2>{body}</section>"


def _table(titles: Iterable[str], rows: Iterable[Iterable[str]], *, look: str = "plain") -> str:
    head = "".join(f"<th>{title}</th>" for title in titles)
    made = "".join("<tr>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>" for row in rows)
    table = f'<table class="{look}"><thead><tr>{head}</tr></thead><tbody>{made}</tbody></table>'
    return f'<div class="wide">{table}</div>'


def _text(text: str, most: int | None = None) -> str:
    if most is not None and len(text) > most:
        text = text[: most - 1] + "…"
    return f"<bdi>{html.escape(_printable(text))}</bdi>"


def _printable(text: str) -> str:
    if text.isprintable():
        return text
    return "".join(
        char if char.isprintable() or char == "\n" else f"\\u{ord(char):04x}" for char in text
    )


def _number(number: int) -> str:
    return f'<span class="number">{number:,}</span>'


def _time(micros: int) -> str:
    moment = dt.datetime.fromtimestamp(micros // 1_000_000, dt.UTC)
    rest = f'<span class="quiet">.{micros % 1_000_000:06}</span>'
    return f"<time>{moment:%Y-%m-%d %H:%M:%S}{rest}</time>"


def _partition(partition: keys.Partition) -> str:
    parts = [_text(partition.project)]
    if partition.database:
        parts.append(f"database {_text(partition.database)}")
    name = partition.namespace
    parts.append(f"namespace {_text(name)}" if name else "default namespace")
    return " · ".join(parts)


def _kind_url(partition: keys.Partition, kind: str, **more: str) -> str:
    named = {
        "project": partition.project,
        "database": partition.database,
        "namespace": partition.namespace,
        "kind": kind,
    }
    given = {name: text for name, text in (named | more).items() if text}
    return html.escape(f"/ui/kind?{urllib.parse.urlencode(given)}")


def _kind_link(partition: keys.Partition, kind: str) -> str:
    return f'<a href="{_kind_url(partition, kind)}">{_text(kind)}</a>'


def _encode(place: bytes) -> str:
    return base64.urlsafe_b64encode(place).decode()


def _decode(given: str) -> bytes:
    try:
        return base64.b64decode(given.encode(), altchars=b"-_", validate=True)
    except (binascii.Error, UnicodeError) as error:
        raise http_server.BadRequest("The key or page position in the URL is not valid.") from error


def _path(key: protobufs.Key) -> str:
    return " / ".join(f"{element.kind} {element.name or element.id}" for element in key.path)


def _key_link(stored: data_browser.StoredEntity) -> str:
    url = f"/ui/entity?key={urllib.parse.quote(_encode(stored.key))}"
    return f'<a href="{url}">{_text(_path(stored.entity.key), _PREVIEW)}</a>'


def _summary(stored: data_browser.StoredEntity) -> str:
    properties = sorted(stored.entity.properties.items())
    parts = [
        f'<span class="pair"><span class="quiet">{_text(name)}</span> {_value(value)}</span>'
        for name, value in properties[:_COLUMNS]
    ]
    if len(properties) > _COLUMNS:
        parts.append(f'<span class="pair quiet">and {len(properties) - _COLUMNS} more</span>')
    return " ".join(parts)


_TYPES = {
    "null_value": "null",
    "boolean_value": "boolean",
    "integer_value": "integer",
    "double_value": "double",
    "timestamp_value": "timestamp",
    "key_value": "key",
    "string_value": "string",
    "blob_value": "blob",
    "geo_point_value": "geo point",
    "entity_value": "entity",
    "array_value": "array",
}


def _type(value: protobufs.Value) -> str:
    notes = [_TYPES[value.WhichOneof("value_type") or "null_value"]]
    if value.exclude_from_indexes:
        notes.append('<span class="tag">not indexed</span>')
    if value.meaning:
        notes.append(f'<span class="tag">meaning {value.meaning}</span>')
    return " ".join(notes)


def _value(value: protobufs.Value, *, full: bool = False) -> str:
    kind = value.WhichOneof("value_type") or "null_value"
    if kind == "string_value":
        text = _text(value.string_value, None if full else _PREVIEW)
        return f'<span class="string">{text}</span>'
    if kind in ("entity_value", "array_value"):
        return _nested_value(value, full=full)
    return _SCALARS[kind](value)


_SCALARS: dict[str, Callable[[protobufs.Value], str]] = {
    "null_value": lambda _: '<span class="quiet">null</span>',
    "boolean_value": lambda value: str(value.boolean_value).lower(),
    "integer_value": lambda value: str(value.integer_value),
    "double_value": lambda value: repr(value.double_value),
    "timestamp_value": lambda value: _text(value.timestamp_value.ToJsonString()),
    "blob_value": lambda value: _blob(value.blob_value),
    "key_value": lambda value: _reference(value.key_value),
    "geo_point_value": lambda value: (
        f"{value.geo_point_value.latitude!r}, {value.geo_point_value.longitude!r}"
    ),
}


def _blob(content: bytes) -> str:
    shown = content[:_BLOB_PREVIEW].hex(" ")
    more = "…" if len(content) > _BLOB_PREVIEW else ""
    return f'{len(content):,} bytes <code class="quiet">{shown}{more}</code>'


def _reference(key: protobufs.Key) -> str:
    named = key.partition_id
    partition = keys.Partition(named.project_id, named.database_id, named.namespace_id)
    url = f"/ui/entity?key={urllib.parse.quote(_encode(keys.encode(partition, key)))}"
    return f'<a href="{url}">{_text(_path(key))}</a>'


def _nested_value(value: protobufs.Value, *, full: bool) -> str:
    inner = value.entity_value.properties
    elements = value.array_value.values
    if not full:
        number = len(inner) + len(elements)
        return f'<span class="quiet">{_type(value)} of {number}</span>'
    if value.WhichOneof("value_type") == "entity_value":
        items = [f'<span class="quiet">{_text(name)}</span> {_value(part, full=True)}'
                 for name, part in sorted(inner.items())]  # fmt: skip
    else:
        items = [_value(element, full=True) for element in elements]
    if not items:
        return '<span class="quiet">empty</span>'
    return "<ul>" + "".join(f"<li>{item}</li>" for item in items) + "</ul>"


def _index(index: indexes.Index) -> str:
    columns = [
        f"{_text(name)} {'↓' if is_descending else '↑'}" for name, is_descending in index.properties
    ]
    if index.is_key_descending:
        columns.append("key ↓")
    if index.has_ancestor:
        columns.insert(0, "ancestor")
    return f"{_text(index.kind)}: {', '.join(columns) or 'key ↑'}"


def _entry_values(entry: data_browser.IndexEntries) -> str:
    shown = ["(" + ", ".join(_value(value) for value in row) + ")" for row in entry.shown]
    return " ".join(shown) + (" …" if len(shown) < entry.entries and shown else "")


def _size(size: data_browser.IndexSize) -> tuple[str, str, str, str]:
    where = _partition(size.partition)
    return _index(size.index), where, _number(size.entries), _number(size.bytes)
