"""The benchmark of scale on tiny tables: that it runs, not what it measures."""

import pytest

from tests.benchmarks import scale

SHRINK = 1_000


@pytest.mark.parametrize("name", scale.TABLES)
def test_the_benchmark_of_scale_makes_every_call_on_its_tables(name, tmp_path):
    folder = tmp_path / name

    scale.write(name, folder, SHRINK)

    for called in ("open", *scale.TABLES[name]):
        assert scale.call(name, called, str(folder))["peak"] > 0


def test_the_benchmark_of_scale_prints_a_line_for_each_call(tmp_path, capsys):
    found = scale.measure(["delta-files"], tmp_path, SHRINK * 100, ["open", "files"])

    assert [one["call"] for one in found] == ["open", "files"]
    assert "processor s" in capsys.readouterr().out
