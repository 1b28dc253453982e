"""The names of inner modules of `engines` that tests use."""

from snapshot_explorer.engines.conditions import filter_rows, parse_condition
from snapshot_explorer.engines.duckdb_sessions import locked_cursor
from snapshot_explorer.engines.scan import check_files, scan_of
from snapshot_explorer.engines.sql import Relation, run
