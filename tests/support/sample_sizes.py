"""The sizes of samples: .ci/run, which sets SNAPSHOT_EXPLORER_NO_SKIPS, draws larger ones than a plain run."""

import os

IN_CI = "SNAPSHOT_EXPLORER_NO_SKIPS" in os.environ


def sample_size(in_ci, plain):
    """Return how many examples to draw."""
    return in_ci if IN_CI else plain
