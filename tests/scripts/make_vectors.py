"""Write index files with deletion vectors, and unions of bitmaps, through the classes that Apache Paimon 1.4.2 uses.

    python -m tests.scripts.make_vectors JARS

Class path and Java as for `make_paimon_java.py`. Each file is as Paimon would write it for one data file: the version
byte, then the vector. `POSITIONS` says what it deletes, and is what the tests expect. `UNIONS` says of which bitmaps
Paimon's `rbm64` makes unions: ones that Paimon's own tables do not come to hold, as numbers were removed from them.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path
from typing import Any

DATA = Path(__file__).resolve().parents[1] / "data"

POSITIONS = {
    "sparse": [0, 3, 65_535, 65_536, 1_000_000],
    "every_second": range(0, 10_000, 2),
    "runs": [*range(100, 7_000), *range(65_000, 66_000), 200_000],
    "five_containers": [container << 16 | low for container in range(5) for low in range(10, 90)],
    "all_of_a_container": range(65_536),
}
"""For each file the positions, ascending."""

Steps = list[tuple[str, Any]]
"""What is done to a bitmap: add, remove (numbers), runs (hold what is shorter so as runs)."""


def _keys(*parts: int, shift: int = 16) -> list[int]:
    return [part << shift for part in parts]


UNIONS: dict[str, tuple[Steps, Steps]] = {
    "a leaf that was alone left": (
        [("add", [7 << 40, 7 << 40 | 1 << 16, 7 << 40 | 2 << 16]), ("remove", [7 << 40, 7 << 40 | 2 << 16])],
        [("add", [7 << 40 | 5 << 16])],
    ),
    "a leaf with remains that is not touched": (
        [("add", [1 << 56 | 3 << 40, 1 << 56 | 3 << 40 | 1 << 16, 5]), ("remove", [1 << 56 | 3 << 40])],
        [("add", [-1, 6])],
    ),
    "a small node with remains": ([("add", _keys(1, 2, 3, 4)), ("remove", _keys(2))], [("add", [])]),
    "a small node from a larger one": ([("add", _keys(*range(9))), ("remove", _keys(*range(6)))], [("add", [1])]),
    "a larger node with remains": ([("add", _keys(*range(16))), ("remove", _keys(3, 9))], [("add", _keys(99))]),
    "free positions are taken": (
        [("add", _keys(*range(0, 60, 3), shift=56)), ("remove", _keys(6, 9, 30, shift=56))],
        [("add", _keys(*range(1, 120, 20), shift=56))],
    ),
    "a node with a bit for each child grows from one with free positions": (
        [("add", _keys(*range(47))), ("remove", _keys(4)), ("add", _keys(200, 4))],
        [("add", _keys(*range(190, 204)))],
    ),
    "a node that stays large": ([("add", _keys(*range(60))), ("remove", _keys(*range(20)))], [("add", _keys(255, 0))]),
    "the last slot was given back": ([("add", _keys(1, 2, 3)), ("remove", _keys(3))], [("add", _keys(9))]),
    "runs that are longer than a list": (
        [("add", [*range(10), 70_000]), ("runs", None), ("remove", range(1, 10, 2))],
        [("add", _keys(8))],
    ),
    "all was removed": ([("add", [1]), ("remove", [1])], [("add", [2])]),
}
"""For each case the bitmaps, left and right."""


def main() -> None:
    """Write each set of positions in both layouts, and each union."""
    from tests.scripts.make_paimon_java import Core

    out = DATA / "vectors"
    out.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        core = Core(sys.argv[1], Path(folder))
        vectors, streams = core.paimon.deletionvectors, core.gateway.jvm.java.io
        for name, positions in POSITIONS.items():
            for bits, vector in ((32, vectors.BitmapDeletionVector()), (64, vectors.Bitmap64DeletionVector())):
                for position in positions:
                    vector.delete(position)
                content = streams.ByteArrayOutputStream()
                stream = streams.DataOutputStream(content)
                stream.writeByte(1)
                vector.serializeTo(stream)
                (out / f"{name}_{bits}.bin").write_bytes(content.toByteArray())
        unions = {name: _union(core, *sides) for name, sides in UNIONS.items()}
        (out / "unions_64.json").write_text(json.dumps(unions, indent=1) + "\n")
        core.close()


def _union(core: Any, left: Steps, right: Steps) -> list[str]:
    """Return two bitmaps and their union, as hexadecimal digits."""
    sides = [_bitmap(core, steps) for steps in (left, right)]
    kind = core.paimon.types.VarBinaryType(core.paimon.types.VarBinaryType.MAX_LENGTH)
    function = core.paimon.mergetree.compact.aggregate.FieldRoaringBitmap64Agg("rbm64", kind)
    return [content.hex() for content in (*sides, bytes(function.agg(*sides)))]


def _bitmap(core: Any, steps: Steps) -> bytes:
    from tests.scripts.tables_of_merges import Long

    bitmap = core.paimon.shade.org.roaringbitmap.longlong.Roaring64Bitmap()
    for step, numbers in steps:
        for number in numbers or ():
            getattr(bitmap, f"{step}Long")(Long(number))
        if step == "runs":
            bitmap.runOptimize()
    content = core.gateway.jvm.java.io.ByteArrayOutputStream()
    bitmap.serialize(core.gateway.jvm.java.io.DataOutputStream(content))
    return bytes(content.toByteArray())


if __name__ == "__main__":
    main()
