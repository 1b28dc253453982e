"""What a snapshot changed, in the words of changes_made.

Source: DuckLake specification 1.0, "ducklake_snapshot_changes"; reference, "changes_made".
"""

import re
from collections.abc import Sequence
from functools import lru_cache
from itertools import islice

from snapshot_explorer.core.records import Kind

_CHANGE = re.compile(r'\s*(\w+):((?:"(?:[^"]|"")*"|[^",])*)(?:,|$)')
_MAX_CHANGES = 10_000
INSERTS = frozenset(("inserted_into_table", "inlined_insert"))
DELETES = frozenset(("deleted_from_table", "inlined_delete"))
FLUSHES = frozenset(("inline_flush", "flushed_inlined"))
COMPACTIONS = frozenset(("merge_adjacent", "rewrite_delete", "compacted_table"))
REWRITES = COMPACTIONS | FLUSHES
"""Words of commits that may change which files earlier versions have."""


@lru_cache(maxsize=128)  # all tables of a lake ask for the same
def parse_changes(text: str | None) -> Sequence[tuple[str, str]]:
    """Return the words and values of changes_made, in order: values are ids, or quoted names."""
    return [(match[1], match[2].strip()) for match in islice(_CHANGE.finditer(text or ""), _MAX_CHANGES)]


def words_about(text: str, table_id: int) -> list[str]:
    """Return the words of changes_made about a table, in order. The creation of a table has its name, not its id."""
    return [word for word, value in parse_changes(text) if value == str(table_id)]


def kind_of(words: Sequence[str], *, creates: bool, alters: bool) -> Kind:
    """Return the kind of a commit.

    Args:
        words: The words about the table.
        creates: Whether the commit created the table.
        alters: Whether it changed more than comments, where it alters the table.
    """
    known = frozenset(words)
    if known & FLUSHES:
        return "maintenance"  # what was deleted before it is part of the flush
    if known & COMPACTIONS:
        return "compact"
    inserts, deletes = bool(known & INSERTS), bool(known & DELETES)
    if inserts and deletes:
        return "update"
    if deletes:
        return "delete"
    if inserts or creates:
        return "append"
    return "schema" if "altered_table" in known and alters else "other"
