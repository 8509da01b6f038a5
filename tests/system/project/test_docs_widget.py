"""The documents list all attributes, options, events, variables and parts of the widget.

The tests read the lists from the widget's sources and compare them with the tables.
"""

import re
from collections.abc import Callable, Iterable

import msgspec
import pytest

from comments.domain import site_options
from tests.support import programs

SOURCE = programs.ROOT / "widget" / "source"
SCRIPTS = {path.name: path.read_text() for path in sorted(SOURCE.rglob("*.js"))}
STYLES = [
    *sorted(SOURCE.rglob("*.css")),
    programs.ROOT / "widget" / "pages" / "public" / "tokens.css",
]
EMBEDDING = (programs.ROOT / "docs" / "embedding.md").read_text()
EXAMPLES = {
    path.name: path.read_text()
    for path in (programs.ROOT / "comments" / "web" / "static" / "examples").iterdir()
}
RECIPES = (programs.ROOT / "docs" / "recipes.md").read_text()
STYLING = (programs.ROOT / "docs" / "styling.md").read_text()


def section(text: str, heading: str) -> str:
    """Return a section of a document, without its headings."""
    found = re.search(rf"^## {heading}\n(.*?)(?=^## |\Z)", text, flags=re.DOTALL | re.MULTILINE)
    assert found is not None, heading
    return found[1]


def first_cells(text: str) -> list[str]:
    """Return the code in the first cells of all tables."""
    cells = re.findall(r"^\| (`[^|]*) \|", text, flags=re.MULTILINE)
    return [name for cell in cells for name in re.findall(r"`([^`]+)`", cell)]


def assert_lists(listed: Iterable[str], existing: Iterable[str]) -> None:
    """Check that a list names everything once."""
    names = list(listed)
    assert len(names) == len(set(names))
    assert set(names) == set(existing)


def kebab(name: str) -> str:
    return re.sub(r"[A-Z]", lambda found: f"-{found[0].lower()}", name)


def attributes() -> set[str]:
    """Return the names of the attributes that the element may have."""
    place = SCRIPTS["place.js"]
    taken = re.search(r"const \{([^}]*)\} = attributes;", place)
    assert taken is not None
    names = set(re.findall(r"(\w+)(?: = [^,]*)?(?:,|$)", taken[1].strip()))
    names |= set(re.findall(r"\battributes\.(\w+)", place))
    return names | {
        name for text in SCRIPTS.values() for name in re.findall(r"\bhost\.dataset\.(\w+)", text)
    }


def test_the_options_of_the_element_are_complete() -> None:
    listed = first_cells(section(EMBEDDING, "Options"))
    assert_lists(listed, {f"data-{kebab(name)}" for name in attributes()})


def test_the_options_of_mount_are_complete() -> None:
    typed = re.search(r"@typedef \{\{(.*?)\}\} Options", SCRIPTS["entry.js"], flags=re.DOTALL)
    assert typed is not None
    existing = re.findall(r"(\w+)\?:", typed[1])
    sentence = re.search(r"Its options are (.*?);", EMBEDDING, flags=re.DOTALL)
    assert sentence is not None
    assert_lists(re.findall(r"`(\w+)`", sentence[1]), existing)
    assert set(existing) <= attributes()


def functions() -> list[str]:
    return re.findall(r"^export (?:async )?function (\w+)", SCRIPTS["entry.js"], re.MULTILINE)


def test_the_functions_are_complete() -> None:
    imported = re.search(r"import \{ (.*) \} from .*flatthread\.js", EMBEDDING)
    assert imported is not None
    assert_lists(imported[1].split(", "), functions())


def events() -> set[str]:
    texts = "".join(SCRIPTS.values())
    sent = set(re.findall(r"\btell\(\"(\w+)\"", texts))
    return sent | set(re.findall(r"CustomEvent\(\"flatthread:(\w+)\"", texts))


def test_the_events_are_complete() -> None:
    listed = first_cells(section(EMBEDDING, "Events"))
    assert_lists(listed, {f"flatthread:{name}" for name in events()})


def counting_attributes() -> set[str]:
    text = SCRIPTS["count.js"]
    names = set(re.findall(r"dataset\.(\w+)", text))
    for taken in re.findall(r"const \{([^}]*)\} = node\.dataset", text):
        names |= {name.strip() for name in taken.split(",")}
    return names


def test_the_attributes_for_counts_are_complete() -> None:
    names = counting_attributes()
    listed = first_cells(section(EMBEDDING, "Comment counts"))
    assert_lists(listed, {f"data-{kebab(name)}" for name in names})


def test_the_options_of_a_site_are_complete() -> None:
    existing = {field.name for field in msgspec.structs.fields(site_options.SiteOptions)}
    table = section(EMBEDDING, "Options of a site")
    listed = re.findall(r"^\| `--([\w-]+)`", table, flags=re.MULTILINE)
    names = {"image-origin": "images"}
    assert_lists((names.get(each, each) for each in listed), existing)


def variables() -> set[str]:
    return {name for path in STYLES for name in re.findall(r"--ft-[\w-]+", path.read_text())}


def parts() -> set[str]:
    """Return the parts in the scripts; NAME stands for a name that the script inserts."""
    found = set()
    for name, text in SCRIPTS.items():
        if name == "icons.js":
            continue  # Icons are not made by dom.js, so they are not parts
        # Classes that say what an element is doing are not parts, and ids are numbered.
        classes = re.sub(r"classList\.\w+\([^)]*\)|`[^`]*\+\+\w+\}[^`]*`", "", text)
        classes = re.sub(r"\$\{[^}]*\}", "NAME", classes)
        for value in re.findall(r"[\"`](ft-[^\"`]*)[\"`]", classes):
            found |= set(value.split())
    return found - {"NAME"}


INSERTED = {"ft-vote-NAME": {"ft-vote-up", "ft-vote-down"}}


@pytest.mark.parametrize(("heading", "existing"), [("Variables", variables), ("Parts", parts)])
def test_the_variables_and_parts_are_complete(
    heading: str, existing: Callable[[], set[str]]
) -> None:
    names = {each for name in existing() for each in INSERTED.get(name, {name})}
    assert_lists(first_cells(section(STYLING, heading)), names)


def test_everything_has_an_example() -> None:
    """The example `finder` shows the part of each element, so it needs no list."""
    for name in attributes():
        assert f"data-{kebab(name)}=" in EXAMPLES[f"{name}.html"]
    for name in functions():
        assert f"{name}(" in EXAMPLES["functions.js"]
    for name in events():
        assert f'"flatthread:{name}"' in EXAMPLES["events.js"]
    for name in counting_attributes():
        assert f"data-{kebab(name)}" in EXAMPLES["counts.html"]
    for field in msgspec.structs.fields(site_options.SiteOptions):
        assert f'name="{field.name}"' in EXAMPLES["options.html"]
    for name in variables():
        assert f"  {name}: " in EXAMPLES["colors.css"] + EXAMPLES["shapes.css"]


def test_the_snippets_use_existing_attributes() -> None:
    known = {f"data-{kebab(name)}" for name in attributes() | counting_attributes()}
    for text in (EMBEDDING, RECIPES, *EXAMPLES.values()):
        fenced = re.findall(r"^```\w.*?^```$", text, flags=re.DOTALL | re.MULTILINE) or [text]
        used = set(re.findall(r"(?<![\w-])data-[a-z-]+", "".join(fenced)))
        assert used <= known
