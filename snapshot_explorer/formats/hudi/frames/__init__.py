"""The metadata frames of Hudi tables. What they are made of is parsed in `metadata`."""
