"""The command `flatthread`: serve, and all commands of `comments.cli`.

There are three ways to run the same command: `flatthread` in an environment,
`python -m flatthread`, and `python FOLDER` with the path of this folder. The module imports only
what help texts and errors in arguments need.
"""

import gc
import sys
from pathlib import Path

_HERE = Path(__file__).parent


def main() -> None:
    """Run the command that the arguments name."""
    if not __package__:  # `python FOLDER` puts this folder on the path, instead of its parent
        sys.path[0] = str(_HERE.parent)
    # In a wheel, the rest of the clone is in a folder of this package.
    if (_HERE / "program").exists():
        sys.path.insert(0, str(_HERE / "program"))
    # `main.py` explains this.
    gc.disable()
    from flatthread import command_line

    gc.freeze()
    gc.enable()
    command_line.run()


if __name__ == "__main__":
    main()
