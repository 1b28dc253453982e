"""Queries in SQL, given to Spark over DataFrames that stand in no catalog."""

from __future__ import annotations

import re
import uuid
from typing import TYPE_CHECKING, Any

from snapshot_explorer.engines.spark.sessions import is_connect
from snapshot_explorer.errors import InvalidArgumentError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pyspark.errors import PySparkException
    from pyspark.sql import DataFrame, SparkSession

_PLACE = re.compile(r"\(?\bline (\d+),? pos(?:ition)? (\d+)\)?")
_VIEW = re.compile(r"`?\b_pyspark_(?:connect_temp_view_)?[0-9a-f]{32}\b`?")
_ESCAPED = "spark.sql.parser.escapedStringLiterals"


def stand_ins(spark: SparkSession, count: int) -> Sequence[str]:
    """Return names to stand for DataFrames in a query's text, as long as those that Spark's Python puts there."""
    prefix = "_pyspark_connect_temp_view_" if is_connect(spark) else "_pyspark_"
    return [f"{prefix}{uuid.uuid4().hex}" for _ in range(count)]


def reads_backslashes(spark: SparkSession) -> bool:
    """Return whether a backslash in a string is an escape, as it is unless a setting says otherwise."""
    return (spark.conf.get(_ESCAPED) or "false").lower() != "true"


def run(
    spark: SparkSession,
    text: str,
    frames: Mapping[str, DataFrame],
    failure: Callable[[str, int | None], str],
) -> DataFrame:
    """Return what a query gives, as a lazy DataFrame. Nothing stays registered.

    Args:
        spark: The session, the one of the frames.
        text: The query.
        frames: The DataFrames by their stand-ins in the text.
        failure: Makes a message of what Spark says and of the position in the text, in characters, if it says one.

    Raises:
        InvalidArgumentError: Spark refuses the query.
    """
    from pyspark.errors import PySparkException

    marked = text.replace("{", "{{").replace("}", "}}")
    named: dict[str, Any] = {}
    for number, (stand_in, frame) in enumerate(frames.items()):
        marked = marked.replace(stand_in, f"{{frame_{number}}}")
        named[f"frame_{number}"] = frame
    try:
        # Without any frame the braces of the text would stay doubled.
        return spark.sql(marked, **(named or {"no_frame": ""}))
    except PySparkException as error:
        raise InvalidArgumentError(failure(_sentence(error), _position(error, text))) from error


def _sentence(error: PySparkException) -> str:
    """Return what Spark says, without its codes, its plan and its stack."""
    text = str(error).strip().split("SQLSTATE:", 1)[0].split("\n== SQL", 1)[0].split("\n'", 1)[0]
    text = re.sub(r"^\[[A-Z0-9_.]+\]\s*", "", text)
    return _VIEW.sub("a table", " ".join(text.split())).rstrip(".")


def _position(error: PySparkException, text: str) -> int | None:
    """Return where in the text the error is; None if Spark does not say, or says what is not there."""
    for context in error.getQueryContext():
        if context.contextType().name == "SQL":
            at = context.startIndex()
            return at if text.startswith(context.fragment().split(" ", 1)[0], at) else None
    found = _PLACE.search(str(error))
    lines = text.split("\n")
    if found is None or int(found[1]) > len(lines):
        return None
    return sum(len(line) + 1 for line in lines[: int(found[1]) - 1]) + int(found[2])
