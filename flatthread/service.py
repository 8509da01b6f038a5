"""Run gunicorn with the configuration in `serving`.

gunicorn's own command would put the current folder first on Python's path, and import any `main.py`
in it.
"""

from typing import TYPE_CHECKING

import gunicorn.app.base  # type: ignore[import-untyped]

from flatthread import serving

if TYPE_CHECKING:
    import flask


class _Service(gunicorn.app.base.BaseApplication):  # type: ignore[misc]  # untyped
    def __init__(self, bind: str) -> None:
        self._bind = bind
        super().__init__()

    def load_config(self) -> None:
        for name, value in {**vars(serving), "bind": self._bind}.items():
            if name in self.cfg.settings:
                self.cfg.set(name, value)

    def load(self) -> "flask.Flask":
        import main

        return main.app


def run(bind: str) -> None:
    """Serve on an address, as in "127.0.0.1:8080", until a signal ends this process."""
    _Service(bind).run()
