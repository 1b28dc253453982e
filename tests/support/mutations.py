"""Tables with one file damaged, in every way that a format knows of, and what every public call then does.

A mutation is a seed: the same seed damages the same file of the same table in the same way. Each table is a copy of
hard links in which one file is written anew. Workers are forked with a limit of memory, and killed when they hang.
"""

import contextlib
import faulthandler
import functools
import io
import json
import os
import random
import re
import resource
import shutil
import signal
import struct
import tempfile
import time
import traceback
import warnings
import zlib
from collections import Counter
from pathlib import Path

from snapshot_explorer import open_table
from snapshot_explorer.arrow import thrift
from snapshot_explorer.errors import SnapshotExplorerError
from tests.support.public_calls import PARTS, arguments_for, calls, drawings, proofs

TESTS = Path(__file__).parents[1]
MOST_MEMORY = 3 << 30
"""Bytes that the memory of a worker may grow by, in address space."""
MOST_SECONDS = 240
"""Seconds of the clock that a worker may take for one mutated table before it is killed: machines may be busy."""
SLOW_SECONDS = 40
"""Seconds of the processor that all calls of one mutated table may take."""


_REFUSED = {"hudi/foreign_table_format", "hudi/table_version_10"}
"""Tables that are not opened."""


def tables():
    """Return the folders of the tables that are mutated, by name."""
    found = {
        f"samples/{name}": TESTS.parent / "snapshot_explorer/samples" / name for name in ("orders", "payments", "rides")
    }
    for kind in ("delta", "iceberg", "paimon", "hudi", "hudi_change_data"):
        found |= {f"{kind}/{one.name}": one for one in sorted((TESTS / "data" / kind).iterdir()) if one.is_dir()}
    return {name: one for name, one in found.items() if name not in _REFUSED and _files(one)}


def _files(root):
    return sorted(str(one.relative_to(root)) for one in root.rglob("*") if one.is_file())


# What can be done to bytes of any kind


def _flipped(content, draw):
    changed = bytearray(content)
    for _ in range(draw.choice((1, 1, 1, 4, 32))):
        changed[draw.randrange(len(changed))] ^= 1 << draw.randrange(8)
    return bytes(changed)


def _flipped_at_the_end(content, draw):
    changed = bytearray(content)
    changed[len(changed) - 1 - draw.randrange(min(len(changed), 600))] = draw.randrange(256)
    return bytes(changed)


def _truncated(content, draw):
    return content[: draw.randrange(len(content))]


def _range(content, draw):
    start = draw.randrange(len(content))
    return start, min(len(content), start + draw.choice((1, 8, 64, 1024)))


def _zeroed(content, draw):
    start, end = _range(content, draw)
    return content[:start] + bytes(end - start) + content[end:]


def _inserted(content, draw):
    start, _ = _range(content, draw)
    return content[:start] + draw.randbytes(draw.choice((1, 8, 64))) + content[start:]


def _doubled(content, draw):
    start, end = _range(content, draw)
    return content[:end] + content[start:end] + content[end:]


def _cut_out(content, draw):
    start, end = _range(content, draw)
    return content[:start] + content[end:]


BYTES = (_flipped, _flipped, _flipped_at_the_end, _truncated, _zeroed, _inserted, _doubled, _cut_out)

# JSON

STRANGE = (
    *(None, True, False, 0, -1, 1, 7, 2**31, 2**63 - 1, 2**63, -(2**63), 2**64, 10**30, 0.5, -0.0, 1e308),
    *("", " ", "0", "-1", "x", "null", "é\u2028\x00", "../../etc/passwd", "file:///etc/passwd", "9" * 40, "a" * 5_000),
    *([], {}, [[]], [None], {"a": 1}, [1, "a", None], {"": {}}, "INT NOT NULL", "decimal(99,99)", "ARRAY<" * 50),
)


def _places(node):
    """Yield every container in a JSON value with each of its keys."""
    pending = [node]
    while pending:
        one = pending.pop()
        for key in list(one) if isinstance(one, dict) else range(len(one)) if isinstance(one, list) else ():
            yield one, key
            pending.append(one[key])


def altered_json(node, draw):
    """Return a JSON value with one value in it replaced, removed, renamed, wrapped, repeated or swapped."""
    whole = [node]
    places = list(_places(whole))
    holder, key = draw.choice(places)
    match draw.choice(("replace", "replace", "replace", "remove", "rename", "wrap", "double", "swap", "text")):
        case "remove":
            del holder[key]
        case "rename" if isinstance(holder, dict):
            holder[draw.choice(("", "x", key.upper(), f"{key} "))] = holder.pop(key)
        case "wrap":
            holder[key] = draw.choice(([holder[key]], {"a": holder[key]}, str(holder[key])))
        case "double" if isinstance(holder, list):
            holder.append(holder[key])
        case "swap":
            other, place = draw.choice(places)
            holder[key], other[place] = other[place], holder[key]
        case "text" if isinstance(holder[key], str) and holder[key]:
            holder[key] = _text(holder[key], draw)
        case _:
            holder[key] = draw.choice(STRANGE)
    return whole[0] if whole else None


def _text(text, draw):
    """Return text altered: as JSON, where it is JSON, as stats and schemas are."""
    with contextlib.suppress(ValueError):
        inner = json.loads(text)
        if isinstance(inner, dict | list) and inner:
            return json.dumps(altered_json(inner, draw))
    at = draw.randrange(len(text))
    return text[:at] + draw.choice(("", "%", "\n", "\x1b[31m", "<", "é", "9" * 25)) + text[at + draw.choice((0, 1)) :]


def _json_lines(content, draw):
    try:
        lines = content.decode().split("\n")
        whole = json.loads(content)
        lines = [json.dumps(whole)]
    except ValueError:
        pass
    filled = [index for index, line in enumerate(lines) if line.strip()]
    index = draw.choice(filled)
    match draw.choice(("value",) * 8 + ("lose", "double", "swap", "blank", "nested", "page")):
        case "lose":
            del lines[index]
        case "double":
            lines.insert(index, lines[index])
        case "swap":
            other = draw.choice(filled)
            lines[index], lines[other] = lines[other], lines[index]
        case "blank":
            lines[index:index] = [""] * draw.choice((1, 100_000))
        case "nested":
            lines[index] = draw.choice(("[", '{"add":')) * 100_000
        case "page":
            lines = ["<html><body>Please sign in</body></html>"]
        case _:
            try:
                lines[index] = _dumped(altered_json(json.loads(lines[index]), draw))
            except (RecursionError, ValueError):
                lines[index] = "{}"
    return "\n".join(lines).encode(errors="surrogatepass")


def _dumped(value):
    """Return JSON text; a value that has come to hold itself is refused by the library."""
    return json.dumps(value, ensure_ascii=False)


# Avro


CODECS = (b"null", b"deflate", b"snappy", b"zstandard", b"bzip2", b"xz", b"", b"\xff")


def _long(number):
    number = (number << 1) ^ (number >> 63)
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*out, number & 0x7F])


def _read_long(content, at):
    number = shift = 0
    while True:
        byte = content[at]
        number |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return (number >> 1) ^ -(number & 1), at


def _read_text(content, at):
    size, at = _read_long(content, at)
    return content[at : at + size], at + size


def _parts_of_avro(content):
    """Return the header, the marker, and the blocks of an Avro file, each its count and its bytes."""
    header, at = {}, 4
    while True:
        count, at = _read_long(content, at)
        if count == 0:
            break
        for _ in range(count):
            key, at = _read_text(content, at)
            header[key], at = _read_text(content, at)
    sync, at = content[at : at + 16], at + 16
    blocks = []
    while at < len(content):
        count, at = _read_long(content, at)
        packed, at = _read_text(content, at)
        blocks.append([count, packed])
        at += 16
    return header, sync, blocks


def _avro(content, draw):
    header, sync, blocks = _parts_of_avro(content)
    kind = draw.choice(("schema", "schema", "schema", "codec", "count", "sync", "block", "inside", "inside", "bomb"))
    if not blocks and kind in ("count", "block", "inside", "bomb"):
        kind = "schema"
    if kind == "schema":
        header[b"avro.schema"] = json.dumps(altered_json(json.loads(header[b"avro.schema"]), draw)).encode()
    elif kind == "codec":
        header[b"avro.codec"] = draw.choice(
            (b"null", b"deflate", b"snappy", b"zstandard", b"bzip2", b"xz", b"", b"\xff")
        )
    elif kind == "sync":
        sync = draw.randbytes(draw.choice((0, 8, 16)))
    else:
        _alter_block(header, blocks, kind, draw)
    out = io.BytesIO()
    out.write(b"Obj\x01" + _long(len(header)))
    for key, value in header.items():
        out.write(_long(len(key)) + key + _long(len(value)) + value)
    out.write(_long(0) + sync)
    for count, packed in blocks:
        out.write(_long(count) + _long(len(packed)) + packed + sync)
    return out.getvalue()


def _alter_block(header, blocks, kind, draw):
    block = draw.choice(blocks)
    codec = header.get(b"avro.codec", b"null")
    if kind == "count":
        block[0] = draw.choice((0, -1, 1, block[0] + 1, 10**9, 2**62))
    elif kind == "bomb":
        header[b"avro.codec"] = b"deflate"
        stream = zlib.compressobj(9, zlib.DEFLATED, -15)
        packed = b"".join(stream.compress(bytes(1 << 20)) for _ in range(100)) + stream.flush()
        blocks[:] = [[draw.choice((1, 10**6, 10**9)), packed]] * draw.choice((1, 20))
    elif kind == "inside" and codec == b"null":
        block[1] = draw.choice(BYTES)(block[1], draw) if block[1] else b"x"
    elif kind == "inside" and codec == b"deflate":
        inner = draw.choice(BYTES)(zlib.decompress(block[1], -15) or b"x", draw)
        stream = zlib.compressobj(6, zlib.DEFLATED, -15)
        block[1] = stream.compress(inner) + stream.flush()
    else:
        block[1] = draw.choice(BYTES)(block[1] or b"x", draw)


# Parquet and ORC


def _parquet(content, draw):
    """Return a parquet file with a value in its footer altered, or a byte in its pages."""
    if draw.random() < 0.5:
        return draw.choice(BYTES)(content, draw)
    length = int.from_bytes(content[-8:-4], "little")
    tree = thrift.ThriftReader(content[-8 - length : -8]).struct()
    fields, pending = [], [tree]
    while pending:
        node = pending.pop()
        if isinstance(node, thrift.ThriftList):
            pending += [one for one in node.values if isinstance(one, list | thrift.ThriftList)]
        else:
            fields += node
            pending += [one.value for one in node if isinstance(one.value, list | thrift.ThriftList)]
    field = draw.choice(fields)
    if isinstance(field.value, bytes) and field.kind == 8:
        field.value = _flipped(field.value, draw) if field.value else b"x"
    elif isinstance(field.value, int) and field.kind in (4, 5, 6):
        field.value = draw.choice((0, -1, 1, 2, field.value + 1, field.value - 1, 2**31 - 1, 2**40, 2**62))
    elif isinstance(field.value, thrift.ThriftList) and field.value.values:
        index = draw.randrange(len(field.value.values))
        field.value.values[index : index + 1] = [field.value.values[index]] * draw.choice((0, 2, 3))
    elif isinstance(field.value, list) and field.value:
        del field.value[draw.randrange(len(field.value))]
    footer = thrift.encode_struct(tree)
    return content[: -8 - length] + footer + struct.pack("<I", len(footer)) + b"PAR1"


# Log files of Hudi


def _log_blocks(content):
    """Return the blocks of a log file of Hudi: version, type, header and content of each."""
    blocks, at = [], 0
    while content[at : at + 6] == b"#HUDI#":
        (length,) = struct.unpack_from(">q", content, at + 6)
        version, type_, count = struct.unpack_from(">iii", content, at + 14)
        header, place = {}, at + 26
        for _ in range(count):
            key, size = struct.unpack_from(">ii", content, place)
            header[key] = content[place + 8 : place + 8 + size]
            place += 8 + size
        (size,) = struct.unpack_from(">q", content, place)
        blocks.append([version, type_, header, content[place + 8 : place + 8 + size]])
        at += 14 + length
    return blocks


def _hudi_log(content, draw):
    """Return a log file of Hudi in which one block is altered, with its lengths as they must be, or without."""
    blocks = _log_blocks(content)
    block = draw.choice(blocks)
    match draw.choice(
        ("version", "type", "header", "schema", "counts", "content", "content", "double", "swap", "bomb")
    ):
        case "version":
            block[0] = draw.choice((0, 2, -1, 2**31 - 1))
        case "type":
            block[1] = draw.choice((0, 1, 2, 3, 4, 5, 6, 7, -1))
        case "header" if block[2]:
            key = draw.choice(list(block[2]))
            block[2][draw.choice((key, 0, 1, 3, 4, 7, 99))] = draw.choice(
                (b"", b"true", b"0", b"9" * 40, block[2][key])
            )
        case "schema" if 2 in block[2]:
            block[2][2] = json.dumps(altered_json(json.loads(block[2][2]), draw)).encode()
        case "counts" if len(block[3]) > 8:
            place = draw.choice((0, 4, 8))
            number = draw.choice((0, -1, 1, 3, 10**6, 2**31 - 1))
            block[3] = block[3][:place] + struct.pack(">i", number) + block[3][place + 4 :]
        case "double":
            blocks.append(block)
        case "swap":
            blocks.reverse()
        case "bomb":
            block[3] = struct.pack(">ii", 3, draw.choice((10**6, 10**9))) + bytes(4 * 10**6)
        case _:
            block[3] = draw.choice(BYTES)(block[3] or b"x", draw)
    return b"".join(map(_hudi_block, blocks))


def _hudi_block(block):
    version, type_, header, content = block
    entries = b"".join(struct.pack(">ii", key, len(value)) + value for key, value in header.items())
    body = struct.pack(">iii", version, type_, len(header)) + entries + struct.pack(">q", len(content)) + content
    length = len(body) + 12
    return b"#HUDI#" + struct.pack(">q", length) + body + struct.pack(">iq", 0, length + 6)


def mutated(path, content, draw):
    """Return what a file holds after one mutation, and the name of its kind."""
    if not content:
        return draw.choice((b"\0", b"{}", b"x" * 100)), "bytes"
    if draw.random() < 0.1:
        return b"", "emptied"
    aware = {b"Obj\x01": _avro, b"PAR1": _parquet, b"#HUD": _hudi_log}.get(content[:4])
    if content.lstrip()[:1] in (b"{", b"["):
        aware = _json_lines
    if aware is not None and draw.random() < 0.7:
        with contextlib.suppress(ValueError, LookupError, TypeError, zlib.error, struct.error):
            return aware(content, draw), aware.__name__.strip("_")
    way = draw.choice(BYTES)
    return way(content, draw), way.__name__.strip("_")


def mutate(root, target, seed):
    """Write a copy of a table with one mutation; return what was done: kind and file."""
    draw = random.Random(seed)
    shutil.copytree(root, target, copy_function=os.link)
    names = _files(root)
    # Of each kind of file equally many: data files would crowd out the others.
    kinds = sorted({_kind(name) for name in names})
    kind = draw.choice(kinds)
    name = draw.choice([one for one in names if _kind(one) == kind])
    if draw.random() < 0.08:
        other = draw.choice([one for one in names if _kind(one) == kind])
        _replace(target / name, (root / other).read_bytes())
        _replace(target / other, (root / name).read_bytes())
        return "swapped", f"{name} and {other}"
    content, how = mutated(name, (root / name).read_bytes(), draw)
    _replace(target / name, content)
    return how, name


def _kind(name):
    folder = name.rpartition("/")[0]
    folder = re.sub(r"^(?!_|manifest|snapshot|schema|tag|branch|index|changelog|consumer|statistics).*", "data", folder)
    return folder, re.sub(r"[0-9a-f]{8}-[0-9a-f-]{27}|\d+", "", name.rpartition("/")[2])


def _replace(path, content):
    path.unlink()
    path.write_bytes(content)


# What is asked of a mutated table


def outcome(call):
    """Return how a call ended: answered, refused, or the name of the foreign exception with its traceback."""
    try:
        found = call()
        found = PARTS.get(type(found), lambda one: one)(found)
        digest = zlib.crc32(repr(found.to_pylist() if hasattr(found, "to_pylist") else found).encode(errors="replace"))
    except SnapshotExplorerError as error:
        str(error).encode()
        return "refused", type(error).__name__
    except Exception as error:  # noqa: BLE001 - the very thing that is looked for
        return "foreign", f"{type(error).__name__}: {str(error)[:200]}\n" + "".join(traceback.format_exc()[-2_500:])
    return "answered", digest


def examine(root, given, intact):
    """Return how each call of a table ended, by name; `given` are the calls' arguments, from the intact table."""
    found = {}

    def opened():
        found["table"] = open_table(root)

    ends = {"open": outcome(opened)}
    if "table" in found:
        for name, call in (calls(given) | drawings(given) | proofs(given, open_table(intact))).items():
            ends[name] = outcome(functools.partial(call, found["table"]))
    return ends


# Workers


def work(roots, seeds, log):
    """Mutate a table for each seed and write how each call ended to a file, a line of JSON per table."""
    warnings.simplefilter("ignore")
    import logging

    logging.disable(logging.CRITICAL)
    os.environ["OMP_NUM_THREADS"] = "1"
    names, given = sorted(roots), {}
    with tempfile.TemporaryDirectory(dir=Path(log).parent) as folder, Path(log).open("a") as out:
        faulthandler.enable(out)
        for seed in seeds:
            name = names[random.Random(seed).randrange(len(names))]
            target = Path(folder) / "t"
            print(json.dumps({"begun": seed, "table": name}), file=out, flush=True)
            how, file = mutate(roots[name], target, seed)
            if name not in given:
                given[name] = arguments_for(open_table(roots[name]))
            began = time.process_time()
            ends = examine(target, given[name], roots[name])
            shutil.rmtree(target)
            seconds = time.process_time() - began
            peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
            line = {
                "seed": seed,
                "table": name,
                "how": how,
                "file": file,
                "seconds": seconds,
                "peak": peak,
                "ends": ends,
            }
            print(json.dumps(line), file=out, flush=True)


def _limited(job):
    """Run a job in a forked process with a limit of memory; return its id."""
    child = os.fork()
    if child:
        return child
    os.setpgid(0, 0)
    try:
        size = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (size + MOST_MEMORY, size + MOST_MEMORY))
        job()
    except BaseException:  # noqa: BLE001 - a forked process must not go on as its parent
        traceback.print_exc()
        os._exit(70)
    os._exit(0)


def run(seeds, *, folder, workers=1, until=None, only=None):  # noqa: C901 - workers that begin, end, hang and die
    """Return what became of mutated tables, a dict for each; those whose worker died or hung say so.

    Args:
        seeds: An iterator of seeds.
        folder: Where workers write.
        workers: How many run beside each other.
        until: The time of `time.monotonic` after which no table is begun.
        only: Names of tables, all without it.
    """
    roots = {name: root for name, root in tables().items() if only is None or name in only}
    seeds = iter(seeds)
    results, running, turn = [], {}, 0

    def begin(rest):
        nonlocal turn
        turn += 1
        log = Path(folder) / f"worker-{turn}.jsonl"
        log.touch()
        running[_limited(lambda: work(roots, rest, log))] = (log, rest)

    def batch():
        if until is not None and time.monotonic() > until:
            return []
        return [seed for _, seed in zip(range(40), seeds, strict=False)]

    for _ in range(workers):
        if rest := batch():
            begin(rest)
    while running:
        time.sleep(0.05)
        for child, (log, rest) in list(running.items()):
            ended, status = os.waitpid(child, os.WNOHANG)
            hung = not ended and time.time() - log.stat().st_mtime > MOST_SECONDS
            if hung:
                os.kill(child, signal.SIGKILL)
                ended, status = os.waitpid(child, 0)
            if not ended:
                continue
            del running[child]
            done, begun = _lines(log)
            results += done
            log.unlink()
            after = rest[len(done) :]
            if status:
                how = "hung" if hung else f"died with status {status}"
                results.append({"seed": after[0], "table": begun, "ends": {"worker": ("foreign", how)}, "seconds": 0})
                after = after[1:]
            if after := after or batch():
                begin(after)
    return results


def _lines(log):
    done, begun = [], None
    for line in log.read_text(errors="replace").splitlines():
        with contextlib.suppress(ValueError):
            found = json.loads(line)
            if "begun" in found:
                begun = found["table"]
            else:
                done.append(found)
    return done, begun


def failures(results):
    """Return what must not be: foreign exceptions, deaths, hangs, and tables that took too long, as text."""
    found = []
    for one in results:
        about = f"seed {one['seed']}: {one['table']} {one.get('how')} {one.get('file')}"
        found += [f"{about}: {name}: {reported}" for name, (end, reported) in one["ends"].items() if end == "foreign"]
        if one["seconds"] > SLOW_SECONDS:
            found.append(f"{about}: took {one['seconds']:.0f} s of the processor")
    return found


def summary(results):
    """Return one line of figures."""
    ends = Counter(end for one in results for end, _ in one["ends"].values())
    slowest = max((one["seconds"] for one in results), default=0)
    peak = max((one.get("peak", 0) for one in results), default=0)
    return (
        f"{len(results)} mutated tables, {sum(ends.values())} calls: {ends['answered']} answered, {ends['refused']} "
        f"refused with an error of ours, {ends['foreign']} failures; slowest table {slowest:.1f} s, "
        f"peak {peak / 2**20:.0f} MiB"
    )
