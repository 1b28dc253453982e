"""Progress of long work below a cell, or in a line of the terminal; it is removed afterwards.

It is HTML rather than a widget: that works wherever outputs are shown, without a connection of its own to the page, and
can be removed from the cell and so from the saved notebook.
"""

import sys
import uuid
from collections.abc import Callable
from html import escape

from IPython.core.interactiveshell import InteractiveShell

from snapshot_explorer.core.progress import Listener, Progress, TerminalLine, is_terminal, listen


class CellProgress:
    """Shows progress as an output of the cell that runs, by a kernel's display messages."""

    def __init__(self, shell: InteractiveShell) -> None:
        self._shell = shell
        self._id: str | None = None

    def show(self, progress: Progress) -> None:
        """Show the bar, or update it."""
        limits = (
            "" if progress.total is None else f' max="{progress.total}" value="{min(progress.done, progress.total)}"'
        )
        said = escape(str(progress))
        name = f'aria-label="{escape(progress.title)}" style="width:20em;vertical-align:middle"'
        bar = f"<progress{limits} {name}></progress>"
        if self._id is None:
            # Never saved: a notebook holds no display ids.
            self._id = uuid.uuid4().hex
            # Tools that ignore updates, such as nbval, must not see an output.
            self._publish({}, update=False)
        self._publish({"text/html": f"<div>{bar} {said}</div>", "text/plain": str(progress)}, update=True)

    def clear(self) -> None:
        """Remove the bar."""
        if self._id is not None:
            self._publish({}, update=True)
        self._id = None

    def _publish(self, content: dict[str, str], *, update: bool) -> None:
        self._shell.display_pub.publish(content, transient={"display_id": self._id}, update=update)


class ShellProgress:
    """Shows progress while a shell runs cells."""

    def __init__(self, shell: InteractiveShell, is_wanted: Callable[[], bool]) -> None:
        """Bind to a shell.

        Args:
            is_wanted: Returns whether progress should be shown now.
        """
        self._shell = shell
        self._is_wanted = is_wanted

    def begin(self, *_: object) -> None:
        """Listen to the work of this cell; other threads, and the work of widgets between cells, show nothing."""
        listen(listener_of(self._shell) if self._is_wanted() else None)

    def end(self, *_: object) -> None:
        """Stop listening."""
        listen(None)

    def register(self) -> None:
        """Listen from now on, to this cell too."""
        self._shell.events.register("pre_run_cell", self.begin)
        self._shell.events.register("post_run_cell", self.end)
        self.begin()

    def unregister(self) -> None:
        """Remove the listener and the hooks from the shell."""
        self._shell.events.unregister("pre_run_cell", self.begin)
        self._shell.events.unregister("post_run_cell", self.end)
        self.end()


def listener_of(shell: InteractiveShell) -> Listener | None:
    """Return the listener that shows progress in a shell; None if it could not be removed again."""
    if getattr(shell, "kernel", None) is not None:
        return CellProgress(shell)
    return TerminalLine(sys.stderr) if is_terminal(sys.stderr) else None
