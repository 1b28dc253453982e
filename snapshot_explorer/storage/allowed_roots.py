"""Folders below which everything must be that is read, for programs that answer questions of others."""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from snapshot_explorer.core.errors import AccessDeniedError, InvalidArgumentError
from snapshot_explorer.core.url_secrets import hide_url_secrets
from snapshot_explorer.storage.hidden import HiddenOptions
from snapshot_explorer.storage.location import LOCAL, Location, is_outside, parse_location, same_family, shorten


def _endless() -> None:
    """Let work take as long as it does."""


@dataclass(frozen=True, slots=True)
class AllowedRoots:
    """Folders. Nothing outside of them is read or listed, whichever links lead there."""

    locations: tuple[Location, ...]
    check_stop: Callable[[], None] = field(default=_endless, compare=False)
    """Called before each access to a storage. It may raise, to end work that takes too long. Not pickled."""

    @classmethod
    def of(cls, paths: Sequence[str]) -> "AllowedRoots":
        """Return the folders at these paths and URLs; the links of a local one are followed now.

        Raises:
            InvalidArgumentError: No folder is allowed, a local folder does not exist, or a URL contains a secret.
        """
        if not paths:
            raise InvalidArgumentError(
                "No folder is allowed. Name one or more: --allow /data --allow s3://lake/shop.db."
            )
        return cls(tuple(_without_links(_folder(path)) for path in paths))

    def __reduce__(self) -> tuple[type["AllowedRoots"], tuple[object]]:
        return AllowedRoots, (self.locations,)  # another process ends with its task

    def check(self, location: Location) -> None:
        """Raise AccessDeniedError if a file or folder is outside. On the local disk, looks at each link of its path."""
        target = _without_links(location)
        if not any(same_family(target, root) and not is_outside(target, root) for root in self.locations):
            raise AccessDeniedError(
                f"{shorten(location.shown)} is not read: it is outside of the folders that are allowed, "
                f"{', '.join(root.shown for root in self.locations)}."
            )


class ConfinedOptions(HiddenOptions):
    """Options of a storage with which only what is below some folders is read."""

    def __init__(self, options: Mapping[str, Any], roots: AllowedRoots) -> None:
        super().__init__(options)
        self.roots = roots


def _folder(path: str) -> Location:
    if (shown := hide_url_secrets(path)) != path:
        raise InvalidArgumentError(f"{shown} contains a secret. Put it into a file: --storage-options FILE.")
    location = parse_location(path)
    if location.protocol == LOCAL and not Path(location.address).is_dir():
        raise InvalidArgumentError(f"{location.shown} is not a folder. Check the path that is allowed.")
    return location


def _without_links(location: Location) -> Location:
    if location.protocol != LOCAL:
        return location
    address = os.path.realpath(location.address)
    return Location(protocol=LOCAL, address=address, shown=location.shown)
