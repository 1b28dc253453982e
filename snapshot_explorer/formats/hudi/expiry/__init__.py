"""Existence of the files of Hudi tables, and the effect of the cleaner and the archiver. Nothing is deleted here."""
