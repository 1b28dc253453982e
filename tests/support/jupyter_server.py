"""A real Jupyter server on the loopback interface, with JupyterLab, Notebook and Voila, and its kernels."""

import json
import os
import subprocess
import sys
import time
import urllib.request
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.support.object_stores import free_port

ROOT = Path(__file__).parents[2]
TOKEN = "of-this-test"
SETTINGS = {
    "apputils-extension/notification": {"fetchNews": "false", "checkForUpdates": False},
}


@dataclass(frozen=True, kw_only=True)
class JupyterServer:
    """A running server."""

    address: str
    served: Path
    """The folder with its notebooks."""
    root: Path
    """The folder with its configuration."""

    def set_theme(self, theme):
        """Use a theme, Light or Dark, in pages that are opened from now on."""
        themes = self.root / "config" / "lab" / "user-settings" / "@jupyterlab" / "apputils-extension"
        (themes / "themes.jupyterlab-settings").write_text(json.dumps({"theme": f"JupyterLab {theme}"}))

    def end_kernels(self):
        """End the kernels of all notebooks."""
        for session in self._request("/api/sessions", "GET"):
            self._request(f"/api/sessions/{session['id']}", "DELETE")

    def wait_for_kernel(self):
        """Return once a notebook has a kernel that is idle."""
        for _ in range(480):
            states = [(one.get("kernel") or {}).get("execution_state") for one in self._request("/api/sessions", "GET")]
            if "idle" in states:
                return
            time.sleep(0.25)
        raise AssertionError(f"No kernel is idle: {states}")

    def contains(self, url):
        """Return whether an address is one of this server, or is in the page itself."""
        return url.startswith((self.address, self.address.replace("http:", "ws:"), "data:", "blob:"))

    def _request(self, path, method):
        request = urllib.request.Request(
            self.address + path, method=method, headers={"Authorization": f"token {TOKEN}"}
        )
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.loads(answer.read() or "null")


@contextmanager
def jupyter_server(root, package=ROOT):
    """Run a server whose configuration and notebooks are in a folder; its kernels import `package`."""
    port = free_port()
    for name, values in SETTINGS.items():
        folder, _, plugin = name.partition("/")
        home = root / "config" / "lab" / "user-settings" / "@jupyterlab" / folder
        home.mkdir(parents=True, exist_ok=True)
        (home / f"{plugin}.jupyterlab-settings").write_text(json.dumps(values))
    served = root / "served"
    served.mkdir()
    environment = os.environ | {
        "PYTHONPATH": str(package),
        "JUPYTER_CONFIG_DIR": str(root / "config"),
        "JUPYTER_DATA_DIR": str(root / "data"),
        "IPYTHONDIR": str(root / "ipython"),
    }
    command = [sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root", f"--port={port}"]
    command += ["--LabApp.expose_app_in_browser=True"]
    command += ["--ServerApp.port_retries=0", f"--IdentityProvider.token={TOKEN}", f"--ServerApp.root_dir={served}"]
    with (root / "log").open("wb") as log:
        process = subprocess.Popen(command, env=environment, stdout=log, stderr=log, cwd=served)
    address = f"http://127.0.0.1:{port}"
    try:
        _wait_until_it_answers(address, process, root / "log")
        yield JupyterServer(address=address, served=served, root=root)
    finally:
        process.terminate()
        try:
            process.wait(60)
        except subprocess.TimeoutExpired:  # it waits for a kernel that was still starting
            process.kill()
            process.wait()


def _wait_until_it_answers(address, process, log):
    for _ in range(480):
        assert process.poll() is None, log.read_text()
        try:
            urllib.request.urlopen(f"{address}/api", timeout=2).close()
        except OSError:
            time.sleep(0.25)
        else:
            return
    raise AssertionError(log.read_text())
