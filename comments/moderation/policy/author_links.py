"""Link the author ids of one person on a site: claims by readers, and links by moderators.

A claim makes the reader who has proved a mail address the owner of the comments that were imported
under this address. No comment is rewritten: an imported author's id is a keyed digest of the
address, so the proved address leads to the id, and one row names the reader (the claimant). The
row is read only where a reader acts on an imported comment, where an event tells about a reply to
one, and where a person's data is collected. The author id of an author who was imported without an
address is no digest of an address, so nobody can claim it.

Only a claim gives a reader rights, and only over comments imported under the address that the
reader proved; a moderator's link gives none.

A moderator's link tells that two author ids belong to one person. All ids that claims and links
connect are the person: the record shows them together, bans cover all of them, and so do exports
and erasures by an owner of the service. Linking extends a ban of one id to the others in the same
transaction; unlinking changes no ban.

Moderators can end a claim at any time, and so can the claimant. The row then refuses all claims of
this imported author, because a new sign-in would otherwise repeat the claim, until a moderator
allows claims again. Readers have no rights by claims while the site's option `claims` is off.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from datetime import datetime
from typing import Any, Literal, NamedTuple

import msgspec

from comments import errors
from comments.accounts import accounts
from comments.domain import presentation, records
from comments.domain.ids import author_ids, imported_ids
from comments.events import audit_log
from comments.moderation import review_queue
from comments.moderation.policy import rulebook
from comments.sites import site_settings
from comments.store import ownership, reads, transactions
from comments.store.models import conversion, counter_rows, moderation_rows, vote_rows

_OWNER = "author_links"
_LONGEST = 200  # Characters of an author id
MOST = 20  # Maximum number of author ids that moderators link as one person.


class AuthorLink(NamedTuple):
    """A link between `authors`, who are two, or a refusal of claims of the only author."""

    site: str
    authors: tuple[str, ...]
    claimant: str
    since: datetime | None

    @property
    def kind(self) -> Literal["claim", "link", "refused"]:
        """Return what the row means."""
        if len(self.authors) == 1:
            return "refused"
        return "claim" if self.claimant else "link"


def claim(
    site: records.Site, address: str, account: accounts.Account, *, secret: str, now: datetime
) -> int:
    """Make the account that proved an address the owner of the comments imported under it.

    Return how many of these comments the account owns and sees. An account takes over the claim of
    an account that no longer exists, but not of an account that has another address now. Repeating
    the call changes nothing.
    """
    if not site.options.claims:
        return 0
    authors = imported_ids.author_ids_of_address(secret, site.id, address)
    known = [counter_rows.standing_key(site.id, author) for author in authors]
    return sum(
        counter_rows.numbers_of(row).get(status, 0)
        for author, row in zip(authors, reads.get_multi(known), strict=True)
        if row is not None and _claim(site.id, author, account, now)
        for status in presentation.OWN_STATUSES
    )


def _claim(site: str, imported: str, account: accounts.Account, now: datetime) -> bool:
    act = audit_log.Act(account.actor, "claim")
    key = moderation_rows.claim_key(site, imported)

    def body() -> bool:
        row = reads.get(key)
        earlier = "" if row is None else row.claimant
        if row is None or (earlier not in {"", account.author} and not _has_account(earlier)):
            _join(
                moderation_rows.AuthorLinkRow(
                    key=key,
                    site=site,
                    authors=[imported, account.author],
                    claimant=account.author,
                    since=now,
                ),
                act,
                imported,
                account.author,
            )
            return True
        return bool(earlier == account.author)

    is_owner = transactions.transaction(body)
    rulebook.forget(site)
    return is_owner


def _has_account(author: str) -> bool:
    return accounts.get(author.removeprefix(accounts.AUTHOR)) is not None


def is_claimed(site: str, imported: str, author: str) -> bool:
    """Return whether a reader owns the comments of an imported author, with at most one read."""
    if not author.startswith(author_ids.ACCOUNT):
        return False
    return claimants(site, [imported]).get(imported) == author


def claimants(site: str, authors: Collection[str]) -> dict[str, str]:
    """Return the author ids of the readers who own these imported authors' comments.

    Other authors cause no read.
    """
    imported = [author for author in authors if author.startswith(author_ids.IMPORTED)]
    if not imported or not site_settings.get(site).options.claims:
        return {}
    rows = reads.get_multi([moderation_rows.claim_key(site, author) for author in imported])
    return {
        author: row.claimant
        for author, row in zip(imported, rows, strict=True)
        if row is not None and row.claimant
    }


def claimed_authors(site: str, author: str) -> list[str]:
    """Return the imported authors whose comments a reader owns."""
    if not author.startswith(author_ids.ACCOUNT) or not site_settings.get(site).options.claims:
        return []
    links = of_author(author, site)
    return [link.authors[0] for link in links if link.claimant == author]


def of_author(author: str, site: str | None = None) -> list[AuthorLink]:
    """Return the links and refusals of an author id on a site, or on all sites."""
    return _links([("authors", "=", author)], site)


def of_people(site: str, authors: Iterable[str]) -> list[AuthorLink]:
    """Return the links and refusals of all author ids that links connect with the given ones.

    One query reads the links of 30 ids. Further queries read the links of the other ends.
    """
    seen: set[str] = set()
    links: dict[AuthorLink, None] = {}
    while new := sorted({*authors} - seen - {""}):
        seen |= {*new}
        for at in range(0, len(new), reads.MOST_VALUES):
            part = new[at : at + reads.MOST_VALUES]
            links |= dict.fromkeys(_links([("authors", "in", part)], site))
        authors = (author for link in links for author in link.authors)
    return list(links)


def person(site: str, author: str, links: Sequence[AuthorLink] | None = None) -> list[str]:
    """Return the author ids that links connect with an author id, which is the first one.

    `links` contains the links of the person (`of_people`) if the caller has read them.
    """
    links = of_people(site, [author]) if links is None else links
    ids = [author] if author else []
    for known in ids:  # The loop also visits the ids that it appends
        ids += [
            other
            for link in links
            if known in link.authors
            for other in link.authors
            if other not in ids
        ]
    return ids


def numbers(site: str, authors: Collection[str]) -> dict[str, counter_rows.Numbers]:
    """Return the comment counts of authors by status; each count is the sum of all linked ids."""
    links = of_people(site, authors)
    people = {author: person(site, author, links) for author in authors}
    counts = review_queue.standings(site, (one for ids in people.values() for one in ids))
    return {
        author: sum((Counter(counts[one]) for one in ids), Counter[str]())
        for author, ids in people.items()
    }


def link(
    site: str, one: str, other: str, actor: records.Actor, *, now: datetime, reason: str = ""
) -> None:
    """Record that two author ids belong to one person. Repeating the call changes nothing.

    Raises:
        errors.BadInput: an id is not an author id, or both are the same.
        errors.NotFound: an author has no comments on the site.
        errors.Conflict: the person would have more than `MOST` ids.
    """
    check_ids(one, other)
    act = audit_log.Act(actor, "link-authors", reason)
    key = moderation_rows.author_link_key(site, one, other)
    known = [counter_rows.standing_key(site, author) for author in (one, other)]

    def body() -> None:
        row, *standings = reads.get_multi([key, *known])
        for author, standing in zip((one, other), standings, strict=True):
            if standing is None:
                raise errors.NotFound("author", author)
        if row is None:
            made = moderation_rows.AuthorLinkRow(
                key=key, site=site, authors=sorted((one, other)), since=now
            )
            if len(_join(made, act, one, other)) > MOST:
                raise errors.Conflict("too-many-authors", limit=MOST)

    transactions.transaction(body)
    rulebook.forget(site)


def check_ids(one: str, other: str) -> None:
    """Check the ids of a link.

    Raises:
        errors.BadInput: an id is not an author id, or both are the same.
    """
    for field, author in (("author", one), ("other", other)):
        if not author_ids.is_one(author) or len(author) > _LONGEST:
            raise errors.BadInput(field, "bad-author-id")
    if one == other:
        raise errors.BadInput("other", "same-author")


def unlink(
    site: str, one: str, other: str, actor: records.Actor, *, now: datetime, reason: str = ""
) -> None:
    """End the link between two author ids, and refuse further claims if it is a claim.

    Raises:
        errors.BadInput: see `link`.
        errors.NotFound: the ids are not linked with each other.
    """
    check_ids(one, other)
    act = audit_log.Act(actor, "unlink-authors", reason)

    def body() -> None:
        if transactions.may_have_run() and audit_log.is_done(act):
            return
        rows = reads.get_multi(
            [
                moderation_rows.author_link_key(site, one, other),
                *(moderation_rows.claim_key(site, author) for author in (one, other)),
            ]
        )
        ended = [row for row in rows if row is not None and {one, other} <= {*row.authors}]
        if not ended:
            raise errors.NotFound("link", other)
        refused = [row for row in ended if row.claimant]
        for row in refused:
            row.populate(authors=row.authors[:1], claimant="", since=now)
        gone = [row.key for row in ended if row not in refused]
        transactions.apply(
            ownership.Writes(_OWNER, put=tuple(refused), delete=tuple(gone)),
            audit_log.entry_writes(act, site, f"author:{one}", before=other, after="", now=now),
        )

    transactions.transaction(body)


def give_up_claims(site: str, author: str, actor: records.Actor, *, now: datetime) -> int:
    """End a reader's claims on a site, and refuse further ones; return how many ended."""
    claims = [link for link in of_author(author, site) if link.claimant == author]
    imported = [link.authors[0] for link in claims]
    for one in imported:
        unlink(site, one, author, actor, now=now)
    return len(imported)


def allow_claims(
    site: str, imported: str, actor: records.Actor, *, now: datetime, reason: str = ""
) -> None:
    """End the refusal of claims of an imported author.

    Raises:
        errors.NotFound: claims of this author are not refused.
    """
    act = audit_log.Act(actor, "allow-claims", reason)
    key = moderation_rows.claim_key(site, imported)

    def body() -> None:
        if transactions.may_have_run() and audit_log.is_done(act):
            return
        row = reads.get(key)
        if row is None or row.claimant:
            raise errors.NotFound("refusal", imported)
        transactions.apply(
            ownership.Writes(_OWNER, delete=(key,)),
            audit_log.entry_writes(act, site, f"author:{imported}", before="", after="", now=now),
        )

    transactions.transaction(body)


def erase(author: str, site: str | None) -> None:
    """Delete the links of an erased author on a site, or on all sites. Refusals stay."""

    def body() -> None:
        query = reads.Query("AuthorLink", [("authors", "=", author)])
        gone = [
            vote_rows.key_of(message)
            for message in reads.fetch(query)
            if len(_record(message).authors) > 1 and site in {None, _record(message).site}
        ]
        transactions.apply(ownership.Writes(_OWNER, delete=tuple(gone)))

    transactions.transaction(body)


def _join(
    row: moderation_rows.AuthorLinkRow, act: audit_log.Act, one: str, other: str
) -> Sequence[str]:
    """Store a link, its log entry and the bans that it extends; return the ids of the person.

    The entry is in the log of the author `one`.
    """
    ids = list(dict.fromkeys((*person(row.site, one), *person(row.site, other))))

    def extend(book: rulebook.Rulebook) -> rulebook.Rulebook:
        return msgspec.structs.replace(
            book, bans=(*book.bans, *extended_bans(book, ids, row.since))
        )

    if extended_bans(rulebook.from_store(row.site), ids, row.since):
        transactions.apply(rulebook.change_writes(row.site, extend, now=row.since)[2])
    transactions.apply(
        ownership.Writes(_OWNER, put=(row,)),
        audit_log.entry_writes(
            act, row.site, f"author:{one}", before="", after=other, now=row.since
        ),
    )
    return ids


def extended_bans(book: rulebook.Rulebook, ids: Sequence[str], now: datetime) -> list[rulebook.Ban]:
    """Return the strictest ban of these authors for each of them who is not banned."""
    bans = {author: book.ban_of(author, now) for author in ids}
    active = [ban for ban in bans.values() if ban is not None]
    if not active:
        return []
    # A permanent ban that the author notices is the strictest.
    strictest = max(
        active, key=lambda ban: (not ban.is_shadow, ban.until is None, ban.until or now)
    )
    return [
        msgspec.structs.replace(strictest, author=author)
        for author, ban in bans.items()
        if ban is None
    ]


def _links(where: list[tuple[str, str, object]], site: str | None) -> list[AuthorLink]:
    where = where if site is None else [*where, ("site", "=", site)]
    return [_record(message) for message in reads.fetch(reads.Query("AuthorLink", where))]


def _record(message: Any) -> AuthorLink:
    values = message.properties["authors"].array_value.values
    return AuthorLink(
        message.properties["site"].string_value,
        tuple(value.string_value for value in values),
        message.properties["claimant"].string_value,
        conversion.stored_time(message, "since"),
    )
