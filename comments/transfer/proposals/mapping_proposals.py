"""Collect the proposed mappings for a checked export, and print them as command options."""

import shlex
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from urllib.parse import unquote

from comments import errors
from comments.domain import records
from comments.domain.ids import thread_ids
from comments.domain.text.shown_values import quantity
from comments.transfer.checking import page_mapping, source_pages
from comments.transfer.proposals import foreign_hosts, page_twins
from comments.transfer.proposals.imported_pages import (
    MOST_EXAMPLES,
    ImportedPage,
    Proposal,
    examples,
)

_SHOWN = 20  # The maximum number of proposals, and also of reasons without a proposal.
_LONGEST = 300  # The maximum number of characters of a reason.


def propose(
    threads: Sequence[source_pages.PlannedThread], site: records.Site, others: Iterable[str] = ()
) -> list[Proposal]:
    """Return proposals for the threads of an export; their names follow the site's rules.

    `others` are addresses of pages without comments.
    """
    pages = [page for thread in threads for page in _pages(thread, site)]
    known = filter(None, (_canonical(link, site) for link in others))
    origins = [thread_ids.page_id(origin, site).partition("/")[0] for origin in site.origins]
    hosts = list(foreign_hosts.propose(pages, [f"https://{host}" for host in origins], known))
    given = [proposal.mapping for proposal in hosts if proposal.mapping]
    mapping = page_mapping.PageMapping(given, site.origins)

    def mapped_thread(thread: str) -> str:
        return _canonical(mapping.apply(f"https://{thread}").url, site) or thread

    own = tuple(f"{origin.partition('://')[2]}/" for origin in site.origins)
    on_site = (page for page in pages if mapped_thread(page.thread).startswith(own))
    proposals = [*hosts, *page_twins.propose(on_site, mapped_thread)]
    moved = {proposal.mapping.partition("=")[0] for proposal in proposals}
    copies = (
        proposal
        for proposal in _copies(threads, site, mapped_thread)
        if proposal.mapping.partition("=")[0] not in moved
    )
    return [*proposals, *copies, *_queries(threads, site)]


def lines(proposals: Sequence[Proposal]) -> Iterator[str]:
    """Yield the proposals as text: first the options, then the reasons for having no proposal."""
    proposed = [proposal for proposal in proposals if proposal.mapping]
    others = [proposal.reason for proposal in proposals if not proposal.mapping]
    if proposed:
        yield "Proposed mappings. Check them, and add the right ones to the command:"
        for proposal in proposed[:_SHOWN]:
            yield f"  --map {shlex.quote(proposal.mapping)}"
            yield f"      {proposal.reason[:_LONGEST]}"
        if len(proposed) > _SHOWN:
            yield f"  and {len(proposed) - _SHOWN} more. Add these first, then run it again"
    if others:
        yield "No mapping is proposed for:"
        yield from (f"  {reason[:_LONGEST]}" for reason in others[:_SHOWN])
        if len(others) > _SHOWN:
            yield f"  and {len(others) - _SHOWN} more"
        yield (
            "Comments on hosts that are not the site's are imported, but no page shows them. To "
            "move them to a page, add a mapping of your own, such as "
            "--map old.example/a=blog.example/b"
        )


def _pages(thread: source_pages.PlannedThread, site: records.Site) -> Iterator[ImportedPage]:
    """Yield the addresses of a thread; none if the thread is named by an id."""
    addresses = {_canonical(link, site) for link in thread.links} - {""}
    for address in sorted(addresses):
        yield ImportedPage(address, thread.name.id, len(thread.nodes))


def _copies(
    threads: Sequence[source_pages.PlannedThread],
    site: records.Site,
    mapped: Callable[[str], str],
) -> Iterator[Proposal]:
    """Propose to merge pages if half of the smaller one's comments are also on the other."""
    sizes = {thread.name.id: len(thread.nodes) for thread in threads if any(_pages(thread, site))}
    pairs: Counter[tuple[str, ...]] = Counter()
    for thread in threads:
        for other, count in thread.copies.items():
            pair = (other, thread.name.id)
            pairs[tuple(sorted(pair, key=lambda page: (-sizes.get(page, 0), page)))] += count
    for (main, copy), count in pairs.items():
        if (
            sizes.keys() >= {main, copy}
            and mapped(main) != mapped(copy)
            and (2 * count >= sizes[copy])
        ):
            text = f"{quantity(sizes[copy], 'comment')}, {count} of them also on {main}"
            yield Proposal(f"{copy}={main}", f"{copy}: {text}")


def _canonical(link: str, site: records.Site) -> str:
    try:
        return thread_ids.page_id(link, site)
    except errors.BadInput:
        return ""


def _queries(
    threads: Sequence[source_pages.PlannedThread], site: records.Site
) -> Iterator[Proposal]:
    """Explain how to separate pages that differ only in a query that the site ignores."""
    for thread in threads:
        links = [link for link in thread.links if _canonical(link, site)]
        queries = {page_twins.parts_without_tracking(_query(link)) for link in links}
        parts = sorted({part for query in queries for part in query})
        ignored = {unquote(part.partition("=")[0]) for part in parts} - set(site.query_keys)
        keys = sorted(key for key in ignored if _is_key(key))[:MOST_EXAMPLES]
        if len(queries) > 1 and keys:
            # The option replaces all query keys of the site, so it repeats the present ones.
            options = " ".join(
                f"--query-key {shlex.quote(key)}" for key in (*site.query_keys, *keys)
            )
            yield Proposal(
                "",
                f"{thread.name.id}: its pages differ in their queries ({examples(parts)}) and "
                f"become one thread. If they are different pages, run "
                f"`site set {site.id} {options}` before the import",
            )


def _is_key(text: str) -> bool:
    """Return whether a site can have this query key and a terminal can show the key."""
    try:
        return bool(thread_ids.checked_query_keys([text])) and text.isprintable()
    except errors.BadInput:
        return False


def _query(link: str) -> str:
    return link.partition("#")[0].partition("?")[2]
