"""`yurt data` with real clusters: both directions, between two sites, without rsync, lost connections, full disks."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.calls import YURT
from tests.lab.conftest import Ssh
from tests.laptop import Laptop
from tests.lifecycle.test_fetch import tree, without_rsync
from tests.storage.test_data import FILES, facts, fill
from yurt.lab import Lab
from yurt.lab.relay import Rules
from yurt.testing.waiting import eventually

pytestmark = pytest.mark.lab


@pytest.fixture(scope="module")
def laptop(shared_laptop: Laptop) -> Laptop:
    return shared_laptop


@pytest.fixture(scope="module")
def cifar(laptop: Laptop) -> Path:
    return fill(laptop.project / "cifar")


@pytest.fixture(autouse=True)
def empty(laptop: Laptop, lab: Lab) -> Iterator[None]:
    """The folder `data` of both clusters is removed afterwards."""
    yield
    for cluster in ("alpha", "beta"):
        Ssh(lab)(cluster, "rm -rf /lustre/project/alice/data /lustre/scratch/alice/data")


@contextmanager
def broken_rsync(lab: Lab, cluster: str) -> Iterator[None]:
    """The rsync of a cluster does not work."""
    ssh = Ssh(lab)
    ssh(cluster, "mkdir -p ~/broken && printf '#!/bin/sh\\nexit 127\\n' > ~/broken/rsync && chmod +x ~/broken/rsync")
    ssh(cluster, "cp ~/.bashrc ~/.bashrc.kept; sed -i '1i PATH=$HOME/broken:$PATH' ~/.bashrc")
    try:
        yield
    finally:
        ssh(cluster, "mv ~/.bashrc.kept ~/.bashrc; rm -r ~/broken")


def back(laptop: Laptop, place: str, target: Path) -> dict[str, tuple[object, ...]]:
    """Return what is at a place, from a copy of it."""
    done = laptop.quick("data", "get", place, str(target))
    assert done.code == 0, done
    return facts(target)


@pytest.mark.parametrize("way", ["rsync", "tar"])
def test_there_and_back(laptop: Laptop, lab: Lab, cifar: Path, way: str, tmp_path: Path) -> None:
    path = {"PATH": without_rsync(tmp_path / "bin")} if way == "tar" else {}
    for sent in (FILES, 0):
        done = laptop("--context", "alpha", "data", "put", str(cifar), "project:data/it's a/c", "--json", **path)
        assert done.code == 0, done
        moved = done.json["data"]["done"]
        assert (moved["files"], moved["unchanged"], moved["way"]) == (sent, FILES - sent, way)
    assert back(laptop, "alpha:project:data/it's a/c", tmp_path / "copy") == facts(cifar)
    listed = laptop.quick("data", "ls", "alpha:project:data/it's a", "--json").json["data"]["entries"]
    assert [(each["name"], each["files"]) for each in listed] == [("c", FILES)]
    assert laptop.quick("data", "rm", "-y", "alpha:project:data/it's a/c").code == 0
    assert laptop.quick("data", "ls", "alpha:project:data/it's a").out.endswith("is empty\n")


def test_what_is_there_costs_one_execution(laptop: Laptop, cifar: Path, tmp_path: Path) -> None:
    """Also on beta, whose dotfiles print something."""
    real, log = shutil.which("ssh"), tmp_path / "log"
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "ssh").write_text(
        f'#!/bin/sh\necho "$*" | tr "\\n" " " >> {log}\necho >> {log}\nexec {real} "$@"\n'
    )
    (tmp_path / "bin" / "ssh").chmod(0o755)
    path = {"PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}"}
    for words in (["put"], ["put", "--pack"]):
        place = f"beta:project:data/{len(words)}.tar"
        assert laptop("data", *words, str(cifar), place).code == 0
        log.unlink(missing_ok=True)
        done = laptop("data", *words, str(cifar), place, **path)
        assert done.code == 0 and f"{FILES} files unchanged" in done.out, done
        calls = [line for line in log.read_text().splitlines() if " -O " not in line and " -G " not in line]
        assert len(calls) == 1, calls


def test_only_a_login_that_prints_something_needs_a_program_between(
    laptop: Laptop, cifar: Path, tmp_path: Path
) -> None:
    """The dotfiles of beta print something, also after a new login; then rsync is tried without that program first."""
    for cluster, noisy in (("alpha", 0), ("beta", 1)):
        laptop.quick("login", "--close", cluster)
        for note in laptop.runtime.glob("*.noisy"):
            note.unlink()  # of an earlier test
        assert laptop.quick("data", "put", str(cifar), f"{cluster}:project:data/quiet").code == 0
        assert back(laptop, f"{cluster}:project:data/quiet", tmp_path / cluster) == facts(cifar)
        assert len(list(laptop.runtime.glob("*.noisy"))) == noisy
        assert laptop.quick("data", "rm", "-y", f"{cluster}:project:data/quiet").code == 0


def test_between_two_sites(laptop: Laptop, lab: Lab, cifar: Path, tmp_path: Path) -> None:
    assert laptop.quick("data", "put", str(cifar), "alpha:project:data/c").code == 0
    for source, target in (
        ("alpha:project:data/c", "beta:project:data/c"),
        ("beta:project:data/c", "alpha:scratch:data/"),
    ):
        for sent in (FILES, 0):
            done = laptop.quick("data", "put", source, target, "--json")
            assert done.code == 0, done
            moved = done.json["data"]["done"]
            assert (moved["files"], moved["way"]) == (sent, "rsync through this machine")
    assert back(laptop, "alpha:scratch:data/c", tmp_path / "copy") == facts(cifar)
    one = laptop.quick("data", "put", "alpha:project:data/c/it's", "beta:project:data/one")
    assert one.code == 0 and "; through this machine; beta:" in one.out
    same = laptop.quick("data", "put", "alpha:project:data/c", "alpha:project:data/again")
    assert same.code == 0 and back(laptop, "alpha:project:data/again", tmp_path / "again") == facts(cifar)
    missing = laptop.quick("data", "put", "alpha:project:data/none", "beta:project:data/none")
    assert missing.code == 3 and "does not exist" in missing.err
    folder = laptop.quick("data", "put", "alpha:project:data/c/it's", "beta:project:data/c")
    assert folder.code == 5 and "is a folder, not a file" in folder.err, folder


@pytest.mark.parametrize("broken", ["alpha", "beta"])
def test_between_two_sites_without_rsync(laptop: Laptop, lab: Lab, cifar: Path, broken: str, tmp_path: Path) -> None:
    assert laptop.quick("data", "put", str(cifar), "alpha:project:data/c").code == 0
    with broken_rsync(lab, broken):
        done = laptop.quick("data", "put", "alpha:project:data/c", "beta:project:data/c", "--json")
        assert done.code == 0 and done.json["data"]["done"]["way"] == "tar through this machine", done
        again = laptop.quick("data", "put", "alpha:project:data/c", "beta:project:data/c", "--json")
        assert again.json["data"]["done"]["files"] == 0, again
        put = laptop.quick("data", "put", str(cifar), f"{broken}:project:data/put", "--json")
        assert put.json["data"]["done"]["way"] == "tar" and put.json["warnings"], put
    found = back(laptop, "beta:project:data/c", tmp_path / "copy")
    assert found == {name: each for name, each in facts(cifar).items() if name != "empty"}


def test_directly(laptop: Laptop, lab: Lab, cifar: Path, tmp_path: Path) -> None:
    """If ssh from alpha reaches beta, rsync on alpha copies the files. Nothing is sent to another host."""
    ssh = Ssh(lab)
    key = ssh("alpha", "cat ~/.ssh/id_ed25519.pub")
    contexts = laptop.home / "config" / "contexts.yaml"
    text = contexts.read_text()
    assert laptop.quick("data", "put", str(cifar), "alpha:project:data/c").code == 0
    lab.faults.link()
    try:
        ssh("beta", f"cp ~/.ssh/authorized_keys ~/.ssh/kept; echo '{key}' >> ~/.ssh/authorized_keys")
        eventually(lambda: ssh.ask("alpha", "ssh -o StrictHostKeyChecking=accept-new alice@beta true").code == 0)
        contexts.write_text(text.replace("  beta:\n", "  beta:\n    race_address: alice@beta\n"))
        done = laptop.quick("data", "put", "alpha:project:data/c", "beta:project:data/c", "--json")
        assert done.code == 0 and done.json["data"]["done"]["way"] == "rsync, directly", done
        assert back(laptop, "beta:project:data/c", tmp_path / "copy") == facts(cifar)
        ssh("beta", "touch /lustre/project/alice/data/c/old")
        put = ["data", "put", "--delete", "alpha:project:data/c", "beta:project:data/c"]
        assert "1 file or folder" in laptop.quick(*put).err
        assert "1 deleted; directly" in laptop.quick(*put, "--yes").out
        own = laptop.quick("data", "put", "alpha:project:data/c", "beta:~/.yurt/it's")
        assert own.code == 5 and "own folder" in own.err, own
        quoted = laptop.quick("data", "put", "alpha:project:data/c/it's", "beta:project:data/c/it's", "--json")
        assert quoted.json["data"]["done"]["way"] == "rsync, directly", quoted
        ssh("alpha", "cat ~/.ssh/id_ed25519.pub >> ~/.ssh/authorized_keys")
        contexts.write_text(text.replace("  beta:\n", "  beta:\n    race_address: alice@localhost\n"))
        wrong = laptop.quick("data", "put", "alpha:project:data/c", "beta:project:data/other", "--json")
        assert wrong.json["data"]["done"]["way"] == "rsync through this machine", wrong
        assert laptop.quick("data", "ls", "alpha:project:data/other").code == 3
        names = [
            each["name"] for each in laptop.quick("data", "ls", "beta:project:data", "--json").json["data"]["entries"]
        ]
        assert names == ["c", "other"], "no token is left"
    finally:
        contexts.write_text(text)
        ssh("beta", "mv ~/.ssh/kept ~/.ssh/authorized_keys; true")
        lab.faults.unlink()


@pytest.fixture(scope="module")
def large(laptop: Laptop) -> Path:
    folder = laptop.project / "large"
    folder.mkdir()
    (folder / "it's big").write_bytes(random.Random(1).randbytes(8_000_000))
    (folder / "small").write_text("small")
    return folder


@pytest.mark.parametrize("words", [[], ["--pack"]])
def test_an_interrupted_put_continues(laptop: Laptop, lab: Lab, large: Path, words: list[str], tmp_path: Path) -> None:
    put = ["data", "put", *words, str(large), "alpha:project:data/large.tar"]
    for limit, code in ((6_000_000, 4), (7_000_000, 0)):  # a transfer from scratch would be interrupted again
        laptop.quick("login", "--close", "alpha")
        lab.faults.delay("alpha", Rules(cut_at=limit, direction="up"))
        try:
            done = laptop.quick(*put)
            assert done.code == code, done
            assert code == 0 or "run the command again" in done.err
        finally:
            lab.faults.heal("alpha")
    laptop.quick("login", "--close", "alpha")
    unpack = ["--unpack"] if words else []
    assert laptop.quick("data", "get", *unpack, "alpha:project:data/large.tar", str(tmp_path / "copy")).code == 0
    assert tree(tmp_path / "copy") == tree(large)


def test_a_full_disk(laptop: Laptop, lab: Lab, large: Path) -> None:
    lab.faults.full("alpha:project")
    try:
        for words in ([], ["--pack"]):
            done = laptop.quick("data", "put", *words, str(large), f"alpha:project:data/f{len(words)}.tar")
            assert done.code == 5 and "alpha:" in done.err and "the disk is full" in done.err, done
    finally:
        lab.faults.free("alpha:project")
    assert laptop.quick("data", "put", str(large), "alpha:project:data/f0.tar").code == 0


def test_no_permission(laptop: Laptop, large: Path) -> None:
    done = laptop.quick("data", "put", str(large), "alpha:/etc/x/y")
    assert done.code == 5 and "Permission denied" in done.err, done


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(6))
def test_kills_and_cuts_at_drawn_moments(laptop: Laptop, lab: Lab, large: Path, seed: int, tmp_path: Path) -> None:
    """Whatever is killed or cut, the next command completes the copy."""
    chance = random.Random(seed)
    commands = {
        "put": ["put", str(large), "alpha:project:data/x"],
        "pack": ["put", "--pack", str(large), "alpha:project:data/x.tar"],
        "get": ["get", "alpha:project:data/x", str(tmp_path / "got")],
        "between": ["put", "alpha:project:data/x", "beta:project:data/x"],
    }
    for name, words in commands.items():
        laptop.quick("login", "--close", "alpha")
        lab.faults.delay("alpha", Rules(rate=8_000_000))
        try:
            process = subprocess.Popen([YURT, "data", *words], env={**os.environ, **laptop.environment})
            try:
                process.wait(timeout=0.3 + chance.random() * 2)
            except subprocess.TimeoutExpired:
                if chance.random() < 0.5:
                    lab.faults.cut("alpha")
                process.kill()
                process.wait()
        finally:
            lab.faults.heal("alpha")
            laptop.quick("login", "--close", "alpha")
        done = laptop("data", *words)
        assert done.code == 0, (name, done)
    places = {"a": "alpha:project:data/x", "b": "beta:project:data/x"}
    for name, place in places.items():
        assert laptop.quick("data", "get", "--checksum", place, str(tmp_path / name)).code == 0
        assert tree(tmp_path / name) == tree(large)
    assert laptop.quick("data", "get", "--unpack", "alpha:project:data/x.tar", str(tmp_path / "u")).code == 0
    assert tree(tmp_path / "u") == tree(large) == tree(tmp_path / "got")


def test_delete_on_clusters(laptop: Laptop, lab: Lab, cifar: Path, tmp_path: Path) -> None:
    """It never empties a tier, the home or yurt's own folder; elsewhere it counts first. Also between clusters."""
    ssh = Ssh(lab)
    (tmp_path / "em").mkdir()
    em = str(tmp_path / "em")
    assert laptop.quick("data", "put", em, "beta:project:data/em").code == 0
    ssh("alpha", "mkdir -p ~/.yurt-check /lustre/project/alice/data/t && touch /lustre/project/alice/data/t/old")
    ssh("alpha", "ln -s ~ /lustre/project/alice/data/home; ln -s .. /lustre/project/alice/data/up")
    ssh("alpha", "mkdir -p /lustre/project/alice/data/em")
    for source in (em, "beta:project:data/em", "alpha:project:data/em"):
        for place in ("alpha:/home/alice", "alpha:~", "alpha:/home", "alpha:project:.", "alpha:project:data/home"):
            done = laptop.quick("data", "put", "--delete", "--yes", source, place)
            assert done.code in (2, 5), (source, place, done)
        asked = laptop.quick("data", "put", "--delete", source, "alpha:project:data/t")
        assert asked.code == 5 and "1 file or folder at alpha:" in asked.err, (source, asked)
        own = laptop.quick("data", "put", source, "alpha:project:data/home/.yurt/x/y")
        assert own.code == 5 and "yurt's own folder" in own.err, (source, own)
        assert laptop.quick("data", "put", "--delete", "-y", source, "alpha:project:data/t").code == 0
        ssh("alpha", "test ! -e /lustre/project/alice/data/t/old && touch /lustre/project/alice/data/t/old")
    assert ssh("alpha", "test -d ~/.yurt-check && rmdir ~/.yurt-check && echo kept") == "kept"
    inside = laptop.quick("data", "put", "alpha:project:data/em", "alpha:project:data/up/data/em/in")
    assert inside.code == 2 and "one contains the other" in inside.err, inside


def test_what_may_not_be_read_or_removed(laptop: Laptop, lab: Lab, tmp_path: Path) -> None:
    ssh, data = Ssh(lab), "/lustre/project/alice/data"
    ssh("alpha", f"mkdir -p {data}/c/locked/deep && touch {data}/c/locked/deep/f && chmod -R a-w {data}/c/locked")
    assert laptop.quick("data", "rm", "-y", "alpha:project:data/c").code == 0
    ssh("alpha", f"mkdir -p {data}/r && touch {data}/r/secret && chmod 0 {data}/r/secret")
    done = laptop.quick("data", "get", "alpha:project:data/r", str(tmp_path / "r"))
    assert done.code == 5 and f"'{data}/r/secret': Permission denied" in done.err, done
    closed = laptop.quick("data", "ls", "alpha:/root")
    assert closed.code == 5 and "alpha: cannot read /root: you may not read this folder" in closed.err, closed
    context = laptop.quick("data", "ls", "alpha:")
    assert context.code == 2 and "use `alpha:project:`" in context.err, context
