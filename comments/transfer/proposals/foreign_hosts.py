"""Propose mappings for hosts that are not among the site's origins (pure).

A host is mapped to the origin that has the same paths. If no paths are the same, a host is mapped
to an origin that differs from it only by "www.". If the site has only one origin, local hosts and
staging hosts ("staging.") are mapped to it too. If the file has no page of this origin, the main
host is mapped to it as well. Origins on local hosts are for test pages, so they count only if the
site has no other origin. Hosts of search engines and archives are never mapped, because the paths
of their copies are not the paths of the original pages.
"""

import posixpath
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from comments.domain.text.addresses import host_names
from comments.domain.text.shown_values import quantity
from comments.transfer.proposals.imported_pages import ImportedPage, Proposal, examples, mapping

# Hosts of search engines, translators and archives, and suffixes of such hosts.
_COPIES = {
    "archive.is", "archive.org", "archive.ph", "archive.today", "cc.bingj.com",
    "translate.google.com", "web.archive.org", "www.google.com",
}  # fmt: skip
_ENDS_OF_COPIES = (
    ".ampproject.org", ".googleusercontent.com", ".translate.goog", ".turbopages.org",
)  # fmt: skip
_STAGES = {"beta", "dev", "preview", "stage", "staging", "test"}


class _Origin(NamedTuple):
    """An origin's host, and its paths; the file contains these paths under the host `source`."""

    host: str
    source: str
    paths: set[str]


def propose(
    pages: Iterable[ImportedPage], origins: Sequence[str], others: Iterable[str] = ()
) -> Iterator[Proposal]:
    """Yield a proposal for each foreign host, in descending order of the number of comments.

    On a site without origins, no host is foreign.

    `others` are canonical addresses of pages without comments; their paths count too.
    """
    paths: dict[str, set[str]] = defaultdict(set)
    for other in others:
        paths[other.partition("/")[0]].add(other[other.index("/") :])
    every = [origin.partition("://")[2] for origin in origins]
    own = [host for host in every if not host_names.is_local(host)] or every
    if not own:
        return
    by_host: dict[str, list[ImportedPage]] = defaultdict(list)
    for page in pages:
        by_host[page.host].append(page)
        paths[page.host].add(page.path)
    hosts = sorted(by_host.keys() - own, key=lambda host: (-_comments(by_host[host]), host))
    known = [_Origin(host, host, paths[host]) for host in own]
    if len(known) == 1 and not known[0].paths:
        # The file has no page of the origin, so its pages probably have the paths of the main host.
        usable = [host for host in hosts if not _is_copy(host)]
        main = next(
            (host for host in usable if not host_names.is_local(host)), next(iter(usable), "")
        )
        known = [_Origin(own[0], main, paths[main])]
    for host in hosts:
        unmapped = [page for page in by_host[host] if page.address == page.thread]
        if unmapped:
            yield _proposal(host, unmapped, known)


def _proposal(host: str, pages: list[ImportedPage], known: list[_Origin]) -> Proposal:
    where = f"{host} ({quantity(len(pages), 'page')}, {quantity(_comments(pages), 'comment')})"
    if _is_copy(host):
        return Proposal("", f"{where}: copies of pages by a search engine, translator or archive")
    paths = sorted(page.path for page in pages)
    count, origin, old, new = max(
        (_match(origin, paths) for origin in known), key=lambda match: match[0]
    )
    twin = next((origin.host for origin in known if _plain(origin.host) == _plain(host)), None)
    if twin is not None:
        return Proposal(f"{host}={twin}", f"{where}: differs from {twin} only by www.")
    test_copy = f"{where} looks like a test copy of your website"
    if origin.source == host:
        former = f"{where}: probably the former address, as the file has no page of {origin.host}"
        text = test_copy if host_names.is_local(host) else former
        return Proposal(f"{host}={origin.host}", text)
    if count:
        text = f"{where}: {count} of {quantity(len(paths), 'path')} also on {origin.source}"
        return Proposal(mapping(f"{host}{old}", f"{origin.host}{new}"), text)
    if len(known) == 1 and (host_names.is_local(host) or _is_stage(host, origin.host)):
        return Proposal(f"{host}={origin.host}", test_copy)
    reason = f"no path of this host is also on {origin.source}"
    if len(known) > 1:
        reason = "the site has several origins, and no path of this host is on one of them"
    return Proposal("", f"{where}: {reason}: {examples(paths)}")


def _match(origin: _Origin, paths: list[str]) -> tuple[int, _Origin, str, str]:
    """Find which beginning of the paths to replace so that most of them become paths of the origin.

    Return the number of paths that match, the origin, and the old and new beginning ("" for none).
    """
    beginnings = ["", *_beginnings(paths)]
    others = ["", *_beginnings(sorted(origin.paths))]
    matches = [
        (sum(new + path[len(old) :] in origin.paths for path in paths), origin, old, new)
        for old in beginnings
        for new in others
        if not (old and new)
    ]
    return max(matches, key=lambda match: (match[0], -len(match[2]) - len(match[3])))


def _beginnings(paths: list[str]) -> list[str]:
    """Return the first one and the first two segments, if all of several paths begin with them."""
    if len(paths) < 2:  # noqa: PLR2004 - with one path, anything would be common
        return []
    common = posixpath.commonpath(paths).split("/")[1:3]
    return ["/" + "/".join(common[:length]) for length in range(1, len(common) + 1) if common[0]]


def _comments(pages: Iterable[ImportedPage]) -> int:
    return sum(page.comments for page in pages)


def _is_copy(host: str) -> bool:
    return host in _COPIES or host.endswith(_ENDS_OF_COPIES)


def _is_stage(host: str, origin: str) -> bool:
    label, _, domain = host.partition(":")[0].partition(".")
    is_near = f".{_plain(origin).partition(':')[0]}".endswith(f".{domain}")
    return label in _STAGES and "." in domain and is_near


def _plain(host: str) -> str:
    return host.removeprefix("www.")
