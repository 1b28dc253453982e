"""`%snapshot doctor`: the diagnosis of a table, in three sentences."""

from snapshot_explorer.jupyter.command import TABLE, Command

DOCTOR = Command(
    name="doctor",
    summary="What went wrong, in three sentences",
    run=lambda invocation: invocation.table()[1].doctor(),
    python="orders.doctor()",
    examples=("%snapshot doctor", "d = %snapshot doctor -t orders"),
    options=(TABLE,),
    notes="A sentence each for files that are missing, numbers that jump, and health, with the command that shows the "
    "evidence. Reads metadata and looks for every file; reads no rows.",
)
