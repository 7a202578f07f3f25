"""yurt uses no folder that another user owns, made, or could write to: neither in a command nor in a job."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.calls import Called
from tests.lab.conftest import Ssh
from tests.laptop import Laptop
from tests.user import User
from yurt.backends import scripts
from yurt.lab import Lab
from yurt.lab.cluster import inside
from yurt.testing.waiting import eventually

SOMEONE = 12345

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to give files to another user")

BELOW = ["yurt", "yurt/projects", "yurt/projects/p", "yurt/projects/p/runs"]


@pytest.fixture
def storage(tmp_path: Path) -> Path:
    made = tmp_path / "a storage"
    made.mkdir(mode=0o700)
    (made / BELOW[-1]).mkdir(parents=True)
    for name in BELOW:
        (made / name).chmod(0o700)
    return made


@pytest.fixture(params=["dash", "bash", "busybox"])
def shell(request: pytest.FixtureRequest) -> list[str]:
    if shutil.which(request.param) is None:
        pytest.skip(f"needs the Debian package {request.param}")
    return ["busybox", "sh"] if request.param == "busybox" else [str(request.param)]


def own(storage: Path, shell: list[str], before: str = "") -> str:
    """Return why a folder is not safe; empty if it is. `before`: commands that replace programs."""
    text = scripts.text("own.sh", "job") + before
    text += f'own {scripts.own_arguments([str(storage / name) for name in BELOW])} || echo "$? $unsafe"'
    done = subprocess.run([*shell, "-c", text], capture_output=True, text=True, check=True)
    assert not done.stderr
    return done.stdout.strip().replace(f"{storage}/", "").replace(str(storage), "storage")


def test_ones_own_folders(storage: Path, shell: list[str]) -> None:
    assert own(storage, shell) == ""
    shutil.rmtree(storage / "yurt/projects/p")
    assert own(storage, shell) == "", "what does not exist is safe"


@needs_root
@pytest.mark.parametrize("name", BELOW)
def test_a_folder_of_another_user(storage: Path, shell: list[str], name: str) -> None:
    os.chown(storage / name, SOMEONE, SOMEONE)
    assert own(storage, shell) == f"41 {name} belongs to another user"


@pytest.mark.parametrize("mode", [0o777, 0o1777, 0o720, 0o2770, 0o702])
def test_yurts_folder_is_writable_by_others(storage: Path, shell: list[str], mode: int) -> None:
    os.chown(storage / "yurt", -1, 0 if os.geteuid() else os.getgid())
    (storage / "yurt").chmod(mode)
    others = mode & 0o002 or os.geteuid() != 0  # the group root is root's alone
    assert own(storage, shell) == ("40 other users can write to yurt" if others else "")


@needs_root
def test_a_group_of_several_users(storage: Path, shell: list[str]) -> None:
    os.chown(storage / "yurt", -1, SOMEONE)
    (storage / "yurt").chmod(0o770)
    assert own(storage, shell) == "40 other users can write to yurt"


def test_a_folder_below_is_writable_by_others(storage: Path, shell: list[str]) -> None:
    (storage / BELOW[2]).chmod(0o777)
    assert own(storage, shell) == "", "nobody else can get there"
    (storage / "yurt").chmod(0o711)
    assert own(storage, shell) == f"40 other users can write to {BELOW[2]}"


@pytest.mark.parametrize(("mode", "safe"), [(0o755, True), (0o777, False), (0o1777, True), (0o703, False)])
def test_the_folder_above(storage: Path, shell: list[str], mode: int, safe: bool) -> None:
    storage.chmod(mode)
    assert own(storage, shell) == ("" if safe else "40 other users can replace folders in storage")
    shutil.rmtree(storage / "yurt")
    assert own(storage, shell) == ("" if safe else "40 other users can replace folders in storage")


@needs_root
@pytest.mark.parametrize("mode", [0o700, 0o755, 0o1777, 0o2770])
def test_the_folder_above_belongs_to_another_user(storage: Path, shell: list[str], mode: int) -> None:
    """Its owner can replace what is in it, also with the sticky bit: who creates it first must not win."""
    storage.chmod(mode)
    os.chown(storage, SOMEONE, SOMEONE)
    assert own(storage, shell) == "41 storage belongs to another user, who can replace folders in it"


@needs_root
@pytest.mark.parametrize(
    ("mode", "owner", "safe"),
    [(0o755, 0, True), (0o777, 0, False), (0o1777, 0, True), (0o1777, SOMEONE, False), (0o2770, SOMEONE, True)],
)
def test_a_folder_further_up(storage: Path, shell: list[str], mode: int, owner: int, safe: bool) -> None:
    above = storage.parent / "above"
    above.mkdir()
    storage.rename(above / storage.name)
    above.chmod(mode)
    os.chown(above, owner, owner)
    found = own(above / storage.name, shell)
    assert found.endswith(f"other users can replace folders in {above}") == (not safe), found


@needs_root
def test_a_link_of_another_user_above(storage: Path, shell: list[str]) -> None:
    link = storage.parent / "link"
    link.symlink_to(storage)
    assert own(link, shell) == "", "the user's own"
    os.chown(link, SOMEONE, SOMEONE, follow_symlinks=False)
    assert own(link, shell) == "41 storage is a symbolic link of another user"


@needs_root
def test_a_group_with_the_name_of_the_user_and_other_members(storage: Path) -> None:
    (storage / "yurt").chmod(0o770)
    os.chown(storage / "yurt", -1, 0)
    getent = "getent() { echo root:x:0:bob; }\n"
    text = getent + scripts.text("own.sh", "job")
    text += f'own {scripts.own_arguments([str(storage / name) for name in BELOW])}; echo "$? $unsafe"'
    done = subprocess.run(["dash", "-c", text], capture_output=True, text=True, check=True)
    assert done.stdout == f"40 other users can write to {storage}/yurt\n"


def allow(entries: str, path: Path) -> None:
    """Add entries to the access control list of a folder."""
    if shutil.which("setfacl") is None:
        pytest.skip("needs the Debian package acl")
    done = subprocess.run(["setfacl", "-m", entries, str(path)], capture_output=True, text=True, check=False)
    if "not supported" in done.stderr:
        pytest.skip("needs a file system with access control lists")
    assert not done.returncode, done.stderr


@needs_root
@pytest.mark.parametrize(
    ("entries", "safe"),
    [
        ("u:12345:rwx", False),
        ("u:12345:-w-", False),
        ("g:12345:rwx", False),
        ("u:12345:rwx,m::r-x", True),
        ("u:12345:r-x,g::rwx", True),
        ("u:12345:r-x,g:12345:r-x,u:0:rwx", True),
        ("g:0:rwx", True),
        ("d:u:12345:rwx", True),
        ("d:u:12345:rwx,g::rwx", True),
        ("d:u:12345:r-x,u:12345:rwx", False),
    ],
)
def test_access_control_lists(storage: Path, shell: list[str], entries: str, safe: bool) -> None:
    """The bits of the group are the mask of a list: the group may be that of the user alone, and bob is on the list."""
    allow(entries, storage)
    assert own(storage, shell) == ("" if safe else "40 other users can replace folders in storage")
    storage.chmod(storage.stat().st_mode & ~0o022)
    assert own(storage, shell) == "", "as the hint says"
    allow(entries, storage / "yurt")
    assert own(storage, shell) == ("" if safe else "40 other users can write to yurt")
    (storage / "yurt").chmod(0o700)
    assert own(storage, shell) == ""


@needs_root
def test_a_list_that_new_folders_inherit(storage: Path, shell: list[str]) -> None:
    """It overrides the umask. yurt's folder is made with mode 0700, so nobody gets to what is below it."""
    shutil.rmtree(storage / "yurt")
    allow("d:u:12345:rwx", storage)
    (storage / "yurt").mkdir(mode=0o700)
    subprocess.run(["mkdir", "-p", str(storage / BELOW[-1])], umask=0o077, check=True)
    assert (storage / BELOW[-1]).stat().st_mode & 0o020
    assert own(storage, shell) == ""
    (storage / "yurt").chmod(0o710)
    assert own(storage, shell) == f"40 other users can write to {BELOW[1]}"


@needs_root
def test_a_list_without_a_program_that_reads_it(storage: Path, shell: list[str]) -> None:
    missing = "getfacl() { return 127; }\nnfs4_getfacl() { return 127; }\n"
    (storage / "yurt").chmod(0o770)
    assert own(storage, shell, missing) == "", "no list: the group is root's alone"
    allow("u:0:rwx", storage / "yurt")
    assert own(storage, shell, missing) == "40 this host has no getfacl or nfs4_getfacl to tell who can write to yurt"
    (storage / "yurt").chmod(0o700)
    assert own(storage, shell, missing) == ""


@needs_root
@pytest.mark.parametrize(
    ("entry", "safe"),
    [
        ("A::OWNER@:rwaDxtTnNcCoy\nA::GROUP@:rwaxtncy\nA::EVERYONE@:tncy", True),
        ("A::OWNER@:rwaDxtTnNcCoy\nA::bob@big.example:rxtncy", True),
        ("A::OWNER@:rwaDxtTnNcCoy\nA::bob@big.example:rwaxtncy", False),
        ("A:fdi:bob@big.example:rwaxtncy\nD::bob@big.example:wa", True),
        ("A:g:staff@big.example:tncyC", False),
    ],
)
def test_lists_of_nfs(storage: Path, shell: list[str], entry: str, safe: bool) -> None:
    """With what nfs4_getfacl prints: the lab has no file system with such lists. getfacl knows only the mode there."""
    mode = "getfacl() { printf '%s\\n' user::rwx group::rwx other::---; }\n"
    nfs = f"nfs4_getfacl() {{ printf '%s\\n' '# file: x' '{entry}'; }}\n"
    (storage / "yurt").chmod(0o770)
    assert own(storage, shell, mode + nfs) == ("" if safe else "40 other users can write to yurt")


def test_links(storage: Path, shell: list[str], tmp_path: Path) -> None:
    (tmp_path / "disk").mkdir(mode=0o700)
    (storage / "yurt").rename(tmp_path / "disk" / "yurt")
    (storage / "yurt").symlink_to(tmp_path / "disk" / "yurt")
    assert own(storage, shell) == "", "the user's own link to another disk"
    (tmp_path / "disk").chmod(0o777)
    assert own(storage, shell).startswith("40 other users can replace folders in")
    (tmp_path / "disk").chmod(0o700)
    runs = tmp_path / "disk" / BELOW[-1]
    runs.rename(tmp_path / "elsewhere")
    runs.symlink_to(tmp_path / "elsewhere")
    assert own(storage, shell) == f"41 {BELOW[-1]} is a symbolic link"
    shutil.rmtree(tmp_path / "disk")
    assert own(storage, shell) == "41 yurt is a symbolic link to a folder that does not exist"


@needs_root
def test_a_link_of_another_user(storage: Path, shell: list[str], tmp_path: Path) -> None:
    (storage / "yurt").rename(tmp_path / "moved")
    (storage / "yurt").symlink_to(tmp_path / "moved")
    os.chown(storage / "yurt", SOMEONE, SOMEONE, follow_symlinks=False)
    assert own(storage, shell) == "41 yurt is a symbolic link of another user"


def refused(done: Called, why: str) -> None:
    assert done.code == 5 and why in done.err and "storage_dir" in done.err, done


@needs_root
def test_every_command_on_this_machine(user: User) -> None:
    ended = user("--json", "run", "--wait", "true").json["data"]["run"]["id"]
    running = user("--json", "run", "sleep", "600").json["data"]["run"]["id"]
    projects = user.home / "data" / "projects"
    os.chown(projects, SOMEONE, SOMEONE)
    try:
        for words in (
            ["run", "true"],
            ["fetch", ended],
            ["cancel", running],
            ["prune", ended, "--yes"],
        ):
            done = user(*words)
            assert done.code == 5 and " belongs to another user" in done.out + done.err, done
        assert "belongs to another user" in user("logs", running).err
        assert user("shell", running, "--", "true").code != 0
    finally:
        os.chown(projects, 0, 0)
    assert user("cancel", running).code == 0


class OpenScratch:
    """A folder on the scratch of alpha that everybody may write to, as the storage of alice's runs."""

    def __init__(self, lab: Lab, laptop: Laptop) -> None:
        self.lab, self.laptop, self.ssh = lab, laptop, Ssh(lab)
        self.path = f"/lustre/scratch/open-{laptop.home.parent.name}"
        self.admin(f"mkdir -m 1777 {self.path}")
        contexts = laptop.home / "config" / "contexts.yaml"
        contexts.write_text(contexts.read_text().replace("/lustre/scratch/alice", self.path))
        laptop("context", "probe", "alpha")

    def admin(self, command: str) -> None:
        login = self.lab.cluster("alpha").pid(self.lab.cluster("alpha").spec.login.name)
        subprocess.run(inside(login, ["sh", "-c", command]), check=True, timeout=60)

    def bob(self, command: str) -> str:
        return self.ssh("alpha", f"cd {self.path} && {command}", user="bob")


@pytest.fixture
def scratch(lab: Lab, laptop: Laptop) -> Iterator[OpenScratch]:
    made = OpenScratch(lab, laptop)
    yield made
    made.admin(f"rm -rf {made.path}")


@pytest.mark.lab
def test_bob_made_the_folder_first(scratch: OpenScratch) -> None:
    laptop = scratch.laptop
    scratch.bob("mkdir -m 777 yurt")
    refused(laptop("--context", "alpha", "run", "true"), "/yurt belongs to another user")
    assert laptop("ps", "--json").json["data"] == [], "nothing is saved"
    assert scratch.bob("ls -A yurt") == "", "nothing was written to it"
    scratch.bob("rmdir yurt && ln -s /home/bob yurt")
    refused(laptop("--context", "alpha", "run", "true"), "/yurt is a symbolic link of another user")
    scratch.bob("rm yurt")
    run = laptop.run("alpha", "true")["run"]["id"]
    assert laptop.ended(run)["state"] == "completed", "a scratch with the sticky bit is safe"


@pytest.mark.lab
def test_bob_is_on_the_access_control_list(scratch: OpenScratch) -> None:
    """The folder is alice's, and so is its group, of which she is the only member."""
    laptop = scratch.laptop
    scratch.admin(f"chown alice:alice {scratch.path} && chmod 770 {scratch.path}")
    run = laptop.run("alpha", "true")["run"]["id"]
    assert laptop.ended(run)["state"] == "completed"
    scratch.admin(f"setfacl -m u:bob:rwx {scratch.path}")
    scratch.bob("mv yurt old && mkdir -p yurt && rmdir yurt && mv old yurt")  # he can replace it
    said = laptop("--context", "alpha", "run", "true")
    assert said.code == 5 and f"other users can replace folders in {scratch.path}" in said.err, said
    assert f"`chmod go-w {scratch.path}`" in said.err
    scratch.ssh("alpha", f"chmod go-w {scratch.path}")
    run = laptop.run("alpha", "true")["run"]["id"]
    assert laptop.ended(run)["state"] == "completed", "the mask keeps him out"
    assert "ermission denied" in scratch.bob("mv yurt old 2>&1 || :")


@pytest.mark.lab
@pytest.mark.slow
def test_bob_replaces_the_folder_while_the_job_waits(scratch: OpenScratch) -> None:
    """He copies the run, so that all of alice's paths exist, with a job.sh and data of his own."""
    laptop = scratch.laptop
    laptop.environment["YURT_CLOCKS"] = "slow=14 last_refresh=1 settling=2 resubmit=2 rest=0"
    run = laptop.run("alpha", "--sbatch-option", "hold", "true")["run"]
    scratch.admin(f"chmod 777 {scratch.path}")
    refused(laptop("--context", "alpha", "run", "true"), f"other users can replace folders in {scratch.path}")
    folder = run["folder"].removeprefix(f"{scratch.path}/")
    evil = f"echo evil >> {scratch.path}/ran"
    scratch.bob(
        f"mv yurt old && mkdir -p {folder} && printf '%s\\n' '{evil}' | tee {folder}/job.sh > {folder}/data"
        f" && chmod -R 777 yurt && touch ran && chmod 666 ran"
    )
    scratch.admin(f"chmod 1777 {scratch.path}")
    job = laptop("show", run["id"], "--json").json["data"]["status"]["job"]
    scratch.ssh("alpha", f"scontrol release {job}")
    refused(laptop("logs", run["id"]), "/yurt belongs to another user")
    eventually(lambda: not scratch.ssh("alpha", f"squeue -h -j {job} -t PENDING,RUNNING -o %T"))
    assert scratch.bob("cat ran") == "", "bob's code ran as alice"
    assert f"{scratch.path}/yurt belongs to another user, so this job does not start" in scratch.bob(
        f"cat {folder}/err.log"
    )
