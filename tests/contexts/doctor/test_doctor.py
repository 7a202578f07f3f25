"""doctor on both clusters and on this machine, with real faults."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from tests import hints
from tests.calls import Called
from tests.lab.conftest import Ssh
from tests.laptop import Laptop
from tests.transport.test_ssh import changed
from yurt.config import contexts
from yurt.lab import Lab
from yurt.model.context import Context

pytestmark = pytest.mark.lab


def add(laptop: Laptop, name: str, like: str = "alpha", **changes: Any) -> None:
    """Add a context with other settings, and the recorded facts of the one that it is like."""
    config = laptop.home / "config"
    found = contexts.load(config / "contexts.yaml").contexts[like]
    made: Context = msgspec.structs.replace(found, name=name, **changes)
    contexts.put(config / "contexts.yaml", [made])
    if "ssh_options" not in changes:
        shutil.copy(config / "facts" / f"{like}.json", config / "facts" / f"{name}.json")


def problems(done: Called) -> dict[str, dict[str, tuple[str, str]]]:
    """Return result and words by context and check, without what is ok."""
    assert done.out, done
    groups = done.json["data"]["contexts"]
    names = [group["context"] for group in groups]
    remedies = [each["remedy"] for group in groups for each in group["findings"]]
    assert [problem for remedy in remedies for problem in hints.wrong(remedy, names)] == []
    return {
        group["context"]: {
            each["check"]: (each["result"], f"{each['text']}: {each['detail']} | {each['remedy']}")
            for each in group["findings"]
            if each["result"] in ("warning", "fault")
        }
        for group in groups
    }


def test_healthy_clusters_in_one_round_trip(laptop: Laptop, tmp_path: Path) -> None:
    log = tmp_path / "calls"
    wrapper = tmp_path / "bin" / "ssh"
    wrapper.parent.mkdir()
    wrapper.write_text(f'#!/bin/sh\necho "$*" >> {log}\nexec {shutil.which("ssh")} "$@"\n')
    wrapper.chmod(0o755)
    laptop.environment["PATH"] = f"{wrapper.parent}:{os.environ['PATH']}"
    done = laptop.quick("doctor", "alpha", "beta", "--json")
    found = problems(done)
    assert found["alpha"] == {}, "nothing is wrong with alpha"
    assert list(found["beta"]) == ["dotfiles"] and "Welcome back!" in found["beta"]["dotfiles"][1]
    lines = [f" {line} " for line in log.read_text().splitlines()]
    assert len([line for line in lines if not re.search(" -[GMV] | -O ", line)]) == 2, lines


def test_faults_of_contexts(laptop: Laptop, lab: Lab, tmp_path: Path) -> None:
    """All contexts are examined side by side; one that cannot be reached does not hide the others."""
    ssh = Ssh(lab)
    ssh("alpha", "rm -rf ~/open && mkdir ~/open && chmod 777 ~/open")
    own = tmp_path / "ssh_config"
    text = (lab.instance.client / "ssh_config").read_text()
    (key,) = {Path(found) for found in re.findall(r"IdentityFile \"?([^\"\n]+)\"?", text)}
    copy = tmp_path / "key of mine"
    shutil.copy(str(key).replace("%r", "alice"), copy)
    copy.chmod(0o644)
    own.write_text(text.replace(str(key), str(copy)))
    add(laptop, "account", account="nobody")
    add(laptop, "partition", partition="nowhere")
    add(laptop, "qos", qos="nothing")
    add(laptop, "readonly", storage_dir="/usr/share")
    add(laptop, "open", storage_dir="/home/alice/open")
    add(laptop, "nodelocal", storage_dir="/tmp")
    add(laptop, "software", modules_to_load=("nosuch/1.0",), venv="/home/alice/no-venv")
    add(laptop, "key", ssh_options=("-F", str(own)))
    add(laptop, "nohost", slurm_url="alice@127.0.0.1", ssh_options=("-p", "1"))
    names = ["account", "partition", "qos", "readonly", "open", "nodelocal", "software", "key", "nohost"]
    done = laptop.quick("doctor", *names, "--json")
    assert done.code == 1 and list(problems(done)) == names
    found = problems(done)
    assert "you do not belong to the account of the context: nobody" in found["account"]["account"][1]
    assert "does not exist: nowhere" in found["partition"]["partition"][1]
    assert "Slurm would reject a job: " in found["qos"]["sbatch"][1]
    assert (
        found["readonly"]["storage"][0] == "fault" and "yurt context edit readonly" in found["readonly"]["storage"][1]
    )
    assert "chmod go-w /home/alice/open" in found["open"]["storage safety"][1]
    assert "not shared with the compute nodes" in found["nodelocal"]["storage place"][1]
    assert "nosuch/1.0" in found["software"]["modules"][1] and "venv" in found["software"]["settings"][1]
    assert found["key"]["login"][0] == "fault" and "rejected" in found["key"]["login"][1]
    assert any("chmod 600" in words for _result, words in found["key"].values())
    assert found["nohost"] == {"login": found["nohost"]["login"]} and "refused" in found["nohost"]["login"][1]
    ssh("alpha", "rm -rf ~/open")


def test_clock_shell_dotfiles_and_dead_connection(laptop: Laptop, lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    assert laptop.quick("login", "alpha").code == 0
    (socket,) = (each for each in laptop.runtime.iterdir() if each.is_socket())
    for pid in subprocess.run(["pgrep", "-f", str(socket)], capture_output=True, text=True, check=True).stdout.split():
        os.kill(int(pid), 9)
    monkeypatch.setattr("yurt.contexts.doctor.contexts.time", SimpleNamespace(time=lambda: time.time() - 90))
    with changed(lab, "alpha", "/etc/passwd", "sed -i '/^alice:/s#:[^:]*$#:/bin/tcsh#' /etc/passwd"):
        done = laptop.quick("doctor", "alpha", "--json")
    assert problems(done)["alpha"].keys() == {"clock"}, "the login shell and the new connection work"
    result, words = problems(done)["alpha"]["clock"]
    assert result == "fault" and re.search(r"about (89|90|91|92) s ahead of", words)
    (group,) = done.json["data"]["contexts"]
    said = {each["check"]: f"{each['text']}: {each['detail']}" for each in group["findings"]}
    assert "the last connection died" in said["connection"] and said["login shell"].endswith("/bin/tcsh")
    laptop.quick("login", "alpha", "--close")  # sshd starts the old login shell on it
    with changed(lab, "alpha", "/home/alice/.bashrc", "printf 'exit 3\\n' > /home/alice/.bashrc"):
        broken = laptop.quick("doctor", "alpha", "--json")
    assert "check the dotfiles" in problems(broken)["alpha"]["login"][1] and broken.code == 1
