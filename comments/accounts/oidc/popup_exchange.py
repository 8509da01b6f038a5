"""Exchange a code from the sign-in pop-up for a token on the reader's page.

`window_codes` makes and checks the codes. The content of a code is the encrypted record of the
person whom the provider identified.

A reader's account is found only by issuer and `sub`. If the account does not exist, the exchange
creates it.
"""

from datetime import datetime

import msgspec

from comments import errors
from comments.accounts import accounts, reader_accounts
from comments.accounts.links import one_time_links, window_codes
from comments.accounts.oidc import oidc_client
from comments.domain import decoders
from comments.domain.crypto import encryption
from comments.domain.text import cleaning

_PURPOSE = "voucher"


def issue(
    person: oidc_client.ProviderUser, site: str, challenge: str, *, secret: str, now: datetime
) -> str:
    """Make a window code for a page's challenge. Return its code as two groups of four characters.

    Raises:
        errors.Conflict: the challenge has already had a window code.
    """
    who = encryption.seal(msgspec.json.encode(person).decode(), _PURPOSE, secret, now=now)
    claim = window_codes.Claim(one_time_links.LinkPurpose.WINDOW_CODE, site, who)
    return window_codes.issue(claim, challenge, secret=secret, now=now)


def redeem(
    verifier: str, given: str, name: str, site: str, *, secret: str, now: datetime
) -> accounts.Account:
    """Return the account of the reader who has the verifier and the code.

    If there is no account yet, create one. Readers choose their display name; if `name` is empty,
    they keep their current name or get the name from the provider. An account with a role keeps its
    name.

    Raises:
        reader_accounts.Refused: see `window_codes.redeem`.
        errors.BadInput: the name is not valid, or missing.
    """
    name = cleaning.clean_name(name) if name.strip() else ""
    reader = window_codes.redeem(
        one_time_links.LinkPurpose.WINDOW_CODE,
        site,
        window_codes.PresentedCode(verifier, given),
        lambda content: _reader(content, name, secret, now),
        secret=secret,
        now=now,
    )
    return reader_accounts.sign_in(reader, secret=secret, now=now)


def _reader(content: str, name: str, secret: str, now: datetime) -> reader_accounts.Reader:
    """Return a window code's reader, in the transaction that uses the window code."""
    text = encryption.unseal(content, _PURPOSE, secret, now=now)
    person = decoders.json(oidc_client.ProviderUser).decode(text)
    account = accounts.by_identity(person.identity, secret)
    called = name or (account.name if account else person.name)
    if not called:
        raise errors.BadInput("name", "required")
    return reader_accounts.Reader(person.identity, called)
