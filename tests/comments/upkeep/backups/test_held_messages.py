"""A restored service sends no message that was pending when the backup was made (F27)."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

import embedded_engine
from comments import config
from comments.events import dead_letters, dispatcher, message_sender, safe_http
from comments.store import connection, reads
from comments.upkeep.backups import held_messages, store_backup, store_restore
from comments.upkeep.integrity import recount
from tests.support import loopback_servers
from tests.support.histories import counter_oracle
from tests.support.outside import mail_server, mail_service, webhook_site

pytestmark = pytest.mark.embedded

LIMITS = safe_http.RequestLimits(connect=60.0, total=60.0)  # All receivers here answer immediately
NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


class Told:
    """A service in a file, and what it has told a subscriber and a webhook."""

    def __init__(
        self, settings: config.Settings, box: mail_server.Box, hook: loopback_servers.Receiver
    ) -> None:
        self.settings = settings
        self.box = box
        self.hook = hook
        self.client = loopback_servers.client(hook.port, limits=LIMITS)

    def run(self, store: connection.Store) -> mail_service.MailService:
        """Return the service of a store, whose context is entered."""
        message_sender.OUTBOUND.put(store, self.client)
        return mail_service.MailService(store, self.settings, self.box)

    def send_all(self, service: mail_service.MailService) -> None:
        """Deliver and send everything that becomes due within a day."""
        for _ in range(3):
            service.deliver()
            message_sender.serve(lambda: service.now)
            service.now += timedelta(hours=8)

    @property
    def count(self) -> tuple[int, int]:
        return len(self.box.taken), len(self.hook.heard)


@pytest.fixture
def told(
    service: config.Settings, box: mail_server.Box, told: list[loopback_servers.Receiver]
) -> Told:
    settings = box.settings(data_dir=service.data_dir, backup_dir=service.backup_dir)
    return Told(settings, box, told[0])


@pytest.fixture
def pending(told: Told, files: embedded_engine.DataFiles, tmp_path: Path) -> Path:
    """A backup with a pending event, mail job and webhook message; the service then sends them."""
    with files.open_store(told.settings.data_file, told.settings) as store, store.context():
        service = told.run(store)
        service.subscribe("fan@example.org")
        webhook_site.register("hook", told.hook.url, told.client)
        service.say("planned")
        handlers = [each for each in service.handlers if each.name != "mail"]
        dispatcher.deliver(counter_oracle.events(), now=service.now, handlers=handlers)
        service.say("told to nobody yet")
    backup = store_backup.make(told.settings, files, tmp_path / "backup", now=NOW).path
    with files.open_store(told.settings.data_file, told.settings) as store, store.context():
        told.send_all(told.run(store))
    assert told.count == (2, 2)
    return backup


def test_nothing_is_sent_again_after_a_restore(
    told: Told, pending: Path, files: embedded_engine.DataFiles
) -> None:
    restored = store_restore.restore(pending, told.settings, files, now=NOW)
    assert restored.held == 4
    with files.open_store(told.settings.data_file, told.settings) as store, store.context():
        service = told.run(store)
        told.send_all(service)
        assert told.count == (2, 2)
        differences: list[recount.Difference] = []
        recount.site("demo", tell=differences.append, fixes=False)
        recount.thread(mail_service.THREAD, tell=differences.append, fixes=False)
        assert differences == []
        service.say("new")
        told.send_all(service)
        assert told.count == (3, 3)


def test_an_owner_can_send_what_is_held(
    told: Told, pending: Path, files: embedded_engine.DataFiles
) -> None:
    store_restore.restore(pending, told.settings, files, now=NOW)
    with files.open_store(told.settings.data_file, told.settings) as store, store.context():
        service = told.run(store)
        letters = dead_letters.dead().letters
        assert {each.reason for each in letters} == {held_messages.REASON}
        assert len(letters) == 4
        for each in letters:
            dead_letters.revive(each.id, now=service.now)
        told.send_all(service)
        assert told.count == (4, 4)
        assert dead_letters.dead().letters == ()


def test_a_subscription_that_was_ended_stays_ended(
    told: Told, pending: Path, files: embedded_engine.DataFiles
) -> None:
    with files.open_store(told.settings.data_file, told.settings) as store, store.context():
        service = told.run(store)
        service.subscribe("other@example.org")
        mail_service.subscriptions.forget(service.id_of("fan@example.org"), now=service.now)
    restored = store_restore.restore(pending, told.settings, files, now=NOW)
    assert restored.repeated == (0, 0, 1, 0)
    with files.open_store(told.settings.data_file, told.settings) as store, store.context():
        service = told.run(store)
        assert reads.count(reads.Query("Subscriber")) == 0
        service.say("new")
        told.send_all(service)
        assert told.count == (2, 3)


def test_holding_twice_holds_nothing_more(
    told: Told, pending: Path, files: embedded_engine.DataFiles
) -> None:
    store_restore.restore(pending, told.settings, files, now=NOW)
    with files.open_store(told.settings.data_file, told.settings) as store, store.context():
        assert held_messages.hold(told.settings, now=NOW) == 0
