"""Run SQL queries on Spark over DataFrames that are not in a catalog."""

from __future__ import annotations

import re
import uuid
from typing import TYPE_CHECKING, Any

from snapshot_explorer.core.errors import InvalidArgumentError
from snapshot_explorer.core.old_libraries import PYSPARK_QUERY_CONTEXT
from snapshot_explorer.engines.spark.sessions import is_connect

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pyspark.errors import PySparkException
    from pyspark.sql import DataFrame, SparkSession

_PLACE = re.compile(r"\(?\bline (\d+),? pos(?:ition)? (\d+)\)?")
_VIEW = re.compile(r"`?\b_pyspark_(?:connect_temp_view_)?[0-9a-f]{32}\b`?")
_ESCAPED = "spark.sql.parser.escapedStringLiterals"


def stand_ins(spark: SparkSession, count: int) -> Sequence[str]:
    """Return placeholder names for DataFrames in a query, as long as the names that PySpark generates."""
    prefix = "_pyspark_connect_temp_view_" if is_connect(spark) else "_pyspark_"
    return [f"{prefix}{uuid.uuid4().hex}" for _ in range(count)]


def reads_backslashes(spark: SparkSession) -> bool:
    """Return whether a backslash in a string literal is an escape, which a setting can turn off."""
    return (spark.conf.get(_ESCAPED) or "false").lower() != "true"


def run(
    spark: SparkSession,
    text: str,
    frames: Mapping[str, DataFrame],
    failure: Callable[[str, int | None], str],
) -> DataFrame:
    """Return the result of a query as a lazy DataFrame. Registers nothing.

    Args:
        frames: The DataFrames by their placeholders in the text.
        failure: Returns a message for Spark's message and the position in the text, in characters, if known.
    """
    from pyspark.errors import PySparkException

    marked = text.replace("{", "{{").replace("}", "}}")
    named: dict[str, Any] = {}
    for number, (stand_in, frame) in enumerate(frames.items()):
        marked = marked.replace(stand_in, f"{{frame_{number}}}")
        named[f"frame_{number}"] = frame
    try:
        # Without frames, Spark does not format the text: its braces would remain doubled.
        return spark.sql(marked, **(named or {"no_frame": ""}))
    except PySparkException as error:
        raise InvalidArgumentError(failure(_sentence(error), _position(error, text))) from error


def _sentence(error: PySparkException) -> str:
    """Return Spark's message, without its codes, plan and stack trace."""
    text = re.split(r"SQLSTATE:|; line \d+ pos|\n== SQL|\n'", str(error).strip(), maxsplit=1)[0]
    text = re.sub(r"^\[[A-Z0-9_.]+\]\s*", "", text)
    return _VIEW.sub("a table", " ".join(text.split())).rstrip(".")


def _position(error: PySparkException, text: str) -> int | None:
    """Return the position of the error in the text; None if Spark provides none, or one outside the text."""
    for context in () if PYSPARK_QUERY_CONTEXT.applies() else error.getQueryContext():
        if context.contextType().name == "SQL":
            at = context.startIndex()
            return at if text.startswith(context.fragment().split(" ", 1)[0], at) else None
    match = _PLACE.search(str(error))
    lines = text.split("\n")
    if match is None or int(match[1]) > len(lines):
        return None
    return sum(len(line) + 1 for line in lines[: int(match[1]) - 1]) + int(match[2])
