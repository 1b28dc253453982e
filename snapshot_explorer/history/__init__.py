"""The past of a table: versions, refs, branches and tags, the current version, lifetimes, and the commits.

`History` is what every question about several versions takes. Rows are read in `engines`, and answers computed in the
packages above.
"""

from snapshot_explorer.history.commits import (
    CachedMetadata,
    CommitFilter,
    commit_of,
    history_frame,
    missing_notes,
    read_history,
    unread_commit_notes,
)
from snapshot_explorer.history.expectations import Expectation, expectations_of, expected_reasons
from snapshot_explorer.history.expressions import call_text, open_expression
from snapshot_explorer.history.history import ComparedRefs, Divergence, History, WithPast, history_of
from snapshot_explorer.history.loaded_version import LoadedVersion
from snapshot_explorer.history.management import SnapshotManagement
from snapshot_explorer.history.open_branch import OpenBranch
from snapshot_explorer.history.readability import KnownReadability
from snapshot_explorer.history.renames import (
    ColumnNames,
    column_names,
    names_before,
    naming_renamed_columns,
    renamed_column,
)
from snapshot_explorer.history.resolving import NothingBeforeError

__all__ = [
    "CachedMetadata",
    "ColumnNames",
    "CommitFilter",
    "ComparedRefs",
    "Divergence",
    "Expectation",
    "History",
    "KnownReadability",
    "LoadedVersion",
    "NothingBeforeError",
    "OpenBranch",
    "SnapshotManagement",
    "WithPast",
    "call_text",
    "column_names",
    "commit_of",
    "expectations_of",
    "expected_reasons",
    "history_frame",
    "history_of",
    "missing_notes",
    "names_before",
    "naming_renamed_columns",
    "open_expression",
    "read_history",
    "renamed_column",
    "unread_commit_notes",
]
