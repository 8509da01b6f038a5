"""Upload files as the admin console's script does, without a browser."""

from datetime import UTC, datetime, timedelta

from comments.domain import records
from comments.events import audit_log
from comments.transfer.uploads import upload_steps, upload_store
from comments.transfer.uploads.upload_store import UploadState
from tests.support.threads.sample_exports import SECRET

BOB = records.Actor("bob", "Bob")
SIZES = [2, 1, 5, 1, 3]  # The numbers of comments in the threads of an uploaded file
COUNT = sum(SIZES)


class Clock:
    """A clock that the test advances."""

    def __init__(self) -> None:
        self.time = datetime(2026, 1, 2, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.time

    def advance(self, **by: float) -> None:
        self.time += timedelta(**by)


def sent(site: str, data: bytes, clock: Clock, *, name: str = "export.xml", part: int = 50) -> str:
    """Send all parts of a file; return the upload's id."""
    upload = upload_store.begin(site, name, len(data), part, now=clock())
    for number in range(upload.parts):
        piece = data[number * part : (number + 1) * part]
        upload_store.receive(site, upload.id, number, piece, secret=SECRET, now=clock())
    return upload.id


def checked(
    site: str, data: bytes, clock: Clock, *, name: str = "export.xml"
) -> upload_store.Upload:
    """Send a file and check it; return the upload."""
    upload_store.finish(site, sent(site, data, clock, name=name, part=500), now=clock())
    assert upload_steps.do_next_step(site, SECRET, clock=clock)
    return current(site)


def imported(site: str, data: bytes, *, name: str = "export.jsonl") -> upload_store.Upload:
    """Send a file, check it, and import it after the confirmation; return the upload."""
    clock = Clock()
    found = checked(site, data, clock, name=name)
    assert found.state is UploadState.CHECKED, found.problem
    confirm(site, found.id, clock)
    assert upload_steps.do_next_step(site, SECRET, clock=clock)
    done = current(site)
    assert done.state is UploadState.DONE
    return done


def confirm(site: str, upload_id: str, clock: Clock) -> None:
    upload_store.confirm(site, upload_id, audit_log.Act(BOB, "import"), now=clock())


def current(site: str) -> upload_store.Upload:
    upload = upload_store.get(site)
    assert upload is not None
    return upload
