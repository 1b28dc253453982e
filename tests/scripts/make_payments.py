"""Write the sample table `payments` with Delta Lake itself.

    python -m tests.scripts.make_payments OUT --jars FOLDER

Writer: Delta Lake 4.4.0, `io.delta:delta-spark_4.1_2.13:4.4.0` with the jars it needs in FOLDER, on PySpark 4.1.4 and
Java 17, all in UTC. `.ci/oracles` makes such an environment.

The rows, the versions and what each did are the same on every run. Names of files hold random ids; the times of commits
are written into the commits (in-commit timestamps), and so are those of files, some seconds after the times in the
story: a small shared library, compiled with `cc`, shifts the clock of the Java process and stamps the files it writes.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
from pathlib import Path

from tests.scripts import make_samples
from tests.support.delta import connector

WRITER = "Delta Lake 4.4.0 (Spark connector, PySpark 4.1.4)"

_STAMPED_C = r"""
#include <sys/stat.h>
/* A file that was written carries the shifted time: Delta notes it in the log. */
int close(int file) {
  struct stat found;
  int flags = fcntl(file, F_GETFL);
  int written = flags != -1 && (flags & O_ACCMODE) != O_RDONLY;
  if (shift && *shift && written && !fstat(file, &found) && S_ISREG(found.st_mode)) {
    struct timespec times[2];
    clock_gettime(CLOCK_REALTIME, &times[0]);
    times[1] = times[0];
    futimens(file, times);
  }
  return syscall(SYS_close, file);
}
"""

_CUSTOMERS = ("Ada", "Björn", "Chloé", "Dmitri", "Elif", "Farah", "Goro", "Hana", "Iris", "João")
_METHODS = ("card", "wallet", "transfer")


def _payments(first: int, last: int, day: str, *, country: bool = True) -> str:
    """Return the INSERT of new payments of a day: three in four are settled at once; a few have no amount yet."""
    rows = []
    for payment in range(first, last + 1):
        customer = "Test" if payment % 13 == 0 else _CUSTOMERS[payment * 3 % 10]
        amount = "NULL" if payment % 11 == 0 else f"{payment * 7919 % 20000 / 100 + 1:.2f}"
        status = "pending" if payment % 4 == 0 else "settled"
        moment = f"{day} {8 + payment % 12:02d}:{payment * 7 % 60:02d}:00"
        more = f", '{('DE', 'FR', 'JP')[payment * 5 % 3]}'" if country else ""
        method = _METHODS[payment % 3]
        rows.append(
            f"({payment}, '{customer}', {amount}, '{method}', '{status}', TIMESTAMP '{moment}', DATE '{day}'{more})"
        )
    return "INSERT INTO {t} VALUES " + ", ".join(rows)


# The bad job joins on the customer, not on the payment, and takes cents for whole units.
_CORRECTIONS = "VALUES ('Ada', 1990), ('Elif', 450), ('Goro', 7325)"

_PAYMENTS = (
    (
        "2026-11-02T06:00:00",
        (
            "CREATE TABLE {t} (payment_id BIGINT NOT NULL, customer STRING, amount DECIMAL(10, 2), method STRING "
            "COMMENT "
            "'card, wallet or transfer', status STRING, paid_at TIMESTAMP, day DATE) USING delta COMMENT "
            "'Payments of a "
            "small shop' TBLPROPERTIES ('delta.enableDeletionVectors' = 'true', "
            "'delta.enableChangeDataFeed' = 'true', 'delta.enableInCommitTimestamps' = 'true', "
            "'delta.checkpoint.writeStatsAsStruct' = 'false', 'delta.logRetentionDuration' = 'interval 3650 days', "
            "'delta.deletedFileRetentionDuration' = 'interval 3650 days')"
        ),
    ),
    ("2026-11-02T21:00:00", _payments(1, 18, "2026-11-02", country=False)),
    ("2026-11-03T21:00:00", _payments(19, 36, "2026-11-03", country=False)),
    ("2026-11-04T07:00:00", "UPDATE {t} SET status = 'settled' WHERE status = 'pending' AND method = 'card'"),
    ("2026-11-04T09:30:00", "DELETE FROM {t} WHERE customer = 'Test'"),
    ("2026-11-04T12:00:00", "ALTER TABLE {t} ADD COLUMNS (country STRING COMMENT 'where the card is from')"),
    ("2026-11-04T21:00:00", _payments(37, 54, "2026-11-04")),
    (
        "2026-11-05T07:00:00",
        (
            "MERGE INTO {t} p USING (SELECT * FROM VALUES (8, 'settled'), (20, 'refused'), (40, 'settled'), "
            "(44, 'settled'), (55, 'settled'), (56, 'settled') AS v(payment_id, status)) s ON p.payment_id = "
            "s.payment_id "
            "WHEN MATCHED AND s.status = 'refused' THEN DELETE WHEN MATCHED THEN UPDATE SET status = s.status "
            "WHEN NOT MATCHED THEN INSERT (payment_id, customer, amount, method, status, paid_at, day, country) VALUES "
            "(s.payment_id, 'Iris', 12.50, 'transfer', s.status, TIMESTAMP '2026-11-04 23:50:00', DATE "
            "'2026-11-04', 'FR')"
        ),
    ),
    ("2026-11-05T21:00:00", _payments(57, 74, "2026-11-05")),
    ("2026-11-06T02:00:00", "OPTIMIZE {t}"),
    ("2026-11-06T21:00:00", _payments(75, 92, "2026-11-06")),
    (
        "2026-11-07T03:00:00",
        (
            f"MERGE INTO {{t}} p USING (SELECT * FROM {_CORRECTIONS} AS v(customer, cents)) c ON p.customer = "
            "c.customer "
            "WHEN MATCHED AND p.day >= DATE '2026-11-04' THEN UPDATE SET amount = c.cents"
        ),
    ),
    ("2026-11-07T21:00:00", _payments(93, 110, "2026-11-07")),
    ("2026-11-08T09:00:00", "RESTORE TABLE {t} TO VERSION AS OF 10"),
    ("2026-11-08T09:20:00", _payments(93, 110, "2026-11-07")),
    (
        "2026-11-08T14:00:00",
        "ALTER TABLE {t} SET TBLPROPERTIES ('delta.columnMapping.mode' = 'name')",
    ),
    ("2026-11-08T14:05:00", "ALTER TABLE {t} RENAME COLUMN method TO channel"),
    ("2026-11-08T21:00:00", _payments(111, 128, "2026-11-08")),
    ("2026-11-09T10:00:00", "DELETE FROM {t} WHERE customer = 'Hana'"),
    ("2026-11-10T02:00:00", "OPTIMIZE {t}"),
    ("2026-11-10T21:00:00", _payments(129, 140, "2026-11-10")),
    ("2026-11-11T07:00:00", "UPDATE {t} SET status = 'settled' WHERE status = 'pending' AND day <= DATE '2026-11-08'"),
)


def write(out: Path, jars: Path) -> None:
    """Write the table `payments` below `out`, statement by statement, each at its own time."""
    make_samples.CLOCK_C += _STAMPED_C
    with tempfile.TemporaryDirectory() as folder:
        clock = make_samples.Clock(Path(folder))
        clock.set("2026-11-01T00:00:00")
        spark = connector.session(sorted(jars.glob("*.jar")), master="local[1]", variables=clock.environment())
        spark.sql("SET spark.databricks.delta.allFilesInCrc.enabled = false")  # a third of the bytes
        table = Path(folder) / "payments"
        for moment, statement in _PAYMENTS:
            clock.set(moment)
            print(moment, statement[:90])
            spark.sql(statement.replace("{t}", f"delta.`{table}`"))
        spark.stop()
        shutil.copytree(table, out / "payments", ignore=shutil.ignore_patterns(".*", "_staged_commits"))


def main() -> None:
    """Read the command line and write the sample."""
    parser = argparse.ArgumentParser(description="Write the sample table of Delta Lake.")
    parser.add_argument("out", type=Path, help="folder that gets a folder for the table")
    parser.add_argument("--jars", type=Path, required=True, help="folder with the connector's jars")
    arguments = parser.parse_args()
    write(arguments.out, arguments.jars)


if __name__ == "__main__":
    main()
