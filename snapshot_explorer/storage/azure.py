"""Azure on top of fsspec: `Storage` alone repeats requests, and the credentials that are missing are named."""

from typing import Any

PROTOCOLS = frozenset({"abfs", "abfss", "az"})


def prepare(filesystem: Any) -> None:
    """Make a file system of adlfs leave retries to `Storage`.

    Azure's client waits 18 seconds and more before a second attempt, also where credentials are missing.
    """
    configuration = getattr(getattr(filesystem, "service_client", None), "_config", None)
    policy = getattr(configuration, "retry_policy", None)
    if policy is not None:
        policy.total_retries = 0
