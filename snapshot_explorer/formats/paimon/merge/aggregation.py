"""The merge engine `aggregation`: every column has a function."""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from snapshot_explorer.formats.paimon.merge.engines import Aggregation
from snapshot_explorer.formats.paimon.merge.steps import ADD, DELETE, RETRACT, SET, ColumnSteps, KeyGroups, Steps


def steps(engine: Aggregation, rows: pa.Table, crowd: KeyGroups, names: Sequence[str]) -> Steps:
    """Return what the rows do to these columns.

    Source: paimon AggregateMergeFunction.
    """
    actions = np.where(crowd.adds, np.int8(ADD), np.int8(RETRACT))
    removed = (crowd.kinds == DELETE) & engine.remove_on_delete
    actions = np.where(removed, np.int8(SET), actions)
    columns = {
        name: ColumnSteps(
            actions=actions,
            function=engine.functions[name],
            nullable=rows.schema.field(name).nullable,
            checked=removed if engine.remove_on_delete else None,
        )
        for name in names
    }
    return Steps(columns=columns, left=~removed[crowd.ends])
