"""Base files and log files of Hudi tables as Arrow. Which files a version has is planned in `scan`."""
