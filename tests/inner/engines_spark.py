"""The names of inner modules of `engines/spark` that tests use."""

from snapshot_explorer.engines.spark.conditions import filter_to_sql, pushed_condition
from snapshot_explorer.engines.spark.executors import run
from snapshot_explorer.engines.spark.schemas import arrow_schema, spark_batch, spark_schema
from snapshot_explorer.engines.spark.sessions import foreign_python, session_mebibytes
from snapshot_explorer.engines.spark.tasks import collect
