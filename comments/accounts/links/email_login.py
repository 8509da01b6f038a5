"""Sign readers in by e-mail, with a mailed link and a code to type on the requesting page.

The steps of an e-mail login:

1. A page of the site requests a login. The service mails a link to the address, and returns the key
   of a one-time token to the page.
2. The link opens a page of this service, in any browser. A button on that page shows a code.
3. The reader types the code on the page where they are commenting. The key and the code together
   sign the reader in on that page.

Browsers and windows exchange nothing except the code that the reader types, and no cookie is
needed. An attacker who requests a mail for another person's address has the key, but cannot get the
code without access to the mailbox.

A response depends only on the request, never on whether this service knows the address. A mailbox
gets at most `PER_ADDRESS` mails an hour, no matter which "+" suffixes and dots are used
(`mail_addresses.mailbox`), and a network can make `PER_NETWORK` requests an hour. During a rush
(unusually many requests for one domain or in total), each mail needs a proof of work
(`login_mail_rush`). Whether a proof is required may depend on the domain, but not on the address.

A code is valid until `TERM` ends, until it is used, or until a few wrong guesses (`typed_codes`).
The button that shows the code can be pressed again, but only the newest code is valid.
"""

import secrets
from datetime import datetime, timedelta
from typing import NamedTuple

import msgspec

from comments import config, errors
from comments.accounts import accounts, identities, reader_accounts
from comments.accounts.links import one_time_links, typed_codes
from comments.domain import decoders, records
from comments.domain.crypto import encryption, proof_of_work
from comments.domain.text import cleaning
from comments.domain.text.addresses import mail_addresses
from comments.events import backlog, mail_jobs, outbox
from comments.limits import login_mail_rush, proof_policy, rate_limits
from comments.sites import mail_server, site_settings
from comments.store import ownership, transactions

TERM = timedelta(minutes=30)
PER_ADDRESS = rate_limits.Limit("sign-in mails", 5, timedelta(hours=1))
PER_NETWORK = rate_limits.Limit("asked sign-in mails", 10, timedelta(hours=1))
# The record that a proof was used outlives the proof.
_PER_PROOF = rate_limits.Limit("proofs for sign-in mails", 1, proof_of_work.TERM)
_PURPOSE = one_time_links.LinkPurpose.SIGN_IN
_LINK = "sign-in link"


class Link(msgspec.Struct, frozen=True, array_like=True):
    """The encrypted content of a mailed link: the requesting page's key, the site, the address."""

    key: str
    site: str
    address: str


class MailReader(NamedTuple):
    """A reader who signed in by mail, and the address that the reader has proved, in lower case."""

    account: accounts.Account
    address: str


def ask(
    email: str,
    site: records.Site,
    *,
    network: str,
    settings: config.Settings,
    now: datetime,
    proof: str = "",
) -> str:
    """Mail a sign-in link to an address, and return the key for the page that requested it.

    `proof` is a solved challenge; it is needed only during a rush.

    Raises:
        errors.BadInput: the address is not one plain address.
        errors.Conflict: this service sends no mail.
        errors.Forbidden: there is a rush, and the proof is missing, wrong or used.
        errors.TooMany: the network made too many requests.
        errors.Overloaded: the store did not answer in time.
    """
    if not mail_server.sends_mail_of(site, settings):
        raise errors.Conflict("no-mail")
    secret, key = settings.secret, one_time_links.new_token()
    identity = identities.of_address(email)
    link = _link(Link(key, site.id, mail_addresses.check(email)), secret, now)
    event = outbox.mail_id("entering", secrets.token_hex(16))
    subject = encryption.seal(identity.subject, _LINK, secret, now=now)
    content = typed_codes.CodedContent(site.id, subject).text
    mine = rate_limits.Network(PER_NETWORK, network, secret)
    theirs = rate_limits.RateLimitBucket(PER_ADDRESS, mail_addresses.mailbox(email), secret)
    rush = login_mail_rush.MailRush(email.rpartition("@")[2], secret)
    one_time_links.sweep(now=now)

    def body() -> bool:
        rate_limits.read(mine, theirs, *rush.buckets, now=now)
        if mine.is_empty:
            raise errors.TooMany(retry_after=mine.wait(now))
        paid = [_proof_writes(proof, site.id, secret, now)] if rush.is_on else []
        issued = one_time_links.issue_writes(key, _PURPOSE, content, secret, now=now, term=TERM)
        writes = [mine.count_writes(), issued]
        is_sent = not theirs.is_empty
        if is_sent:
            detail = mail_jobs.encode(mail_jobs.LoginMail(link))
            row = outbox.follow(outbox.EventKind.MAIL, event, detail, due=now)
            writes += [theirs.count_writes(), outbox.follow_up_writes([row])]
        transactions.apply(*writes, *rush.count_writes(), *paid)
        return is_sent

    is_sent = transactions.transaction(body)
    rush.tell(now)
    if is_sent:
        backlog.tell(event)
    return key


def _link(made: Link, secret: str, now: datetime) -> str:
    return encryption.seal(msgspec.json.encode(made).decode(), _LINK, secret, now=now)


def _proof_writes(proof: str, site: str, secret: str, now: datetime) -> ownership.Writes:
    """Return the writes that mark a proof as used, for the transaction that queues the mail."""
    proved = proof_policy.check(
        proof, site, proof_policy.ChallengePurpose.SIGN_IN, secret=secret, now=now
    )
    bucket = rate_limits.RateLimitBucket(_PER_PROOF, proved.digest.hex(), secret)
    rate_limits.read(bucket, now=now)
    if bucket.is_empty:
        raise errors.Forbidden("proof-spent")
    return bucket.count_writes()


def link_of(link: str, *, secret: str, now: datetime) -> Link:
    """Decrypt the content of a mailed link.

    Raises:
        errors.BadLink: the link is not valid, or has expired, or its site is deleted.
    """
    text = encryption.unseal(link, _LINK, secret, now=now, term=TERM)
    decoded = decoders.json(Link).decode(text)
    if not site_settings.is_active(decoded.site):
        raise errors.BadLink
    return decoded


def code(link: str, *, secret: str, now: datetime) -> str:
    """Make a code for a link, as two groups of four characters. The code replaces any earlier one.

    Raises:
        errors.BadLink: the link is not valid, was used, or has expired.
    """
    key = link_of(link, secret=secret, now=now).key
    made = typed_codes.new_code()

    def body() -> None:
        attempt = one_time_links.new_token()
        content, _ = one_time_links.use_writes(key, _PURPOSE, attempt, secret, now=now)
        coded = typed_codes.decode(content)
        fresh = msgspec.structs.replace(coded, code=typed_codes.digest(key, made, secret))
        transactions.apply(one_time_links.content_writes(key, fresh.text, secret))

    transactions.transaction(body)
    return typed_codes.in_groups(made)


def sign_in(
    key: str, given: str, name: str, site: str, *, secret: str, now: datetime
) -> MailReader:
    """Sign in the reader who has both the key and the code.

    Readers choose their display name; an account with a role keeps its name.

    Raises:
        reader_accounts.Refused: the code does not match this key and site, has been used or has
            expired, or there were too many guesses.
        errors.BadInput: the name is not valid.
        errors.Overloaded: the store did not answer in time.
    """
    name = cleaning.clean_name(name)
    who = typed_codes.redeem(key, _PURPOSE, site, given, str, secret=secret, now=now)
    identity = identities.Identity(identities.MAIL, encryption.unseal(who, _LINK, secret, now=now))
    reader = reader_accounts.Reader(identity, name)
    account = reader_accounts.sign_in(reader, secret=secret, now=now)
    return MailReader(account, identity.subject)
