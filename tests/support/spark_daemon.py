"""The daemon of Spark's Python workers, of which each is a fork: it has imported what they need.

The setting `spark.python.daemon.module` names it. Without it each worker spends a second on imports.
"""

import duckdb  # noqa: F401
import pandas as pd  # noqa: F401
from pyspark import daemon

from snapshot_explorer import spark, table  # noqa: F401
from snapshot_explorer.formats import delta, hudi, iceberg, paimon  # noqa: F401

if __name__ == "__main__":
    daemon.manager()
