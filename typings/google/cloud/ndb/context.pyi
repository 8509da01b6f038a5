import contextlib
from typing import Any

class Context:
    transaction: bytes
    client: Any
    eventloop: Any
    def use(self) -> contextlib.AbstractContextManager[Context]: ...
