"""The environment of sessions on the dev node: that of the job, with caches on the node's own disk."""

import os
import re
from typing import Dict, Mapping

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
