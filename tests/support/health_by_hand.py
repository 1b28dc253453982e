"""The numbers of a table's health in plain Python, from the files of a version: the oracle of `health`."""

from collections import defaultdict
from statistics import median

POSTPONED = -2


def group_of(file):
    """Return what tells the partition and bucket of a file."""
    return tuple(file["partition"]), file["bucket"]


def by_group(files):
    groups = defaultdict(list)
    for file in files:
        groups[group_of(file)].append(file)
    return groups


def added(values):
    """Return a sum; None where one is not known."""
    values = list(values)
    return None if None in values else sum(values)


def middle(values):
    return int(median(values) // 1)


def runs(files):
    """Return the sorted runs of a bucket."""
    fresh = sum(file["level"] == 0 for file in files)
    return fresh + len({file["level"] for file in files if file["level"] > 0})


def group_by_hand(files, settings):
    """Return a row of HEALTH_PARTITIONS, without ratios."""
    sizes = [file["size_bytes"] for file in files]
    small = [size for size in sizes if size < settings.small_bytes]
    merged = max(1, -(-sum(small) // settings.target_bytes))
    vectors = [file for file in files if file["deletion_vector"] is not None]
    keyed, bucket = settings.runs_trigger is not None, files[0]["bucket"]
    return {
        "files": len(files),
        "rows": added(file["rows"] for file in files),
        "size_bytes": sum(sizes),
        "min_bytes": min(sizes),
        "median_bytes": middle(sizes),
        "max_bytes": max(sizes),
        "small_files": len(small) if len(small) > 1 else 0,
        "mergeable_files": max(0, len(small) - merged) if len(small) > 1 else 0,
        "sorted_runs": (0 if bucket < 0 else runs(files)) if keyed else None,
        "vector_files": len(vectors),
        "deleted_rows": added(file["deleted_rows"] for file in vectors),
    }


def version_by_hand(files, settings):
    """Return a row of HEALTH_HISTORY, without version and time."""
    groups = [group_by_hand(some, settings) for some in by_group(files).values()]
    sizes = [file["size_bytes"] for file in files]
    has_levels = any(file["level"] is not None for file in files)
    keyed = settings.runs_trigger is not None
    return {
        "files": len(files),
        "rows": added(file["rows"] for file in files),
        "size_bytes": sum(sizes),
        "mean_bytes": sum(sizes) // len(files) if files else None,
        "median_bytes": middle(sizes) if files else None,
        "small_files": sum(one["small_files"] for one in groups),
        "mergeable_files": sum(one["mergeable_files"] for one in groups),
        "groups": len(groups),
        "level0_files": sum(file["level"] == 0 for file in files) if has_levels else None,
        "most_sorted_runs": max((one["sorted_runs"] for one in groups), default=0) if keyed else None,
        "vector_files": None if has_levels else sum(one["vector_files"] for one in groups),
        "deleted_rows": None if has_levels else added(one["deleted_rows"] for one in groups),
    }
