"""Find the Spark session to use: the one passed, the active one, or a new local one, with a notice."""

from __future__ import annotations

import os
import shutil
import sys
import warnings
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from snapshot_explorer.core.errors import InvalidArgumentError, MissingDependencyError
from snapshot_explorer.core.hints import Hint, Message
from snapshot_explorer.core.old_libraries import PYSPARK_ARROW, SPARK_FLOORS, check_floors
from snapshot_explorer.core.safe_text import logger_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pyspark.sql import SparkSession

log = logger_of(__name__)

STARTED = "No Spark session is active. Starting a local one, which uses all cores of this machine."
"""The notice before a session starts."""
_FOREIGN = (
    "The Spark session runs its Python workers with {other}, this is {this}: they fail unless they find "
    'snapshot_explorer there. Set os.environ["PYSPARK_PYTHON"] = sys.executable before the session starts.'
)
_PARALLELISM = 16
"""The number of parallel tasks if it is unknown."""
_SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    # Other machines must not reach a session that starts implicitly.
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
}


def session(
    spark_session: SparkSession | None = None, *, notify: Callable[[str], object] = log.warning
) -> SparkSession:
    """Return the session passed, otherwise the active one, otherwise a new local one.

    Args:
        notify: Called with `STARTED` if a session starts, and with a warning if a local one runs another Python.
    """
    check_floors(SPARK_FLOORS)
    spark = active_session() if spark_session is None else check_session(spark_session)
    if spark is not None:
        other = None if is_connect(spark) else foreign_python(spark.sparkContext.master, spark.sparkContext.pythonExec)
        if other is not None:
            notify(_FOREIGN.format(other=other, this=sys.executable))
        return spark
    if os.environ.get("SPARK_REMOTE"):
        from pyspark.sql import SparkSession

        with suppress_warnings():
            return SparkSession.builder.getOrCreate()
    _check_java()
    notify(STARTED)
    return _start_session()


def is_spark(engine: str | SparkSession | None) -> bool:
    """Return whether an engine is Spark: by its name, or a session. Starts none.

    Raises:
        InvalidArgumentError: No engine has this name.
    """
    if isinstance(engine, str) and engine not in ("local", "spark"):
        raise InvalidArgumentError(f"No engine is called {engine!r}. Engines: local, spark.")
    return engine not in (None, "local")


def session_of(engine: str | SparkSession | None, what: str) -> SparkSession | None:
    """Return the session of an engine: the given session, or the active one for `spark`; None for `local` and None.

    Args:
        what: What Spark is to do.

    Raises:
        InvalidArgumentError: No engine has this name.
        MissingDependencyError: The installed PySpark is too old.
    """
    if not is_spark(engine):
        return None
    if PYSPARK_ARROW.applies():
        hint = Hint("", {"engine": "spark"})
        raise MissingDependencyError(
            Message(f"Spark cannot {what}: {PYSPARK_ARROW.remedy()}. Or leave out ", hint, ".")
        )
    return session(None if isinstance(engine, str) else engine)


def check_session(spark: SparkSession) -> SparkSession:
    """Return the argument if it looks like a SparkSession. PySpark need not be installed."""
    if not (hasattr(spark, "sql") and hasattr(spark, "createDataFrame")):
        raise InvalidArgumentError(f"spark must be a Spark session, got {type(spark).__name__}.")
    return spark


def foreign_python(master: str | None, executable: str) -> str | None:
    """Return the Python of a local session's workers if it belongs to another environment than this one."""
    if master is None or not master.startswith("local"):
        return None  # a cluster has environments of its own
    path = shutil.which(executable) or executable
    # Compare folders without resolving links: interpreters of several environments may link to the same file.
    return None if os.path.dirname(path) == os.path.dirname(sys.executable) else path  # noqa: PTH120 - as above


def active_session() -> SparkSession | None:
    """Return the active session, or None."""
    try:
        from pyspark.sql import SparkSession
    except ImportError as error:
        raise MissingDependencyError(
            "Spark needs pyspark, which is not installed. Install it with: pip install 'snapshot-explorer[spark]'."
        ) from error
    from pyspark.errors import PySparkRuntimeError

    try:
        # The session of this thread, otherwise one of any thread.
        spark = SparkSession.active()
    except PySparkRuntimeError:
        return None
    is_stopped = not is_connect(spark) and spark.sparkContext._jsc is None  # noqa: SLF001 - there is no public accessor
    return None if is_stopped else spark


def _check_java() -> None:
    home = os.environ.get("JAVA_HOME")
    path = shutil.which(os.path.join(home, "bin", "java") if home else "java")  # noqa: PTH118 - for `which`
    if path is None:
        where = f"JAVA_HOME is {home}, which has no bin/java" if home else "no java is on the PATH"
        raise MissingDependencyError(
            Message(
                f"Spark needs Java, but {where}. Install Java 17 or newer (openjdk-17-jre-headless on Debian), or pass "
                "a session that runs elsewhere: ",
                Hint("", {"spark": ...}),
                ".",
            )
        )


def _start_session() -> SparkSession:
    from pyspark.sql import SparkSession

    # Executors of a local session run this interpreter, which has this package.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.master("local[*]").appName("snapshot_explorer")
    for name, value in _SETTINGS.items():
        builder = builder.config(name, value)
    builder = builder.config("spark.driver.memory", f"{session_mebibytes()}m")
    try:
        with suppress_warnings():
            return builder.getOrCreate()
    except (RuntimeError, OSError) as error:  # PySparkRuntimeError is a RuntimeError
        reason = next(iter(str(error).splitlines()), type(error).__name__).rstrip(".")
        raise MissingDependencyError(
            Message(
                f"The local Spark session did not start: {reason}. Check that Java is 17 or newer, or pass a session: ",
                Hint("", {"spark": ...}),
                ".",
            )
        ) from error


def is_connect(spark: SparkSession) -> bool:
    """Return whether a session uses Spark Connect."""
    return type(spark).__module__.startswith("pyspark.sql.connect")


def parallelism(spark: SparkSession) -> int:
    """Return the number of tasks that Spark runs at once; a guess if the session does not provide it."""
    if not is_connect(spark):
        return int(spark.sparkContext.defaultParallelism)
    for name in ("spark.sql.leafNodeDefaultParallelism", "spark.default.parallelism"):
        value = spark.conf.get(name, None)
        if value is not None and value.isdigit():
            return int(value)
    return _PARALLELISM


@contextmanager
def suppress_warnings() -> Iterator[None]:
    """Suppress PySpark's warning about new versions of pandas, which is not used here."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="PySpark does not yet fully support pandas", category=FutureWarning)
        yield


_MIN, _MAX = 512, 16 * 1024
"""The minimum memory of a session, in mebibytes. Spark does not start with less."""


def session_mebibytes(root: Path = Path("/")) -> int:
    """Return the memory of a local session in mebibytes: a quarter of the memory of this process.

    Args:
        root: The root of the file system, for the files with Linux's limits.
    """
    limits = [*_of_machine(), *_of_groups(root)]
    return min(_MAX, max(_MIN, min(limits, default=0) // 4 // 2**20))


def _of_machine() -> Iterator[int]:
    try:
        yield os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return  # such as on Windows


def _of_groups(root: Path) -> Iterator[int]:
    """Yield the memory limits, in bytes, of the control groups of this process: its own and its parents.

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
        # In a container, its own group is the root, whatever its path outside.
        for group in (own, *own.parents):
            try:
                yield int((root / "sys/fs/cgroup" / folder / group.relative_to("/") / name).read_text())
            except (OSError, ValueError):
                continue  # there is no limit, or it is "max"
