"""A Spark session's catalog, for tests without one."""


class DescribingSession:
    """A session that answers each query with the rows of DESCRIBE that a real one returned.

    The connectors of the formats do not fit the PySpark of the tests, so their sessions are in other processes.
    """

    def __init__(self, rows):
        self.rows = rows
        self.asked = []

    def sql(self, query):
        self.asked.append(query)
        return self

    def collect(self):
        return [_Row(row) for row in self.rows]


class _Row(dict):
    def asDict(self):  # noqa: N802 - PySpark's name
        return dict(self)
