"""The names of inner modules of `results` that tests use."""

from snapshot_explorer.results.outputs import output_file
