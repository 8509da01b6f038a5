"""The lines that put comments on pages of each system, with the service's address and a site's id.

A recipe is a file in `static/recipes`. The file contains the address and the id that the documents
use. docs/recipes.md and, for plain HTML, docs/embedding.md explain the same lines; a test compares
them.
"""

import functools
from pathlib import Path
from typing import NamedTuple

_FILES = Path(__file__).parent / "static" / "recipes"
_SERVICE = "https://comments.example"
_SITE = "blog"

# The systems in the order of their tabs, each with its files. A text says where each file's lines
# belong. The key of this text is `admin.recipe-` and the file's stem, and the names listed here are
# inserted as code.
SYSTEMS: dict[str, dict[str, dict[str, str]]] = {
    "html": {"html.html": {}},
    "wordpress": {
        "wordpress-1.php": {"file": "functions.php"},
        "wordpress-2.php": {},
        "wordpress-3.php": {"file": "comments.php"},
    },
    "ghost": {"ghost.hbs": {"file": "post.hbs", "block": "{{#post}}"}},
    "hugo": {
        "hugo.html": {
            "file": "layouts/_partials/comments.html",
            "layout": "layouts/page.html",
            "call": '{{ partial "comments.html" . }}',
        }
    },
    "jekyll": {
        "jekyll.html": {
            "file": "_includes/comments.html",
            "layout": "_layouts/post.html",
            "call": "{% include comments.html %}",
        }
    },
    "astro": {
        "astro.astro": {
            "file": "src/components/Comments.astro",
            "call": "<Comments thread={post.id} />",
        }
    },
    "react": {
        "react.jsx": {"file": "components/comments.jsx", "call": "<Comments thread={post.id} />"}
    },
    "vue": {
        "vue-1.html": {"file": "index.html"},
        "vue-2.vue": {
            "file": "src/components/FlatComments.vue",
            "call": '<FlatComments :thread="route.params.id" />',
        },
    },
}


class Recipe(NamedTuple):
    """Lines for pages: the file's stem, the code names in the text about it, and the lines."""

    name: str
    codes: dict[str, str]
    lines: str


@functools.cache
def _file(name: str) -> str:
    return (_FILES / name).read_text(encoding="utf-8")


def of(system: str, *, service: str, site: str) -> list[Recipe]:
    """Return the lines for a system."""
    return [
        Recipe(Path(name).stem, codes, _lines_of(name, service, site))
        for name, codes in SYSTEMS[system].items()
    ]


def _lines_of(name: str, service: str, site: str) -> str:
    text = _file(name).rstrip().replace(_SERVICE, service)
    for before, after in (('data-site="', '"'), ("/embed/", '"')):
        text = text.replace(f"{before}{_SITE}{after}", f"{before}{site}{after}")
    return text
