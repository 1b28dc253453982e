"""`snapshot-explorer notebook PATH`: JupyterLab, with a notebook that opens a table or a lake."""

import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from itertools import count
from pathlib import Path

import orjson

from snapshot_explorer.core.errors import (
    InvalidArgumentError,
    MissingDependencyError,
    ResourceError,
    TableNotFoundError,
)
from snapshot_explorer.core.hints import Hint, python_call
from snapshot_explorer.core.url_secrets import hide_url_secrets
from snapshot_explorer.jupyter.commands import COMMANDS
from snapshot_explorer.jupyter.spelling import magic_line
from snapshot_explorer.lake import open_lake
from snapshot_explorer.results.outputs import output_file
from snapshot_explorer.table import open_table
from snapshot_explorer.terminal.commands import storage_options_in

_UNNAMED = "table"


def start_notebook(path: str, *, options_file: str | None, file: str | None, words: Sequence[str]) -> int:
    """Write a notebook that opens a path, start JupyterLab with it, and return its exit status when it ends.

    Args:
        path: The path or URL of a table, or of a folder of tables.
        options_file: A JSON file of storage options, which the notebook reads; it does not contain them.
        file: The notebook to write; by default a new one in the current folder, named after the table.
        words: Further arguments of JupyterLab.

    Raises:
        MissingDependencyError: JupyterLab is not installed.
        InvalidArgumentError: The URL contains a secret, which a notebook would keep.
    """
    if find_spec("jupyterlab") is None:
        raise MissingDependencyError(
            "notebook starts JupyterLab, which is not installed. Install it: pip install jupyterlab; or run "
            "uvx --with jupyterlab snapshot-explorer notebook PATH."
        )
    if hide_url_secrets(path) != path:
        raise InvalidArgumentError(
            "The URL contains a secret, which the notebook would keep. Put it into a file: --storage-options FILE."
        )
    name, cells = _cells(path, options_file)
    target = Path(file) if file else _free_name(name)
    try:
        with output_file(target) as notebook:
            notebook.write(orjson.dumps(_notebook(cells), option=orjson.OPT_INDENT_2))
    except OSError as error:
        raise ResourceError(f"{target} cannot be written: {error.strerror}. Name another file with --file.") from error
    lab = subprocess.Popen([sys.executable, "-m", "jupyterlab", str(target), *words])  # noqa: S603 - of the user
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)  # JupyterLab asks, and ends
    try:
        return lab.wait()
    finally:
        signal.signal(signal.SIGINT, before)


def _cells(path: str, options_file: str | None) -> tuple[str, list[str]]:
    """Return a name for what is at the path, and the code of the cells that open it."""
    options = storage_options_in(options_file) if options_file else None
    more = {"storage_options": "options"} if options_file else {}
    try:
        table = open_table(path, storage_options=options)
        name = table.name if table.name.isidentifier() else _UNNAMED
        opening = _line(Hint("open_table", {"path": table.path}, name), bool(more))
        return name, [*_loading(options_file), opening, "%snapshot log", "%snapshot explore"]
    except TableNotFoundError as error:
        try:
            lake = open_lake(path, storage_options=options)
        except TableNotFoundError:
            raise error from None
        opening = _line(Hint("open_lake", {"path": lake.name}, "lake"), bool(more))
        return "lake", [*_loading(options_file), opening, "from snapshot_explorer import explore\n\nexplore(lake)"]


def _loading(options_file: str | None) -> Iterator[str]:
    yield "%load_ext snapshot_explorer"
    if options_file is not None:
        path = str(Path(options_file).absolute())
        yield f"import json\nfrom pathlib import Path\n\noptions = json.loads(Path({path!r}).read_text())"


def _line(hint: Hint, has_options: bool) -> str:  # noqa: FBT001 - of one caller
    """Return a cell that opens something: a line of the magic, or Python where no quotes fit the path."""
    line = magic_line(hint, COMMANDS)
    if line == python_call(hint):
        verb = hint.verb
        line = f"from snapshot_explorer import {verb}\n\n{line}"
        return line.removesuffix(")") + ", storage_options=options)" if has_options else line
    return f"{line} --options options" if has_options else line


def _free_name(name: str) -> Path:
    """Return the name of a notebook that does not exist in the current folder."""
    names = (Path(f"{name}.ipynb" if number == 1 else f"{name}-{number}.ipynb") for number in count(1))
    return next(path for path in names if not path.exists())


def _notebook(cells: Sequence[str]) -> dict[str, object]:
    """Return a notebook of code cells, in nbformat 4.5.

    Source: nbformat docs, "The Notebook file format".
    """
    return {
        "nbformat": 4,
        "nbformat_minor": 5,
        "metadata": {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}},
        "cells": [
            {
                "cell_type": "code",
                "id": f"cell-{number}",
                "metadata": {},
                "execution_count": None,
                "outputs": [],
                "source": source,
            }
            for number, source in enumerate(cells, 1)
        ],
    }
