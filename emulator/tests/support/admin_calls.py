"""One-line calls of the Datastore Admin API in this process."""

import json
from pathlib import Path
from typing import Any

from datastore_emulator import inprocess
from datastore_emulator.admin_api import admin_protobufs, admin_service
from datastore_emulator.import_export import json_lines
from emulator.tests.support import service_calls

PATIENCE = 60  # Seconds


class Admin:
    """Calls the API's methods with plain fields, and waits for operations."""

    def __init__(self, engine: inprocess.Engine, folder: Path | None = None) -> None:
        self.api = admin_service.AdminService(engine, folder)

    def call(self, method: str, **fields: Any) -> Any:
        return self.api.call(method, self.api.request(method)(**fields))

    def export(self, prefix: str = "gs://bucket", project: str = "test", **fields: Any) -> Any:
        return self.call("ExportEntities", project_id=project, output_url_prefix=prefix, **fields)

    def load(self, url: str, project: str = "test", **fields: Any) -> Any:
        return self.call("ImportEntities", project_id=project, input_url=url, **fields)

    def ended(self, operation: Any) -> Any:
        """Wait until an operation has ended."""
        found = self.call("WaitOperation", name=operation.name, timeout={"seconds": PATIENCE})
        assert found.done
        return found

    def exported(self, *arguments: str, **fields: Any) -> str:
        """Export entities and return the URL."""
        response = admin_protobufs.ExportEntitiesResponse()
        operation = self.ended(self.export(*arguments, **fields))
        assert operation.response.Unpack(response), operation.error
        return response.output_url

    def loaded(self, *arguments: str, **fields: Any) -> int:
        """Import an export; return the number of entities read."""
        operation = self.ended(self.load(*arguments, **fields))
        assert operation.HasField("response"), operation.error
        return metadata(operation).progress_entities.work_completed


def metadata(operation: Any) -> Any:
    """Return the metadata of an operation."""
    for kind in (
        admin_protobufs.ExportEntitiesMetadata,
        admin_protobufs.ImportEntitiesMetadata,
        admin_protobufs.IndexOperationMetadata,
    ):
        made = kind()
        if operation.metadata.Unpack(made):
            return made
    raise AssertionError(operation)


def fill(service: service_calls.Service, numbers: range = range(1, 4)) -> None:
    for namespace in ("", "n"):
        for kind in ("T", "U"):
            service.commit(
                *(
                    {"upsert": service.entity(service.key(kind, n, namespace=namespace), a=n)}
                    for n in numbers
                )
            )


def whole(
    engine: inprocess.Engine,
) -> list[dict[str, dict[str, dict[Any, Any] | list[Any]] | dict[str, dict[Any, Any]]]]:
    """Return all entities as lines, without their commit times."""
    lines = b"".join(json_lines.export(engine.storage, json_lines.Selection())).splitlines()
    return [json.loads(line)["entity"] for line in lines]
