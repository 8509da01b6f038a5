"""Render stored bodies again after a change of the renderer or the sanitizer.

`upgrades` calls `rerender` for all comments in key order, once for each version of the renderers.

Only the HTML changes: the comment is not marked as edited, and nobody gets mail or webhooks. The
revision of the text stays the same, so an open edit form can still be submitted. A comment is
written only if its HTML changes. If the new renderer refuses a body, the comment keeps its old
HTML, which is sanitized again. The commit that changes a comment also flags it for compaction, so
readers see the new HTML at once, and the buckets get it later. The old HTML was safe when it was
written, so it may stay in the buckets until then.

During a rolling release, a process of the older release may store a comment in a range that the
scan has already passed. That comment keeps the older HTML until the next version of the renderer.
"""

import functools
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from typing import Any

from comments import errors
from comments.domain import records
from comments.domain.text import imported_html, rendering, sanitizing
from comments.events import backlog
from comments.store import transactions
from comments.tree import values
from comments.tree.bulk import job_writes

# Renderers, by the first word of the renderer name that is stored with HTML.
_RENDERERS: dict[str, tuple[str, Callable[[str], str]]] = {
    "markdown": (rendering.RENDERER, rendering.render_markdown),
    "html": (sanitizing.SANITISER, lambda source: imported_html.convert(source).html),
}
_TEXT = ("body", "html", "renderer")
# The name of the scan contains this text, so a new version of a renderer starts a new scan.
VERSION = f"{rendering.RENDERER}/{sanitizing.SANITISER}"


def rerender(found: Iterable[Any]) -> None:
    """Render the bodies of comments, which are passed as messages, with the current renderers.

    Store only HTML that changed.
    """
    for message in found:
        stored = message.properties
        was = values.RenderedText(*(stored[field].string_value for field in _TEXT))
        text = current_rendering(was)
        if not was.body or text is None or text.renderer == was.renderer or text.html == was.html:
            continue
        store = functools.partial(_store, message.key.path[-1].name, text, datetime.now(UTC))
        if transactions.transaction(store):
            site, thread = (stored[field].string_value for field in ("site", "thread_id"))
            backlog.note_changes(records.ThreadName(site, thread))


def current_rendering(text: values.RenderedText) -> values.RenderedText | None:
    """Render a body with the current version of its renderer; None if the renderer is unknown."""
    name, render = _RENDERERS.get(text.renderer.partition("-")[0], ("", None))
    if render is None:
        return None
    try:
        html = render(text.body) if text.body else ""
    except errors.BadInput:
        html = sanitizing.safe(text.html)
    return values.RenderedText(text.body, html, name)


def _store(comment_id: str, text: values.RenderedText, now: datetime) -> bool:
    writes = job_writes.rerendering_writes(comment_id, text, now=now)
    transactions.apply(writes)
    return bool(writes.put)
