"""Tables that are read together with one of their branches, for `make_paimon_java.py`.

Main is an append table, the branch one with a primary key, as the documentation proposes for streamed corrections.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.scripts.make_paimon_java import Core

COLUMNS = {"day": "STRING", "k": "INT", "v": "STRING"}


def _linked(core: Core, name: str, option: str, parts: str = "day") -> str:
    """Create a table and its branch, and return the branch's name."""
    core.create(name, COLUMNS, "", {"bucket": "-1", "snapshot.num-retained.min": "1000"}, parts)
    core.table(name).createBranch("rt")
    branch, change = f"{name}$branch_rt", core.paimon.schema.SchemaChange
    core.alter(name, change.setOption(option, "rt"))
    core.alter(branch, change.setOption("primary-key", f"{parts},k".lstrip(",")), change.setOption("bucket", "1"))
    return branch


def fallback_branch(core: Core, name: str) -> None:
    """Write to both in turns; the last commit is main's, so that its version is what the table shows now."""
    branch = _linked(core, name, "scan.fallback-branch")
    core.write(name, [("a", 1, "main"), (None, 1, "main")])
    core.write(branch, [("a", 2, "branch"), ("b", 1, "branch"), ("b", 2, None)])
    core.write(name, [("c", 1, "main")])
    core.write(branch, [("b", 2, "newer"), ("c", 3, "branch"), ("d", 1, "branch")])
    core.write(name, [("b", 7, "main")])
    core.write(branch, [("e", 1, "branch"), ("d", 1, "newer")])
    core.write(name, [("c", 2, "main")])


def primary_branch(core: Core, name: str) -> None:
    """Write a table whose branch comes first."""
    branch = _linked(core, name, "scan.primary-branch")
    core.write(name, [("a", 1, "main"), ("b", 1, "main")])
    core.write(branch, [("b", 2, "branch"), ("c", 1, "branch")])
    core.write(name, [("c", 2, "main"), ("d", 1, "main")])


def fallback_unpartitioned(core: Core, name: str) -> None:
    """Write tables without partitions: the branch shows where main has no file at all."""
    branch = _linked(core, name, "scan.fallback-branch", "")
    core.write(name, [("a", 2, "main")])
    core.write(branch, [("a", 1, "branch")])
    core.write(name, [], overwrite=True)


TABLES: dict[str, tuple[str, Callable[[Any, str], None]]] = {
    "fallback_branch": ("UTC", fallback_branch),
    "primary_branch": ("UTC", primary_branch),
    "fallback_unpartitioned": ("UTC", fallback_unpartitioned),
}
