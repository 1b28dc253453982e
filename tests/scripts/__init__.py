"""Scripts that made the tables in `tests/data` and the samples, and what the engines read of them."""
