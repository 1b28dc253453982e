"""Pages of the site that are no Markdown in `notebooks/`: README, notebooks, explorers, changelog, reference."""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import nbformat
from mkdocs.structure.files import File
from nbconvert import MarkdownExporter

import snapshot_explorer
from snapshot_explorer.view import dispatch

ROOT = Path(__file__).parents[2]
MOVED = {
    "README.md": "index.md",
    "CHANGELOG.md": "CHANGELOG.md",
    "snapshot_explorer/ARCHITECTURE.md": "contributing/ARCHITECTURE.md",
    ".github/CONTRIBUTING.md": "contributing/CONTRIBUTING.md",
}
"""Files of the repository, and the pages that they become."""
CLASSES = {"table": ("Table",), "snapshot": ("Snapshot",), "lake": ("Lake", "LakeSnapshot")}
"""The classes that have a page of their own."""
EXPLORED = {"orders": "Paimon", "payments": "Delta Lake"}
"""The samples whose explorers are on the site."""
LINK = re.compile(r'(\]\(|(?:src|srcset)=")([^)"#:]+)')
"""A link to a path: of an address with a scheme, the scheme alone."""
_HEADING = ' role="heading" aria-level="3"'
"""The role of a result's title, which stands below headings of any level here."""
EXPLORER = re.compile(r"<!-- explorer: (\w+) (\S+) -->")
"""Where a page has an explorer, and what it shows."""


def on_files(files: Any, config: Any) -> Any:
    """Add the pages, and replace notebooks by theirs, with the outputs that they were saved with."""
    export = MarkdownExporter(exclude_output_prompt=True)
    for file in [file for file in files if file.src_uri.endswith(".ipynb")]:
        files.remove(file)
        content = _as_page(export, Path(file.abs_src_path))
        files.append(File.generated(config, f"{Path(file.src_uri).stem}.md", content=content))
    pages = {page: _relinked((ROOT / path).read_text("utf-8"), path) for path, page in MOVED.items()}
    pages |= {name: Path(__file__).with_name(name).read_text("utf-8") for name in ("theme.js", "theme.css")}
    pages["binder/check_here.md"] = _as_page(export, ROOT / "binder" / "check_here.ipynb")
    for path, text in (pages | _reference() | _explorers()).items():
        files.append(File.generated(config, path, content=text))
    return files


def on_page_markdown(markdown: str, page: Any, **_: object) -> str:
    """Let links of the guide lead to pages where they lead to files of the repository."""
    path = page.file.src_uri
    markdown = EXPLORER.sub(lambda found: _frame(found[1], f"../../explorer/{found[1]}.html#{found[2]}"), markdown)
    return markdown if path in MOVED.values() else _relinked(markdown, f"notebooks/{path}")


def _as_page(export: MarkdownExporter, path: Path) -> str:
    """Return a notebook as Markdown; an output in HTML is one block, whatever is in it."""
    notebook = nbformat.read(path, as_version=4)
    for output in [one for cell in notebook.cells for one in cell.get("outputs", ())]:
        if page := output.get("data", {}).get("text/html"):
            without_blank_lines = re.sub(r"\n\s*\n", "\n", page.replace(_HEADING, ""))
            output["data"]["text/html"] = f'<div class="output">{without_blank_lines}</div>'
    return export.from_notebook_node(notebook)[0]


def _relinked(text: str, path: str) -> str:
    """Return the text of a file of the repository with its links as the site needs them."""
    here = Path(MOVED.get(path, path.removeprefix("notebooks/"))).parent

    def link(found: re.Match[str]) -> str:
        target = (ROOT / path).parent.joinpath(found[2]).resolve()
        if not target.is_relative_to(ROOT) or not target.is_file():
            return found[0]
        inside = target.relative_to(ROOT).as_posix()
        page = MOVED.get(inside, inside.removeprefix("notebooks/").replace(".ipynb", ".md"))
        return found[1] + "/".join([*[".."] * len(here.parts), page])

    return LINK.sub(link, text)


def _explorers() -> dict[str, str]:
    """Return the explorers of samples, which work without a kernel, and the page that they are in."""
    page, files = ["# The explorer", "Here without a kernel: what was recorded of two samples. Click on a commit."], {}
    with TemporaryDirectory() as folder:
        for name, table_format in EXPLORED.items():
            table = snapshot_explorer.open_table(snapshot_explorer.samples.path(name))
            explorer = snapshot_explorer.explore(table, name=name)
            files[f"explorer/{name}.html"] = explorer.to_html(Path(folder, name)).read_text("utf-8")
            explorer.close()
            page += [f"## {name}, a {table_format} table", _frame(name, f"{name}.html")]
    return files | {"explorer/index.md": "\n\n".join(page) + "\n"}


def _frame(name: str, address: str) -> str:
    """Return an explorer without a kernel as a part of a page."""
    frame = f'<iframe src="{address}" title="The explorer of {name}" sandbox="allow-scripts allow-downloads"'
    return f'{frame} style="width:100%;height:1080px;border:0"></iframe>'


def _reference() -> dict[str, str]:
    """Return the pages of the reference, each with the names that mkdocstrings describes."""
    apart = {name for names in CLASSES.values() for name in names}
    public = {name: getattr(snapshot_explorer, name) for name in snapshot_explorer.__all__ if name not in apart}
    rest = [one for one in public.values() if inspect.isroutine(one) or inspect.isclass(one)]
    results = [name for name in dispatch.MODULES if name.rpartition(".")[2] not in apart]
    errors = [one for one in vars(snapshot_explorer.errors).values() if inspect.isclass(one)]
    return {
        "reference/index.md": _page("Functions", [_name(one) for one in rest if "ipython" not in one.__name__]),
        **{
            f"reference/{page}.md": _page(names[0], [_name(getattr(snapshot_explorer, name)) for name in names])
            for page, names in CLASSES.items()
        },
        "reference/results.md": _page("Results", [f"snapshot_explorer.{name}" for name in results]),
        "reference/errors.md": _page("Errors", [_name(one) for one in errors]),
    }


def _name(one: Any) -> str:
    return f"{one.__module__}.{one.__qualname__}"


def _page(title: str, names: list[str]) -> str:
    return "\n\n".join([f"# {title}", *[f"::: {name}" for name in names]]) + "\n"
