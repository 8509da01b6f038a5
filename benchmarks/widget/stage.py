"""Flatthread with conversations, and a website whose pages embed it.

For pictures, the product runs in this process, without limits on posts, on data in memory.
"""

import contextlib
import dataclasses
import functools
import hashlib
import re
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

from benchmarks import measuring
from benchmarks.widget import talks, website
from benchmarks.widget.talks import Line
from comments import app as apps
from comments import config
from comments.domain import records
from comments.domain.text import rendering
from comments.limits.site_request import SiteRequest
from comments.moderation import decisions
from comments.posting import admission, new_comment
from comments.reading.compaction import compactor
from comments.sites import site_settings
from comments.store import connection, transactions
from comments.store.models import comment_rows
from comments.tree import values
from comments.tree.bulk import bulk_append
from comments.upkeep.integrity import recount

_SETTINGS = config.Settings(secret="a secret of the pictures, long enough")  # noqa: S106 - data in memory only
ARGUMENTS = ("--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--font-render-hinting=none")
_LANGUAGES = {"right-to-left": "arabic"}
SITE = "demo"
SCHEME = config.sorthash.Scheme()
_BATCH = 100  # Comments in one transaction
_OWNER = records.Actor("owner", "Owner")


@dataclasses.dataclass(frozen=True, slots=True)
class Stage:
    """The product's origin, the website's, and the store between them."""

    product: str
    website: website.Website
    store: connection.Store

    def url(self, host: str, thread: str) -> str:
        """Return the URL of a page of the website that shows a thread."""
        language = _LANGUAGES.get(host, "english")
        widget = snippet(self.product, thread or language)
        name = re.sub(r"\W+", "-", f"{host} {thread}")
        article = talks.article(language)
        return self.website.put(f"{name}.html", website.page(host, article, widget))

    def copy(self, thread: str) -> None:
        """Store the English conversation in a thread of its own, for scenes that change it."""
        now = datetime.now(UTC)
        with self.store.context():
            store_talk(thread, talks.written("english", now), now)

    def say(self, body: str, *, name: str, thread: str) -> None:
        """Post a comment as a reader on another device."""
        now = datetime.now(UTC)
        draft = admission.Submission(thread, None, records.Author(name), body)
        with self.store.context():
            site = site_settings.get(SITE)
            new_comment.post(draft, SiteRequest(site, _SETTINGS, now))


def store_talk(thread: str, lines: Sequence[Line], now: datetime) -> None:
    """Store a conversation as an import does, compacted and counted, with its pins."""
    name, ids = records.ThreadName(SITE, thread), [_id(thread, n) for n in range(len(lines))]
    nodes = [
        records.ImportedComment(
            id=ids[place],
            reply_to=None if line.parent is None else ids[line.parent],
            author=records.Author(line.name, is_staff=line.is_staff),
            body=line.body,
            html=rendering.render_markdown(line.body),
            renderer=rendering.RENDERER,
            status=records.Status.APPROVED,
            created=line.created,
            source="sample",
            up=line.up,
            down=line.down,
        )
        for place, line in enumerate(lines)
    ]

    def append(some: Sequence[records.ImportedComment]) -> None:
        batch = bulk_append.append_imported(SCHEME, [values.ImportedThread(name, some)], now=now)
        transactions.apply(*batch.writes)

    for start in range(0, len(nodes), _BATCH):
        transactions.transaction(functools.partial(append, nodes[start : start + _BATCH]))
    for comment_id, line in zip(ids, lines, strict=True):
        if line.is_pinned:
            decisions.decide(SITE, comment_id, decisions.Verb.PIN, _OWNER, now=now)
    compactor.compact(SCHEME, name)
    recount.thread(name, tell=lambda _number: None, fixes=True)


def _id(thread: str, place: int) -> str:
    return comment_rows.comment_id(hashlib.sha256(f"{thread} {place}".encode()).digest())


def snippet(product: str, thread: str) -> str:
    """Return the elements that docs/embedding.md describes."""
    return (
        f'<script type="module" src="{product}/widget/flatthread.js" data-site="demo" async>'
        f'</script>\n<div id="flatthread" data-thread="{thread}" style="min-height: 24rem">'
        "</div>\n"
    )


@contextlib.contextmanager
def prepared() -> Iterator[Stage]:
    """Serve the product and a website until the block ends."""
    now = datetime.now(UTC)
    with measuring.engine(None, durability="fast") as engine, website.opened() as pages:
        store = measuring.store(engine)
        with store.context():
            site_settings.add(SITE, [pages.origin], scheme=SCHEME, now=now)
            site_settings.change(SITE, options={"live": 10})
            for language in ("english", "arabic"):
                store_talk(language, talks.written(language, now), now)
        with website.served(apps.create_app(_SETTINGS, store)) as product:
            yield Stage(product, pages, store)


def chromium() -> str:
    """Return the path of an installed Chromium."""
    folders = (Path("/usr/bin"), Path("/usr/local/bin"))
    names = ("chromium", "chromium-browser", "google-chrome")
    found = [folder / name for name in names for folder in folders if (folder / name).is_file()]
    if not found:
        raise SystemExit("no Chromium: install Debian's package chromium")
    return str(found[0])
