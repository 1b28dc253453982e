"""A local session takes a quarter of the memory that there is for it: of a container, of what that is allowed."""

import pytest

from tests.inner.engines_spark import session_mebibytes

GIB = 2**30
OWN = "sys/fs/cgroup"


@pytest.mark.parametrize(
    ("groups", "files", "mebibytes"),
    [
        pytest.param("0::/\n", {"memory.max": 4 * GIB}, 1024, id="a container, v2"),
        pytest.param("0::/a/b\n", {"a/memory.max": 4 * GIB, "a/b/memory.max": "max"}, 1024, id="the group above, v2"),
        pytest.param("0::/a\n", {"a/memory.max": GIB, "memory.max": 4 * GIB}, 512, id="the least"),
        pytest.param(
            "4:cpu,memory:/docker/1\n0::/\n", {"memory/memory.limit_in_bytes": 3 * GIB}, 768, id="a container, v1"
        ),
        pytest.param(
            "4:memory:/a\n3:cpu:/b\n",
            {"memory/a/memory.limit_in_bytes": 4 * GIB, "memory/memory.limit_in_bytes": 2**63 - 4096},
            1024,
            id="a group without limit above, v1",
        ),
    ],
)
def test_the_limit_of_a_container_is_kept(tmp_path, groups, files, mebibytes):
    (tmp_path / "proc/self").mkdir(parents=True)
    (tmp_path / "proc/self/cgroup").write_text(groups)
    for name, limit in files.items():
        path = tmp_path / OWN / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{limit}\n")

    assert session_mebibytes(tmp_path) == mebibytes


def test_without_limits_it_is_the_machines_memory_and_never_more_than_16_gib(tmp_path):
    assert 512 <= session_mebibytes(tmp_path) <= 16 * 1024
