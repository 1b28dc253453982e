"""Writers that append to many Delta tables at the same time, with the library deltalake, and log each commit.

    .venv-oracles/bin/python tests/oracles/live_lake.py FOLDER LOG [--tables N] [--seconds N]

A line of LOG is the table, the version, and the times in nanoseconds before and after the commit. A file `enough` in
FOLDER ends them.
"""

import argparse
import threading
import time
from pathlib import Path

import pyarrow as pa
from deltalake import write_deltalake


def write(folder, log, end, lock):
    """Append to a table until a time, or until enough was written."""
    version = 0
    while time.monotonic() < end and not folder.with_name("enough").exists():
        began = time.time_ns()
        write_deltalake(str(folder), pa.table({"id": pa.array([version], pa.int64())}), mode="append")
        with lock:
            log.write(f"{folder.name} {version} {began} {time.time_ns()}\n")
        version += 1
        time.sleep(0.02)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("log", type=Path)
    parser.add_argument("--tables", type=int, default=20)
    parser.add_argument("--seconds", type=float, default=120)
    arguments = parser.parse_args()
    lock, end = threading.Lock(), time.monotonic() + arguments.seconds
    with arguments.log.open("w", buffering=1) as log:
        threads = [
            threading.Thread(target=write, args=(arguments.folder / f"t{number:02}", log, end, lock))
            for number in range(arguments.tables)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()


if __name__ == "__main__":
    main()
