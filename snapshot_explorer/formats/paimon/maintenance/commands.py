"""What Paimon's engines would be told: names of tables in SQL, and the call that lets snapshots expire.

Source: paimon docs, "Procedures" of Spark and Flink; paimon ProcedureUtils.fillInSnapshotOptions.
"""

import re
from datetime import datetime

_WORD = re.compile(r"\w+", re.ASCII)


def expire_commands(
    name: str, *, retain_max: int | None, retain_min: int, older_than: datetime, max_deletes: int
) -> tuple[tuple[str, str], ...]:
    """Return for whom each call is, and the call.

    Args:
        name: The table in SQL.
        retain_max: How many versions stay at most; None is what the table says.
        retain_min: How many stay at least.
        older_than: Only older ones expire; told in UTC.
        max_deletes: How many may expire in one call.
    """
    arguments = [] if retain_max is None else [f"retain_max => {retain_max}"]
    arguments += [
        f"retain_min => {retain_min}",
        f"older_than => '{older_than:%Y-%m-%d %H:%M:%S}.{older_than.microsecond // 1000:03d}'",
    ]
    rest = ", ".join([*arguments, f"max_deletes => {max_deletes}"])
    return (
        ("Spark SQL", f"CALL sys.expire_snapshots(table => '{name}', {rest})"),
        ("Flink SQL", f"CALL sys.expire_snapshots(`table` => '{name.replace('`', '')}', {rest})"),
    )


def sql_name(root: str, branch: str | None) -> str:
    """Return what a table is called in SQL, from its path `.../shop.db/orders`; a path without `.db` gives DATABASE."""
    parts = [part for part in root.replace("\\", "/").rstrip("/").split("/") if part]
    table = parts[-1] if parts else "TABLE"
    database = parts[-2].removesuffix(".db") if len(parts) > 1 and parts[-2].endswith(".db") else ""
    full = f"{table}$branch_{branch}" if branch else table
    return f"{_quoted(database) if database else 'DATABASE'}.{_quoted(full)}"


def _quoted(word: str) -> str:
    return word if _WORD.fullmatch(word) else "`{}`".format(word.replace("`", "``").replace("'", "\\'"))
