from datetime import UTC, datetime

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from snapshot_explorer.core.frames import ANOMALIES, COMMITS
from snapshot_explorer.view import Drawing, Grid, Line, Pairs, render_text
from tests.inner.arrow import text_width
from tests.inner.view import WIDTH

LETTERS = st.text(st.characters(exclude_categories=[]), max_size=200)
ANY_TEXT = st.text(max_size=200)


def counted(name: str, kind: pa.DataType, unit: str) -> pa.Field:
    return pa.field(name, kind, metadata={"unit": unit})


def test_a_grid_is_aligned_and_says_what_is_cut() -> None:
    rows = pa.table(
        [[18, 17, 16], ["append", None, "日本"], [1234567, 12, None], [1_200_000, 999, None]],
        schema=pa.schema(
            [
                pa.field("version", pa.int64()),
                pa.field("kind", pa.string()),
                counted("added_rows", pa.int64(), "rows"),
                counted("added_bytes", pa.int64(), "bytes"),
            ]
        ),
    )

    drawn = render_text(Drawing(title="History of orders", parts=(Grid(rows, total=10_000, noun="versions"),)))

    assert drawn.splitlines() == [
        "History of orders",
        "version  kind    added_rows  added_bytes",
        "-------  ------  ----------  -----------",
        "     18  append   1,234,567       1.2 MB",
        "     17  -               12        999 B",
        "     16  日本             -            -",
        "3 of 10,000 versions",
    ]


def test_pairs_and_lines_stand_under_the_title() -> None:
    pairs = Pairs((("version", 12345), ("added_rows", 12345), ("size_bytes", 12345), ("user", None), ("note", "")))

    assert render_text(Drawing(title="version 12345", parts=(Line("A line."), pairs))).splitlines() == [
        "version 12345",
        "A line.",
        "version     12345",
        "added_rows  12,345",
        "size_bytes  12.3 kB",
        "user        -",
        'note        ""',
    ]


def test_tables_in_a_row_are_parted_by_a_blank_line() -> None:
    parts = (Line("Above."), Pairs((("a", 1),)), Grid(pa.table({"b": [2]})), Line("Below."))

    assert render_text(Drawing(title="t", parts=parts)) == "t\nAbove.\na  1\n\nb\n-\n2\nBelow."


def test_a_long_value_is_wrapped_under_its_name() -> None:
    drawn = render_text(Drawing(title="t", parts=(Pairs((("path", "s3://" + "a" * 150),)),)))

    assert drawn == f"t\npath  s3://{'a' * 109}\n      {'a' * 41}"


def test_an_empty_grid_says_so() -> None:
    drawn = render_text(Drawing(title="Tags", parts=(Grid(pa.table({"tag": pa.array([], pa.string())}), noun="tags"),)))

    assert drawn == "Tags\nno tags"


def test_a_grid_without_columns_is_drawn() -> None:
    assert render_text(Drawing(title="t", parts=(Grid(pa.table({})),))) == "t\nno rows"


def test_twenty_rows_are_drawn_unless_something_else_is_requested() -> None:
    rows = pa.table({"n": list(range(30))})

    assert render_text(Drawing(title="t", parts=(Grid(rows),))).endswith("\n19\n20 of 30 rows")
    assert render_text(Drawing(title="t", parts=(Grid(rows),)), limit=5).endswith("\n4\n5 of 30 rows")
    assert render_text(Drawing(title="t", parts=(Grid(rows, limit=30),))).endswith("\n28\n29")


def test_only_the_drawn_rows_are_converted() -> None:
    million = pa.table({"path": pa.array(["x"] * 1_000_000), "n": pa.array(range(1_000_000))})

    drawn = render_text(Drawing(title="t", parts=(Grid(million, noun="files"),)))

    assert drawn.endswith("20 of 1,000,000 files")


def test_text_gives_way_to_numbers_which_are_never_cut() -> None:
    number = 2**63 - 1
    rows = pa.table({"name": ["p" * 300], "details": ["d" * 300], **{f"n{i}": [number] for i in range(3)}})

    drawn = render_text(Drawing(title="t", parts=(Grid(rows),)))

    assert drawn.splitlines()[3].count(str(number)) == 3
    assert "…" in drawn
    assert max(map(text_width, drawn.splitlines())) <= WIDTH


def test_paths_are_whole_so_that_they_can_be_copied() -> None:
    path = f"{'folder/' * 20}part.parquet"

    drawn = render_text(Drawing(title="t", parts=(Grid(pa.table({"path": [path], "details": ["d" * 300]})),)))

    assert path in drawn


def test_columns_of_metadata_have_words_and_signs_as_headings_and_times_to_the_second() -> None:
    time = datetime(2026, 11, 6, 3, 0, 0, 444_000, tzinfo=UTC)
    row = {"version": 8, "committed_at": time, "added_rows": 16, "removed_rows": 0}
    rows = pa.Table.from_pylist([row], COMMITS).select(list(row))

    drawn = render_text(Drawing(title="t", parts=(Grid(rows),)))

    assert drawn.splitlines()[1::2] == [
        "version  committed at (UTC)   + rows  \N{MINUS SIGN} rows",
        "      8  2026-11-06 03:00:00      16       0",
    ]


def test_times_and_names_of_a_users_rows_are_exact() -> None:
    times = pa.array([1], pa.timestamp("ns", "UTC"))

    drawn = render_text(Drawing(title="t", parts=(Grid(pa.table({"added_rows": [1], "committed_at": times})),)))

    assert drawn.splitlines()[1::2] == [
        "added_rows  committed_at",
        "         1  1970-01-01 00:00:00.000000001Z",
    ]


def test_sentences_are_wrapped_and_never_cut() -> None:
    sentence = " ".join(["the number of rows changed more than it usually does,"] * 5)
    rows = pa.table([pa.array([sentence])], pa.schema([ANOMALIES.field("rule")]))

    drawn = render_text(Drawing(title="t", parts=(Grid(rows),)), room=60)

    assert " ".join(drawn.split("\n", 3)[3].split()) == sentence


def test_names_are_broken_at_their_words_where_room_is_short() -> None:
    rows = pa.table({f"number_of_removed_files_{i}": [i] for i in range(8)} | {"tags": ["v1"]})

    drawn = render_text(Drawing(title="t", parts=(Grid(rows),)))

    assert drawn.splitlines()[1:5] == [
        "  ".join([" number_"] * 8 + ["tags"]),
        "  ".join(["     of_"] * 8),
        "  ".join(["removed_"] * 8),
        "  ".join([f" files_{i}" for i in range(8)]),
    ]


def test_columns_that_do_not_fit_are_named() -> None:
    rows = pa.table({f"number_{i}": [2**63 - 1] for i in range(8)})

    drawn = render_text(Drawing(title="t", parts=(Grid(rows),)))

    assert drawn.endswith("5 of 8 columns; not shown: number_5, number_6, number_7")


def test_control_characters_reach_nobody() -> None:
    rows = pa.table({"na\nme": ["\x1b[31m\u202e"]})

    drawn = render_text(Drawing(title="ti\ttle", parts=(Grid(rows), Line("a\x00b"))))

    assert drawn == "ti\\ttle\nna\\nme\n--------------\n\\x1b[31m\\u202e\na\\x00b"


@given(
    title=LETTERS,
    names=st.lists(ANY_TEXT, min_size=1, max_size=40, unique=True),
    cells=st.lists(st.none() | ANY_TEXT, min_size=1, max_size=5),
    numbers=st.lists(st.none() | st.integers(-(2**63), 2**63 - 1), min_size=1, max_size=5),
    pairs=st.lists(st.tuples(LETTERS, st.none() | LETTERS | st.integers() | st.floats() | st.datetimes()), max_size=5),
    line=LETTERS,
)
def test_no_content_makes_it_raise_or_exceed_the_width(
    title: str,
    names: list[str],
    cells: list[str | None],
    numbers: list[int | None],
    pairs: list[tuple[str, object]],
    line: str,
) -> None:
    height = min(len(cells), len(numbers))
    columns = [cells[:height] if position % 2 else numbers[:height] for position, _ in enumerate(names)]
    drawing = Drawing(title=title, parts=(Grid(pa.table(columns, names=names)), Pairs(tuple(pairs)), Line(line)))

    drawn = render_text(drawing)

    assert max(map(text_width, drawn.split("\n"))) <= WIDTH
    assert all(letter == "\n" or letter.isprintable() for letter in drawn)
    drawn.encode()


@given(st.lists(st.lists(st.integers(-(2**62), 2**62), min_size=2, max_size=2), min_size=1, max_size=4))
def test_times_of_every_size_are_drawn(values: list[list[int]]) -> None:
    ids = pa.array([value for pair in values for value in pair], pa.int64())
    kinds = [pa.timestamp("ms", tz="UTC"), pa.timestamp("ns"), pa.timestamp("us", tz="Asia/Tokyo"), pa.duration("s")]
    rows = pa.table({str(kind): ids.cast(kind) for kind in kinds})

    assert render_text(Drawing(title="t", parts=(Grid(rows),)))


def test_sentences_without_room_are_below_the_table_and_columns_to_be_copied_stay():
    schema = pa.schema(
        [
            pa.field("name", pa.string(), metadata={"whole": "yes"}),
            *(pa.field(f"column_{at}", pa.string()) for at in range(6)),
            pa.field("problem", pa.string(), metadata={"prose": "yes"}),
        ]
    )
    sentence = "The file may be cut short; restore it from a backup, or ask whoever wrote it."
    rows = pa.table([["n" * 30, "b"], *[["text of a cell"] * 2] * 6, [sentence, None]], schema=schema)

    drawn = render_text(Drawing(title="t", parts=(Grid(rows),)), room=80)

    assert max(map(len, drawn.splitlines())) <= 80
    assert f"{'n' * 30}  {sentence}" in drawn.replace("\n", " ")
    assert "5 of 8 columns; not shown: column_3, column_4, column_5" in drawn.replace("\n", " ")


def test_a_narrow_cell_is_broken_between_words():
    rows = pa.table({"version": [20], "rows": ["-4,907 rows (5,070 rewritten in 1 file)"]}).cast(
        pa.schema([pa.field("version", pa.int64()), pa.field("rows", pa.string(), metadata={"wraps": "yes"})])
    )

    lines = render_text(Drawing(title="", parts=(Grid(rows),)), room=24).splitlines()

    assert [line[9:] for line in lines[3:]] == ["-4,907 rows", "(5,070", "rewritten in 1", "file)"]
