"""A Spark session's catalog, for tests without one."""


class DescribingSession:
    """A session that answers DESCRIBE, and SHOW TBLPROPERTIES, with the rows that a real one returned.

    The connectors of the formats do not fit the PySpark of the tests, so their sessions are in other processes.
    """

    def __init__(self, rows, properties=()):
        self.rows = rows
        self.properties = properties
        self.asked = []

    createDataFrame = None  # noqa: N815 - by which a session is recognised

    def sql(self, query):
        self.asked.append(query)
        return self

    def collect(self):
        rows = self.properties if self.asked[-1].startswith("SHOW TBLPROPERTIES") else self.rows
        return [_Row(row) for row in rows]


class ListingSession:
    """A session that answers queries of its catalog with the rows that a real one returned, and refuses others."""

    createDataFrame = None  # noqa: N815 - by which a session is recognised

    def __init__(self, answers):
        self.answers = answers

    def sql(self, query):
        answer = DescribingSession(self.answers.get(query))
        if answer.rows is None:
            raise RuntimeError("Missing database in table identifier")
        return answer.sql(query)


class _Row(dict):
    def asDict(self):  # noqa: N802 - PySpark's name
        return dict(self)
