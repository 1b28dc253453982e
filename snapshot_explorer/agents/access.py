"""What a call of a tool may read, and for how long: the allowed folders, and the limits of the server."""

import threading
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from time import monotonic
from typing import Any

from snapshot_explorer.core.errors import InvalidArgumentError
from snapshot_explorer.core.progress import Progress, StoppedError
from snapshot_explorer.core.text import format_size
from snapshot_explorer.storage.allowed_roots import AllowedRoots, ConfinedOptions
from snapshot_explorer.storage.location import LOCAL, parse_location


@dataclass(frozen=True, slots=True, kw_only=True)
class CallLimits:
    """The limits of one call, which its answer states."""

    rows: int = 50
    """Rows that an answer contains."""
    seconds: float = 60.0
    size_bytes: int = 1 << 30
    """Bytes of data files that a call may read, by the metadata."""
    requests: int = 10_000
    """Files and folders that a call may request from a store; not counted in processes for a lake of 100 tables."""
    text_letters: int = 500
    """Letters of one text from a table."""
    answer_bytes: int = 100_000
    """Bytes of the rows of an answer, as JSON."""
    resource_rows: int = 1_000
    """Rows that the resource of an answer contains."""
    resource_bytes: int = 1_000_000
    """Bytes of these rows, as JSON."""

    def __post_init__(self) -> None:
        for name, value in asdict(self).items():
            if value < 0:
                raise InvalidArgumentError(f"The limit {name} must be 0 or more, got {value}.")


class Access:
    """The access of one call, whose time begins when this is created. Listens to its progress."""

    def __init__(
        self,
        roots: AllowedRoots,
        options: Mapping[str, Any] | None,
        limits: CallLimits,
        report: Callable[[Progress], object] = lambda _: None,
    ) -> None:
        self.roots, self.limits = tuple(root.shown for root in roots.locations), limits
        self.requests = 0
        """The files and folders that were requested from a store."""
        self.planned: dict[str, int] = {}
        """`size_bytes`, the bytes of the data files that the call may read, by the metadata; empty if unknown."""
        self._report = report
        self._lock = threading.Lock()
        self._until = monotonic() + limits.seconds
        self._options = ConfinedOptions(options or {}, replace(roots, check_stop=self._count_request))
        self._local_options = ConfinedOptions({}, replace(roots, check_stop=self.check_stop))

    def stop(self) -> None:
        """End the call: nothing waits for its answer."""
        self._until = 0.0

    @property
    def reached(self) -> str:
        """The limit that ends the call, as the end of a sentence."""
        if self.requests > self.limits.requests:
            return f"needed more than {self.limits.requests:,} requests"
        return f"took more than {self.limits.seconds:g} seconds"

    def check_stop(self) -> None:
        """Raise StoppedError if the call has ended, or a limit is reached."""
        if monotonic() > self._until or self.requests > self.limits.requests:
            raise StoppedError

    def check_bytes(self, size_bytes: int, advice: str) -> None:
        """Raise InvalidArgumentError if a call may read more data files than the limit.

        Args:
            advice: What to ask for instead, a sentence.
        """
        if size_bytes > (most := self.limits.size_bytes):
            sizes = f"{format_size(size_bytes)} of data files, and the limit of a call is {format_size(most)}"
            raise InvalidArgumentError(f"This may read {sizes}. {advice}")
        self.planned = {"size_bytes": size_bytes}

    def show(self, progress: Progress) -> None:
        """Report the progress, from any thread of the work."""
        self.check_stop()
        self._report(progress)

    def clear(self) -> None:
        """Report nothing: the answer follows."""

    def _count_request(self) -> None:
        with self._lock:
            self.requests += 1
        self.check_stop()

    def options_for(self, path: str) -> ConfinedOptions:
        """Return the options to open a path with, which keep all reads below the allowed folders."""
        return self._local_options if parse_location(path).protocol == LOCAL else self._options
