"""What a call of a tool may read, and for how long: the allowed folders, and the limits of the server."""

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from time import monotonic
from typing import Any

from snapshot_explorer.core.errors import InvalidArgumentError
from snapshot_explorer.core.progress import Progress, StoppedError
from snapshot_explorer.core.url_secrets import hide_url_secrets
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
        report: Callable[[Progress], None] | None = None,
    ) -> None:
        self.roots, self.limits = tuple(root.shown for root in roots.locations), limits
        self.requests = 0
        """The files and folders that were requested from a store."""
        self._report = report
        self._lock, self._stopped = threading.Lock(), threading.Event()
        self._until = monotonic() + limits.seconds
        self._options = ConfinedOptions(options or {}, replace(roots, check_stop=self._count_request))
        self._local_options = ConfinedOptions({}, replace(roots, check_stop=self.check_stop))

    def stop(self) -> None:
        """End the call: nothing waits for its answer."""
        self._stopped.set()

    @property
    def reached(self) -> str:
        """The limit that ends the call, as the end of a sentence."""
        if self.requests > self.limits.requests:
            return f"needed more than {self.limits.requests:,} requests"
        return f"took more than {self.limits.seconds:g} seconds"

    def check_stop(self) -> None:
        """Raise StoppedError if the call has ended, or a limit is reached."""
        if self._stopped.is_set() or monotonic() > self._until or self.requests > self.limits.requests:
            raise StoppedError

    def show(self, progress: Progress) -> None:
        """Report the progress, from any thread of the work."""
        self.check_stop()
        if self._report is not None:
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


def allowed_roots(paths: Sequence[str]) -> AllowedRoots:
    """Return the folders that a server allows.

    Raises:
        InvalidArgumentError: No folder is allowed, a local folder does not exist, or a URL contains a secret.
    """
    if not paths:
        raise InvalidArgumentError("No folder is allowed. Name one or more: --allow /data --allow s3://lake/shop.db.")
    for path in paths:
        if (shown := hide_url_secrets(path)) != path:
            raise InvalidArgumentError(f"{shown} contains a secret. Put it into a file: --storage-options FILE.")
        location = parse_location(path)
        if location.protocol == LOCAL and not Path(location.address).is_dir():
            raise InvalidArgumentError(f"{location.shown} is not a folder. Check the path that is allowed.")
    return AllowedRoots.of(paths)
