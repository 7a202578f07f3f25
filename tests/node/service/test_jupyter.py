"""JupyterLab with settings and variables of the user that would open ports, or change its token."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.node.service.conftest import Start
from yurt.testing.waiting import eventually

pytestmark = pytest.mark.slow  # tests/services/test_private.py runs JupyterLab with its usual settings

SETTINGS = """
c.ServerApp.ip = "0.0.0.0"
c.ServerApp.port = 9999
c.ServerApp.token = "mine"
c.ServerApp.password = "argon2:x"
c.ServerApp.certfile = "/nowhere"
c.ServerApp.base_url = "/else/"
c.ServerApp.sock = "/tmp/other-socket"
c.IdentityProvider.token = "mine"
c.PasswordIdentityProvider.hashed_password = "argon2:x"
c.KernelManager.transport = "tcp"
c.KernelManager.ip = "0.0.0.0"
c.AsyncIOLoopKernelManager.transport = "tcp"
c.AsyncIOLoopKernelManager.ip = "127.0.0.1"
c.ServerKernelManager.transport = "tcp"
"""

KERNEL_SETTINGS = """
c.IPKernelApp.transport = "tcp"
c.IPKernelApp.ip = "0.0.0.0"
"""

KERNEL = {
    "argv": ["python", "-m", "ipykernel", "-f", "{connection_file}"],
    "display_name": "Mine",
    "language": "python",
}


def test_settings_of_the_user_open_nothing(start: Start, tmp_path: Path) -> None:
    folder = tmp_path / ".jupyter"
    folder.mkdir()
    for name in ("server", "lab"):
        (folder / f"jupyter_{name}_config.py").write_text(SETTINGS)
    (folder / "jupyter_notebook_config.py").write_text(SETTINGS.replace("ServerApp", "NotebookApp"))
    profile = tmp_path / "ipython" / "profile_default"
    profile.mkdir(parents=True)
    (profile / "ipython_kernel_config.py").write_text(KERNEL_SETTINGS)
    (tmp_path / "data" / "kernels" / "mine").mkdir(parents=True)
    (tmp_path / "data" / "kernels" / "mine" / "kernel.json").write_text(json.dumps(KERNEL))
    variables = {"JUPYTER_TOKEN": "mine", "JUPYTER_PORT": "9998", "JUPYTER_RUNTIME_DIR": str(tmp_path / "shared")}
    variables |= {"JUPYTER_DATA_DIR": str(tmp_path / "data"), "IPYTHONDIR": str(profile.parent)}
    made = start("jupyter", variables={**variables, "JUPYTER_CONFIG_DIR": str(folder)})
    status = made.ready()
    token = Path(status["token"]).read_text()
    assert made.get("/api/kernels")[0] == made.get("/api/kernels", token="mine")[0] == 403
    assert made.get("/api/kernels", token=token) == (200, b"[]")
    for name in ("python3", "mine"):
        code, answer = made.get("/api/kernels", "POST", json.dumps({"name": name}).encode(), token=token)
        assert code == 201 and json.loads(answer)["name"] == name
    runtime = Path(status["socket"]).parent / "run"
    # A kernel has five sockets, and one for the output of processes that it forks.
    eventually(lambda: len([each for each in runtime.iterdir() if each.is_socket()]) == 12)
    sockets = {fd for each in made.processes() for fd in inodes(each)}
    assert sockets and not sockets & inodes_of_ports()
    assert not (tmp_path / "shared").exists()
    for each in made.processes():
        process = Path(f"/proc/{each}")
        assert token.encode() not in (process / "cmdline").read_bytes() + (process / "environ").read_bytes()
    assert token not in made.words
    assert made.end() == 143 and made.processes() == [] and not runtime.parent.exists()


def inodes(process: int) -> set[str]:
    """Return the sockets of a process."""
    found = set()
    for each in Path(f"/proc/{process}/fd").iterdir():
        try:
            target = str(each.readlink())
        except OSError:  # closed by now
            continue
        if target.startswith("socket:"):
            found.add(target[8:-1])
    return found


def inodes_of_ports() -> set[str]:
    """Return the sockets of all ports that listen."""
    rows = [line.split() for name in ("tcp", "tcp6") for line in Path(f"/proc/net/{name}").read_text().splitlines()[1:]]
    return {row[9] for row in rows if row[3] == "0A"}
