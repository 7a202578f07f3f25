"""A compute node as a host: commands run through its login node with srun or ssh."""

from __future__ import annotations

import contextlib
import shlex
from collections.abc import Iterator
from typing import Literal

from yurt.errors import YurtError
from yurt.hosts.base import Host
from yurt.model.site_words import NodeName

Way = Literal["srun", "ssh"]


class NodeHost(Host):
    """A node of a running job, reached through the job (srun), or by ssh if the site allows it."""

    def __init__(self, login: Host, node: NodeName, job: str, way: Way = "srun") -> None:
        self.name = f"{node} on {login.name}"
        self._login = login
        self._node, self._job, self._way = node, job, way

    def argv(self, command: str) -> list[str]:
        if self._way == "ssh":
            ssh = ["ssh", "-o", "BatchMode=yes", "-o", "ConnectTimeout=15", "-T", self._node, command]
            return self._login.argv(shlex.join(ssh))
        srun = ["srun", "--quiet", "--overlap", f"--jobid={self._job}", f"--nodelist={self._node}", "--nodes=1"]
        srun += ["--ntasks=1", "--mem=0", "--input=0", "sh", "-c", command]
        return self._login.argv(shlex.join(srun))

    def drain(self) -> bool:
        return self._way == "srun"  # seen: srun ended with 0 and without the last output of its task

    @contextlib.contextmanager
    def session(self, deadline: float) -> Iterator[None]:
        with self._login.session(deadline):
            yield

    @contextlib.contextmanager
    def forward(self, node: NodeName | None, port: int) -> Iterator[int]:
        with self._login.forward(node or self._node, port) as local_port:
            yield local_port

    def retry(self, errors: bytes, attempt: int) -> bool:
        return self._login.retry(errors, attempt)

    def lost(self, returned: int, errors: bytes, *, begun: bool) -> YurtError:
        if returned == 255 and self._way == "srun":
            return self._login.lost(returned, errors, begun=begun)
        return super().lost(returned, errors, begun=begun)
