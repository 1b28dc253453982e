"""Nothing in the package writes but the few places that are listed here, each with what it writes.

Reading tables is all that the package does with them, so a new call of a writer has to go through
`results/outputs.py`, which refuses the folders of tables, or be listed.
"""

import ast
from pathlib import Path

PACKAGE = Path(__file__).parents[2] / "snapshot_explorer"

_NAMES = """
write_text write_bytes touch mkdir makedirs unlink rmdir removedirs rename renames symlink_to hardlink_to symlink
link truncate ftruncate chmod lchmod copymode copystat copy2 copyfile copyfileobj copytree move move_into
copy_into rmtree mkstemp mkdtemp mktemp NamedTemporaryFile TemporaryFile SpooledTemporaryFile TemporaryDirectory
mkfifo mknod extractall make_archive fdopen dup2 sendfile pwrite writev

to_csv to_json to_parquet to_orc to_feather to_excel to_hdf to_pickle to_stata to_xml
write_table write_batch write_csv write_feather write_dataset write_to_dataset write_metadata write_parquet
write_json write_html write_image write_excel write_database write_delta savefig imsave save saveAsTable
insertInto writeTo writeStream ParquetWriter ORCWriter CSVWriter OSFile FileOutputStream output_stream
create_memory_map new_stream new_file RecordBatchFileWriter RecordBatchStreamWriter put put_file pipe pipe_file
upload sink_parquet sink_csv sink_ipc dump open_output_stream open_append_stream delete_dir delete_file
create_dir
"""
WRITERS = frozenset(_NAMES.split())
"""Names of functions, methods and classes that write, in the standard library and in libraries that are used here."""

ALLOWED = {
    # The one way to write a file for the user.
    ("results/outputs.py", "open 'xb'"): "the new file, beside the one that it takes the place of",
    ("results/outputs.py", "open 'wb'"): "a pipe or a device",
    ("results/outputs.py", "replace"): "the new file takes its place",
    ("results/outputs.py", "unlink"): "the new file, after an error",
    ("results/outputs.py", "copymode"): "the permissions of the file that is replaced",
    ("results/outputs.py", "mkdir"): "the folder of a cache",
    ("results/outputs.py", "mkdtemp"): "a folder for temporary files, which is not in a table",
    # Into what `outputs.py` opened.
    ("results/exports.py", "CSVWriter"): "into an output, or memory",
    ("results/exports.py", "ParquetWriter"): "into an output",
    ("results/exports.py", "write_table"): "into an output, or memory",
    # Into its folders for temporary files.
    ("results/stored_rows.py", "RecordBatchStreamWriter"): "the type of a variable",
    ("results/stored_rows.py", "new_stream"): "rows of a result",
    ("results/stored_rows.py", "write_table"): "rows of a result",
    ("results/stored_rows.py", "rmtree"): "the folder, with the result",
    ("analysis/diff/spilled_rows.py", "RecordBatchStreamWriter"): "the type of a variable",
    ("analysis/diff/spilled_rows.py", "OSFile 'wb'"): "rows that do not fit in memory",
    ("analysis/diff/spilled_rows.py", "new_stream"): "rows that do not fit in memory",
    ("analysis/diff/spilled_rows.py", "write_table"): "rows that do not fit in memory",
    ("analysis/diff/spilled_rows.py", "unlink"): "rows that were read again",
    ("analysis/diff/spilled_rows.py", "rmtree"): "the folder, at the end",
    ("samples/__init__.py", "copytree"): "the copy of a sample",
    ("samples/__init__.py", "rmtree"): "the copy of a sample, when Python exits",
    ("formats/ducklake/metadata/databases.py", "TemporaryDirectory"): "the folder of the copy of a catalog on a store",
    ("formats/ducklake/metadata/databases.py", "write_bytes"): "the copy of a catalog on a store",
    # Into memory, a pipe between processes, or standard output.
    ("engines/spark/tasks.py", "new_stream"): "a message to an executor, in memory",
    ("engines/spark/tasks.py", "write_table"): "a message to an executor, in memory",
    ("history/lifetimes/reading.py", "new_stream"): "the content of a file, in memory",
    ("history/lifetimes/reading.py", "write_table"): "the content of a file, in memory",
    ("jupyter/explorer/page/files.py", "write_table"): "a file for the browser, in memory",
    ("jupyter/explorer/page/files.py", "write_csv"): "a file for the browser, in memory",
    ("lake/processes.py", "dump"): "an answer, to the process that asked",
    ("lake/processes.py", "fdopen 'wb'"): "the pipe to that process",
    ("lake/processes.py", "dup2"): "what is printed goes to standard error there",
    ("formats/hudi/scan/merge.py", "put"): "a row among others in memory",
    ("jupyter/explorer/work.py", "put"): "into a queue",
    ("lake/processes.py", "put"): "into a queue",
    ("storage/__init__.py", "dump"): "a pickle, in memory",
    ("storage/concurrency.py", "put"): "into a queue",
    ("formats/row_groups.py", "to_json"): "text of a field",
    ("terminal/commands.py", "to_json"): "text to print",
    ("view/plotly_figure.py", "to_json"): "text of a figure",
    ("terminal/program.py", "dup2"): "standard output, when nobody reads it any more",
}
"""Each call that may write: its file, and the name with its mode; and what it writes."""


def calls(tree):
    """Yield the name of every writer in a module, with the mode of files that are opened."""
    called = {id(node.func): node for node in ast.walk(tree) if isinstance(node, ast.Call)}
    own = own_names(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            yield from (item.name for item in node.names if item.name in WRITERS - own)
        if not isinstance(node, ast.Attribute | ast.Name) or isinstance(node.ctx, ast.Store):
            continue
        name = node.attr if isinstance(node, ast.Attribute) else node.id
        call = called.get(id(node))
        if name in ("open", "OSFile", "memory_map", "fdopen", "FileIO"):
            yield from (f"{name} {mode}" for mode in [written_mode(call)] if mode is not None)
        elif name == "replace" and isinstance(node, ast.Attribute):
            # A path's has one argument; a text's has two, a date's and a record's have names.
            is_module = isinstance(node.value, ast.Name) and node.value.id == "os"
            if is_module or (call is not None and len(call.args) == 1 and not call.keywords):
                yield name
        elif name in WRITERS and (isinstance(node, ast.Attribute) or (call is not None and name not in own)):
            yield name


def own_names(tree):
    """Return the names of functions that a module defines or imports from this package, in which writers are found."""
    names = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("snapshot_explorer"):
            names.update(item.asname or item.name for item in node.names)
    return names


def written_mode(call):
    """Return the mode of a file that is opened to be written; None for one that is read."""
    if call is None:
        return None
    modes = [item.value for item in call.args if isinstance(item, ast.Constant) and isinstance(item.value, str)]
    modes += [item.value.value for item in call.keywords if item.arg == "mode" and isinstance(item.value, ast.Constant)]
    return next((repr(mode) for mode in modes if set(mode) <= set("rwaxbt+") and set(mode) & set("wax+")), None)


def written(path):
    name = str(path.relative_to(PACKAGE))
    return {(name, call) for call in calls(ast.parse(path.read_text("utf-8")))}


def test_what_writes_is_listed_and_what_is_listed_writes():
    there = set().union(*(written(path) for path in PACKAGE.rglob("*.py")))

    assert there == set(ALLOWED)


def test_each_way_to_write_is_found():
    """The list would be worth nothing if it did not see what it is for."""
    code = """
Path(path).write_bytes(content)
path.open("w")
open(path, mode="a")
open(path, "r+b")
os.replace(a, b)
Path(a).replace(b)
partial(Path.write_text, path)
pq.write_table(rows, path)
figure.write_html(path)
frame.to_csv(path)
os.fdopen(handle, "wb")
pa.OSFile(path, "wb")
from shutil import copyfile
"""
    found = list(calls(ast.parse(code)))
    unfound = list(calls(ast.parse('open(path); open(path, "rb"); "a".replace("b", "c"); record.replace(a=1)')))

    assert len(found) == len(code.strip().splitlines())
    assert unfound == []
