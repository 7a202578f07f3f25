"""Conflicts, backups and restore between this machine and two clusters, over ssh and on a terminal."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.lab.conftest import Ssh
from tests.laptop import Laptop
from yurt.lab import Lab

pytestmark = pytest.mark.lab


def test_a_user_resolves_conflicts_and_restores_a_file(laptop: Laptop, lab: Lab, tmp_path: Path) -> None:
    ssh = Ssh(lab)
    here = tmp_path / "homes"
    word = os.urandom(4).hex()
    root = f"homes-{word}"
    notes = f"notes-{word}.txt"  # the backups of other tests are on the sites too
    places = f"{{alpha: {{root: {root}}}, beta: {{root: {root}}}}}"
    (laptop.home / "config/homes.yaml").write_text(f"hub: local\nfolder: {here}\nplaces: {places}\n")
    laptop.environment["UNISON"] = str(tmp_path / "unison")
    for site, text in (("alpha", "one"), ("beta", "two")):
        ssh(site, f"mkdir {root} && cd {root} && mkdir project && echo {text} > project/of-{site}")
    ssh("alpha", f"cd {root} && echo first > {notes} && echo first > other.txt")

    def read(site: str, *paths: str) -> str:
        """Return files of a site; the dotfiles of beta print something first."""
        return ssh(site, f"echo START; cd {root} && cat {' '.join(paths)}").partition("START\n")[2]

    refused = laptop.quick("home", "sync")
    assert refused.code == 2
    assert "needs your confirmation" in refused.err
    assert not here.exists()
    first = laptop.spawn("home", "sync")
    first.expect(r"project/\s+4 B, 1 file\s+4 B, 1 file")
    copies = r"copies at most 20 B \(4 files\) to local, at most 4 B \(1 file\) to alpha and at most 16 B"
    first.expect(copies.replace(" ", r"\s+"))  # it wraps between words
    first.expect(r"keep these homes in sync .*\?")
    first.sendline("y")
    output = first.read()
    assert first.wait() == 0, output
    assert read("beta", "project/of-alpha", notes) == "one\nfirst"
    assert laptop.quick("home", "backups", notes, "--json").json["data"] == {"backups": [], "more": False}

    for path in (notes, "other.txt"):
        ssh("alpha", f"cd {root} && echo on alpha > {path}")
        (here / path).write_text("on local\n")
    done = laptop.quick("home", "sync")
    assert done.code == 1
    shown = laptop.quick("home", "conflicts", notes)
    assert "-on local\n+on alpha\n" in shown.out
    asked = laptop.spawn("home", "conflicts")
    asked.expect("2 paths changed on two places")
    asked.expect(rf"1/2 {notes}\s+keep \(local, alpha, newer, both, diff, skip, quit\) \[skip\]: ")
    asked.sendline("diff")
    asked.expect(r"\+on alpha")
    asked.sendline("alpha")
    asked.expect(r"2/2 other.txt\s+keep")
    asked.sendline("")
    asked.expect(f"{notes}: kept the version on alpha")
    asked.expect("1 conflict left")
    asked.read()
    assert asked.wait() == 0
    assert (here / notes).read_text() == read("beta", notes) + "\n" == "on alpha\n"
    assert (here / "other.txt").read_text() == "on local\n"
    kept = laptop.quick("home", "conflicts", "--both", "--yes", "--json").json["data"]["resolved"]
    (name,) = kept[0]["beside"]
    assert read("beta", "other.txt", name) == "on local\non alpha"

    listed = laptop.quick("home", "backups", notes, "--json").json["data"]["backups"]
    assert {(each["place"], each["path"]) for each in listed} == {("local", notes), ("beta", notes)}
    restored = laptop.quick("home", "restore", notes, "--place", "beta")
    assert restored.code == 0, restored
    assert read("beta", notes) == "on local"  # beta had received that version, and then that of alpha
    assert laptop.quick("home", "sync").code == 0
    assert (here / notes).read_text() == read("alpha", notes) + "\n" == "on local\n"
    for site in ("alpha", "beta"):
        ssh(site, f"rm -rf {root}")
