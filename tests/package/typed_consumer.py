"""Code of a user whose own mypy is strict: `.ci/run` checks that the types of the package say what comes back."""

from typing import assert_type

import pandas as pd
import pyarrow as pa

import snapshot_explorer as sx


def newest_rows(path: str) -> int:
    table = sx.open_table(path, storage_options={"anon": True})
    assert_type(table, sx.Table)
    snapshot = table.at("latest~1")
    assert_type(snapshot, sx.Snapshot)
    rows = snapshot.to_arrow(columns=["id"], where="id > 3", limit=10)
    assert_type(rows, pa.Table)
    frame = snapshot.to_pandas()
    assert_type(frame, pd.DataFrame)
    assert_type(table.versions(), tuple[int, ...])
    assert_type(table.path, str)
    try:
        return snapshot.count("amount < 0")
    except sx.errors.SnapshotExplorerError as error:
        return len(str(error))


def versions() -> dict[str, str | None]:
    return sx.show_versions().to_dict()
