"""What an interaction with the explorer costs: kernel time, and bytes that are sent to the browser.

    python tests/benchmarks/explorer.py [COMMITS] [FILES]

A Delta table of 10,000 commits and 100,000 files by default, in memory; a real ipykernel runs the explorer and sends to
this process, over ZeroMQ, what it would send to a browser. `total` ends when all that was asked for is drawn, `cpu` is
the processor time that the kernel took for it, and bytes are those of all messages about widgets.
"""

# ruff: noqa: T201 - it prints what it measured

import json
import os
import sys
import time
from pathlib import Path

from jupyter_client.manager import start_new_kernel

sys.path.append(str(Path(__file__).parents[2]))

from tests.benchmarks.report import record

ROOT = Path(__file__).parents[2]
CHANGE = "change of version, read already"
OPEN = """
import fsspec, orjson, sys
from tests.support.delta.table_builder import commit_name, metadata, protocol
import snapshot_explorer as sx
store = fsspec.filesystem("memory")
COMMITS, FILES = {commits}, {files}
each = max(1, FILES // COMMITS)
def line(version):
    info = {{"commitInfo": {{"timestamp": 1767225600000 + version * 60000, "operation": "WRITE",
             "operationParameters": {{"mode": "Append"}}, "operationMetrics": {{"numFiles": str(each)}}}}}}
    adds = [{{"add": {{"path": f"part-{{version:06d}}-{{at}}.parquet", "partitionValues": {{}}, "size": 1000 + at,
             "modificationTime": 0, "dataChange": True, "stats": '{{"numRecords":10}}'}}}} for at in range(each)]
    first = [protocol(), metadata()] if version == 0 else []
    return b"\\n".join(orjson.dumps(one) for one in [info, *first, *adds])
for version in range(COMMITS):
    store.pipe_file(f"/bench/t/{{commit_name(version)}}", line(version))
table = sx.open_table("memory:///bench/t")
"""
STEPS = (
    ("import", "from snapshot_explorer.jupyter.explorer import Explorer"),
    ("open the explorer", "e = sx.explore(table); display(e); e.wait(600); None"),
    ("next version: not read yet", "e.state.b = COMMITS - 50; e.wait(600); None"),
    (CHANGE, "e.state.b = COMMITS - 1; e.wait(600); None"),
    ("window of 1,000 versions", "e.state.window = (COMMITS - 1_000, COMMITS - 1); e.wait(600); None"),
    ("window of all versions", "e.state.window = (0, COMMITS - 1); e.wait(600); None"),
    ("filter by text", "e.state.text = 'nothing'; e.wait(600); None"),
    ("all shown again", "e.state.reset_filters(); e.wait(600); None"),
    ("window of 300 versions", "e.state.window = (COMMITS - 300, COMMITS - 1); e.wait(600); None"),
    ("change of version, few commits", "e.state.b = COMMITS - 50; e.wait(600); None"),
    ("and back", "e.state.b = COMMITS - 1; e.wait(600); None"),
    ("files, first time", "e.state.tab = 'files'; e.wait(600); None"),
    ("files, next page", "e.state.turn('files', 1); e.wait(600); None"),
    ("files, sorted by size", "e.state.file_order = 'size_bytes'; e.wait(600); None"),
    ("files, change of version", "e.state.b = COMMITS - 50; e.wait(600); None"),
    ("files, back, read already", "e.state.b = COMMITS - 1; e.wait(600); None"),
    ("manifests, first time", "e.state.tab = 'manifests'; e.wait(600); None"),
    ("manifests, next page", "e.state.turn('manifests', 1); e.wait(600); None"),
    ("compare", "e.state.tab = 'compare'; e.wait(600); None"),
    ("compare, files", "e.state.compared = 'files'; e.wait(600); None"),
    ("health", "e.state.tab = 'health'; e.wait(600); None"),
)


def processor_seconds(client):
    """Return the processor time that the kernel has taken so far."""
    asked = client.execute("import time", silent=True, user_expressions={"taken": "time.process_time()"})
    while True:
        reply = client.get_shell_msg(timeout=900)
        if reply["parent_header"].get("msg_id") == asked:
            return float(reply["content"]["user_expressions"]["taken"]["data"]["text/plain"])


def run(client, code):
    """Run code in the kernel; return seconds, processor seconds and the bytes of messages about widgets."""
    began, before = time.perf_counter(), processor_seconds(client)
    request = client.execute(code)
    size = 0
    while True:
        message = client.get_iopub_msg(timeout=900)
        kind = message["msg_type"]
        if kind.startswith("comm_"):
            size += len(json.dumps(message["content"])) + sum(len(one) for one in message["buffers"])
        if kind == "error":
            raise SystemExit("\n".join(message["content"]["traceback"]))
        is_ours = message["parent_header"].get("msg_id") == request
        if kind == "status" and message["content"]["execution_state"] == "idle" and is_ours:
            seconds = time.perf_counter() - began
            return seconds, processor_seconds(client) - before, size


def main():
    commits, files = (int(given) for given in (*sys.argv[1:], "10000", "100000")[:2])
    manager, client = start_new_kernel(env=os.environ | {"PYTHONPATH": str(ROOT)})
    try:
        run(client, OPEN.format(commits=commits, files=files))
        print(f"{commits:,} commits, {files:,} files")
        print(f"{'interaction':36}{'total ms':>10}{'cpu ms':>10}{'bytes':>12}")
        for name, code in STEPS:
            seconds, taken, size = run(client, code)
            print(f"{name:36}{seconds * 1000:10,.0f}{taken * 1000:10,.0f}{size:12,}")
            if name == CHANGE:
                work = f"explorer, {commits:,} commits: change to another version"
                record(work, taken, processor=True, note=f"{size / 1000:.0f} kB are sent to the browser")
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)


if __name__ == "__main__":
    main()
