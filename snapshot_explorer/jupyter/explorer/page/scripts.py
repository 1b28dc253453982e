"""The script and the style that pages run: modules of this package, joined into one without a build step."""

from __future__ import annotations

import gzip
import re
from base64 import b64encode
from functools import cache
from importlib.resources import files

_MODULES = ("pictures.js", "timeline.js", "grid.js", "page.js")
"""The modules of the page. Each may import the modules before it."""

_LOADER = """const packed = Uint8Array.from(atob("{packed}"), (letter) => letter.charCodeAt(0));
const unpacked = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
const address = URL.createObjectURL(new Blob([await new Response(unpacked).arrayBuffer()], {type: "text/javascript"}));
const page = await import(address);
URL.revokeObjectURL(address);
export default page.default;
"""


@cache
def text_of(name: str) -> str:
    """Return the text of a file of this package, without comments and indentation."""
    lines = files("snapshot_explorer.jupyter.explorer.page").joinpath(name).read_text("utf-8").splitlines()
    bare = (line.strip() for line in lines)
    return "\n".join(line for line in bare if line and not re.match(r"//|/\* |/\*\*.*\*/$", line))


@cache
def script(*more: str) -> str:
    """Return the module that draws the page. The library Preact is a function in it, so that names do not collide.

    Args:
        more: Modules to add, which may import all the others.
    """
    library = re.sub(
        r"export\{(.*)\};?$",
        lambda names: "return{" + re.sub(r"(\w+) as (\w+)", r"\2:\1", names[1]) + "}",
        text_of("preact.js"),
    )
    modules = "\n".join(text_of(name) for name in (*_MODULES, *more))
    modules = re.sub(r"(?m)^import .*\n", "", modules)
    modules = re.sub(r"(?m)^export (?!default)", "", modules)
    return f"const preact = (() => {{\n{library}\n}})();\n{modules}"


@cache
def packed_script() -> str:
    """Return a module that unpacks the script and runs it: less than half the bytes, wherever it is sent or saved."""
    packed = gzip.compress(script().encode(), mtime=0)
    return _LOADER.replace("{packed}", b64encode(packed).decode())
