"""Store the mail server that an owner enters in the console, and add it to the settings.

Owns the kind MailServer, one row for the service:

    MailServer  key: "service"
                content: JSON, a `MailServer`

SMTP_URL has precedence: if it is set, the stored server has no effect. Every process uses the
stored server after at most the time of `row_copies`, without a restart. The service's audit log
(`roles.SERVICE`) notes each change with the host and the port.
"""

import dataclasses
from datetime import UTC, datetime

import msgspec

from comments import config, errors, setting_values
from comments.domain import decoders, records
from comments.domain.crypto import encryption
from comments.domain.moderation import roles
from comments.domain.text.addresses import host_names, mail_addresses
from comments.events import audit_log
from comments.store import ownership, reads, transactions
from comments.store.memory import per_process, row_copies
from comments.store.models import event_rows

_OWNER = "mail_server"
_PURPOSE = "mail server's password"
_NAME = "service"
_LONGEST = 253  # Characters of a user name or a password
_EVER = datetime.max.replace(tzinfo=UTC)  # Passwords do not expire, so `unseal` uses no time.
_MOST_PORT = 65_535


class MailServer(msgspec.Struct, frozen=True):
    """A stored mail server.

    `password` is encrypted, `sender` is the address that mail comes from, and `url` is the address
    of this service for links in mail.
    """

    security: setting_values.Security
    host: str
    port: int
    sender: str
    url: str
    user: str = ""
    password: str = ""

    @property
    def login(self) -> tuple[object, ...]:
        """The values with which the password belongs together."""
        return self.security, self.host, self.port, self.user


def apply(settings: config.Settings) -> config.Settings:
    """Return the settings with the stored mail server, unless the environment names a server.

    The result also has the sender and, without PUBLIC_URL, the address for links in mail. Use it
    only to send mail.
    """
    if settings.smtp is not None or (kept := _COPIES.get().get(_NAME)) is None:
        return settings
    try:
        server = _server(kept, settings.secret)
    except errors.BadLink:  # It was encrypted with a SECRET that is lost.
        return settings
    return dataclasses.replace(
        settings,
        smtp=dataclasses.replace(server, ca_file=settings.smtp_ca_file),
        mail_from=kept.sender,
        public_url=settings.public_url or kept.url,
    )


def sends_mail(settings: config.Settings) -> bool:
    """Return whether the service has a mail server, from the environment or stored."""
    return settings.sends_mail or _COPIES.get().get(_NAME) is not None


def sends_mail_of(site: records.Site, settings: config.Settings) -> bool:
    """Return whether the service sends mail of a site; a staging copy sends none."""
    return not site.copy_of and sends_mail(settings)


def get() -> MailServer | None:
    """Return the stored server as the store has it now."""
    return _read(_NAME)


def check(
    given: MailServer, settings: config.Settings, *, now: datetime
) -> tuple[MailServer, setting_values.Smtp]:
    """Check an owner's input, whose password is not encrypted yet.

    Return the server to store, and the server to connect to. An empty password stands for the
    stored one, but only for the same user at the same server: another server must never get it.

    Raises:
        errors.BadInput: a value is not valid; the error names the field.
    """
    given = _check_values(given, public_url=settings.public_url)
    made = msgspec.structs.replace(given, password=_sealed_password(given, settings.secret, now))
    try:
        server = _server(made, settings.secret)
    except errors.BadLink as error:
        raise errors.BadInput("password", "required") from error
    return made, dataclasses.replace(server, ca_file=settings.smtp_ca_file)


def _check_values(given: MailServer, *, public_url: str) -> MailServer:
    if not 0 < given.port <= _MOST_PORT:
        raise errors.BadInput("port", "out-of-range", minimum=1, maximum=_MOST_PORT)
    host = host_names.canonical(given.host.strip(), "host")
    try:
        sender = mail_addresses.check(given.sender.strip())
        url = setting_values.public_url({"PUBLIC_URL": given.url.strip()})
    except errors.BadInput as error:
        raise error.about("sender") from error
    except errors.Misconfigured as error:
        raise errors.BadInput("url", "not-a-url") from error
    if not (url := url or public_url):
        raise errors.BadInput("url", "required")
    for name in ("user", "password"):
        if len(text := getattr(given, name)) > _LONGEST or not text.isprintable():
            raise errors.BadInput(name, "not-one-line", limit=_LONGEST)
    if given.user and given.security is setting_values.Security.NONE:
        raise errors.BadInput("security", "unencrypted-password")
    return msgspec.structs.replace(given, host=host, sender=sender, url=url)


def _sealed_password(given: MailServer, secret: str, now: datetime) -> str:
    if not given.user:
        return ""
    if given.password:
        return encryption.seal(given.password, _PURPOSE, secret, now=now)
    kept = get()
    if kept is None or kept.login != given.login:
        raise errors.BadInput("password", "required")
    return kept.password


def save(server: MailServer | None, noted: audit_log.Noted) -> None:
    """Store a checked server (`check`), or delete the stored one if `server` is None."""

    def body() -> None:
        kept = _read(_NAME)
        if kept == server:  # Perhaps an earlier run committed, but its response was lost.
            return
        if server is None:
            delete = (event_rows.mail_server_key(),)
            transactions.apply(ownership.Writes(_OWNER, delete=delete))
        else:
            _put(server)
        before, after = (f"{one.host}:{one.port}" if one else "" for one in (kept, server))
        transactions.apply(
            audit_log.entry_writes(
                noted.act, roles.SERVICE, "mail", before=before, after=after, now=noted.now
            )
        )

    transactions.transaction(body)
    _COPIES.get().drop(_NAME)


def renew(secret: str) -> bool:
    """Re-encrypt the password with the current `SECRET`. Return whether it changed."""

    def body() -> bool:
        kept = get()
        fresh = encryption.reseal(kept.password, _PURPOSE, secret) if kept else ""
        if kept and fresh:
            _put(msgspec.structs.replace(kept, password=fresh))
        return bool(fresh)

    return transactions.transaction(body)


def _put(server: MailServer) -> None:
    content = msgspec.json.encode(server).decode()
    row = event_rows.MailServerRow(key=event_rows.mail_server_key(), content=content)
    transactions.apply(ownership.Writes(_OWNER, put=(row,)))


def _server(kept: MailServer, secret: str) -> setting_values.Smtp:
    password = kept.password and encryption.unseal(kept.password, _PURPOSE, secret, now=_EVER)
    return setting_values.Smtp(kept.security, kept.host, kept.port, kept.user, password)


def _read(_name: str) -> MailServer | None:
    row = reads.get(event_rows.mail_server_key())
    return None if row is None else decoders.json(MailServer).decode(row.content)


_COPIES = per_process.PerProcess(lambda: row_copies.RowCopies("MailServer", _read))
