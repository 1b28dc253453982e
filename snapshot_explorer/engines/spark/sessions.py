"""Which Spark session is used: the one given, the active one, or a local one that is started and said so."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from snapshot_explorer.errors import MissingDependencyError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

log = logging.getLogger(__name__)


def session(given: SparkSession | None = None) -> SparkSession:
    """Return the session given, otherwise the active one, otherwise a local one that is started.

    Raises:
        MissingDependencyError: PySpark is not installed.
    """
    try:
        from pyspark.sql import SparkSession
    except ImportError as error:
        raise MissingDependencyError(
            "Spark was asked for, but pyspark is not installed. "
            "Install it with: pip install 'snapshot-explorer[spark]'."
        ) from error
    if given is not None:
        return given
    active = SparkSession.getActiveSession()
    if active is not None:
        return active
    log.warning("No Spark session is active: a local one is started.")
    return SparkSession.builder.master("local[*]").appName("snapshot_explorer").getOrCreate()
