"""Which files of Hudi tables exist."""
