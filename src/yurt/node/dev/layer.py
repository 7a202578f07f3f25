"""The packages that a user adds on a dev node: a virtual environment on top of the one that yurt built.

All runs use the latter, the environment below, so it is read-only. The former is a folder in the workspace, so that
backups contain it. What depends on the node is beside the workspace, and is made again at each start.
"""

import glob
import json
import os
import re
import shlex
import shutil
import subprocess
from typing import Any, Dict, List, Mapping, Tuple

from yurt.node.dev.place import Place
from yurt.node.files import NodeError, private_folder, remove, write

NAME = ".yurt-env"
MARK = "made"
"""The file in it that says for which place and which Python it was made."""
BUILT = re.compile(r"/(?:envs/[0-9a-f]{16}/env-[0-9a-f]+|yurt-env-[0-9]+/env)\Z")
"""The end of the path of an environment that yurt built, or of its copy on the disk of the node."""

ASK = """\
import os, sys, sysconfig
print(os.path.realpath(getattr(sys, "_base_executable", "") or sys.executable))
for name in ("purelib", "platlib"):
    print(os.path.relpath(sysconfig.get_path(name), sys.prefix))
"""

PIP = """\
#!/bin/sh
# pip for the packages of this dev node. The environment below has none: the first use installs it.
python={python}
"$python" -c 'import pip' 2> /dev/null || "$python" -m ensurepip > /dev/null 2>&1 || exec uv pip "$@"
exec "$python" -m pip "$@"
"""

PART_OF_PIP = ("pip", "setuptools")
"""What the first use of pip installs."""


class Layer:
    """The added packages of one dev node. Without an environment that yurt built, it does nothing."""

    def __init__(self, place: Place, environment: Mapping[str, str]) -> None:
        active = [environment.get(name, "") for name in ("VIRTUAL_ENV", "CONDA_PREFIX")]
        self.below = next((each for each in active if BUILT.search(each)), "")
        self.path = os.path.join(place.workspace, NAME)
        self.problem = ""
        """Why packages cannot be added; empty if they can."""
        self._beside = os.path.join(place.folder, "layer")
        self._link, self._bin = os.path.join(self._beside, "below"), os.path.join(self._beside, "bin")

    def variables(self, environment: Mapping[str, str]) -> Dict[str, str]:
        """Return the variables of sessions: pip and uv install into the layer, and programs import from it."""
        if not self.below:
            return dict(environment)
        path = [os.path.join(self.path, "bin"), self._bin, environment.get("PATH", "")]
        found = dict(environment, VIRTUAL_ENV=self.path, PATH=":".join(each for each in path if each))
        # Jupyter looks for its files in the folder of the Python that runs it.
        jupyter = {"JUPYTER_PATH": "share/jupyter", "JUPYTER_CONFIG_PATH": "etc/jupyter"}
        for name, folder in {**jupyter, "JUPYTERLAB_DIR": "share/jupyter/lab"}.items():
            if os.path.isdir(os.path.join(self.below, folder)):
                found.setdefault(name, os.path.join(self.below, folder))
        return found

    def is_gone(self) -> bool:
        """Whether it should be there and is not: its files were removed, or another workspace was put in place."""
        needed = (os.path.join(self.path, "bin", "python"), self._link)  # links, which may lead to a disk that hangs
        return bool(self.below and not self.problem and not all(os.path.lexists(each) for each in needed))

    def make(self) -> None:
        """Make it, or adapt one that was made for another place or another Python. `problem` says if that failed.

        If nothing is to be adapted, no file in the workspace changes.
        """
        if not self.below:
            return
        try:
            self._make_beside()
            self._make()
            self.problem = ""
        except (NodeError, OSError, subprocess.CalledProcessError) as error:
            remove(self._bin)
            errors = (getattr(error, "stderr", None) or b"").decode("utf-8", "replace").strip().splitlines()
            self.problem = "packages cannot be added on this dev node: %s" % (errors[-1] if errors else error)

    def added(self) -> List[Dict[str, Any]]:
        """Return the added packages that the environment below does not have in the same version, by name.

        `requested`: by the user, not only by another package. `instead_of`: the version below.
        """
        found: List[Dict[str, Any]] = []
        if not self.below:
            return found
        below = {name: version for name, version, _info in _packages(self.below)}
        packages = _packages(self.path)
        required = {name for _name, _version, info in packages for name in _required(info)}
        for name, version, info in packages:
            if name not in PART_OF_PIP and below.get(name) != version:
                requested = os.path.exists(os.path.join(info, "REQUESTED"))
                if _read(info, "INSTALLER").strip() == "uv":  # it says so of all packages
                    requested = name not in required
                each = {"name": name, "version": version, "requested": requested, "source": _source(info)}
                found.append(dict(each, instead_of=below.get(name, "")))
        return found

    def drop(self) -> List[Dict[str, Any]]:
        """Remove the added packages; return them."""
        found = self.added()
        remove(self.path)
        self.make()
        return found

    def _make_beside(self) -> None:
        """Make the link to the environment below, and copies of its Python programs that import from the layer."""
        remove(self._beside)
        private_folder(self._beside)
        private_folder(self._bin)
        os.symlink(self.below, self._link)
        python = os.path.join(self.path, "bin", "python")
        programs = os.path.join(self.below, "bin")
        for name in os.listdir(programs):
            if not os.path.isfile(os.path.join(programs, name)):
                continue
            with open(os.path.join(programs, name), "rb") as stream:
                start = stream.read(2)
                body = _body(start + stream.read()) if start == b"#!" else b""
            if body:
                self._program(
                    name, b"#!/bin/sh\n'''exec' \"%s\" \"$0\" \"$@\"\n' '''\n%s" % (os.fsencode(python), body)
                )
        if not os.path.exists(os.path.join(self._bin, "pip")):
            for name in ("pip", "pip3"):
                self._program(name, PIP.format(python=shlex.quote(python)).encode("utf-8", "surrogateescape"))
        uv = os.path.join(os.path.dirname(os.path.dirname(os.path.dirname(self.below))), "tools", "uv")
        if shutil.which("uv") is None and os.access(uv, os.X_OK):
            os.symlink(uv, os.path.join(self._bin, "uv"))

    def _program(self, name: str, text: bytes) -> None:
        with open(os.path.join(self._bin, name), "wb") as stream:
            stream.write(text)
        os.chmod(os.path.join(self._bin, name), 0o700)

    def _make(self) -> None:
        python = os.path.join(self.below, "bin", "python")
        base, *folders = _output([python, "-I", "-c", ASK]).splitlines()
        state = [self.path, self._link, base, *folders]
        before = _read(self.path, MARK).splitlines()
        if before == state:
            return
        for each in glob.glob(os.path.join(glob.escape(self.path), "bin", "python*")):
            os.unlink(each)
        _output([python, "-I", "-m", "venv", "--without-pip", self.path])
        sites = sorted(set(folders))
        for folder in sites:
            text = "".join("import site; site.addsitedir(%r)\n" % os.path.join(self._link, each) for each in sites)
            write(os.path.join(self.path, folder, "zz-yurt-below.pth"), text)
        write(os.path.join(self.path, ".gitignore"), "*\n")
        if before and before[0] != self.path:
            self._move_programs(before[0])
        write(os.path.join(self.path, MARK), "".join(line + "\n" for line in state))

    def _move_programs(self, old: str) -> None:
        """Correct the path of the Python in the programs of added packages."""
        for each in glob.glob(os.path.join(glob.escape(self.path), "bin", "*")):
            if os.path.islink(each) or not os.path.isfile(each):
                continue
            with open(each, "rb") as stream:
                text = stream.read()
            first = old.encode("utf-8", "surrogateescape") + b"/bin/python"
            if text.startswith(b"#!") and first in text[:1000]:
                with open(each, "wb") as stream:
                    stream.write(text.replace(first, os.fsencode(self.path) + b"/bin/python", 2))


def _body(text: bytes) -> bytes:
    """Return a Python program without its first lines, which name its Python; empty if it is another program."""
    first, _, rest = text.partition(b"\n")
    if first.startswith(b"#!") and b"python" in first:
        return rest
    if first == b"#!/bin/sh" and rest.startswith(b"'''exec'"):  # pip and uv write this for a long path
        return rest.split(b"\n", 2)[-1]
    return b""


def _packages(folder: str) -> List[Tuple[str, str, str]]:
    """Return name, version and the folder with the record of each Python package in an environment."""
    found = []
    for info in sorted(glob.glob(os.path.join(glob.escape(folder), "lib", "python*", "site-packages", "*.dist-info"))):
        name, _, version = os.path.basename(info)[: -len(".dist-info")].partition("-")
        found.append((_normal(name), version, info))
    return found


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _required(info: str) -> List[str]:
    """Return the names of the packages that a package may require."""
    return [_normal(each) for each in re.findall(r"^Requires-Dist: *([A-Za-z0-9._-]+)", _read(info, "METADATA"), re.M)]


def _source(info: str) -> str:
    """Return the address that a package was installed from; empty if it was an index."""
    try:
        found = json.loads(_read(info, "direct_url.json"))
        vcs = found.get("vcs_info")
        return "%s+%s@%s" % (vcs["vcs"], found["url"], vcs["commit_id"]) if vcs else str(found["url"])
    except (ValueError, KeyError, TypeError, AttributeError):
        return ""


def _read(folder: str, name: str) -> str:
    """Return the content of a file; empty if there is none."""
    try:
        with open(os.path.join(folder, name), encoding="utf-8", errors="surrogateescape") as stream:
            return stream.read()
    except OSError:
        return ""


def _output(words: List[str]) -> str:
    done = subprocess.run(
        words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=True, cwd="/"
    )
    return done.stdout.decode("utf-8", "surrogateescape")
