"""Kernels on sockets in a folder of their own: another process may take a port that was chosen for a kernel."""

import shutil
import tempfile
import weakref

import jupyter_client


class _OnSockets:
    def __init__(self, **options):
        folder = tempfile.mkdtemp(prefix="kernel-")
        weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
        super().__init__(transport="ipc", ip=f"{folder}/socket", **options)


class SocketKernelManager(_OnSockets, jupyter_client.KernelManager):
    """Starts a kernel, as nbval asks for it."""


class AsyncSocketKernelManager(_OnSockets, jupyter_client.AsyncKernelManager):
    """Starts a kernel, as nbclient asks for it."""


ON_SOCKETS = {"kernel_name": "python3", "kernel_manager_class": AsyncSocketKernelManager, "timeout": 300}
"""Options of nbclient's NotebookClient."""
