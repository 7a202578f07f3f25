"""How requests and ssh reach a dev node: its socket and its ssh server. What is wiped from the disk is made again."""

import os
import re
import socket
from typing import Dict, List, Mapping, Optional

from yurt.node.dev import control, sessions, ssh
from yurt.node.dev.place import Place
from yurt.node.files import private_folder

CACHES = {"CCACHE_DIR": "ccache", "PIP_CACHE_DIR": "pip", "UV_CACHE_DIR": "uv", "TMPDIR": "tmp"}
LEFT_OUT = re.compile(
    r"(_|SHLVL|PWD|OLDPWD|TERM|TERMCAP|COLUMNS|LINES|DISPLAY|XAUTHORITY|STY|TMUX.*|SSH_.*|WINDOWID|COLORTERM|PS\d|IFS"
    r"|BASH_ENV|ENV|BASH_FUNC_.*|YURT_DEV|YURT_SHARE.*|YURT_INSTEAD)\Z"
)
SECRET = re.compile(r"SECRET|TOKEN|PASSWORD|PASSWD|PASSPHRASE|CREDENTIAL|API_?KEY|ACCESS_?KEY|PRIVATE_?KEY", re.I)
NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")


def environment(folder: str, given: Mapping[str, str]) -> Dict[str, str]:
    """Return the variables for sessions. The folders of the caches are created, 0700."""
    found = {name: value for name, value in given.items() if NAME.match(name)}
    found = {name: value for name, value in found.items() if not LEFT_OUT.match(name) and not SECRET.search(name)}
    caches = private_folder(os.path.join(folder, "caches"))
    for name, each in CACHES.items():
        found[name] = private_folder(os.path.join(caches, each))
    return found


class Door:
    """The files in the folder of the dev node. Cleaners of scratch disks remove what is old, also of a running job."""

    def __init__(self, place: Place, environment: Mapping[str, str]) -> None:
        self._place, self._environment = place, environment
        self.served = {"host_key": "", "sshd": ""}
        """What a client needs for ssh; empty if ssh does not work."""
        self.problem = ""
        """Why ssh does not work; empty if it does, or if the node has no sshd."""
        self._host_key: Dict[str, str] = {}
        self._files: List[str] = []
        self._server: Optional[socket.socket] = None
        self._prepare()

    @property
    def socket(self) -> str:
        """The path of the socket; empty if it is closed."""
        return str(self._server.getsockname()) if self._server is not None else ""

    def open(self, answer: control.Answer) -> None:
        """Answer requests on the socket from now on."""
        self._answer = answer
        self._server = control.listen(self._place.folder)
        control.serve(self._server, answer)

    def keep(self) -> bool:
        """Make again what is missing, with the same host key; return whether something was. Raises OSError."""
        if all(os.path.exists(each) for each in [self.socket, *self._files]):
            return False
        private_folder(os.path.dirname(self._place.folder))
        private_folder(self._place.folder)
        self._prepare()
        if not os.path.exists(self.socket):
            self.close()
            self.open(self._answer)
        return True

    def close(self) -> None:
        """Close the socket and remove it."""
        path, server = self.socket, self._server
        self._server = None
        if server is None:
            return
        try:
            server.shutdown(socket.SHUT_RDWR)  # ends the thread that waits for connections
            os.unlink(path)
        except OSError:
            pass
        server.close()

    def _prepare(self) -> None:
        folder = self._place.folder
        variables = environment(folder, self._environment)
        variables[sessions.MARK] = sessions.mark(variables, folder)
        try:
            self.served.update(ssh.prepare(folder, variables, self._place.workspace, self._host_key))
            self.problem = ""
        except (ssh.SshError, OSError) as error:
            self.problem = "ssh to this dev node does not work: %s" % error
            return
        self._host_key = ssh.host_key_files(folder)
        self._files = [os.path.join(folder, "environment"), *ssh.files(folder)]
