"""Every API response matches the OpenAPI document.

schemathesis reads the served document and sends both requests that the document allows and requests
that it forbids: values at and beyond each limit, missing fields, undefined methods, calls without a
token. The regular run uses one seed; `CONTRACT_EXAMPLES=500 CONTRACT_SEED=7` runs longer.
"""

import collections
import dataclasses
import os
from collections.abc import Iterator
from typing import Any

import pytest
import schemathesis
from schemathesis.config import SchemathesisConfig
from schemathesis.engine import events, from_schema

from comments.web.api.description import operations
from tests.support import api_fuzzing, datastores
from tests.support.outside import mail_server

pytestmark = pytest.mark.slow

EXAMPLES = int(os.environ.get("CONTRACT_EXAMPLES", "3"))
SEED = int(os.environ.get("CONTRACT_SEED", "1"))
CHECKS = {
    "not_a_server_error", "status_code_conformance", "content_type_conformance",
    "response_headers_conformance", "response_schema_conformance", "negative_data_rejection",
    "unsupported_method", "allow_header_conformance", "ignored_auth",
}  # fmt: skip


# These calls need a signature over their exact bytes, a provider's answer, or a moderator's token,
# so they are always refused here.
VOUCHED = {
    "giveOpinion", "enterByProvider", "beginModeration", "endModeration", "listPending",
    "postAsStaff", "decide", "banAuthor", "unbanAuthor", "priceAudiences",
    "listAuthorLinks", "linkAuthors", "unlinkAuthors",
}  # fmt: skip


# An HTTP server refuses a longer address before any call of the API sees it.
TOO_LONG = 414


@dataclasses.dataclass
class Run:
    """A run's statuses, checks and failures."""

    statuses: dict[str, collections.Counter[int]]
    checks: collections.Counter[str]
    failures: list[str]


@pytest.fixture(scope="module")
def run(shared_datastore: datastores.Datastore) -> Iterator[Run]:
    with mail_server.serving() as box:
        stocked = api_fuzzing.stocked(shared_datastore.connect(), box.settings())
        with api_fuzzing.served(stocked.app) as url:
            yield asked(stocked, url)


def asked(stocked: api_fuzzing.Stocked, url: str) -> Run:
    """Run schemathesis; return its statuses, checks and failures."""
    settings = SchemathesisConfig.from_dict(
        {
            "seed": SEED,
            "continue-on-failure": True,
            "generation": {"max-examples": EXAMPLES},
            "auth": {"auto-signup": False},
            # A schema cannot express all rules for texts, names and cursors.
            "checks": {"positive_data_acceptance": {"enabled": False}},
        }
    )
    schema = schemathesis.openapi.from_url(f"{url}/api/v1/openapi.json", config=settings)

    @schemathesis.hook
    def before_call(_context: Any, case: schemathesis.Case, _kwargs: Any) -> None:
        stocked.fill(case)

    @schema.auth(refresh_interval=None)  # No cache, because each call needs a separate token
    class Token:
        def get(self, case: schemathesis.Case, _context: Any) -> str:
            return stocked.token(case)

        def set(self, case: schemathesis.Case, data: str, _context: Any) -> None:
            case.headers["Authorization"] = f"Bearer {data}"

    found = Run(collections.defaultdict(collections.Counter), collections.Counter(), [])
    for event in from_schema(schema).execute():
        if isinstance(event, events.FatalError):
            raise event.exception
        if isinstance(event, events.NonFatalError):
            found.failures.append(f"{event.label}: {event.value!r}")
        if isinstance(event, events.ScenarioFinished):
            _note(found, event)
    return found


def _note(run: Run, event: events.ScenarioFinished) -> None:
    recorder = event.recorder
    for number, interaction in recorder.interactions.items():
        case = recorder.cases[number].value
        if interaction.response is not None and case.method == case.operation.method.upper():
            name = case.operation.definition.raw["operationId"]
            run.statuses[name][interaction.response.status_code] += 1
    for number, checks in recorder.checks.items():
        run.checks.update(each.name for each in checks)
        for each in [each for each in checks if each.failure_info is not None]:
            failure, response = each.failure_info.failure, recorder.interactions[number].response
            if response is not None and response.status_code == TOO_LONG:
                continue
            said = "" if response is None else f"{response.status_code} {response.content!r:.300}"
            call = recorder.cases[number].value.as_curl_command()
            run.failures.append(f"{each.name}: {failure.title}: {failure.message}; {call}: {said}")


def test_every_response_is_one_that_the_document_defines(run: Run) -> None:
    assert run.failures == []


def test_every_operation_was_requested_and_checked(run: Run) -> None:
    """Prove that the test above checked responses."""
    # schemathesis omits the operation that serves the document.
    assert run.statuses.keys() == {each.name for each in operations.table().operations} - {
        "describe"
    }
    fine = {name for name, found in run.statuses.items() if any(each < 300 for each in found)}
    assert run.statuses.keys() - fine == VOUCHED
    refused = {status for found in run.statuses.values() for status in found}
    assert refused >= {400, 401, 404}
    assert run.checks.keys() >= CHECKS
    assert sum(run.checks.values()) > 5_000
