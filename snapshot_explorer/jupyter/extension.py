"""The IPython extension: what `%load_ext snapshot_explorer` registers, and how it is removed."""

import re
from typing import Any

from IPython.core.interactiveshell import InteractiveShell

from snapshot_explorer.core.safe_text import logger_of
from snapshot_explorer.core.shown import Shown
from snapshot_explorer.jupyter.magics import NAMES, SnapshotMagics, spelling
from snapshot_explorer.results import Frame
from snapshot_explorer.view import ShownFigure, mimebundle_of

log = logger_of(__name__)

try:
    from snapshot_explorer.jupyter import completion
except ImportError as error:
    # IPython before 8.6, still used by hosted notebooks, has another completer: everything else works.
    completion = None  # type: ignore[assignment]
    log.warning("Completion of %%snapshot lines is off: %s", error)

_KINDS = ("line", "cell")
_QUESTION = re.compile(
    rf"(?:(?P<before>\?{{1,2}})\s*)?%(?P<magic>{'|'.join(NAMES)})\s+(?P<word>[a-z]+)\s*(?P<after>\?{{0,2}})\s*"
)
"""A line such as `%snapshot log?` or `?%snapshot log`, which IPython would read as a question about `log`."""


def load_ipython_extension(ip: InteractiveShell) -> None:
    """Register the magic under the names that are free, its settings, completion, progress, and how results are drawn.

    What is drawn spells hints as `%snapshot` lines. Loading twice registers nothing twice. Open tables are found by the
    variables that hold them.
    """
    unload_ipython_extension(ip)
    taken = [name for name in NAMES if _is_taken(ip, name)]
    magics = SnapshotMagics(ip)
    for name in taken:
        for kind in _KINDS:
            del magics.magics[kind][name]
    ip.register_magics(magics)
    ip.input_transformers_cleanup.append(answer_questions)
    if completion is not None:
        ip.Completer.custom_matchers.append(completion.matcher(magics.tables, ip.user_ns))

    def draw(frame: Frame | ShownFigure, **_: object) -> dict[str, Any]:
        return mimebundle_of(frame, limit=magics.display_limit, call=spelling())

    def draw_record(record: Shown, **_: object) -> dict[str, Any]:
        return mimebundle_of(record, call=spelling())

    if ip.display_formatter is not None:
        ip.display_formatter.mimebundle_formatter.for_type(Frame, draw)
        ip.display_formatter.mimebundle_formatter.for_type(ShownFigure, draw)
        ip.display_formatter.mimebundle_formatter.for_type(Shown, draw_record)
    magics.shown_progress.register()
    if taken:
        free = [f"%{name}" for name in NAMES if name not in taken]
        ip.display_pub.publish({"text/plain": _conflict_message(taken, free)})


def unload_ipython_extension(ip: InteractiveShell) -> None:
    """Remove everything that `load_ipython_extension` registered, and nothing else."""
    manager = ip.magics_manager
    for name in NAMES:
        for kind in _KINDS:
            if _is_ours(manager.magics[kind].get(name)):
                del manager.magics[kind][name]
    manager.registry.pop(SnapshotMagics.__name__, None)
    transformers = ip.input_transformers_cleanup
    transformers[:] = [
        transformer for transformer in transformers if getattr(transformer, "__name__", "") != answer_questions.__name__
    ]
    for item in ip.configurables:
        if isinstance(item, SnapshotMagics):
            item.shown_progress.unregister()
    ip.configurables[:] = [item for item in ip.configurables if not isinstance(item, SnapshotMagics)]
    if completion is not None:
        matchers = ip.Completer.custom_matchers
        matchers[:] = [item for item in matchers if getattr(item, "matcher_identifier", None) != completion.MATCHER]
    if ip.display_formatter is not None:
        formatter = ip.display_formatter.mimebundle_formatter
        for shown in (Frame, ShownFigure, Shown):
            formatter.type_printers.pop(shown, None)


def answer_questions(lines: list[str]) -> list[str]:
    """Return the lines of a cell with `%snapshot log?` as `%snapshot help log`."""
    return [_answer(line) if "?" in line else line for line in lines]


def _answer(line: str) -> str:
    match = _QUESTION.fullmatch(line)
    if match is None or not (match["before"] or match["after"]):
        return line
    end = "\n" if line.endswith("\n") else ""
    return f"%{match['magic']} help {match['word']}{end}"


def _is_ours(magic: object) -> bool:
    return isinstance(getattr(magic, "__self__", None), SnapshotMagics)


def _is_taken(ip: InteractiveShell, name: str) -> bool:
    """Return whether another extension has a line or cell magic of that name."""
    registered = [ip.magics_manager.magics[kind].get(name) for kind in _KINDS]
    return any(magic is not None and not _is_ours(magic) for magic in registered)


def _conflict_message(taken: list[str], free: list[str]) -> str:
    names = " and ".join(f"%{name}" for name in taken)
    others = f"Use {free[0]} instead." if free else "Unload the other extension, then %reload_ext snapshot_explorer."
    return f"Another extension already has {names}. {others}"
