"""Write the sample tables with Apache Paimon itself.

    python -m tests.scripts.make_samples OUT [--jars paimon-spark-3.5-0.9.0.jar]

Writer: Apache Paimon 0.9.0, `org.apache.paimon:paimon-spark-3.5:0.9.0`, on PySpark 3.5.9 and Java 17, all in UTC.
Needs an environment with that PySpark and Java; without `--jars` Spark fetches the connector from Maven Central.

The rows, the snapshot ids and what each snapshot did are the same on every run. The names of files hold random
ids, and times of commits are some milliseconds after the times in the story: a small shared library, compiled
with `cc`, shifts the clock of the Java process. Without `cc` the commits carry the true time.
"""

from __future__ import annotations

import argparse
import shutil
import struct
import subprocess
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tests.support.oracles import sessions

PACKAGE = "org.apache.paimon:paimon-spark-3.5:0.9.0"
WRITER = "Apache Paimon 0.9.0 (Spark connector, PySpark 3.5.9)"

CLOCK_C = r"""
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>
static volatile long long *shift; /* nanoseconds to add to the true time */
__attribute__((constructor)) static void load(void) {
  const char *name = getenv("CLOCK_SHIFT_FILE");
  int file = name ? open(name, O_RDONLY) : -1;
  void *page = file < 0 ? MAP_FAILED : mmap(0, 8, PROT_READ, MAP_SHARED, file, 0);
  if (page != MAP_FAILED) shift = page;
}
int clock_gettime(clockid_t id, struct timespec *out) {
  int code = syscall(SYS_clock_gettime, id, out);
  if (!code && shift && (id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE)) {
    long long nanos = out->tv_sec * 1000000000LL + out->tv_nsec + *shift;
    out->tv_sec = nanos / 1000000000LL;
    out->tv_nsec = nanos % 1000000000LL;
  }
  return code;
}
int gettimeofday(struct timeval *restrict out, void *restrict zone) {
  struct timespec now;
  (void)zone;
  clock_gettime(CLOCK_REALTIME, &now);
  out->tv_sec = now.tv_sec;
  out->tv_usec = now.tv_nsec / 1000;
  return 0;
}
"""


class Clock:
    """Sets the wall clock that a Java process started under `environment()` sees."""

    def __init__(self, folder: Path) -> None:
        self._shift = folder / "clock.shift"
        self._library = folder / "clock.so"
        self._shift.write_bytes(struct.pack("<q", 0))
        compiler = shutil.which("cc")
        if compiler:
            source = folder / "clock.c"
            source.write_text(CLOCK_C)
            subprocess.run([compiler, "-O2", "-shared", "-fPIC", "-o", self._library, source], check=True)

    def environment(self) -> dict[str, str]:
        """Return the variables that put a process under this clock; none without a C compiler."""
        if not self._library.exists():
            return {}
        return {"LD_PRELOAD": str(self._library), "CLOCK_SHIFT_FILE": str(self._shift)}

    def set(self, moment: str) -> None:
        """Let it be `moment` now, an ISO time in UTC; the clock runs on from there."""
        seconds = datetime.fromisoformat(moment).replace(tzinfo=UTC).timestamp() - time.time()
        with self._shift.open("r+b") as file:  # in place: the file is mapped into the Java process
            file.write(struct.pack("<q", int(seconds * 1e9)))


def session(warehouse: Path, *, jars: str | None, clock: Clock | None = None, package: str = PACKAGE) -> Any:
    """Return a local Spark session with the catalog `p` over `warehouse`, everything in UTC, owner "lake".

    One per process: Java keeps the first one's settings.
    """
    settings = {
        **({} if jars else {"spark.jars.packages": package}),
        "spark.sql.catalog.p": "org.apache.paimon.spark.SparkCatalog",
        "spark.sql.catalog.p.warehouse": warehouse.as_uri(),
        "spark.sql.extensions": "org.apache.paimon.spark.extensions.PaimonSparkSessionExtensions",
    }
    variables = clock.environment() if clock else {}
    spark = sessions.session([jars] if jars else [], settings, master="local[1]", variables=variables)
    spark.sql("CREATE DATABASE IF NOT EXISTS p.d")
    spark.sql("USE p.d")
    return spark


_CUSTOMERS = ("Ada", "Björn", "Chloé", "Dmitri", "Elif", "Farah", "Goro", "Hana", "Iris", "João")
_CHANNELS = ("web", "app", "shop")


def _orders(first: int, last: int, moment: str, *, channel: bool = True) -> str:
    """Return the VALUES of new orders `first` to `last`, placed at `moment`; every ninth amount is unknown."""
    rows = []
    for order in range(first, last + 1):
        amount = "NULL" if order % 9 == 0 else f"{order * 7919 % 30000 / 100:.2f}"
        more = f", '{_CHANNELS[order % 3]}'" if channel else ""
        customer = _CUSTOMERS[order * 3 % 10]
        rows.append(f"({order}, '{customer}', {amount}, 'placed', TIMESTAMP '{moment}'{more})")
    return "VALUES " + ", ".join(rows)


def _events(first: int, last: int, day: str, *, country: bool = True, slow: int = 1) -> str:
    """Return the VALUES of events `first` to `last` of a day; every seventh comes from a bot."""
    rows = []
    for event in range(first, last + 1):
        kind = "bot" if event % 7 == 0 else ("view", "click", "cart", "buy")[event * 5 % 4]
        duration = "NULL" if (event - 3) % 10 == 0 else str(event * 37 % 900 * slow)
        more = f", '{('DE', 'FR', 'JP')[event % 3]}'" if country else ""
        rows.append(f"({event}, {event * 13 % 8 + 1}, '{kind}', {duration}, '{day}'{more})")
    return "VALUES " + ", ".join(rows)


# No snapshot may expire; compaction happens only where the story says so, as with a job of its own; manifests are
# merged early enough to be seen in so short a history.
_OPTIONS = (
    "'file.format' = 'parquet', 'snapshot.num-retained.min' = '1000', 'write-only' = 'true', "
    "'manifest.merge-min-count' = '8'"
)

_ORDERS = (
    (
        "2026-11-02T07:55:00",
        (
            "CREATE TABLE orders (order_id BIGINT NOT NULL, customer STRING, amount DECIMAL(10, 2), "
            "status STRING, updated_at TIMESTAMP) COMMENT 'Orders of a small shop' TBLPROPERTIES "
            f"('primary-key' = 'order_id', 'bucket' = '2', {_OPTIONS})"
        ),
    ),
    ("2026-11-02T08:00:00", "INSERT INTO orders " + _orders(1, 24, "2026-11-02 07:30:00", channel=False)),
    (
        "2026-11-02T20:00:00",
        "UPDATE orders SET status = 'paid', updated_at = TIMESTAMP '2026-11-02 19:45:00' WHERE order_id <= 14",
    ),
    ("2026-11-03T08:00:00", "INSERT INTO orders " + _orders(25, 36, "2026-11-03 07:30:00", channel=False)),
    ("2026-11-03T20:00:00", "DELETE FROM orders WHERE order_id IN (5, 17, 30)"),
    ("2026-11-04T02:00:00", "CALL sys.compact(table => 'd.orders')"),
    ("2026-11-04T08:00:00", "CALL sys.create_tag(table => 'd.orders', tag => 'v1', snapshot => 5)"),
    ("2026-11-04T08:05:00", "CALL sys.create_tag(table => 'd.orders', tag => 'opening', snapshot => 1)"),
    # Before the schema changes: 0.9 gives a branch the schema of its tag alone, and then cannot read older files.
    ("2026-11-04T08:30:00", "CALL sys.create_branch(table => 'd.orders', branch => 'dev', tag => 'v1')"),
    ("2026-11-04T09:00:00", "ALTER TABLE orders ADD COLUMN channel STRING COMMENT 'web, app or shop'"),
    ("2026-11-05T08:00:00", "INSERT INTO orders " + _orders(37, 44, "2026-11-05 07:30:00")),
    (
        "2026-11-05T14:00:00",
        (
            "INSERT INTO `orders$branch_dev` VALUES "
            "(1, 'Ada', 19.99, 'test', TIMESTAMP '2026-11-05 13:59:00'), "
            "(9001, 'Tester', 1.00, 'test', TIMESTAMP '2026-11-05 13:59:00')"
        ),
    ),
    (
        "2026-11-05T20:00:00",
        "UPDATE orders SET status = 'shipped', updated_at = TIMESTAMP '2026-11-05 19:45:00' WHERE status = 'paid'",
    ),
    (
        "2026-11-06T03:00:00",
        (
            "UPDATE orders SET amount = -amount, updated_at = TIMESTAMP '2026-11-06 02:58:00' "
            "WHERE order_id % 2 = 0 AND order_id > 10"
        ),
    ),
    ("2026-11-06T08:00:00", "INSERT INTO orders " + _orders(45, 50, "2026-11-06 07:30:00")),
    ("2026-11-06T08:30:00", "ANALYZE TABLE orders COMPUTE STATISTICS FOR COLUMNS amount, status"),
    (
        "2026-11-06T11:00:00",
        "UPDATE orders SET amount = -amount, updated_at = TIMESTAMP '2026-11-06 10:58:00' WHERE amount < 0",
    ),
    ("2026-11-07T02:00:00", "CALL sys.compact(table => 'd.orders')"),
    ("2026-11-08T09:00:00", "ALTER TABLE orders RENAME COLUMN customer TO buyer"),
    ("2026-11-09T08:00:00", "INSERT INTO orders " + _orders(51, 58, "2026-11-09 07:30:00")),
    (
        "2026-11-10T20:00:00",
        "UPDATE orders SET status = 'delivered', updated_at = TIMESTAMP '2026-11-10 19:45:00' WHERE status = 'shipped'",
    ),
    ("2026-11-11T02:00:00", "INSERT OVERWRITE orders SELECT * FROM orders WHERE status <> 'delivered'"),
    ("2026-11-12T08:00:00", "INSERT INTO orders " + _orders(59, 63, "2026-11-12 07:30:00")),
    ("2026-11-13T20:00:00", "DELETE FROM orders WHERE amount IS NULL"),
    ("2026-11-14T02:00:00", "CALL sys.compact(table => 'd.orders')"),
)

_EVENTS = (
    (
        "2026-11-02T00:20:00",
        (
            "CREATE TABLE events (event_id BIGINT, user_id INT, kind STRING, duration_ms INT, "
            "day STRING) COMMENT 'Clicks in the shop' PARTITIONED BY (day) TBLPROPERTIES "
            f"('bucket' = '-1', 'compaction.min.file-num' = '2', 'compaction.max.file-num' = '2', {_OPTIONS})"
        ),
    ),
    ("2026-11-02T00:30:00", "INSERT INTO events " + _events(1, 12, "2026-11-01", country=False)),
    ("2026-11-03T00:30:00", "INSERT INTO events " + _events(13, 24, "2026-11-02", country=False)),
    (
        "2026-11-03T06:00:00",
        "INSERT INTO events "
        + _events(25, 27, "2026-11-01", country=False)
        + ", "
        + _events(28, 30, "2026-11-02", country=False).removeprefix("VALUES "),
    ),
    ("2026-11-03T12:00:00", "ALTER TABLE events ADD COLUMN country STRING"),
    ("2026-11-04T00:30:00", "INSERT INTO events " + _events(31, 42, "2026-11-03")),
    ("2026-11-04T09:00:00", "DELETE FROM events WHERE kind = 'bot'"),
    ("2026-11-04T10:00:00", "ALTER TABLE events RENAME COLUMN kind TO event_type"),
    ("2026-11-05T00:30:00", "INSERT INTO events " + _events(43, 54, "2026-11-04")),
    ("2026-11-05T09:00:00", "ALTER TABLE events ALTER COLUMN duration_ms TYPE BIGINT"),
    ("2026-11-06T00:30:00", "INSERT INTO events " + _events(55, 64, "2026-11-05", slow=100_000_000)),
    ("2026-11-06T02:00:00", "CALL sys.compact(table => 'd.events')"),
    (
        "2026-11-06T15:00:00",
        (
            "INSERT OVERWRITE events PARTITION (day = '2026-11-03') VALUES "
            "(31, 4, 'view', 110, 'DE'), (32, 1, 'click', 250, 'FR'), (33, 6, 'cart', 90, NULL)"
        ),
    ),
    ("2026-11-07T00:30:00", "INSERT INTO events " + _events(65, 74, "2026-11-06")),
    ("2026-11-07T02:00:00", "ANALYZE TABLE events COMPUTE STATISTICS"),
    (
        "2026-11-07T06:00:00",
        "INSERT INTO events "
        + _events(75, 76, "2026-11-01")
        + ", "
        + _events(77, 78, "2026-11-06").removeprefix("VALUES "),
    ),
    ("2026-11-07T12:00:00", "UPDATE events SET country = 'unknown' WHERE country IS NULL AND day <= '2026-11-02'"),
    ("2026-11-08T02:00:00", "CALL sys.compact(table => 'd.events')"),
    ("2026-11-08T08:00:00", "CALL sys.create_tag(table => 'd.events', tag => 'week-45')"),
    ("2026-11-09T00:30:00", "INSERT INTO events " + _events(79, 88, "2026-11-07")),
)


def clean_copy(table: Path, target: Path) -> None:
    """Copy a table's folder without the checksum files that Hadoop's local file system lays beside each file."""
    shutil.copytree(table, target, ignore=shutil.ignore_patterns("*.crc", ".*"), dirs_exist_ok=True)


def write(out: Path, *, jars: str | None) -> None:
    """Write the tables `orders` and `events` below `out`, statement by statement, each at its own time."""
    with tempfile.TemporaryDirectory() as folder:
        clock = Clock(Path(folder))
        clock.set("2026-11-01T00:00:00")
        spark = session(Path(folder) / "warehouse", jars=jars, clock=clock)
        for moment, statement in (*_ORDERS, *_EVENTS):
            clock.set(moment)
            print(moment, statement[:90])
            spark.sql(statement)
        spark.stop()
        for name in ("orders", "events"):
            clean_copy(Path(folder) / "warehouse" / "d.db" / name, out / name)


def main() -> None:
    """Read the command line and write the samples."""
    parser = argparse.ArgumentParser(prog="python -m tests.scripts.make_samples", description="Write the samples.")
    parser.add_argument("out", type=Path, help="folder that gets a folder for each table")
    parser.add_argument("--jars", help=f"the connector's jar; without it Spark fetches {PACKAGE}")
    arguments = parser.parse_args()
    write(arguments.out, jars=arguments.jars)


if __name__ == "__main__":
    main()
