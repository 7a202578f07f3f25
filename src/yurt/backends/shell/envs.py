"""Builds environments on a site with sh, in the background."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Sequence
from shlex import quote

import msgspec

from yurt.backends import scripts
from yurt.backends.job import script as job
from yurt.backends.shell import ownership
from yurt.backends.shell.env_answers import read_states, read_tools, read_unused
from yurt.clocks import clocks
from yurt.errors import UnreachableError
from yurt.model import layout
from yurt.model.env import EnvBuild, EnvState, EnvTools, SitePython, SiteWheels, UnusedEnv
from yurt.model.site_words import one_each
from yurt.transport.base import Host, refusal
from yurt.transport.pace import PIECE

INCOMPLETE, WRONG = 45, 48
"""Exit codes of scripts: the input ended early; what arrived is not what was sent."""

LOGIN = 'exec bash -lc {text} sh "$@" < /dev/null'
"""Runs a script in a login shell, where programs and modules are found as in a terminal."""

SUMS = 'while IFS= read -r file; do sum=$(sha256sum < "$file") || exit 1; echo "${sum%% *}"; done'

UNPACK = """ || exit
umask 077
cd "$1" || exit 1
packed=$3 aside=$3.$7
shift 9
gzip -dc "$packed" > "$aside" && chmod 700 "$aside" && mv -f "$aside" "tools/$1"
code=$?
rm -f "$packed" "$aside"
exit $code"""
"""Unpacks a program after its upload. A process that runs the old one keeps it."""

REMOVE = """\
for each; do # its lock stays, so that it is built again with the same packages
  [ -d "$each" ] || continue
  rm -rf "$each/ready" "$each/ready.d"
  find "$each" -mindepth 1 -type d ! -perm -200 -exec chmod u+w {} + 2> /dev/null
  find "$each" -mindepth 1 -maxdepth 1 ! -name lock ! -name explicit -exec rm -rf {} +
done
"""

LIST = """\
[ "$(find / -prune | head -n 1)" = / ] || exit 1 # without these, every folder would look empty
for base; do
  [ -e "$base" ] || readable "${base%/*}" || exit
  for each in "$base"/envs/*; do
    found=$(find "$each" -mindepth 1 -maxdepth 1 ! -name lock ! -name explicit 2> /dev/null | head -n 1)
    [ -z "$found" ] || printf '%s\\n' "$each"
  done
done
"""

LET_GO = """\
cd "$1" 2> /dev/null || exit 0
shift
for each in wait.*; do
  [ -e "$each" ] || continue
  name=$(queue -j "${each#wait.}" -o %j 2> /dev/null | head -n 1)
  for job; do [ "jobname=$name" != "$job" ] || rm -f "$each"; done
done
"""

LACKING = """\
cd "$1/../.." 2> /dev/null
shift
while read -r file; do
  if [ -e "wheels/$file" ]; then set -- "$@" "wheels/$file"; else echo "$file"; fi
done
[ $# -eq 0 ] || touch -c -- "$@" # `yurt prune` keeps them for a day
"""


class ShellEnvs:
    """The environments of one context."""

    def __init__(self, host: Host) -> None:
        self._host = host

    def ask(self, base: str, modules_init: str, modules: Sequence[str]) -> EnvTools:
        """See `Envs.ask`."""
        mark = f"yurt-{os.urandom(4).hex()}"
        text = scripts.text("environment.sh", "job") + scripts.text("env_index.sh") + scripts.text("env_ask.sh")
        answer = self._host.run(
            LOGIN.format(text=quote(text)), mark, f"{base}/tools", modules_init, *modules, timeout=120
        )
        if f"{mark} modules" not in answer.text:
            raise refusal(self._host.name, "cannot look for Pythons", answer.errors)
        with self._host.reading():
            return read_tools(mark, answer.text, now=time.time())

    def wheelhouse(
        self,
        python: SitePython,
        modules_init: str,
        modules: Sequence[str],
        folders: Sequence[str],
        names: Sequence[str],
    ) -> SiteWheels:
        """See `Envs.wheelhouse`."""
        mark = f"yurt-{os.urandom(4).hex()}"
        text = scripts.text("environment.sh", "job") + scripts.text("env_wheels.sh")
        version = "cp" + "".join(python.version.split(".")[:2])
        words = (mark, python.path, version, "\n".join(names), "\n".join(folders), modules_init, *modules)
        answer = self._host.run(LOGIN.format(text=quote(text)), *words, timeout=600)
        line = next((each for each in answer.text.splitlines() if each.startswith(f"{mark} ")), "")
        if answer.code or not line:
            raise refusal(self._host.name, "cannot read the wheelhouse", answer.errors)
        with self._host.reading():
            return msgspec.json.decode(line.partition(" ")[2], type=SiteWheels)

    def sums(self, paths: Sequence[str]) -> list[str]:
        """See `Envs.sums`."""
        lines = "".join(f"{path}\n" for path in paths).encode()
        answer = self._host.run(SUMS, stdin=lines, timeout=600)
        if answer.code:
            raise refusal(self._host.name, "cannot read the wheelhouse", answer.errors)
        return answer.text.split()

    def start(self, build: EnvBuild) -> bool:
        """See `Envs.start`."""
        files = {
            name: content
            for name, content in (
                ("definition.json", build.definition),
                ("lock", build.lock if build.kind == "lock" else b""),
                ("explicit", build.lock if build.kind == "conda" else b""),
                ("environment.yml", build.environment),
                ("pack", b"yes\n" if build.pack else b""),
                ("wheels", "".join(f"{line}\n" for line in _files(build)).encode()),
                ("build.sh", builder().encode()),
            )
            if content
        }
        sizes = " ".join(f"{len(content)} {name}" for name, content in files.items())
        where = "login" if build.on_node is None else "node:" + "\n".join(build.on_node)
        words = [build.folder, os.urandom(4).hex(), where, sizes, str(clocks().lease)]
        words += [build.kind, build.python, build.uv or build.installer, build.cuda]
        words += [build.modules_init, *build.modules]
        answer = ownership.run(
            self._host,
            [build.folder],
            scripts.text("env_state.sh", "job") + scripts.text("env_start.sh"),
            *words,
            make=True,
            also=_own_tools(build),
            stdin=b"".join(files.values()),
            timeout=120,
        )
        if answer.code == INCOMPLETE and "No space" not in answer.errors and "quota" not in answer.errors.lower():
            raise UnreachableError(
                f"{self._host.name}: the definition of the environment arrived incomplete",
                code="connection-lost",
                hint="run the command again; it is safe to retry",
            )
        if answer.code:
            raise refusal(self._host.name, "cannot build the environment", answer.errors)
        return answer.text.split()[-1:] == ["ready"]

    def look(
        self, folders: Sequence[str], *, brief: bool = False, wait: float = 0, edits: bool = False
    ) -> list[EnvState]:
        """See `Envs.look`."""
        if not folders:
            return []
        text = scripts.text("env_state.sh", "job") + scripts.text("env_look.sh")
        words = ["yes" if brief else "", str(int(wait * 10)), "yes" if edits else ""]
        answer = ownership.run(self._host, folders, text, *words, *folders, timeout=120)
        if answer.code:
            raise refusal(self._host.name, "cannot read the environments", answer.errors)
        with self._host.reading():
            return one_each(read_states(answer.text), folders)

    def folders(self, bases: Sequence[str]) -> list[str]:
        """See `Envs.folders`."""
        above = [layout.env(base, "all") for base in bases]
        answer = ownership.run(self._host, above, LIST, *bases)
        if answer.code:
            raise refusal(self._host.name, "cannot list the environments", answer.errors)
        return answer.text.splitlines()

    def lacking(self, folder: str, files: Sequence[str]) -> list[str]:
        """See `Envs.lacking`."""
        lines = "".join(f"{file}\n" for file in files).encode()
        answer = ownership.run(self._host, [folder], LACKING, folder, stdin=lines)
        if answer.code:
            raise refusal(self._host.name, "cannot list the wheels", answer.errors)
        return answer.text.split()

    def send(self, folder: str, file: str, content: bytes, moved: Callable[[int], None]) -> None:
        """See `Envs.send`."""
        digest, _, name = file.partition("/")
        self._send(folder, f"wheels/{file}", digest, content, moved, name=name, what="the wheels")

    def has_tool(self, folder: str, name: str) -> bool:
        """See `Envs.has_tool`."""
        program = layout.tool(layout.chain(folder)[0], name)
        return ownership.run(self._host, [folder], '[ -e "$1" ]', program, also=_parts(program)).code == 0

    def send_tool(self, folder: str, name: str, content: bytes, moved: Callable[[int], None]) -> None:
        """See `Envs.send_tool`."""
        import hashlib

        digest = hashlib.sha256(content).hexdigest()
        self._send(folder, f"tools/{digest}", digest, content, moved, name=name, what=name, after=UNPACK)

    def _send(
        self,
        folder: str,
        file: str,
        digest: str,
        content: bytes,
        moved: Callable[[int], None],
        *,
        name: str,
        what: str,
        after: str = "",
    ) -> None:
        """Upload a file into yurt's folder; `after` is a script that runs then."""
        for resume in (True, False):
            words = (layout.chain(folder)[0], "file", file, "", str(len(content)), digest, os.urandom(4).hex())
            answer = ownership.send(
                self._host,
                [folder],
                scripts.text("receive_large.sh") + 'receive_large "$@"' + after,
                *(*words, "yes" if resume else "", str(PIECE), name),
                content=content,
                resume=resume,
                moved=moved,
            )
            if answer.code != WRONG:
                break
        if answer.code in (INCOMPLETE, WRONG) and "No space" not in answer.errors:
            raise UnreachableError(
                f"{self._host.name}: the upload of {name} is incomplete",
                code="connection-lost",
                hint="run the command again; it is safe to retry",
            )
        if answer.code:
            raise refusal(self._host.name, f"cannot write {what}", answer.errors)

    def let_go(self, folder: str, jobs: Sequence[str]) -> None:
        """See `Envs.let_go`."""
        answer = ownership.run(self._host, [folder], LET_GO, folder, *jobs)
        if answer.code:
            raise refusal(self._host.name, "cannot hold the run", answer.errors)

    def remove(self, folders: Sequence[str]) -> None:
        """See `Envs.remove`."""
        answer = ownership.run(self._host, folders, REMOVE, *folders, timeout=600)
        if answer.code:
            raise refusal(self._host.name, "cannot remove the environment", answer.errors)

    def prune(
        self, runs: str, base: str, seconds: float, unfinished: Sequence[str], chosen: Sequence[UnusedEnv] = ()
    ) -> list[UnusedEnv]:
        """See `Envs.prune`."""
        text = scripts.text("env_state.sh", "job") + scripts.text("env_prune.sh")
        names = {"environment": "env:", "replaced": "replaced:", "wheels": "wheels"}
        words = [runs, base, str(math.ceil(seconds / 60)), " ".join(unfinished)]
        words += [names[each.what] + each.address for each in chosen]
        answer = ownership.run(self._host, [layout.env(base, "all")], text, *words, timeout=600)
        if answer.code:
            raise refusal(self._host.name, "cannot find unused environments", answer.errors)
        with self._host.reading():
            return read_unused(answer.text)


def _files(build: EnvBuild) -> list[str]:
    """Return the lines of the file `wheels`: an option of pip and uv, and the files to install from."""
    return ["--no-index"] * build.no_index + build.wheels


def _parts(program: str) -> list[str]:
    """Return a program in the folder of tools, and that folder: only this user may write to them."""
    return [program.rpartition("/")[0], program]


def _own_tools(build: EnvBuild) -> list[str]:
    """Return the programs of yurt that a build runs."""
    own = layout.tool(layout.chain(build.folder)[0], "")
    used = [each for each in (build.uv, build.installer) if each.startswith(own)]
    return [own.rstrip("/"), *used] if used or build.kind == "conda" else []


def builder() -> str:
    """Return the script that builds an environment."""
    parts = [scripts.text(name, "job") for name in ("slurm.sh", "environment.sh", "env_state.sh")]
    parts += [scripts.text(name) for name in ("env_conda.sh", "env_index.sh", "env_build.sh")]
    return "#!/bin/bash -l\n" + job.gate() + "".join(parts)
