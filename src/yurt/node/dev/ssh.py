"""The ssh server of a dev node: files for an sshd that the user starts, once for each connection. Nothing listens.

The folder is on the node's own disk and belongs to the user alone, so the host key never leaves the node.
"""

import os
import pwd
import re
import shlex
import shutil
import stat
import subprocess
import tempfile
from typing import Dict, List, Optional

from yurt.node.dev import sessions

SCRIPTS = {"session.sh": "session.sh", "bashrc.sh": "bashrc.sh", "zshenv.zsh": ".zshenv", "prompt.fish": "prompt.fish"}
"""What sessions need, and its names in the folder of the ssh server, where zsh finds its file."""

HOST_KEY = "host_key-"

SBIN = ("/usr/sbin", "/sbin", "/usr/local/sbin", "/usr/bin", "/usr/local/bin")
"""Where sshd may be, apart from PATH; it must be called by its absolute path."""

SFTP = (
    "/usr/lib/openssh/sftp-server",
    "/usr/libexec/openssh/sftp-server",
    "/usr/lib/ssh/sftp-server",
    "/usr/libexec/sftp-server",
    "/usr/lib64/misc/sftp-server",
    "/usr/local/libexec/sftp-server",
)

KEY = re.compile(r"(?:ssh|ecdsa|sk-ssh|sk-ecdsa)-[A-Za-z0-9@.-]+ [A-Za-z0-9+/=]+(?: [^\x00-\x1f\x7f]*)?")
"""A public key without options."""

SESSIONS_OWN = re.compile(
    r"_|TERM|SHELL|HOME|USER|LOGNAME|PWD|OLDPWD|SHLVL|MAIL|DISPLAY|XAUTHORITY|PS1|PS2|PROMPT_COMMAND|YURT_DEV"
    r"|SSH_.*|XDG_RUNTIME_DIR|XDG_SESSION_.*|DBUS_SESSION_.*|TMUX.*|STY|UID|EUID|PPID|GROUPS|BASHOPTS|SHELLOPTS"
    r"|BASH_VERSINFO|RANDOM|SECONDS|LINENO|FUNCNAME|DIRSTACK|EPOCHSECONDS|EPOCHREALTIME|SRANDOM|HISTCMD"
)
"""Variables that a session has of its own, or that shells do not let anybody set."""

CLIENTS = re.compile(r"LANG|LANGUAGE|LC_.*")
"""Variables that the client may send; the job's value is the default."""

JOIN_PATHS = """\
while [ -n "$yurt_rest" ]; do
  yurt_each=${yurt_rest%%:*} yurt_rest=${yurt_rest#*:}
  case $yurt_each,:$PATH: in ,* | *,*:"$yurt_each":*) ;; *) PATH=$PATH:$yurt_each ;; esac
done
unset yurt_rest yurt_each
"""
"""The folders that the user's profile added to PATH follow those of the job."""


QUIET = "SetEnv SHLVL=1\n"
"""Keeps bash from reading ~/.bashrc for sshd, whose output would break scp and rsync. OpenSSH has it since 7.8."""

SITE = "/etc/ssh/sshd_config"
KEX = re.compile(r"^[ \t]*KexAlgorithms[ \t=].*$", re.M | re.I)
"""The site's choice of key exchanges applies to a dev node, too: some take half the time of a short command."""


class SshError(Exception):
    """The ssh server cannot be set up; the message says why."""


def prepare(
    folder: str, environment: Dict[str, str], workspace: str, host_key: Optional[Dict[str, str]] = None
) -> Dict[str, str]:
    """Make the files of the ssh server in `folder`/ssh; safe to repeat. `folder` must be the user's alone.

    `host_key`: the files of the host key that is used again if there is none, from `host_key_files`.

    Return the public host key and, as `sshd`, the sh command that serves one connection on its standard input and
    output; both are empty if the node has no sshd or no ssh-keygen. Raise SshError if the folder cannot be used.
    """
    _check(folder)
    ssh = os.path.join(folder, "ssh")
    if not os.path.isdir(ssh):
        os.mkdir(ssh, 0o700)
    _check(ssh)
    text = _environment({**environment, "YURT_WORKSPACE": workspace})
    _write(os.path.join(folder, "environment"), text)
    sshd = _program("sshd")
    keygen = _program("ssh-keygen")
    if not sshd or not keygen:
        return {"host_key": "", "sshd": ""}
    for name, content in sorted((host_key or {}).items(), reverse=True):  # the public key first
        if not os.path.exists(os.path.join(ssh, name)):
            _write(os.path.join(ssh, name), content)
    private = _host_key(ssh, keygen)
    for source, name in SCRIPTS.items():
        with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), source)) as stream:
            _write(os.path.join(ssh, name), stream.read())
    if not os.path.exists(os.path.join(ssh, "authorized_keys")):
        _write(os.path.join(ssh, "authorized_keys"), "")
    config = os.path.join(ssh, "sshd_config")
    for more in (_site_choice() + QUIET, QUIET, ""):
        _write(config, _config(ssh, private) + more)
        if _accepted(sshd, config):
            break
    with open(private + ".pub") as stream:
        public = " ".join(stream.read().split()[:2])
    words = [sshd, "-i", "-E", os.path.join(ssh, "log"), "-f", config]
    command = " ".join(shlex.quote(word) for word in words)
    if os.geteuid() == 0:
        command = "mkdir -p -m 755 /run/sshd && " + command
    # The shell stays: the end of the dev node finds the connection by its environment.
    served = ["env", "{}={}".format(sessions.SERVER, folder), "sh", "-c", command + "; exit"]
    return {"host_key": public, "sshd": " ".join(shlex.quote(word) for word in served)}


def host_key_files(folder: str) -> Dict[str, str]:
    """Return the names and contents of the files of this node's host key."""
    found = {}
    for path in files(folder):
        if os.path.basename(path).startswith(HOST_KEY):
            with open(path) as stream:
                found[os.path.basename(path)] = stream.read()
    return found


def files(folder: str) -> List[str]:
    """Return the paths of the files that sshd and its sessions need."""
    ssh = os.path.join(folder, "ssh")
    key = HOST_KEY + os.uname().nodename
    names = (key, key + ".pub", "sshd_config", "authorized_keys", *SCRIPTS.values())
    return [path for path in (os.path.join(ssh, name) for name in names) if os.path.exists(path)]


def authorize(folder: str, key: str) -> None:
    """Let the owner of a public key log in. SshError: it is not a public key."""
    key = key.strip()
    if not KEY.fullmatch(key):
        raise SshError("not a public ssh key: {!r}".format(key[:80]))
    file = os.path.join(folder, "ssh", "authorized_keys")
    _check(os.path.dirname(file))
    lines: List[str] = []
    if os.path.exists(file):
        with open(file) as stream:
            lines = stream.read().splitlines()
    if not any(line.split()[:2] == key.split()[:2] for line in lines):
        _write(file, "".join(line + "\n" for line in [*lines, key]))


def _check(folder: str) -> None:
    """Refuse a folder that another user could have written to, or whose name sshd_config cannot contain."""
    if re.search(r'["\\\x00-\x1f]', folder):
        raise SshError("the name of the folder contains a quote, a backslash or a control character: " + repr(folder))
    found = os.lstat(folder)
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid() or found.st_mode & 0o077:
        raise SshError("{} is not a folder that only you can use".format(folder))


def _program(name: str) -> str:
    return shutil.which(name) or shutil.which(name, path=":".join(SBIN)) or ""


def _host_key(ssh: str, keygen: str) -> str:
    """Return the path of the private host key of this node; make it if there is none."""
    file = os.path.join(ssh, HOST_KEY + os.uname().nodename)
    if os.path.exists(file) and os.path.exists(file + ".pub"):
        return file
    aside = tempfile.mkdtemp(prefix=".key-", dir=ssh)
    errors = b""
    try:
        for kind in ("ed25519", "ecdsa", "rsa"):  # some sites do not allow the first
            made = os.path.join(aside, kind)
            done = subprocess.run(
                [keygen, "-q", "-t", kind, "-N", "", "-C", "yurt dev node", "-f", made],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                check=False,
            )
            if done.returncode == 0:
                os.rename(made + ".pub", file + ".pub")
                os.rename(made, file)
                return file
            errors = done.stdout
    finally:
        shutil.rmtree(aside, ignore_errors=True)
    raise SshError("ssh-keygen cannot make a host key: " + errors.decode(errors="replace").strip())


def _accepted(sshd: str, config: str) -> bool:
    """Whether sshd knows all settings of a configuration."""
    done = subprocess.run(
        [sshd, "-t", "-f", config],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        check=False,
    )
    return done.returncode == 0


def _config(ssh: str, host_key: str) -> str:
    user = pwd.getpwuid(os.geteuid()).pw_name
    sftp = next((path for path in SFTP if os.access(path, os.X_OK)), "")
    lines = [
        "# Written by yurt for the dev node in this folder. sshd -i uses it once for each connection.",
        'HostKey "{}"'.format(host_key),
        "PidFile none",
        "UsePAM no",
        "StrictModes no",  # the folder is the user's alone; folders above it may be writable, such as /tmp
        "AuthenticationMethods publickey",
        "PubkeyAuthentication yes",
        "PasswordAuthentication no",
        "ChallengeResponseAuthentication no",
        "HostbasedAuthentication no",
        'AuthorizedKeysFile "{}"'.format(os.path.join(ssh, "authorized_keys").replace("%", "%%")),
        "AllowAgentForwarding yes",
        "AllowTcpForwarding yes",
        "AllowStreamLocalForwarding yes",
        "StreamLocalBindUnlink yes",
        "GatewayPorts no",
        "X11Forwarding no",
        "PrintMotd no",
        "PrintLastLog no",
        "LogLevel ERROR",
        "ClientAliveInterval 60",
        "AcceptEnv LANG LANGUAGE LC_* COLORTERM",
        "ForceCommand exec sh {}".format(shlex.quote(os.path.join(ssh, "session.sh"))),
    ]
    if re.fullmatch(r"[A-Za-z0-9._-]+", user):
        lines.append("AllowUsers " + user)
    if sftp:
        lines.append("Subsystem sftp " + sftp)
    return "".join(line + "\n" for line in lines)


def _site_choice(file: str = SITE) -> str:
    """Return the line of the site's configuration about key exchanges; empty if it has none or cannot be read."""
    try:
        with open(file, errors="replace") as stream:
            found = KEX.search(re.split(r"(?mi)^[ \t]*Match[ \t]", stream.read())[0])
    except OSError:
        return ""
    return found.group().strip() + "\n" if found else ""


def _environment(variables: Dict[str, str]) -> str:
    """Return the sh text that sets the variables of the job in a session."""
    lines = []
    for name, value in sorted(variables.items()):
        if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name) or SESSIONS_OWN.fullmatch(name) or "\0" in value:
            continue
        line = "export {}={}".format(name, shlex.quote(value))
        if CLIENTS.fullmatch(name):
            line = '[ -n "${%s+set}" ] || %s' % (name, line)
        lines.append(line)
    return "\n".join(["yurt_rest=$PATH:", *lines]) + "\n" + JOIN_PATHS


def _write(file: str, text: str) -> None:
    """Replace a file atomically; only the user can read it."""
    descriptor, aside = tempfile.mkstemp(prefix=".new-", dir=os.path.dirname(file))
    try:
        with os.fdopen(descriptor, "w", errors="surrogateescape") as stream:
            stream.write(text)
            stream.flush()
            os.fsync(stream.fileno())
        os.rename(aside, file)
    except BaseException:
        os.unlink(aside)
        raise
