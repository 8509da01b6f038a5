"""The Datastore Admin API's methods: dispatching calls, and managing operations.

Owns the request size limit. Other modules call these methods through `admin_service`.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from datastore_emulator import engine as engines
from datastore_emulator import errors
from datastore_emulator.admin_api import (
    admin_protobufs,
    index_methods,
    list_filters,
    operations,
    transfer_methods,
)
from datastore_emulator.encoding import entities

Message = admin_protobufs.Message

MAX_REQUEST_BYTES = 1024 * 1024


class AdminMethods:
    """Answers admin API calls for one engine.

    Args:
        engine: The engine whose data and indexes are managed.
        folder: The folder for exports; None disables exports and imports.
    """

    def __init__(self, engine: engines.Engine, folder: Path | None) -> None:
        running = operations.Operations(engine.clock)
        for_indexes = index_methods.IndexMethods(engine, running)
        for_transfers = transfer_methods.TransferMethods(engine, folder, running)
        self._operations = running
        self._methods: dict[str, Callable[[Message], Message]] = {
            "ListIndexes": for_indexes.list_all,
            "GetIndex": for_indexes.get,
            "CreateIndex": for_indexes.create,
            "DeleteIndex": for_indexes.delete,
            "ExportEntities": for_transfers.export,
            "ImportEntities": for_transfers.load,
            "ListOperations": self._list_operations,
            "GetOperation": lambda request: running.get(request.name),
            "CancelOperation": self._cancel,
            "DeleteOperation": self._delete,
            "WaitOperation": self._wait,
        }

    def call(self, method: str, request: Message) -> Message:
        """Answer one request.

        Raises:
            errors.DatastoreError: The call fails with a status other than OK.
        """
        if request.ByteSize() > MAX_REQUEST_BYTES:
            raise errors.InvalidArgument(f"The request is larger than {MAX_REQUEST_BYTES} bytes.")
        return self._methods[method](request)

    def close(self) -> None:
        self._operations.close()

    def _list_operations(self, request: Message) -> Message:
        project = request.name.removeprefix("projects/").removesuffix("/operations")
        if not request.name.startswith("projects/"):
            raise errors.InvalidArgument(
                f'name: "{request.name[:100]}" must have the form projects/NAME.'
            )
        entities.request_partition(project, "")
        wanted = list_filters.parse(request.filter, operations.FIELDS)
        matches = [
            message
            for message, field in self._operations.all_of(project)
            if list_filters.matches(wanted, field)
        ]
        response = admin_protobufs.ListOperationsResponse()
        page, response.next_page_token = list_filters.page(
            matches, lambda made: str(made.name), size=request.page_size, token=request.page_token
        )
        response.operations.extend(page)
        return response

    def _cancel(self, request: Message) -> Message:
        self._operations.cancel(request.name)
        return admin_protobufs.Empty()

    def _delete(self, request: Message) -> Message:
        self._operations.delete(request.name)
        return admin_protobufs.Empty()

    def _wait(self, request: Message) -> Message:
        seconds = None
        if request.HasField("timeout"):
            seconds = request.timeout.seconds + request.timeout.nanos / 1_000_000_000
        return self._operations.wait(request.name, seconds)
