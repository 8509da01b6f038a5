"""The options of the mixed loads on the command line."""

import argparse


def parser(description: str, **usual: int) -> argparse.ArgumentParser:
    """Return a parser for the length and the size of a load; `usual` has the usual sizes."""
    made = argparse.ArgumentParser(description=description)
    made.add_argument("--minutes", type=float, default=30.0)
    for name, number in usual.items():
        made.add_argument(f"--{name}", type=int, default=number)
    made.add_argument("--seed", type=int, default=1)
    return made
