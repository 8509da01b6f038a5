"""The Datastore Admin API called in one line each, in this process."""

from emulator.admin_api import admin_protobufs, admin_service

PATIENCE = 60  # seconds


class Admin:
    """Calls the methods with fields, and waits for operations."""

    def __init__(self, engine, folder=None):
        self.api = admin_service.AdminService(engine, folder)

    def call(self, method, **fields):
        return self.api.call(method, self.api.request(method)(**fields))

    def export(self, prefix="gs://bucket", project="test", **fields):
        return self.call("ExportEntities", project_id=project, output_url_prefix=prefix, **fields)

    def load(self, url, project="test", **fields):
        return self.call("ImportEntities", project_id=project, input_url=url, **fields)

    def ended(self, operation):
        """Wait for the end of an operation."""
        found = self.call("WaitOperation", name=operation.name, timeout={"seconds": PATIENCE})
        assert found.done
        return found

    def exported(self, *arguments, **fields):
        """Export and return the URL."""
        response = admin_protobufs.ExportEntitiesResponse()
        operation = self.ended(self.export(*arguments, **fields))
        assert operation.response.Unpack(response), operation.error
        return response.output_url

    def loaded(self, *arguments, **fields):
        """Import; returns how many entities were read."""
        operation = self.ended(self.load(*arguments, **fields))
        assert operation.HasField("response"), operation.error
        return metadata(operation).progress_entities.work_completed


def metadata(operation):
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
