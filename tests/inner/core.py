"""The names of inner modules of `core` that tests use."""

from snapshot_explorer.core.hints import VERBS, Hint, Message, join, python_call, spell, without_period
from snapshot_explorer.core.limits import DEFAULT, parse_limits
from snapshot_explorer.core.old_libraries import (
    DUCKDB_ALLOWED_PATHS,
    DUCKDB_NANOSECONDS,
    DUCKDB_PIVOT,
    PYARROW_VARIANTS,
    PYSPARK_ARROW,
    PYSPARK_COLLATIONS,
    PYSPARK_DATA_SOURCES,
    PYSPARK_READ_LIMITS,
    PYSPARK_VARIANTS,
)
from snapshot_explorer.core.progress import Progress, StoppedError, TerminalLine, listen, step
from snapshot_explorer.core.records import (
    Bounds,
    Column,
    Commit,
    Gap,
    Kind,
    Listing,
    ReadPlan,
    Split,
    TableSchema,
    Validation,
    alternatives_text,
    gaps_text,
)
from snapshot_explorer.core.shown import Shown
from snapshot_explorer.core.single_flight import SingleFlight, cached_property
from snapshot_explorer.core.text import format_size, format_utc
from snapshot_explorer.core.url_secrets import hide_typed_secrets, hide_url_secrets
