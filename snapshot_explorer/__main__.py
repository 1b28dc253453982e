"""The `snapshot-explorer` command, which is also `python -m snapshot_explorer`."""

import sys

try:
    from snapshot_explorer.terminal.program import run
except KeyboardInterrupt:  # loading it takes half a second
    sys.exit(130)  # as shells write it

if __name__ == "__main__":
    run()
