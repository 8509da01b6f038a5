"""The subject of the pictures: Flatthread with conversations, and host pages that embed it.

The product runs in this process, without limits on posts, on data in memory.
"""

import contextlib
import dataclasses
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from benchmarks.serving import gunicorn_process
from benchmarks.widget import host_pages, product_site, sample_talks
from comments import app as apps
from comments import config
from comments.domain import records
from comments.posting import new_comment
from comments.sites import site_settings
from comments.sites.site_request import SiteRequest
from comments.store import connection
from emulator import inprocess

_SETTINGS = config.Settings(secret="a secret of the pictures, long enough")  # noqa: S106 - data in memory only
ARGUMENTS = ("--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--font-render-hinting=none")
_LANGUAGES = {"right-to-left": "arabic"}


@dataclasses.dataclass(frozen=True, slots=True)
class Stage:
    """The product's origin, the website's, and the store between them."""

    product: str
    website: host_pages.Website
    store: connection.Store

    def url(self, host: str = "bare", thread: str = "", attributes: str = "") -> str:
        """Return the URL of a page of the website that shows a thread."""
        language = _LANGUAGES.get(host, "english")
        widget = snippet(self.product, thread or language, attributes)
        name = re.sub(r"\W+", "-", f"{host} {thread} {attributes}")
        article = sample_talks.article(language)
        return self.website.put(f"{name}.html", host_pages.page(host, article, widget))

    def copy(self, thread: str) -> None:
        """Store the English conversation in a thread of its own, for scenes that change it."""
        now = datetime.now(UTC)
        with self.store.context():
            product_site.store(thread, sample_talks.written("english", now), now)

    def say(
        self, body: str, *, name: str, thread: str = "english", parent: str | None = None
    ) -> str:
        """Post a comment as a reader on another device; return its id."""
        now = datetime.now(UTC)
        draft = new_comment.Submission(thread, parent, records.Author(name), body)
        with self.store.context():
            site = site_settings.get(product_site.SITE)
            return new_comment.post(draft, SiteRequest(site, _SETTINGS, now)).comment.id


def snippet(product: str, thread: str, attributes: str = "") -> str:
    """Return the elements that docs/embedding.md describes."""
    return (
        f'<script type="module" src="{product}/widget/flatthread.js" data-site="demo" async>'
        f'</script>\n<div id="flatthread" data-thread="{thread}" style="min-height: 24rem"'
        f" {attributes}></div>\n"
    )


@contextlib.contextmanager
def prepared() -> Iterator[Stage]:
    """Serve the product and a website until the block ends."""
    now = datetime.now(UTC)
    with (
        inprocess.open_engine(
            None,
            indexes=gunicorn_process.ROOT / "index.yaml",
            concurrency="pessimistic",
            history=0,
            durability="fast",
        ) as engine,
        host_pages.website() as website,
    ):
        store = connection.Store(inprocess.Channel(engine), project="pictures")
        with store.context():
            product_site.add([website.origin], now)
            site_settings.change(product_site.SITE, options={"live": 10})
            for language in ("english", "arabic"):
                product_site.store(language, sample_talks.written(language, now), now)
        with host_pages.served(apps.create_app(_SETTINGS, store)) as product:
            yield Stage(product, website, store)


def chromium() -> str:
    """Return the path of an installed Chromium."""
    folders = (Path("/usr/bin"), Path("/usr/local/bin"))
    names = ("chromium", "chromium-browser", "google-chrome")
    found = [folder / name for name in names for folder in folders if (folder / name).is_file()]
    if not found:
        raise SystemExit("no Chromium: install Debian's package chromium")
    return str(found[0])
