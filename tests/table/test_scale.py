"""The benchmark of scale on tiny tables: that it runs, not what it measures."""

import pytest

from snapshot_explorer import open_table
from tests.benchmarks import scale

SHRINK = 1_000


@pytest.mark.parametrize("name", scale.TABLES)
def test_the_benchmark_of_scale_makes_every_call_on_its_tables(name, tmp_path):
    folder = tmp_path / name

    scale.write(name, folder, SHRINK)

    costs = [scale.call(name, called, str(folder)) for called in ("open", *scale.TABLES[name])]

    assert len(open_table(str(folder)).versions()) >= 1
    assert all(cost.keys() == {"processor", "clock", "peak"} for cost in costs)


def test_the_benchmark_of_scale_prints_a_line_for_each_call(tmp_path, capsys):
    found = scale.measure(["delta-files"], tmp_path, SHRINK * 100, ["open", "files"])

    assert [one["call"] for one in found] == ["open", "files"]
    assert "processor s" in capsys.readouterr().out
