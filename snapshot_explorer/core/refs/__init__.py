"""Refs: text, numbers and times that name a version. `history` resolves them.

```
17   v17   latest   HEAD   earliest      versions; HEAD is latest
-1   -3                                  counted from the newest: -1 is latest, -3 is latest~2
latest~2   17~1   17^   latest~2^        ~N counts existing versions back, ^ is ~1; they add up
tag:v1   tag:"eom~2"                     a tag; quoted if the name contains .. or ends in ~N or ^
branch:audit   branch:audit~1   main     the newest version of a branch; main is branch:main
branch:audit@5                           a version of a branch by its number there; quoted if the name ends in @N
@2026-11-01   @2026-11-01T12:00+02:00    the last version committed at or before then; UTC without a zone
@2h   @3d   @1d12h   @yesterday          a time this long ago; the end of yesterday, in UTC
2026-11-01   2h   yesterday              the same times, without @
A..B   ..B   A..                         two refs; a missing side means earliest or latest
```

A tag may be called like one of the short forms: `v5`, `HEAD`, `-1`, `main`, or a time without `@`. If it names another
version, the ref is ambiguous and refused.
"""

from snapshot_explorer.core.refs.grammar import MAIN, parse_range, parse_ref, parse_time_bound
from snapshot_explorer.core.refs.missing import not_found
from snapshot_explorer.core.refs.records import (
    AsOf,
    Earliest,
    Latest,
    OfBranch,
    Ref,
    RefLike,
    Tag,
    Version,
    is_newest_state,
)

__all__ = [
    "MAIN",
    "AsOf",
    "Earliest",
    "Latest",
    "OfBranch",
    "Ref",
    "RefLike",
    "Tag",
    "Version",
    "is_newest_state",
    "not_found",
    "parse_range",
    "parse_ref",
    "parse_time_bound",
]
