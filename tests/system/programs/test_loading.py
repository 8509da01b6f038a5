"""What loading the service leaves to each of its processes, which share what was loaded before."""

import subprocess
import sys
from pathlib import Path

from tests.support import programs

LOADED = """
import gc, sys
import main
import werkzeug.test

app = main.app
assert gc.isenabled()
assert gc.get_freeze_count() > 100_000

import comments.app

comments.app.warm_up(app)
before = set(sys.modules)
client = werkzeug.test.Client(app)
for path in sys.argv[1:]:
    assert client.get(path).status_code == 200
assert set(sys.modules) == before, sorted(set(sys.modules) - before)
"""

PATHS = ("/", "/api/v1/sites/demo/comments?thread=demo", "/healthz")


def test_pages_need_no_further_modules_and_only_later_garbage_is_collected(tmp_path: Path) -> None:
    ended = subprocess.run(
        [sys.executable, "-c", LOADED, *PATHS],
        cwd=programs.ROOT,
        env=programs.environment(FLATTHREAD_DATA=str(tmp_path)),
        check=False,
        capture_output=True,
        text=True,
    )
    assert ended.returncode == 0, ended.stderr
