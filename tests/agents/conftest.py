"""A lake that agents may see, a folder beside it that they may not, and calls of tools without the SDK."""

import shutil
from dataclasses import dataclass

import pytest

from snapshot_explorer import samples
from tests.inner.agents import Access, CallLimits, allowed_roots, answer_of


@dataclass
class Agent:
    """Calls tools as an agent does."""

    lake: object
    options: object = None

    def __call__(self, name, /, limits=None, **arguments):
        """Return the answer of a tool, which must not be an error. `{lake}` in an argument is the folder."""
        answer = self.raw(name, limits=limits, **arguments)
        assert "error" not in answer, answer
        return answer

    def fails(self, name, /, limits=None, **arguments):
        """Return the message of the error."""
        return self.raw(name, limits=limits, **arguments)["error"]["message"]

    def raw(self, name, /, limits=None, **arguments):
        access = Access(allowed_roots([str(self.lake)]), self.options, limits or CallLimits())
        return answer_of(name, {key: self._filled(value) for key, value in arguments.items()}, access).content

    def follow(self, answer, tool=None):
        """Call the first tool that the answer suggests, or the first call of a tool, and nothing else."""
        call = next(item for item in answer["next_calls"] if tool in (None, item["tool"]))
        assert call["left_to_you"] == []
        return self(call["tool"], **call["arguments"])

    def _filled(self, value):
        if isinstance(value, dict):
            return {name: self._filled(item) for name, item in value.items()}
        return value.replace("{lake}", str(self.lake)) if isinstance(value, str) else value


@pytest.fixture(scope="session")
def lake(tmp_path_factory):
    folder = tmp_path_factory.mktemp("agents") / "lake"
    for name in samples.names():
        shutil.copytree(samples.path(name), folder / name)
    shutil.copytree(samples.path("orders"), folder.parent / "secret" / "orders")
    (folder.parent / "secret.csv").write_text("word\nhunter2\n")
    return folder


@pytest.fixture
def agent(lake):
    return Agent(lake)
