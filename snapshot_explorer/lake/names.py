"""Find the tables of a lake by name: by the last part if it is unique, by pattern, or by similarity."""

from __future__ import annotations

from collections import Counter
from difflib import get_close_matches
from typing import TYPE_CHECKING, TypeVar

from snapshot_explorer.core.errors import TableNotFoundError
from snapshot_explorer.core.text import list_names

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

A = TypeVar("A")


def short_name(name: str) -> str:
    """Return the last part of a path or of a name in a catalog."""
    return name.rpartition("/")[2].rpartition(".")[2]


def short_names(tables: Mapping[str, A]) -> dict[str, A]:
    """Return tables by their last parts where these are unique, and by their whole names."""
    counts = Counter(map(short_name, tables))
    return {short_name(name): table for name, table in tables.items() if counts[short_name(name)] == 1} | dict(tables)


def find_by_name(name: str, tables: Mapping[str, A], lake: str) -> A:
    """Return the table with a name, or with a unique last part of its name.

    Raises:
        TableNotFoundError: No table or several tables match; the message names these, or similar names.
    """
    if name in (known := short_names(tables)):
        return known[name]
    same = [full for full in tables if short_name(full) == name]
    if same:
        raise TableNotFoundError(
            f"{lake} has {len(same):,} tables called {name}: {list_names(same)}. Use one of these names."
        )
    raise TableNotFoundError(f"{lake} has no table {name!r}. {suggest_names(name, tables)}")


def suggest_names(name: str, names: Collection[str]) -> str:
    """Return the most similar name, and the existing names."""
    whole = {short_name(full): full for full in names}
    near = get_close_matches(str(name), [*whole, *names], 1, 0.5)
    meant = f"Did you mean {whole.get(near[0], near[0])}? " if near else ""
    return f"{meant}Tables: {list_names(sorted(names))}."
