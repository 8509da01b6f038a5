"""Propose mappings for pages that have several addresses on one host (pure).

Thread ids already ignore the scheme, most queries and, by default, slashes at the end of a path
(`thread_ids`). This module finds addresses that thread ids still distinguish: trailing slashes if
the site keeps them, doubled slashes, file names that servers add to a folder (`index.html`), and
tracking parameters if the site's query keys contain them.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator

from comments.transfer.proposals.imported_pages import ImportedPage, Proposal, mapping

_INDEXES = {"index.html", "index.htm", "index.php", "default.aspx", "default.asp"}
_TRACKING = {
    "dclid", "fbclid", "gbraid", "gclid", "igshid", "mc_cid", "mc_eid", "msclkid", "ref", "ref_src",
    "replytocom", "wbraid", "yclid",
}  # fmt: skip


def propose(
    pages: Iterable[ImportedPage], mapped: Callable[[str], str] = str
) -> Iterator[Proposal]:
    """Yield a mapping for each address that is not the main address of its page.

    `mapped` applies the mappings that were proposed for hosts.
    """
    groups: dict[str, dict[str, list[ImportedPage]]] = defaultdict(lambda: defaultdict(list))
    for page in pages:
        target = mapped(page.thread)
        groups[_reduced_address(target)][target].append(page)
    for _, group in sorted(groups.items()):
        main = _main_address(group)
        for target, twins in sorted(group.items()):
            reason = _reason(target) or _reason(main) or "a trailing slash"
            if target != main:
                for address in sorted({page.address for page in twins}):
                    why = f"the same page as {main}: {reason}"
                    text = mapping(address, main)
                    yield Proposal(text, why if text else f"{address}: {why}")


def _main_address(group: dict[str, list[ImportedPage]]) -> str:
    """Return the address to keep: the plain one with the most comments, or else a plainer form."""
    plain = [target for target in group if not _reason(target)]
    best = max(plain or group, key=lambda target: (_comments(group[target]), target))
    return _without_tracking(_single_slashes(best))


def _comments(pages: Iterable[ImportedPage]) -> int:
    return sum(page.comments for page in pages)


def _reason(address: str) -> str:
    """Return why an address is not plain, or ""."""
    if _without_tracking(address) != address:
        return "a tracking parameter"
    path = address.partition("?")[0]
    if path.rpartition("/")[2].lower() in _INDEXES:
        return "the index file of a folder"
    return "a double slash" if _single_slashes(address) != address else ""


def _reduced_address(address: str) -> str:
    path, sign, query = _without_tracking(_single_slashes(address)).partition("?")
    folder, _, file = path.rpartition("/")
    if file.lower() in _INDEXES:
        path = folder
    host, _, rest = path.rstrip("/").partition("/")
    return f"{host}/{rest}{sign}{query}"


def _single_slashes(address: str) -> str:
    path, sign, query = address.partition("?")
    while "//" in path:
        path = path.replace("//", "/")
    return path + sign + query


def _without_tracking(address: str) -> str:
    path, _, query = address.partition("?")
    kept = [part for part in query.split("&") if part and not _is_tracking(part)]
    return f"{path}?{'&'.join(kept)}" if kept else path


def _is_tracking(part: str) -> bool:
    key = part.partition("=")[0].lower()
    return key in _TRACKING or key.startswith("utm_")


def parts_without_tracking(query: str) -> tuple[str, ...]:
    """Return the sorted parts of a query that do not track visitors."""
    return tuple(sorted(part for part in query.split("&") if part and not _is_tracking(part)))
