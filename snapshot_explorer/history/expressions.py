"""Python calls as text, for hints and citations."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from snapshot_explorer.formats import TableFormat


def open_expression(path: str, branch: str | None, table_format: TableFormat | None = None) -> str:
    """Return the Python call that opens a table, without secrets; with its format where its folder has others too."""
    named = (
        f", format={table_format.name!r}" if table_format is not None and table_format.detection.other_formats else ""
    )
    return f"open_table({path!r}{f', branch={branch!r}' if branch else ''}{named})"


def call_text(method: str, *positional: object, **named: object) -> str:
    """Return a method call as Python text, without the named arguments that are None."""
    keywords = [f"{name}={value!r}" for name, value in named.items() if value is not None]
    return f"{method}({', '.join([*map(repr, positional), *keywords])})"
