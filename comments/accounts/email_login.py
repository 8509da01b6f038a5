"""Signing in by mail: a link to an address, a code for the page that asked for it.

Owns the way of a reader from his address to an account:

1. a page of the site asks: the address is mailed a link, the page is given the key of a ticket
2. the link opens a page of ours, in whichever browser; its button shows a code
3. he types the code where he is commenting: key and code together sign him in, there

So nothing is carried between browsers or windows but what he reads and types, no cookie is needed,
and whoever has an address mailed in somebody else's name gets nothing of it: he has the key and
lacks the code, which only the mailbox leads to.

What must stay true:

- An answer depends on what was asked, never on whether an address is known here.
- A mailbox is mailed at most `PER_ADDRESS` times an hour, whatever is put behind a "+" and wherever
  dots are (`mail_addresses.mailbox`); one network may ask `PER_NETWORK` times.
- While very many mails are asked for, to one domain or in all, each takes a proof of work, which is
  good for one mail (`login_mail_rush`). Whether it is asked for depends on no address.
- A code is of one ticket and one site, good for `TERM`, once, and for `TRIES` guesses, which are
  counted in the transaction that compares it: of many at once none is free.
- To open the link changes nothing. Its button can be pressed again; the newest code counts.
"""

import secrets
from datetime import datetime, timedelta

import msgspec

from comments import config, errors
from comments.accounts import accounts, identities, login_mail_rush, one_time_links, reader_accounts
from comments.domain import records
from comments.domain.crypto import encryption, keyed_hashes, proof_of_work
from comments.domain.text import cleaning, mail_addresses
from comments.events import backlog, outbox
from comments.events.mail import mail_jobs
from comments.sites import proof_policy, rate_limits
from comments.store import ownership, transactions

TERM = timedelta(minutes=30)
TRIES = 5
PER_ADDRESS = rate_limits.Limit("sign-in mails", 5, timedelta(hours=1))
PER_NETWORK = rate_limits.Limit("asked sign-in mails", 10, timedelta(hours=1))
# A proof expires before it is forgotten.
_PER_PROOF = rate_limits.Limit("proofs for sign-in mails", 1, proof_of_work.TERM)
_CODE = "sign-in code"
_LINK = "sign-in link"
_CODE_BYTES = 5  # 40 bits, as eight letters and digits


class Link(msgspec.Struct, frozen=True, array_like=True):
    """What the link of a mail holds, sealed: whose key asked for it, for which site, to whom."""

    key: str
    site: str
    address: str


class _Pending(msgspec.Struct, frozen=True):
    """What the ticket holds: the site, the sealed address, the code's digest, guesses so far."""

    site: str
    address: str
    code: str = ""
    tries: int = 0


def ask(
    email: str,
    site: records.Site,
    *,
    network: str,
    settings: config.Settings,
    now: datetime,
    proof: str = "",
) -> str:
    """Have an address mailed a link; the key for the page that asked.

    `proof` is a solved challenge; it counts only while too many mails are asked for.

    Raises:
        errors.BadInput: the address is not one plain address.
        errors.Conflict: this service sends no mail.
        errors.Forbidden: too many mails are asked for, and the proof is missing, wrong or used.
        errors.TooMany: the network asked too often.
        errors.Overloaded: the store did not answer in time.
    """
    if not settings.sends_mail:
        raise errors.Conflict("no-mail")
    secret, key = settings.secret, one_time_links.new_token()
    identity = identities.of_address(email)
    link = _link(Link(key, site.id, mail_addresses.check(email)), secret, now)
    event = outbox.mail_id("entering", secrets.token_hex(16))
    subject = encryption.seal(identity.subject, _LINK, secret, now=now)
    pending = _Pending(site.id, subject)
    mine = rate_limits.Network(PER_NETWORK, network, secret)
    theirs = rate_limits.Bucket(PER_ADDRESS, mail_addresses.mailbox(email), secret)
    rush = login_mail_rush.MailRush(email.rpartition("@")[2], secret)
    one_time_links.sweep(now=now)

    def body() -> bool:
        rate_limits.read(mine, theirs, *rush.buckets, now=now)
        if mine.is_empty:
            raise errors.TooMany(retry_after=mine.wait(now))
        paid = [_spent(proof, site.id, secret, now)] if rush.is_on else []
        ticket = one_time_links.Ticket(one_time_links.Purpose.SIGN_IN, _text(pending))
        writes = [mine.take(), one_time_links.issuing(key, ticket, secret, now=now, term=TERM)]
        is_sent = not theirs.is_empty
        if is_sent:
            detail = mail_jobs.encode(mail_jobs.LoginMail(link))
            row = outbox.follow(outbox.Kind.MAIL, event, detail, due=now)
            writes += [theirs.take(), outbox.written([row])]
        transactions.apply(*writes, *rush.take(), *paid)
        return is_sent

    is_sent = transactions.transaction(body)
    rush.tell(now)
    if is_sent:
        backlog.tell(event)
    return key


def _link(made: Link, secret: str, now: datetime) -> str:
    return encryption.seal(msgspec.json.encode(made).decode(), _LINK, secret, now=now)


def _spent(proof: str, site: str, secret: str, now: datetime) -> ownership.Writes:
    """What marks a proof as used, in the transaction of the mail that it is for."""
    proved = proof_policy.check(proof, site, proof_policy.Purpose.SIGN_IN, secret=secret, now=now)
    bucket = rate_limits.Bucket(_PER_PROOF, proved.digest.hex(), secret)
    rate_limits.read(bucket, now=now)
    if bucket.is_empty:
        raise errors.Forbidden("proof-spent")
    return bucket.take()


def link_of(link: str, *, secret: str, now: datetime) -> Link:
    """What the link of a mail holds.

    Raises:
        errors.BadLink: it is none of ours, or too old.
    """
    text = encryption.unseal(link, _LINK, secret, now=now, term=TERM)
    return msgspec.json.decode(text, type=Link)


def code(link: str, *, secret: str, now: datetime) -> str:
    """A code for whoever holds the link, in groups of four; it takes the place of an earlier one.

    Raises:
        errors.BadLink: the link is none of ours, was used, or is too old.
    """
    key = link_of(link, secret=secret, now=now).key
    made = keyed_hashes.text(secrets.token_bytes(16))[: _CODE_BYTES * 8 // 5]

    def body() -> None:
        pending = _read(key, secret, now)
        _put(key, msgspec.structs.replace(pending, code=_digest(key, made, secret)), secret)

    transactions.transaction(body)
    return f"{made[:4]} {made[4:]}"


def sign_in(
    key: str, given: str, name: str, site: str, *, secret: str, now: datetime
) -> accounts.Account:
    """Sign in whoever holds the key and read the code.

    A name is a reader's own to choose; somebody with a role keeps the one he has.

    Raises:
        readers.Refused: the code is not the one of this key and site, or was used, or is too old,
            or was guessed at too often.
        errors.BadInput: the name cannot be one.
        errors.Overloaded: the store did not answer in time.
    """
    name, attempt = cleaning.clean_name(name), one_time_links.new_token()
    plain = given.replace(" ", "").replace("-", "").lower()

    def body() -> str | None:
        try:
            content, used = one_time_links.using(
                key, one_time_links.Purpose.SIGN_IN, attempt, secret, now=now
            )
        except errors.BadLink as error:
            raise reader_accounts.Refused("code-expired") from error
        pending = msgspec.json.decode(content, type=_Pending)
        if pending.site != site or pending.tries >= TRIES:
            raise reader_accounts.Refused("too-many-guesses")
        if keyed_hashes.is_one(pending.code, secret, _CODE, key, plain):
            transactions.apply(used)
            return pending.address
        _put(key, msgspec.structs.replace(pending, tries=pending.tries + 1), secret)
        return None

    who = transactions.transaction(body)
    if who is None:
        raise reader_accounts.Refused("wrong-code")
    identity = identities.Identity(identities.MAIL, encryption.unseal(who, _LINK, secret, now=now))
    return _account(identity, name, secret, now)


def _account(
    identity: identities.Identity, name: str, secret: str, now: datetime
) -> accounts.Account:
    found = accounts.by_identity(identity, secret)
    if found is not None and found.grants:
        return found
    return reader_accounts.sign_in(reader_accounts.Reader(identity, name), secret=secret, now=now)


def _read(key: str, secret: str, now: datetime) -> _Pending:
    attempt = one_time_links.new_token()
    content, _ = one_time_links.using(key, one_time_links.Purpose.SIGN_IN, attempt, secret, now=now)
    return msgspec.json.decode(content, type=_Pending)


def _put(key: str, pending: _Pending, secret: str) -> None:
    transactions.apply(one_time_links.holding(key, _text(pending), secret))


def _text(pending: _Pending) -> str:
    return msgspec.json.encode(pending).decode()


def _digest(key: str, made: str, secret: str) -> str:
    return keyed_hashes.text(keyed_hashes.keyed(secret, _CODE, key, made))
