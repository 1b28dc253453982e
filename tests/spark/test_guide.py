"""The code of the guide's page on Spark runs."""

import re
from pathlib import Path

import pytest

from snapshot_explorer import samples
from tests.inner.core import PYSPARK_DATA_SOURCES

PAGE = Path(__file__).parents[2] / "notebooks" / "guide" / "spark.md"


@pytest.mark.skipif(PYSPARK_DATA_SOURCES.applies(), reason=PYSPARK_DATA_SOURCES.problem)
def test_the_code_of_the_guide_runs(here, tmp_path):
    names = {"spark": here, "path": samples.path("orders"), "checkpoint": str(tmp_path)}

    for block in re.findall(r"```python spark\n(.*?)```", PAGE.read_text("utf-8"), flags=re.DOTALL):
        exec(compile(block, PAGE.name, "exec"), names)

    assert names["rows"].columns[0] == "order_id"
    assert here.table("orders_17").count() == names["orders"].at(17).count()
    assert here.table("order_changes").where("_change_type = 'update_postimage'").count() > 0
    for name in ("orders_17", "order_changes"):
        here.catalog.dropTempView(name)
