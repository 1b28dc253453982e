"""The health finding about deletes that apply to no data file."""

from snapshot_explorer.core.records import Finding


def of_unmatched_deletes(unmatched: int, deletes: int, *, advice: str) -> Finding:
    """Return the finding.

    Args:
        unmatched: The number of delete files and deletion vectors of the version that apply to none of its data files.
        deletes: The number of all its delete files and deletion vectors.
        advice: The recommended action.
    """
    finding = f"each delete file and deletion vector ({deletes:,}) applies to a data file"
    if unmatched:
        verb = "applies" if unmatched == 1 else "apply"
        finding = f"{unmatched:,} of {deletes:,} delete files and deletion vectors {verb} to no data file"
    return Finding(
        finding="deletes without a file",
        value=unmatched,
        watch_from=1,
        found=finding,
        threshold="1",
        meaning="They delete nothing: the files that they were written for are gone. Every plan reads their metadata.",
        advice=advice,
    )
