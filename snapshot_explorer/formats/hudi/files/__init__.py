"""Base files and log files of Hudi tables as Arrow."""
