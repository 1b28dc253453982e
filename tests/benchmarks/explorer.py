"""What an interaction with the explorer costs: kernel time, and bytes that are sent to the browser.

    python tests/benchmarks/explorer.py [COMMITS] [FILES] [ROWS]

A Delta table of 10,000 commits and 100,000 files by default, in memory, and one of a million rows and 60 columns on
disk, whose rows are shown, filtered, sorted and scrolled; a real ipykernel runs the explorer and sends to
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
    ("files, sorted by size", "e.receive({'grid': {'place': 'files', 'arrange': {'sort': 2}}}); e.wait(600); None"),
    ("files, change of version", "e.state.b = COMMITS - 50; e.wait(600); None"),
    ("files, back, read already", "e.state.b = COMMITS - 1; e.wait(600); None"),
    ("manifests, first time", "e.state.tab = 'manifests'; e.wait(600); None"),
    ("compare", "e.state.tab = 'compare'; e.wait(600); None"),
    ("compare, files", "e.state.compared = 'files'; e.wait(600); None"),
    ("health", "e.state.tab = 'health'; e.wait(600); None"),
)

OPEN_WIDE = """
from tests.support.delta.table_builder import add
import tempfile, numpy as np, pyarrow as pa, pyarrow.parquet as pq
from pathlib import Path
ROWS, random = {rows}, np.random.default_rng(7)
folder = tempfile.TemporaryDirectory()
root = Path(folder.name)
columns = {{f"i{{at}}": random.integers(0, 10 ** (at % 9 + 1), ROWS) for at in range(20)}}
columns |= {{f"f{{at}}": random.random(ROWS) * 1000 for at in range(20)}}
words = np.array([f"word {{at}}" for at in range(1000)])
columns |= {{f"s{{at}}": words[random.integers(0, 1000, ROWS)] for at in range(20)}}
types = dict(i="long", f="double", s="string")
fields = [dict(name=name, type=types[name[0]], nullable=True, metadata={{}}) for name in columns]
schema = {{"type": "struct", "fields": fields}}
rows = pa.table(columns)
adds = []
for at in range(4):
    part = rows.slice(at * ROWS // 4, ROWS // 4)
    pq.write_table(part, root / f"part-{{at}}.parquet")
    adds.append(add(f"part-{{at}}.parquet", size=(root / f"part-{{at}}.parquet").stat().st_size, rows=len(part)))
(root / "_delta_log").mkdir()
actions = [protocol(), metadata(orjson.dumps(schema).decode()), *adds]
(root / commit_name(0)).write_bytes(b"\\n".join(orjson.dumps(one) for one in actions))
del rows, columns
wide = sx.open_table(root)
w = sx.explore(wide)
display(w)
w.wait(600)
None
"""
WIDE_STEPS = (
    ("rows, first page", "w.state.tab = 'data'; w.wait(600); None"),
    ("rows, a condition on one column", "w.state.where = 'i3 = 77'; w.wait(600); None"),
    ("rows, a condition on two columns", "w.state.where = 'f2 > 900 and i1 = 9'; w.wait(600); None"),
    ("rows, a condition that most pass", "w.state.where = 'f2 > 10'; w.wait(600); None"),
    ("rows, scrolled to the middle", "w.receive({'grid': {'place': 'data', 'need': ROWS // 2}}); w.wait(600); None"),
    ("rows, sorted", "w.state.where = ''; w.state.sort = 'f3'; w.wait(600); None"),
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
    defaults = ("10000", "100000", "1000000")
    commits, files, rows = map(int, [*sys.argv[1:], *defaults[len(sys.argv) - 1 :]])
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
        run(client, OPEN_WIDE.format(rows=rows))
        print(f"{rows:,} rows of 60 columns")
        for name, code in WIDE_STEPS:
            seconds, taken, size = run(client, code)
            print(f"{name:36}{seconds * 1000:10,.0f}{taken * 1000:10,.0f}{size:12,}")
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)


if __name__ == "__main__":
    main()
