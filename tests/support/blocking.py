"""A file system over memory:// that holds answers back until a test lets them go, or leaves files out of listings."""

import threading
from contextlib import contextmanager
from typing import ClassVar

import fsspec
from fsspec.spec import AbstractFileSystem

SECONDS = 60
"""How long anything may take before a test fails."""


class BlockingFileSystem(AbstractFileSystem):
    """Answers from memory://."""

    root_marker = ""
    asked: ClassVar[list[str]] = []
    _part = None
    _answered = False
    _waits = threading.Event()
    _go = threading.Event()
    _hidden: ClassVar[dict[str, int]] = {}
    _seen = threading.Event()

    @classmethod
    @contextmanager
    def hold(cls, part, *, answered=False):
        """Hold back requests whose path contains a text; yield an event that is set once one waits.

        With `answered` they are answered first, and the answer is held back.
        """
        cls._waits, cls._go = threading.Event(), threading.Event()
        cls._part, cls._answered = part, answered
        try:
            yield cls._waits
        finally:
            cls._part = None
            cls._go.set()

    @classmethod
    def let_others(cls):
        """Hold back no further request; those that wait go on waiting."""
        cls._part = None

    @classmethod
    def hide_once(cls, *paths):
        """Leave each of these files out of one listing; return an event that is set once one was."""
        cls._hidden = {path.strip("/"): 1 for path in paths}
        cls._seen = threading.Event()
        return cls._seen

    def _waited(self, path, answer):
        kept = type(self)
        kept.asked.append(path.strip("/"))
        held = kept._part is not None and kept._part in path
        go, waits = kept._go, kept._waits
        found = answer() if kept._answered else None
        if held:
            waits.set()
            assert go.wait(SECONDS), f"{path} was held back for too long"
        return found if kept._answered and held else answer()

    @property
    def memory(self):
        return fsspec.filesystem("memory")

    def ls(self, path, detail=True, **_):  # noqa: FBT002 - fsspec's
        found = self._waited(path, lambda: self.memory.ls(path, detail=True))
        shown = [one for one in found if not self._hides(one["name"].strip("/"))]
        return shown if detail else [one["name"] for one in shown]

    def _hides(self, path):
        left = self._hidden.get(path, 0)
        if left:
            self._hidden[path] = left - 1
            self._seen.set()
        return bool(left)

    def info(self, path, **_):
        found = self._waited(path, lambda: self.memory.info(path))
        return {"name": path, "size": found["size"], "type": found["type"]}

    def cat_file(self, path, start=None, end=None, **_):
        return self._waited(path, lambda: self.memory.cat_file(path, start=start, end=end))

    def _open(self, path, mode="rb", **_):
        assert mode == "rb"
        return self._waited(path, lambda: self.memory.open(path, mode))


def blocking():
    """Return a file system class with requests that wait until a test lets them go; `asked` lists their paths."""
    own = {"protocol": "blocking", "asked": [], "_hidden": {}, "_seen": threading.Event()}
    return type("Blocking", (BlockingFileSystem,), own | {"_waits": threading.Event(), "_go": threading.Event()})
