"""DataFrames of Spark as Arrow tables, with every version of PySpark."""

import pyarrow as pa


def arrow_table(frame):
    """Return the rows of a DataFrame. PySpark 3.5 has no public method for it."""
    if hasattr(frame, "toArrow"):
        return frame.toArrow()
    if type(frame).__module__.startswith("pyspark.sql.connect"):
        return frame._session.client.to_table(frame._plan.to_proto(frame._session.client))[0]
    from pyspark.sql.pandas.types import to_arrow_schema

    batches = frame._collect_as_arrow()
    return pa.Table.from_batches(batches, batches[0].schema if batches else to_arrow_schema(frame.schema))
