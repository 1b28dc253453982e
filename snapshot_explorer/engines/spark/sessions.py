"""Which Spark session is used: the one given, the active one, or a local one that is started and said so."""

from __future__ import annotations

import os
import shutil
import sys
import warnings
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from snapshot_explorer.errors import MissingDependencyError
from snapshot_explorer.visible import logger_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pyspark.sql import SparkSession

log = logger_of(__name__)

STARTED = "No Spark session is active: a local one is started, which uses all cores of this machine."
"""Said where a session is started."""
_FOREIGN = (
    "The Spark session runs its Python workers with {other}, this is {this}: they fail unless they find "
    'snapshot_explorer there. Set os.environ["PYSPARK_PYTHON"] = sys.executable before the session starts.'
)
_PARALLELISM = 16
"""Tasks at once where nobody tells."""
_SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    # Nothing outside this machine has business with a session that nobody asked for.
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
}


def session(given: SparkSession | None = None, *, notify: Callable[[str], object] = log.warning) -> SparkSession:
    """Return the session given, otherwise the active one, otherwise a local one that is started.

    Args:
        given: The session, classic or Connect.
        notify: Called with `STARTED` if a session is started, and with a warning if a local one runs another Python.

    Raises:
        MissingDependencyError: PySpark is not installed, or there is no Java to start a session with, or it does not
            start.
    """
    found = given if given is not None else active()
    if found is not None:
        other = None if is_connect(found) else foreign_python(found.sparkContext.master, found.sparkContext.pythonExec)
        if other is not None:
            notify(_FOREIGN.format(other=other, this=sys.executable))
        return found
    if os.environ.get("SPARK_REMOTE"):
        from pyspark.sql import SparkSession

        with quiet():
            return SparkSession.builder.getOrCreate()
    _check_java()
    notify(STARTED)
    return _started()


def foreign_python(master: str | None, executable: str) -> str | None:
    """Return the Python of a local session's workers where it is of another environment than this one."""
    if master is None or not master.startswith("local"):
        return None  # a cluster has environments of its own
    path = shutil.which(executable) or executable
    # The interpreters of one environment lie beside each other, and links to them lead to a place that many share.
    return None if os.path.dirname(path) == os.path.dirname(sys.executable) else path  # noqa: PTH120 - as above


def active() -> SparkSession | None:
    """Return the active session; None where there is none.

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
    from pyspark.errors import PySparkRuntimeError

    try:
        # That of the thread, otherwise the one that any thread has made.
        found = SparkSession.active()
    except PySparkRuntimeError:
        return None
    is_stopped = not is_connect(found) and found.sparkContext._jsc is None  # noqa: SLF001 - nothing public tells it
    return None if is_stopped else found


def _check_java() -> None:
    home = os.environ.get("JAVA_HOME")
    path = shutil.which(os.path.join(home, "bin", "java") if home else "java")  # noqa: PTH118 - for `which`
    if path is None:
        where = f"JAVA_HOME is {home}, which has no bin/java" if home else "no java is on the PATH"
        raise MissingDependencyError(
            f"Spark was asked for, but {where}. Install Java 17 or newer (openjdk-17-jre-headless on Debian), or give "
            "a session that runs elsewhere: to_spark(spark)."
        )


def _started() -> SparkSession:
    from pyspark.sql import SparkSession

    # Executors of a local session run in the interpreter that asks, which has this package.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.master("local[*]").appName("snapshot_explorer")
    for name, value in _SETTINGS.items():
        builder = builder.config(name, value)
    builder = builder.config("spark.driver.memory", f"{session_mebibytes()}m")
    try:
        with quiet():
            return builder.getOrCreate()
    except (RuntimeError, OSError) as error:  # PySparkRuntimeError is a RuntimeError
        reason = next(iter(str(error).splitlines()), type(error).__name__).rstrip(".")
        raise MissingDependencyError(
            f"A local Spark session was to be started, but Spark says: {reason}. Check that Java is 17 or newer, "
            "or give a session: to_spark(spark)."
        ) from error


def is_connect(spark: SparkSession) -> bool:
    """Return whether a session is one of Spark Connect."""
    return type(spark).__module__.startswith("pyspark.sql.connect")


def parallelism(spark: SparkSession) -> int:
    """Return how many tasks Spark runs at once; a guess where the session does not tell."""
    if not is_connect(spark):
        return int(spark.sparkContext.defaultParallelism)
    for name in ("spark.sql.leafNodeDefaultParallelism", "spark.default.parallelism"):
        value = spark.conf.get(name, None)
        if value is not None and value.isdigit():
            return int(value)
    return _PARALLELISM


@contextmanager
def quiet() -> Iterator[None]:
    """Leave out PySpark's warning of new versions of pandas, which is not used here."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="PySpark does not yet fully support pandas", category=FutureWarning)
        yield


_LEAST, _MOST = 512, 16 * 1024
"""Mebibytes for a session. With less Spark does not start."""


def session_mebibytes(root: Path = Path("/")) -> int:
    """Return how many mebibytes a local session takes: a quarter of what this process may have.

    Args:
        root: The root of the file system, in which Linux tells the limits.
    """
    found = [*_of_machine(), *_of_groups(root)]
    return min(_MOST, max(_LEAST, min(found, default=0) // 4 // 2**20))


def _of_machine() -> Iterator[int]:
    try:
        yield os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return  # such as on Windows


def _of_groups(root: Path) -> Iterator[int]:
    """Yield the limits, in bytes, of the control groups that this process is in: its own and those above.

    Source: Linux docs, "Control Group v2", memory.max; "Memory Resource Controller" (v1), memory.limit_in_bytes.
    """
    try:
        lines = (root / "proc/self/cgroup").read_text().splitlines()
    except (OSError, ValueError):
        return
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if controllers and "memory" not in controllers.split(","):
            continue
        folder, name = ("memory", "memory.limit_in_bytes") if controllers else ("", "memory.max")
        own = PurePosixPath(path)
        # A container sees its own group as the root, whatever its path is called outside.
        for group in (own, *own.parents):
            try:
                yield int((root / "sys/fs/cgroup" / folder / group.relative_to("/") / name).read_text())
            except (OSError, ValueError):
                continue  # there is none, or it is "max"
