"""The rows that changed between versions of Hudi tables. The rows of one version are read in `scan`."""
