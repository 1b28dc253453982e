"""What `import snapshot_explorer` costs."""

import subprocess
import sys
from pathlib import Path

LOADED = """
import sys

before = set(sys.modules)
{code}
found = sorted(name for name in set(sys.modules) - before if name.partition(".")[0] not in sys.stdlib_module_names)
print(*found)
"""


def loaded(code):
    """Return the modules that are not of Python's own library and that are loaded by some code, which runs alone."""
    command = [sys.executable, "-c", LOADED.format(code=code)]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()


def test_importing_the_package_loads_few_small_modules_and_nothing_that_is_installed():
    home = "snapshot_explorer"

    assert loaded("import snapshot_explorer") == [
        home,
        f"{home}.core",
        *(f"{home}.core.{name}" for name in ("errors", "hints", "old_libraries", "safe_text", "url_secrets")),
        f"{home}.errors",
        f"{home}.samples",
    ]


def test_importing_what_opens_tables_does_not_load_pandas():
    found = loaded("from snapshot_explorer import open_table")

    assert "pandas" not in found


DATA = Path(__file__).parents[1] / "data"
OPENED = (
    *(
        f"delta/{name}"
        for name in ("checkpoint_parts", "checkpoint_v2_json", "checkpoint_v2_parquet", "dv_partitioned")
    ),
    *("iceberg/v1_upgraded_to_v3", "iceberg/v3_dv", "hudi/v6_cow_archived", "hudi/v9_mor_basic", "paimon/aggregates"),
)


def test_opening_a_table_does_not_load_pandas_which_takes_longer():
    paths = [str(DATA / name) for name in OPENED]

    found = loaded(f"from snapshot_explorer import open_table\nfor path in {paths}:\n    open_table(path)")

    assert "pandas" not in found


def test_opening_a_table_loads_what_reads_it_and_nothing_that_draws_queries_or_connects():
    found = loaded("from snapshot_explorer import open_table, samples; open_table(samples.path('orders')).history()")

    heavy = {"IPython", "anywidget", "botocore", "duckdb", "ipywidgets", "plotly", "pyspark", "s3fs", "traitlets"}
    assert heavy & {name.partition(".")[0] for name in found} == set()
    assert "pyarrow.dataset" not in found
    assert [name for name in found if name.startswith("snapshot_explorer.view")] == []


def test_every_public_name_is_there():
    import snapshot_explorer

    assert [name for name in snapshot_explorer.__all__ if not hasattr(snapshot_explorer, name)] == []
