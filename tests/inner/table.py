"""The names of inner modules of `table` that tests use."""

from snapshot_explorer.table.cost import Cost, ReadLimits, cost_of
from snapshot_explorer.table.queries import with_limit
from snapshot_explorer.table.queries.references import references
from snapshot_explorer.table.queries.rewrite import rewrite
from snapshot_explorer.table.queries.tokens import tokens
