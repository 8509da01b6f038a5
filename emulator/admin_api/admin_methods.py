"""The Datastore Admin API: which method is whose, and the methods about operations.

Owns the size of requests. Callers go through `admin_service`.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from emulator import engine as engines
from emulator import errors
from emulator.admin_api import (
    admin_protobufs,
    index_methods,
    list_filters,
    operations,
    transfer_methods,
)
from emulator.encoding import entities

Message = admin_protobufs.Message

MAX_REQUEST_BYTES = 1024 * 1024


class AdminMethods:
    """Answers the methods of the admin API for one engine.

    Args:
        engine: whose data and indexes.
        folder: where exports are; None for none.
    """

    def __init__(self, engine: engines.Engine, folder: Path | None) -> None:
        running = operations.Operations(engine.clock)
        ours = index_methods.IndexMethods(engine, running)
        moves = transfer_methods.TransferMethods(engine, folder, running)
        self._operations = running
        self._methods: dict[str, Callable[[Message], Message]] = {
            "ListIndexes": ours.list_all,
            "GetIndex": ours.get,
            "CreateIndex": ours.create,
            "DeleteIndex": ours.delete,
            "ExportEntities": moves.export,
            "ImportEntities": moves.load,
            "ListOperations": self._list_operations,
            "GetOperation": lambda request: running.get(request.name),
            "CancelOperation": self._cancel,
            "DeleteOperation": self._delete,
            "WaitOperation": self._wait,
        }

    def call(self, method: str, request: Message) -> Message:
        """Answer one request.

        Raises:
            errors.DatastoreError: the request is answered with another status than OK.
        """
        if request.ByteSize() > MAX_REQUEST_BYTES:
            raise errors.InvalidArgument(f"The request is larger than {MAX_REQUEST_BYTES} bytes.")
        return self._methods[method](request)

    def close(self) -> None:
        """End all operations."""
        self._operations.close()

    def _list_operations(self, request: Message) -> Message:
        project = request.name.removeprefix("projects/").removesuffix("/operations")
        if not request.name.startswith("projects/"):
            raise errors.InvalidArgument(f'name: "{request.name[:100]}" is not like projects/NAME.')
        entities.request_partition(project, "")
        wanted = list_filters.parse(request.filter, operations.FIELDS)
        found = [
            message
            for message, field in self._operations.all_of(project)
            if list_filters.meets(wanted, field)
        ]
        response = admin_protobufs.ListOperationsResponse()
        page, response.next_page_token = list_filters.page(
            found, lambda made: str(made.name), size=request.page_size, token=request.page_token
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
