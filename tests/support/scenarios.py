"""One scenario played in each format: the same commits of the same rows."""

from datetime import UTC, datetime, timedelta

from tests.support.delta.table_builder import DeltaTable, metadata, protocol, remove
from tests.support.ducklake.catalog_builder import Catalog
from tests.support.hudi.table_builder import HudiTable
from tests.support.iceberg.table_builder import IcebergTable
from tests.support.paimon.table_builder import PaimonTable

FIRST = datetime(2026, 1, 1, 0, 1, tzinfo=UTC)
"""When the first commit was made; each later one a minute after."""


class Scenario:
    """Commits of a table, which are numbered from `earliest`."""

    earliest = 1
    type_of_id = "long"
    manifests_are_rewritten = False
    overwriting = "overwrite"
    """The kind of an overwrite."""
    has_manifest_files = True
    """Whether its manifests are files, which have sizes."""
    table_name = ""
    """What follows the URL in the path of the table."""

    def __init__(self, filesystem, root, **more):
        self._table = self.builder(filesystem, root, **more)
        self.root = root
        self.url = f"memory://{root}"

    def append(self, rows):
        self._table.commit(rows)


class PaimonScenario(Scenario):
    """Commits of a Paimon table."""

    format = "paimon"
    builder = PaimonTable
    type_of_id = "BIGINT"
    compaction = "compact"

    def overwrite(self, rows, *numbers):
        self._table.commit(rows, removed=[f"data-{number}.parquet" for number in numbers], kind="OVERWRITE")

    def compact(self, rows, *numbers):
        self._table.commit(rows, removed=[f"data-{number}.parquet" for number in numbers], kind="COMPACT")


class DeltaScenario(Scenario):
    """Commits of a Delta table."""

    format = "delta"
    builder = DeltaTable
    earliest = 0
    compaction = "optimize"

    def __init__(self, filesystem, root):
        super().__init__(filesystem, root, first=None)
        self._commits = 0

    def append(self, rows):
        self._commit(rows, (), "WRITE", {"mode": "Append"})

    def overwrite(self, rows, *numbers):
        self._commit(rows, numbers, "WRITE", {"mode": "Overwrite"})

    def compact(self, rows, *numbers):
        self._commit(rows, numbers, "OPTIMIZE", {})

    def _commit(self, rows, removed, operation, parameters):
        self._commits += 1
        changes = operation != "OPTIMIZE"
        first = (protocol(), metadata()) if self._commits == 1 else ()
        self._table.commit(
            *first,
            self._table.data(f"data-{self._commits}.parquet", rows, data_change=changes),
            *[remove(f"data-{number}.parquet", data_change=changes) for number in removed],
            operation=operation,
            info={"operationParameters": parameters},
            millis=int((FIRST + timedelta(minutes=self._commits - 1)).timestamp() * 1000),
        )


class IcebergScenario(Scenario):
    """Commits of an Iceberg table."""

    format = "iceberg"
    builder = IcebergTable
    compaction = '"operation":"replace"'
    manifests_are_rewritten = True

    def overwrite(self, rows, *numbers):
        removed = [f"data-{number}.parquet" for number in numbers]
        self._table.commit(rows, removed=removed, operation="overwrite", **{"replace-partitions": "true"})

    def compact(self, rows, *numbers):
        self._table.commit(rows, removed=[f"data-{number}.parquet" for number in numbers], operation="replace")


class HudiScenario(Scenario):
    """Commits of a Hudi table."""

    format = "hudi"
    builder = HudiTable
    compaction = "CLUSTER"

    def append(self, rows):
        self._table.insert(rows)

    def overwrite(self, rows, *numbers):
        self._replace(rows, numbers, "INSERT_OVERWRITE")

    def compact(self, rows, *numbers):
        self._replace(rows, numbers, "CLUSTER")

    def _replace(self, rows, numbers, operation):
        replaced = [f"data-{number}" for number in numbers]
        self._table.insert(rows, replaced=replaced, operation=operation, action="replacecommit")


class DuckLakeScenario(Scenario):
    """Commits of a DuckLake table, the only one of its catalog."""

    format = "ducklake"
    builder = Catalog
    type_of_id = "int64"
    compaction = "rewrite_delete"
    overwriting = "update"
    has_manifest_files = False
    table_name = "::main.rows"

    def __init__(self, filesystem, root):
        super().__init__(filesystem, root)
        self.url = f"memory://{root}/{self._table.name}"

    def append(self, rows):
        self._table.commit_rows(rows)

    def overwrite(self, rows, *numbers):
        self._table.commit_rows(rows, removed=numbers, words=("inserted_into_table", "deleted_from_table"))

    def compact(self, rows, *numbers):
        self._table.commit_rows(rows, removed=numbers, words=("rewrite_delete",), first_row_id=1)


SCENARIOS = (PaimonScenario, DeltaScenario, IcebergScenario, HudiScenario, DuckLakeScenario)


def played(scenario):
    """Make five commits: three appends, an overwrite of the first file, a compaction of the rest."""
    scenario.append([(1, "a")])
    scenario.append([(2, "b"), (3, "c")])
    scenario.append([(4, "d")])
    scenario.overwrite([(1, "A")], 1)
    scenario.compact([(2, "b"), (3, "c"), (4, "d")], 2, 3)
    return scenario
