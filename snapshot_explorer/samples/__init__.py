"""Small real tables to try, included in the package.

| name | what |
|---|---|
| `orders` | a primary-key table (deduplicate, two buckets) with upserts, deletes, compactions, tags and a branch |
| `events` | an append table partitioned by day, with an overwritten partition, deletes and schema changes |
| `invoices` | a Paimon table by month, with Iceberg metadata that is two versions behind: a pair of twins |
| `payments` | a Delta table with updates, deletes by vectors, merges, a restore, checkpoints and a renamed column |
| `rides` | a Hudi table that merges on read: updates and deletes in log files, compactions, a clustering, a savepoint |
| `shipments` | an Iceberg table with a branch, a tag, deletes of both kinds, a rollback, new partitions and an expiry |

`festival` is a lake: three tables in a DuckLake catalog, with a bad night over two of them. Its path is the catalog's.

Apache Paimon 0.9.0 wrote the first two, through its connector for Spark 3.5, Apache Paimon 1.4.2 `invoices`, Delta
Lake 4.4.0 `payments`, Apache Hudi 1.2.0 `rides`, Apache Iceberg 1.12.0 the last, and DuckDB 1.5.5 the lake (`README.md`
lists the commits). Nothing in them was written or changed by this package.
"""

from __future__ import annotations

import atexit
import difflib
import shutil
from importlib import resources

from snapshot_explorer.core.errors import TableNotFoundError

__all__ = ["names", "path"]

_CATALOGS = {"festival": "festival.ducklake"}
"""The lakes, each with the name of its catalog."""


def names() -> tuple[str, ...]:
    """Return the names of the tables, sorted. One listing of the package folder."""
    return tuple(
        sorted(
            entry.name
            for entry in resources.files(__name__).iterdir()
            if entry.is_dir() and not entry.name.startswith("__") and entry.name not in _CATALOGS
        )
    )


def path(name: str) -> str:
    """Return the path of a fresh copy of a sample, or of the catalog of a fresh copy of a lake.

    The copy is in its own temporary folder, which is deleted when Python exits: a program may write to it without
    affecting the next call. Copies a few hundred small files.

    Args:
        name: One of `names()`, or `festival`.
    """
    available = (*names(), *_CATALOGS)
    if name not in available:
        near = difflib.get_close_matches(str(name), available, n=1) or available[:1]
        raise TableNotFoundError(
            f"Sample {name!r} does not exist. Available: {', '.join(available)}. Did you mean {near[0]}?"
            if near
            else f"Sample {name!r} does not exist: this installation contains none. Install snapshot-explorer again."
        )
    from snapshot_explorer.results.outputs import scratch_folder  # noqa: PLC0415 - imports libraries, which take time

    folder = scratch_folder("explorer")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    copy = folder / name
    with resources.as_file(resources.files(__name__).joinpath(name)) as source:
        shutil.copytree(source, copy)
    return str(copy / _CATALOGS.get(name, ""))
