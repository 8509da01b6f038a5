"""Settings of Sphinx for the documentation site, which scripts/docs builds.

The site has the pages and the layout of the repository. Links between documents are those of the
repository, so each page also works where people read the files themselves. README.md, as the first
page of its folder, is called index. The navigation consists of the tables in docs/README.md.
"""

import re
import shutil
from pathlib import Path

from pygments.lexers import html, special, templates
from sphinx.application import Sphinx

ROOT = Path(__file__).parents[2]
DOCUMENTS = (
    "*.md",
    "docs/*.md",
    "docs/ideas/*.md",
    "emulator/README.md",
    "emulator/docs/*.md",
    "benchmarks/README.md",
)
LINK = re.compile(r"\[([^\]\n]*)\]\(([^)\s:#]+)(#[^)\s]*)?\)")
# How to color languages that Pygments does not know.
LEXERS = {
    "astro": html.HtmlLexer,
    "csv": special.TextLexer,
    "go-html-template": html.HtmlLexer,
    "handlebars": templates.HandlebarsHtmlLexer,
    "jsx": special.TextLexer,
    "mermaid": special.TextLexer,
    "vue": html.HtmlLexer,
}

project = "Flatthread"
extensions = ["myst_parser"]
html_theme = "furo"
html_title = "Flatthread"
html_favicon = html_logo = str(ROOT / "comments/web/static/widget/icon.svg")
html_static_path = ["style.css"]
html_css_files = ["style.css"]
html_use_index = False
html_copy_source = False
html_show_sphinx = False
html_show_copyright = False
myst_heading_anchors = 6
highlight_language = "text"
smartquotes = False
exclude_patterns = [".cache"]


def source_name(path: str) -> str:
    """Return a document's path in the site's sources."""
    return re.sub(r"(^|/)README\.md$", r"\1index.md", path)


def site_link(link: re.Match[str]) -> str:
    """Return a link for the site, where the title of a page or section replaces a file's name."""
    text, path, anchor = link[1], link[2], link[3] or ""
    return f"[{'' if text.endswith('.md') else text}]({source_name(path)}{anchor})"


def navigation() -> str:
    """Return hidden tables of contents: one for each section of docs/README.md."""
    index = ROOT / "docs" / "README.md"
    tables = []
    for section in index.read_text().split("\n## "):
        title = section.partition("\n")[0].removeprefix("# ")
        documents = (inside(index, link[2]) for link in LINK.finditer(section))
        names = dict.fromkeys(source_name(str(path)) for path in documents)
        if title == "Documentation":
            names = {"docs/index.md": None} | names
        tables += ["", "```{toctree}", ":hidden:", f":caption: {title}", "", *names, "```", ""]
    return "\n".join(tables)


def inside(document: Path, link: str) -> Path:
    """Return the path, from the project's folder, of a file that a document links to."""
    return (document.parent / link).resolve().relative_to(ROOT)


def copy_sources(target: Path) -> None:
    """Copy all documents, and the files that they link to."""
    for document in sorted(path for pattern in DOCUMENTS for path in ROOT.glob(pattern)):
        text = document.read_text()
        for link in LINK.finditer(text):
            linked = inside(document, link[2])
            if linked.suffix != ".md" and (ROOT / linked).is_file():
                (target / linked).parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(ROOT / linked, target / linked)
        copied = target / source_name(str(document.relative_to(ROOT)))
        copied.parent.mkdir(parents=True, exist_ok=True)
        copied.write_text(LINK.sub(site_link, text))
    with (target / "index.md").open("a") as home:
        home.write(navigation())


def setup(app: Sphinx) -> None:
    for name, lexer in LEXERS.items():
        app.add_lexer(name, lexer)
    copy_sources(Path(app.srcdir))
