"""The names of inner modules of `storage` that tests use."""

from snapshot_explorer.storage.allowed_roots import AllowedRoots, ConfinedOptions
from snapshot_explorer.storage.failures import (
    OversizedAnswerError,
    SlowAnswerError,
    UnexpectedResponseError,
    masked_cause,
)
from snapshot_explorer.storage.files import RemoteFiles
from snapshot_explorer.storage.location import full_text, is_outside, normalize, parse_location, resolve_location
from snapshot_explorer.storage.masks import Mask
from snapshot_explorer.storage.object_stores import ObjectStoreFiles
from snapshot_explorer.storage.options import fsspec_options
from snapshot_explorer.storage.origins import Origin
from snapshot_explorer.storage.ranges import ByteBudget, RemoteFile
from snapshot_explorer.storage.same_files import match_files
from snapshot_explorer.storage.signatures import Message
