"""Write `notebooks/guide/commands.md` from the commands of `%snapshot`, with an example of each and its output.

    python -m tests.scripts.guide_commands

It also writes the outputs in the pages of questions (`notebooks/questions/`) below their lines. All examples run in a
real IPython shell on copies of samples in fsspec's memory: their paths are the same everywhere.
`tests/package/test_guide.py` fails where a page differs from what this writes.
"""

import re
from collections.abc import Callable, Iterator
from contextlib import chdir, contextmanager
from itertools import groupby
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest.mock import patch

import fsspec
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output

from snapshot_explorer import samples
from snapshot_explorer.jupyter.commands import COMMANDS
from tests.inner.jupyter import Command, Option, usage

NOTEBOOKS = Path(__file__).parents[2] / "notebooks"
PAGE = NOTEBOOKS / "guide" / "commands.md"
QUESTIONS = sorted((NOTEBOOKS / "questions").glob("*.md"))

EXAMPLES = {
    "open": ("%snapshot open {path} as orders", "%snapshot open"),
    "status": ("%snapshot",),
    "lake": ("%snapshot lake {path} --at 2026-11-12", "%snapshot lake memory://lake --list"),
    "explore": ("%snapshot explore",),
    "help": ("%snapshot help tags",),
    "log": ("%snapshot log -n 5", "%snapshot log 5..9 --picture"),
    "show": ("%snapshot show 8", "%snapshot show 8 --schema"),
    "tags": ("%snapshot tags",),
    "branches": ("%snapshot branches",),
    "diff": ("%snapshot diff 7..8", "t = %snapshot diff orders orders --twins\nt.verdict"),
    "profile": ("%snapshot profile 6..9 --columns amount", "%snapshot profile --anomalies"),
    "blame": ('%snapshot blame "order_id = 42" --columns status,amount',),
    "bisect": ('%snapshot bisect "amount < 0" --good 5 --bad 8',),
    "trace": ('t = %snapshot trace "order_id = 42"\nt.verdict',),
    "repair": ("%snapshot repair 15",),
    "health": ("%snapshot health",),
    "check": ('%snapshot check --fail-on anomaly,schema-change,"rows < 0.5 * previous" --at 2026-11-14 --since 2d',),
    "verify": ("v = %snapshot verify --footers\nv.verdict",),
    "orphans": ("o = %snapshot orphans\no.verdict",),
    "files": ("%snapshot files 8", '%snapshot files 8 --where "order_id = 42"'),
    "manifests": ("%snapshot manifests 8", "%snapshot manifests 8 --entries {manifest}"),
    "inspect": ("%snapshot inspect buckets 8",),
    "retention": ("%snapshot retention --keep 0d --keep-last 3",),
    "usage": ("%snapshot usage", "%snapshot usage --without 1..8"),
    "load": ('%snapshot load 8 --where "amount < 0" --limit 3', "%snapshot load --duplicates --key buyer"),
    "sql": ('%snapshot sql "select status, count(*) as n from orders version as of 8 group by all order by all"',),
    "report": ('%snapshot report night.html 7..8 --where "order_id = 42"',),
}
"""Lines for each command, as they are typed on a table that was opened by the first one."""

_ROOT = "/lake/shop.db"
TABLES = ("orders", "payments", "shipments", "rides", "events", "invoices")
"""The samples in memory. DuckLake's catalog has to be a local file."""
_LINES, _MORE_LINES = 14, 30
"""The lines of an output that the page of commands shows, and a page of a question."""
_EXAMPLE = re.compile(r"```ipython\n(.*?)```\n(?:\n```text\n.*?```\n)?", re.DOTALL)
"""An example on a page of a question, with its output."""

_HEAD = """# Commands

`%load_ext snapshot_explorer` brings `%snapshot`, or `%snap` for short. A command is a short spelling of one Python
call, and returns what the call returns. Every command has `--help`, examples and tab completion. This page is generated
by `python -m tests.scripts.guide_commands`. Its outputs are from a copy of the sample table `orders` in memory, which
these lines make:

```python
import fsspec
from snapshot_explorer import samples
fsspec.filesystem("memory").put(samples.path("orders"), "/lake/shop.db/orders", recursive=True)
path = "memory://lake/shop.db/orders"
```

A line is accepted as people usually write it: `%snapshot 17` shows a version, `%snapshot 3..4` and `%snapshot diff 3 4`
compare two, `log 5` and `log -5` return five commits, `load 8 as df` assigns, and `%snapshot sql select ...`,
`%snapshot select ...` or `%%snapshot` with a query below it need no quotes. `history` and `versions` are `log`,
`describe` is `show --schema`, `watch` is `explore --follow`, and `show tables` is `open`, which lists the open tables.

`{variable}` and `$variable` stand for their values. A semicolon at the end of the line shows nothing; `NAME << ...`,
`... as NAME` or `-o NAME` put the result into a variable. `%config SnapshotMagics` lists the settings, such as how many
rows are drawn, and the size from which `load` requires `--limit` or `--yes`. Work that takes longer than a second shows
its progress.
"""


def page() -> str:
    """Return the page."""
    with _shell() as run:
        parts = [_section(command, run) for command in COMMANDS]
    contents = []
    for question, commands in groupby(COMMANDS, key=lambda command: command.question):
        contents += ["", f"**{question}**", "", "| command | |", "|---|---|"]
        contents += [f"| [`{one.name}`](#{one.name}) | {_cell(one.summary)} |" for one in commands]
    return "\n".join([_HEAD.rstrip("\n"), *contents, "", *parts])


def question(page: Path) -> str:
    """Return the text of a question's page with the outputs of its examples."""
    with _shell() as run:
        run(f"%unload_ext snapshot_explorer\npath = 'memory:/{_ROOT}'")

        def filled(found: re.Match[str]) -> str:
            text = _shortened(run(found[1]), _MORE_LINES)
            return f"```ipython\n{found[1]}```\n" + (f"\n```text\n{text}\n```\n" if text else "")

        return _EXAMPLE.sub(filled, page.read_text("utf-8"))


@contextmanager
def _shell() -> Iterator[Callable[[str], str]]:
    """Return a function that runs a line in a shell of its own and returns what it shows."""
    shell = InteractiveShell()
    memory = fsspec.filesystem("memory")
    for name in TABLES:
        memory.put(samples.path(name), f"{_ROOT}/{name}", recursive=True)

    def run(line: str) -> str:
        with capture_output() as shown:
            shell.run_cell(line, store_history=True).raise_error()
            texts = [shown.stdout, *(output.data.get("text/plain", "") for output in shown.outputs)]
        text = "\n".join(one.rstrip() for one in texts if one.strip())
        return re.sub(r"^Out\[\d+\]: ?\n?", "", text, flags=re.MULTILINE)

    run("%load_ext snapshot_explorer")
    shell.user_ns["path"] = f"memory:/{_ROOT}/orders"
    try:
        with (
            TemporaryDirectory() as folder,
            chdir(folder),
            patch.object(samples, "path", lambda name: f"memory:/{_ROOT}/{name}"),
        ):
            yield run
    finally:
        shell.extension_manager.unload_extension("snapshot_explorer")
        shell.history_manager.end_session()
        shell.restore_sys_module_state()
        memory.rm("/lake", recursive=True)


def _section(command: Command, run: Callable[[str], str]) -> str:
    rows = [(item.name, item.meaning) for item in command.arguments]
    rows += [(_flags(item), item.meaning) for item in command.options]
    parts = [
        f"## {command.name}",
        command.summary if command.summary.endswith(".") else f"{command.summary}.",
        f"```text\n{usage(command)}\n```",
    ]
    if rows:
        parts.append(
            "\n".join(["| | |", "|---|---|", *(f"| `{_cell(name)}` | {_cell(meaning)} |" for name, meaning in rows)])
        )
    if notes := f"{command.notes_in_notebooks} {command.notes}".strip():
        parts.append(_escaped(notes))
    parts.append(f"In Python: `{command.python}`")
    for line in EXAMPLES[command.name]:
        parts += _example(line, run)
    return "\n\n".join(parts) + "\n"


def _example(line: str, run: Callable[[str], str]) -> Iterator[str]:
    if "{manifest}" in line:
        listed = run("found = %snapshot manifests 8\nprint(found['path'].to_pylist()[-1])")
        line = line.replace("{manifest}", listed.splitlines()[-1])
    yield f"```ipython\n{line}\n```"
    if "explore" not in line:  # a widget: its tests run it
        yield f"```text\n{_shortened(run(line), _LINES)}\n```"


def _flags(option: Option) -> str:
    return option.spelling


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def _escaped(text: str) -> str:
    return text.replace("*", "\\*").replace("<", "&lt;")


def _shortened(text: str, most: int) -> str:
    lines = [line.rstrip() for line in text.splitlines()]
    more = len(lines) - most
    return "\n".join([*lines[:most], f"... {more} more lines"] if more > 1 else lines)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
    for one in QUESTIONS:
        one.write_text(question(one), encoding="utf-8")
