"""The metadata frames of Hudi tables."""
