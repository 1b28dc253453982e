"""The commands of `%snapshot` that compare versions and judge them."""

from snapshot_explorer.jupyter import actions
from snapshot_explorer.jupyter.grammar import TABLE, Argument, Command, Option

REF = Argument(name="REF", holds="ref", meaning="the version; latest without it")

DIFF = Command(
    name="diff",
    summary="What differs between two versions",
    run=actions.diff,
    python='orders.compare(17, "latest").files',
    examples=(
        "%snapshot diff 17..latest",
        "%snapshot diff",
        "%snapshot diff tag:v1..latest --files",
        "%snapshot diff 17..18 --manifests",
        "c = %snapshot diff @2026-11-01..@2026-11-02",
    ),
    arguments=(
        Argument(
            name="A..B",
            holds="range",
            meaning="from one version to another; A alone is A..latest, nothing is latest^..latest",
        ),
    ),
    options=(
        Option(flags=("--stat",), meaning="files, rows and bytes that are shared, removed and added"),
        Option(flags=("--commits",), meaning="the commits between"),
        Option(flags=("--schema",), meaning="columns and keys: added, dropped, renamed, widened, ..."),
        Option(flags=("--properties",), meaning="properties that were set, changed or removed"),
        Option(flags=("--partitions",), meaning="what differs by partition and bucket"),
        Option(flags=("--files",), meaning="data files that are added, removed, moved, or have rows deleted"),
        Option(
            flags=("--manifests",),
            meaning="each manifest: carried over, added, merged away or rewritten; removed where B is older",
        ),
        TABLE,
    ),
    notes="Returns a Comparison, of which only the parts asked for are shown; with one flag that part, a frame. "
    "Reads metadata only. What a manifest holds: c.entries(NAME).",
)

HEALTH = Command(
    name="health",
    summary="How well a version is kept: small files, skew, ...",
    run=actions.health,
    python='orders.health(17); orders.health_history("10..latest")',
    examples=(
        "%snapshot health",
        "%snapshot health latest~10",
        "%snapshot health --over ..",
        "h = %snapshot health 17",
    ),
    arguments=(REF,),
    options=(
        Option(
            flags=("--over",),
            value="A..B",
            holds="range",
            meaning="the numbers at every version of a range, newest first; .. is all of them",
        ),
        TABLE,
    ),
    notes="A verdict, findings with the thresholds that they are measured against, and what to do in the engine's "
    "own words; it is never done here. h.findings, h.partitions and h.levels are frames. Reads metadata only.",
)

RETENTION = Command(
    name="retention",
    summary="What expiry would free, and what holds the rest",
    run=actions.retention,
    python='orders.retention(keep="7d", keep_last=10)',
    examples=(
        "%snapshot retention",
        "%snapshot retention --keep 7d --keep-last 10",
        "r = %snapshot retention --keep 0d --keep-last 1",
    ),
    options=(
        Option(
            flags=("--keep",),
            value="AGE",
            meaning="keep versions up to this age, as 7d or 36h; else as the table says",
        ),
        Option(
            flags=("--keep-last",),
            value="N",
            holds="number",
            meaning="keep at least so many of the newest versions; without it as the table says",
        ),
        TABLE,
    ),
    notes="Deletes nothing, and shows the engine's own command: sys.expire_snapshots of Paimon, VACUUM of Delta. "
    "r.versions, r.lost, r.freed and r.holders are frames, r.commands the commands.",
)

READABILITY = Command(
    name="readability",
    summary="Which versions can be loaded",
    run=actions.readability,
    python="orders.readability()",
    examples=("%snapshot readability",),
    options=(TABLE,),
    notes="Lists the folders that hold data files, and opens none. The strip has a sign per version, oldest first: "
    "+ can be loaded, ~ its metadata only, - not at all, ? not known.",
)
