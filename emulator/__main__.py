"""`python -m emulator` in a clone, which needs no installation of the package."""

import runpy

if __name__ == "__main__":
    runpy.run_module("datastore_emulator", run_name="__main__", alter_sys=True)
