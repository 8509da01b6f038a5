"""The command `flatthread`: serve, and all commands of `comments.cli`.

`flatthread` in an environment, `python -m flatthread` and `python FOLDER`, with the path of this
folder, run the same command. It imports nothing that a help text or a refused argument can do
without.
"""

import gc
import sys
from pathlib import Path

_HERE = Path(__file__).parent


def main() -> None:
    """Run the command that the arguments name."""
    if not __package__:  # `python FOLDER` puts this folder on the path, instead of the one above
        sys.path[0] = str(_HERE.parent)
    # A wheel keeps the rest of the clone in a folder of this package.
    if (_HERE / "program").exists():
        sys.path.insert(0, str(_HERE / "program"))
    # `main` says why.
    gc.disable()
    from flatthread import command_line

    gc.freeze()
    gc.enable()
    command_line.run()


if __name__ == "__main__":
    main()
