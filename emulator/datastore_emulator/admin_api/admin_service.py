"""The Datastore Admin API, over gRPC and HTTP, loaded on the first call.

Owns the API's method names. A process that never calls a method loads no message classes.
"""

from __future__ import annotations

import logging
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

from datastore_emulator import engine as engines
from datastore_emulator import errors

if TYPE_CHECKING:
    from datastore_emulator.admin_api import admin_methods

SERVICES = {
    "google.datastore.admin.v1.DatastoreAdmin": (
        "ListIndexes",
        "GetIndex",
        "CreateIndex",
        "DeleteIndex",
        "ExportEntities",
        "ImportEntities",
    ),
    "google.longrunning.Operations": (
        "ListOperations",
        "GetOperation",
        "CancelOperation",
        "DeleteOperation",
        "WaitOperation",
    ),
}

_logger = logging.getLogger(__name__)


class AdminService:
    """Answers the Datastore Admin API for one engine.

    Args:
        engine: The engine whose data and indexes are managed.
        folder: The folder that exports are written to and imported from; None disables both.
    """

    def __init__(self, engine: engines.Engine, folder: Path | None = None) -> None:
        self._engine = engine
        self._folder = folder
        self._lock = threading.Lock()
        self._service: admin_methods.AdminMethods | None = None

    def call(self, method: str, request: Any) -> Any:
        """Call a method with a request message and return the response.

        Raises:
            errors.DatastoreError: The call fails with a status other than OK.
        """
        try:
            return self._load().call(method, request)
        except errors.DatastoreError:
            raise
        except Exception as fault:
            _logger.exception("%s failed", method)
            raise errors.EngineFault(f"The emulator failed: {fault!r}") from fault

    def parse(self, method: str, content: bytes) -> Any:
        """Parse the request message of a method.

        Raises:
            errors.InvalidArgument: The content is not a valid request message.
        """
        from google.protobuf import message  # noqa: PLC0415 - only callers pay for it

        try:
            return self.request(method).FromString(content)
        except message.DecodeError as error:
            raise errors.InvalidArgument(
                f"The request is not a {method}Request: {error}"
            ) from error

    def request(self, method: str) -> Any:
        """Return the request message class of a method."""
        from datastore_emulator.admin_api import admin_protobufs  # noqa: PLC0415 - only callers pay for it

        return admin_protobufs.REQUESTS[method]

    def _load(self) -> admin_methods.AdminMethods:
        from datastore_emulator.admin_api import admin_methods  # noqa: PLC0415 - only callers pay for it

        with self._lock:
            if self._service is None:
                self._service = admin_methods.AdminMethods(self._engine, self._folder)
            return self._service

    def close(self) -> None:
        """End all running operations."""
        if self._service is not None:
            self._service.close()
