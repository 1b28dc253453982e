"""Reconciliation: the same state however the log is cut, and the one that a plain replay gives."""

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.inner.delta import ReplayState, followed_by, join_states, keys, parse_commits, replay_state_of, state_of
from tests.support.delta.table_builder import add, domain, lines, metadata, protocol, remove, txn

VECTORS = [
    None,
    {"storageType": "u", "pathOrInlineDv": "aaa", "sizeInBytes": 1, "cardinality": 1},
    {"storageType": "u", "pathOrInlineDv": "aaa", "offset": 0, "sizeInBytes": 1, "cardinality": 1},
    {"storageType": "u", "pathOrInlineDv": "aaa", "offset": 1, "sizeInBytes": 1, "cardinality": 1},
    {"storageType": "i", "pathOrInlineDv": "aaa", "sizeInBytes": 1, "cardinality": 1},
]
FILES = st.tuples(
    st.sampled_from(["a", "./a", "b", "c%20d", "/x", "file:/x", "/y/..//x"]), st.integers(0, len(VECTORS) - 1)
)
COMMITS = st.lists(
    st.tuples(
        st.lists(FILES, max_size=4, unique=True), st.lists(FILES, max_size=4, unique=True), st.booleans(), st.randoms()
    ),
    min_size=1,
    max_size=8,
)
INFO = {"commitInfo": {}}
"""Every commit holds an action."""
CANONICAL = {"c%20d": "c d", "./a": "a", "/x": "file:///x", "file:/x": "file:///x", "/y/..//x": "file:///x"}


def written(commits):
    """Return the bytes of commits, lines in any order, and the live files by a plain replay."""
    contents, live = [], {}
    for version, (removed, added, settles, random) in enumerate(commits):
        actions = [remove(path, vector=VECTORS[which]) for path, which in removed]
        # A path may be written in two ways: the last line of a commit counts.
        actions += [add(path, vector=VECTORS[which], size=version) for path, which in added]
        if settles:
            actions += [txn(f"app{version % 2}", version), domain("d", str(version), removed=version % 3 == 0)]
        if version == 0 or settles:
            actions += [protocol(1, 2 + version), metadata(id=f"t{version}")]
        for path, which in removed:
            live.pop((CANONICAL.get(path, path), which), None)
        for path, which in added:
            key = CANONICAL.get(path, path), which
            live[key] = (live.get(key, (version,))[0], version)
        random.shuffle(actions)
        contents.append((version, f"{version}", lines(INFO, *actions)))
    return contents, live


def identity(vector):
    return next(
        place
        for place, one in enumerate(VECTORS)
        if (one is None) == (vector is None)
        and (one is None or (one["storageType"], one.get("offset")) == (vector["storage_type"], vector["offset"]))
    )


def live_of(adds):
    return {
        (row["path"], identity(row["deletion_vector"])): (row["version"], row["size_bytes"]) for row in adds.to_pylist()
    }


def replayed(contents):
    return followed_by(ReplayState(), parse_commits(contents))


@settings(max_examples=50)
@given(COMMITS)
def test_the_live_files_are_those_of_a_plain_replay(commits):
    contents, live = written(commits)

    found = replayed(contents).adds

    assert live_of(found) == live
    assert found.num_rows == len(live)


@settings(max_examples=50)
@given(COMMITS, st.integers(0, 8), st.integers(0, 8))
def test_however_the_log_is_cut_the_state_is_the_same(commits, first, second):
    contents, live = written(commits)
    whole = replayed(contents)
    cuts = sorted((first, second))

    step = ReplayState()
    for some in (contents[: cuts[0]], contents[cuts[0] : cuts[1]], contents[cuts[1] :]):
        step = followed_by(step, parse_commits(some))
    tail = ReplayState()
    for some in (contents[cuts[0] : cuts[1]], contents[cuts[1] :]):
        tail = followed_by(tail, parse_commits(some), open_ended=True)
    with_checkpoint = join_states(replayed(contents[: cuts[0]]), tail)

    for found in (step, with_checkpoint):
        assert live_of(found.adds) == live
        assert (found.protocol, found.metadata) == (whole.protocol, whole.metadata)
        assert found.transactions == whole.transactions
        assert found.domains == whole.domains


@settings(max_examples=50)
@given(COMMITS)
def test_a_state_is_what_later_commits_come_after(commits):
    contents, live = written(commits)
    half = len(contents) // 2 + 1

    state = state_of(replayed(contents[:half]), half - 1, "t")
    found = followed_by(replay_state_of(state), parse_commits(contents[half:]))

    assert live_of(found.adds) == live
    assert {name for name, one in found.domains.items() if not one.removed} == set(
        state_of(replayed(contents), 0, "t").domains
    )


def test_a_file_added_again_is_live_since_the_first_time():
    commits = [[protocol(), metadata(), add("a", size=1)], [add("a", size=2)], [remove("a")], [add("a", size=3)]]
    contents = [(version, "", lines(INFO, *actions)) for version, actions in enumerate(commits)]

    since = [replayed(contents[: count + 1]).adds.to_pylist() for count in range(4)]

    assert [[(row["version"], row["size_bytes"]) for row in rows] for rows in since] == [
        [(0, 1)],
        [(0, 2)],
        [],
        [(3, 3)],
    ]


def test_a_file_of_a_checkpoint_that_is_added_again_is_live_since_an_unknown_version():
    checkpoint = replayed([(0, "", lines(protocol(), metadata(), add("a", size=1)))])
    unknown = ReplayState(
        adds=checkpoint.adds.set_column(0, "version", [[None]]).cast(checkpoint.adds.schema),
        protocol=checkpoint.protocol,
        metadata=checkpoint.metadata,
    )

    tail = followed_by(ReplayState(), parse_commits([(5, "", lines(add("a", size=2), add("b")))]), open_ended=True)

    assert join_states(unknown, tail).adds.select(["path", "version"]).to_pylist() == [
        {"path": "a", "version": None},
        {"path": "b", "version": 5},
    ]


def test_the_key_of_a_file_holds_its_deletion_vector_and_the_offset_only_if_there_is_one():
    actions = [add("a", vector=vector) for vector in VECTORS[:3]]

    assert keys(parse_commits([(0, "", lines(*actions))]).adds).to_pylist() == ["a", "a\nuaaa", "a\nuaaa@0"]
