"""What a terminal adds to text: a pager, colors and links. In a pipe, and with NO_COLOR, text is plain."""

import os
import shlex
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import IO

from snapshot_explorer.view.text import Paint, Role, leave_plain

_COLORS: Mapping[Role, str] = {
    "title": "1",
    "heading": "1",
    "name": "36",
    "faint": "2",
}
"""The codes of ECMA-48, "Select Graphic Rendition", by the role of text."""
_WITH_LINKS = ("VTE_VERSION", "WT_SESSION", "KITTY_WINDOW_ID", "KONSOLE_VERSION", "FORCE_HYPERLINK")
"""Variables that only terminals with links set, and the one with which a user asks for them."""
_PROGRAMS_WITH_LINKS = ("iTerm.app", "WezTerm", "vscode", "ghostty", "Hyper", "Tabby", "WarpTerminal")
_LESS = {"LESS": "FRX", "LV": "-c"}
"""What pagers are started with, where the user has not set it, as git does: less ends at once if all fits, and shows
colors."""


def paint_for(stream: IO[str]) -> Paint:
    """Return the function that paints text for a stream, in colors and with links if the terminal has them."""
    if not _is_terminal(stream) or os.environ.get("NO_COLOR"):
        return leave_plain
    has_links = os.environ.get("TERM_PROGRAM") in _PROGRAMS_WITH_LINKS or any(map(os.environ.get, _WITH_LINKS))

    def paint(text: str, role: Role) -> str:
        if role == "code":
            return _link(text) if has_links else text
        return f"\x1b[{_COLORS[role]}m{text}\x1b[0m" if text else text

    return paint


def show(text: str, stream: IO[str], *, has_pager: bool) -> None:
    """Write text and a line break to a stream; to a terminal through the pager, as git does.

    Letters that the stream lacks are escaped.

    Args:
        has_pager: Whether text may go through a pager: PAGER, or else less.
    """
    encoding = getattr(stream, "encoding", None) or "utf-8"
    content = f"{text}\n".encode(encoding, "backslashreplace").decode(encoding)
    pager = _pager() if has_pager and _is_terminal(stream) else []
    if not pager or not _write_to_pager(pager, content, encoding):
        stream.write(content)
        stream.flush()


def _is_terminal(stream: IO[str]) -> bool:
    return stream.isatty() and os.environ.get("TERM", "" if os.environ.get("WT_SESSION") is None else "xterm") not in (
        "",
        "dumb",
    )


def _link(text: str) -> str:
    """Return the path of a local file or folder as a link; other text as it is.

    Source: "Hyperlinks in Terminal Emulators", the escape sequence OSC 8.
    """
    path = Path(text)
    try:
        if not path.is_absolute() or not path.exists():
            return text
    except (OSError, ValueError):
        return text
    address = path.as_uri().replace("file://", f"file://{socket.gethostname()}", 1)
    return f"\x1b]8;;{address}\x1b\\{text}\x1b]8;;\x1b\\"


def _pager() -> list[str]:
    """Return the command of the pager: PAGER, by default less if it is there; empty for none."""
    command = shlex.split(os.environ.get("PAGER", "less" if shutil.which("less") else ""))
    return [] if command == ["cat"] else command


def _write_to_pager(command: list[str], content: str, encoding: str) -> bool:
    """Show text in a pager, and wait until it ends. Return False if it does not start."""
    sys.stdout.flush()
    try:
        pager = subprocess.Popen(command, stdin=subprocess.PIPE, env={**_LESS, **os.environ})  # noqa: S603 - of the user
    except OSError:
        return False
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the pager
    try:
        pager.communicate(content.encode(encoding))  # a reader that stops early is no error
    finally:
        pager.wait()
        signal.signal(signal.SIGINT, before)
    return True
