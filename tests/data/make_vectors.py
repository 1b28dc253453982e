"""Write index files with deletion vectors, through the classes that Apache Paimon 1.4.2 itself uses.

    python tests/data/make_vectors.py JARS

Class path and Java as for `make_paimon_java.py`. Each file is as Paimon would write it for one data file: the version
byte, then the vector. `POSITIONS` says what it deletes, and is what the tests expect.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent

POSITIONS = {
    "sparse": [0, 3, 65_535, 65_536, 1_000_000],
    "every_second": range(0, 10_000, 2),
    "runs": [*range(100, 7_000), *range(65_000, 66_000), 200_000],
    "five_containers": [container << 16 | low for container in range(5) for low in range(10, 90)],
    "all_of_a_container": range(65_536),
}
"""For each file the positions, ascending."""


def main() -> None:
    """Write each set of positions in both layouts."""
    sys.path.insert(0, str(HERE))
    from make_paimon_java import Core

    out = HERE / "vectors"
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
        core.close()


if __name__ == "__main__":
    main()
