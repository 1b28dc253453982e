"""Write the sample lake `festival` with DuckDB's own extension, and what the extension reads at each snapshot.

Run it in an environment of its own, from the root of the repository:

    pip install duckdb==1.5.5 duckdb-extension-ducklake==1.5.5 duckdb-extension-sqlite-scanner==1.5.5
    python -m tests.scripts.make_festival

The catalog is a SQLite file, which every supported DuckDB can do without. DuckDB has no clock that can be shifted, so
the times of the snapshots are set afterwards: they lie hours and days apart, as in the other samples. The rows, the
snapshots and what each did are the same on every run; the names of files are random.
"""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

from tests.support.ducklake.write_lakes import write

SAMPLE = Path("snapshot_explorer/samples/festival")
EXPECTED = Path("tests/data/ducklake/festival/rows.json")
CATALOG = "festival.ducklake"
TABLES = ("tickets", "refunds", "daily")


def _tickets(first: int, last: int, channel: str | None = None) -> str:
    """Return the SELECT of new tickets."""
    more = f", '{channel}' as channel" if channel else ""
    return f"""
        select i::bigint as id, ['Berlin', 'Lyon', 'Porto'][1 + i % 3] as event, 'guest ' || (i * 7 % 40) as buyer,
            (20 + i * 13 % 60 + 0.5 * (i % 2))::decimal(8, 2) as price, 'sold' as status{more}
        from range({first}, {last + 1}) t(i)"""


def _refund(ids: str, message: str) -> str:
    """Return a transaction that refunds tickets: one snapshot over two tables."""
    return f"""begin;
        update lake.tickets set status = 'refunded' where id in ({ids});
        insert into lake.refunds select id, price, 'asked for' from lake.tickets where id in ({ids});
        call lake.set_commit_message('refunds', '{message}', extra_info => '{{"job": 17}}'); commit"""


STATEMENTS = (
    (
        "2026-11-02 08:00:00",
        """begin;
        create table lake.tickets (id bigint, event varchar, buyer varchar, price decimal(8, 2), status varchar);
        create table lake.refunds (ticket_id bigint, amount decimal(8, 2), reason varchar); commit""",
    ),
    ("2026-11-02 09:00:00", f"insert into lake.tickets {_tickets(1, 40)}"),
    ("2026-11-03 09:00:00", f"insert into lake.tickets {_tickets(41, 46)}"),
    ("2026-11-03 20:00:00", _refund("3, 11, 28", "refunds of the day")),
    ("2026-11-04 09:00:00", f"insert into lake.tickets {_tickets(47, 76)}"),
    ("2026-11-04 12:00:00", "alter table lake.tickets add column channel varchar default 'web'"),
    ("2026-11-05 09:00:00", f"insert into lake.tickets {_tickets(77, 101, 'door')}"),
    ("2026-11-05 20:00:00", _refund("5, 44, 60, 77", "refunds of the day")),
    (
        "2026-11-06 03:00:00",
        """begin; update lake.tickets set price = -price where event = 'Lyon';
        delete from lake.refunds where amount > 50;
        call lake.set_commit_message('nightly', 'recalculate Lyon', extra_info => '{"job": 3}'); commit""",
    ),
    ("2026-11-06 09:00:00", f"insert into lake.tickets {_tickets(102, 106, 'web')}"),
    (
        "2026-11-06 11:00:00",
        """begin; update lake.tickets set price = -price where price < 0;
        call lake.set_commit_message('ada', 'turn the prices back'); commit""",
    ),
    ("2026-11-07 02:00:00", "call ducklake_flush_inlined_data('lake')"),
    ("2026-11-07 02:10:00", "call ducklake_rewrite_data_files('lake', 'tickets', delete_threshold => 0.3)"),
    ("2026-11-09 09:00:00", f"insert into lake.tickets {_tickets(107, 126, 'web')}"),
    (
        "2026-11-10 02:00:00",
        """create table lake.daily as
        select event, count(*) as tickets, sum(price) as revenue from lake.tickets group by event""",
    ),
    ("2026-11-12 09:00:00", f"insert into lake.tickets {_tickets(127, 131, 'door')}"),
)


def main() -> None:
    """Write the sample and the expected rows."""
    shutil.rmtree(SAMPLE, ignore_errors=True)
    SAMPLE.mkdir(parents=True)
    write(SAMPLE, f"sqlite:{CATALOG}", [statement for _, statement in STATEMENTS], TABLES)
    EXPECTED.parent.mkdir(exist_ok=True)
    (SAMPLE / "rows.json").replace(EXPECTED)
    with closing(sqlite3.connect(SAMPLE / CATALOG, isolation_level=None)) as catalog:
        (newest,) = catalog.execute("SELECT max(snapshot_id) FROM ducklake_snapshot").fetchone()
        times = ["2026-11-02 07:59:00", *(time for time, _ in STATEMENTS)]
        if newest != len(STATEMENTS):
            raise SystemExit(f"{newest} snapshots, but {len(STATEMENTS)} statements with times")
        for number, time in enumerate(times):
            catalog.execute(
                "UPDATE ducklake_snapshot SET snapshot_time = ? WHERE snapshot_id = ?", (f"{time}+00", number)
            )
        catalog.execute("PRAGMA page_size = 1024")
        catalog.execute("VACUUM")


if __name__ == "__main__":
    main()
