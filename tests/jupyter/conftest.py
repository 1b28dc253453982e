"""A real IPython shell per test, and a table for it to open."""

import atexit
from dataclasses import dataclass, field
from typing import ClassVar

import pytest
from IPython.core.displayhook import DisplayHook
from IPython.core.displaypub import CapturingDisplayPublisher
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output
from traitlets.config import Config

from tests.support.paimon.table_builder import five_commits


class KeepingHook(DisplayHook):
    """Keeps what IPython would show as a cell's result, drawn as a notebook gets it."""

    shown: ClassVar[list] = []

    def write_output_prompt(self):
        pass

    def write_format_data(self, format_dict, md_dict=None):
        KeepingHook.shown.append(format_dict)


class KeepingShell(InteractiveShell):
    displayhook_class = KeepingHook


@dataclass
class Cell:
    """What running a cell gave."""

    result: object
    """The value of the last expression."""
    shown: dict
    """The result as it was drawn, by type."""
    said: list = field(default_factory=list)
    """Text that was displayed beside the result."""
    stdout: str = ""
    stderr: str = ""
    error: BaseException | None = None


class Shell:
    """Runs cells as a notebook does, with history."""

    def __init__(self, ip):
        self.ip = ip

    def run(self, source):
        KeepingHook.shown.clear()
        publisher, self.ip.display_pub = self.ip.display_pub, CapturingDisplayPublisher()
        try:
            with capture_output(display=False) as captured:
                outcome = self.ip.run_cell(source, store_history=True)
            said = [output["data"]["text/plain"] for output in self.ip.display_pub.outputs]
        finally:
            self.ip.display_pub = publisher
        return Cell(
            result=outcome.result,
            shown=KeepingHook.shown[-1] if KeepingHook.shown else {},
            said=said,
            stdout=captured.stdout,
            stderr=captured.stderr,
            error=outcome.error_in_exec or outcome.error_before_exec,
        )

    def ok(self, source):
        """Return what a cell gave, which has not failed."""
        cell = self.run(source)
        assert cell.error is None, cell.stderr + cell.stdout
        return cell

    def fails(self, source):
        """Return the one line that a failing cell shows."""
        cell = self.run(source)
        assert type(cell.error).__name__ == "UsageError", cell
        assert "Traceback" not in cell.stdout + cell.stderr
        lines = cell.stderr.splitlines()
        assert len(lines) == 1, cell.stderr
        return lines[0].removeprefix("UsageError: ")

    def __getitem__(self, name):
        return self.ip.user_ns[name]

    def __setitem__(self, name, value):
        self.ip.user_ns[name] = value

    def __contains__(self, name):
        return name in self.ip.user_ns


@pytest.fixture
def bare_shell(tmp_path, monkeypatch):
    """A shell without the extension."""
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    config = Config()
    config.HistoryManager.enabled = False
    config.InteractiveShell.colors = "nocolor"
    ip = KeepingShell.instance(config=config)
    yield Shell(ip)
    ip.run_line_magic("unload_ext", "snapshot_explorer")
    ip.restore_sys_module_state()
    KeepingShell.clear_instance()
    # Otherwise Python would collect garbage once for each shell when the tests end: that took minutes.
    atexit.unregister(ip.atexit_operations)


@pytest.fixture
def shell(bare_shell):
    """A shell with the extension loaded."""
    bare_shell.ok("%load_ext snapshot_explorer")
    return bare_shell


@pytest.fixture
def written(memory_root):
    """A table of five commits: three appends, an overwrite of the first file, a compaction of the rest; one tag."""
    table = five_commits(*memory_root)
    table.tag("v1", 2)
    return table


@pytest.fixture
def path(written):
    return f"memory://{written.root}"


@pytest.fixture
def orders(shell, path):
    """The shell, with the table opened as orders."""
    shell.ok(f"%snapshot open {path} as orders")
    return shell
