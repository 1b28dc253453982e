"""What `import snapshot_explorer` costs."""

import subprocess
import sys

HEAVY = ("pandas", "pyspark", "IPython", "ipywidgets", "plotly", "duckdb", "anywidget", "s3fs", "pyarrow.dataset")


def test_importing_the_package_loads_nothing_heavy():
    code = f"import sys, snapshot_explorer; print([name for name in {HEAVY!r} if name in sys.modules])"

    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout

    assert loaded.strip() == "[]"


def test_every_public_name_is_there():
    import snapshot_explorer

    assert [name for name in snapshot_explorer.__all__ if not hasattr(snapshot_explorer, name)] == []
