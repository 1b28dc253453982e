"""The code of the guide's page on Spark runs."""

import re
from pathlib import Path

from snapshot_explorer import samples

PAGE = Path(__file__).parents[2] / "notebooks" / "guide" / "spark.md"


def test_the_code_of_the_guide_runs(here):
    names = {"spark": here, "path": samples.path("orders")}

    for block in re.findall(r"```python spark\n(.*?)```", PAGE.read_text("utf-8"), flags=re.DOTALL):
        exec(compile(block, PAGE.name, "exec"), names)

    assert names["rows"].columns[0] == "order_id"
    assert here.table("orders_17").count() == names["orders"].at(17).count()
    here.catalog.dropTempView("orders_17")
