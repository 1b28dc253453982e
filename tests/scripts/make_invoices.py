"""Write the sample table `invoices` with Apache Paimon's Java core, with Iceberg metadata beside Paimon's own.

    python -m tests.scripts.make_invoices OUT EXPECTED JARS

Writer: Apache Paimon 1.4.2; JARS and the environment are those of `make_paimon_java.py`. The last two commits do not
write Iceberg metadata, which is therefore behind. What Paimon reads at each snapshot is written to EXPECTED, in the
form of `tests/data/README.md`.
"""

from __future__ import annotations

import json
import sys
import tempfile
from decimal import Decimal
from pathlib import Path

from tests.scripts import make_samples
from tests.scripts.make_paimon_java import SOURCE, Core
from tests.scripts.tables_of_merges import Long
from tests.support.canonical import canonical_rows

NAME = "invoices"
_COLUMNS = {"invoice_id": "BIGINT", "customer": "STRING", "amount": "DECIMAL(10, 2)", "month": "STRING"}
_OPTIONS = {"bucket": "-1", "file.format": "parquet", "snapshot.num-retained.min": "1000"}
_CUSTOMERS = ("Ada", "Björn", "Chloé", "Dmitri", None)
_COMMITS = (
    (1, 8, "2026-10"),
    (9, 14, "2026-11"),
    (15, 20, "2026-11"),
    (21, 25, "2026-11"),
    (26, 28, "2026-12"),
)
"""The first and the last invoice of each commit, and their month."""
_TWIN_COMMITS = 3
"""How many of them write Iceberg metadata."""


def main() -> None:
    """Write the table, and what its writer reads."""
    out, expected, jars = sys.argv[1:]
    with tempfile.TemporaryDirectory() as folder:
        core = Core(jars, Path(folder))
        core.create(NAME, _COLUMNS, "", {**_OPTIONS, "metadata.iceberg.storage": "table-location"}, "month")
        alone = core.table(NAME, metadata__iceberg__storage="disabled")
        for number, (first, last, month) in enumerate(_COMMITS):
            core.hours += 20
            rows = [_row(invoice, month) for invoice in range(first, last + 1)]
            core.write(NAME, rows, table=None if number < _TWIN_COMMITS else alone)
        make_samples.clean_copy(core.warehouse / "d.db" / NAME, Path(out) / NAME)
        answers = Path(expected) / NAME
        answers.mkdir(parents=True, exist_ok=True)
        for version in range(1, len(_COMMITS) + 1):
            read = core.read(NAME, scan__snapshot_id=str(version))
            answer = {"version": version, "outcome": "rows", "columns": read.column_names, "rows": canonical_rows(read)}
            text = json.dumps(answer | {"source": SOURCE}, ensure_ascii=False)
            (answers / f"{version}.json").write_text(text + "\n")
        core.close()


def _row(invoice: int, month: str) -> tuple[object, ...]:
    amount = Decimal(invoice * 7_919 % 40_000 + 500).scaleb(-2)
    return Long(invoice), _CUSTOMERS[invoice % len(_CUSTOMERS)], amount, month


if __name__ == "__main__":
    main()
