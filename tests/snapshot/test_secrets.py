"""Files that look like secrets stay out of snapshots, unless the user includes them; other files do not."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from yurt.snapshot import Snapshot, secrets, take

KEY = "-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXktdjEA\n-----END OPENSSH PRIVATE KEY-----\n"
CERTIFICATE = "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n"
SECRET = {
    ".env": "TOKEN=1\n",
    "sub/.env.production": "TOKEN=1\n",
    ".netrc": "machine x password y\n",
    ".aws/credentials": "[default]\n",
    "deploy/.kube/config": "apiVersion: v1\n",
    ".npmrc": "//x/:_authToken=y\n",
    ".oci/config": "[DEFAULT]\n",
    ".config/gh/hosts.yml": "oauth_token: x\n",
    ".config/wandb/settings": "[default]\n",
    "me/.cache/huggingface/token": "hf_x\n",
    ".cargo/credentials.toml": "[registry]\n",
    ".claude/.credentials.json": "{}\n",
    ".codex/auth.json": "{}\n",
    ".comet.config": "[comet]\n",
    ".config/github-copilot/hosts.json": "{}\n",
    ".config/hub": "x\n",
    ".local/share/keyrings/login.keyring": "x\n",
    ".docker/config.json": "{}\n",
    "kubeconfig": "apiVersion: v1\n",
    "server.pem": CERTIFICATE + KEY,
    "odd.pem": "not a certificate\n",
    "id_ed25519": KEY,
    "keys/robot": "\n-----BEGIN RSA PRIVATE KEY-----\nMIIE\n",
    "robot.json": '{"type": "service_account", "private_key": "-----BEGIN PRIVATE KEY-----\\nMIIE"}\n',
    "putty": "PuTTY-User-Key-File-2: ssh-rsa\n",
    "login.ppk": "PuTTY-User-Key-File-2: ssh-rsa\n",
}
PLAIN = {
    "train.py": f"KEY = '''{KEY}'''\n",
    ".env.example": "TOKEN=\n",
    "environment.yml": "name: x\n",
    "env/readme": "\n",
    "cacert.pem": CERTIFICATE,
    "id_ed25519.pub": "ssh-ed25519 AAAA alice\n",
    "kube/config": "x: 1\n",
    ".config/plots/style": "x\n",
    ".claude/settings.json": "{}\n",
    "huggingface/token": "x\n",
    "netrc": "\n",
    "data.json": '{"private_key_id": "x"}\n',
}


def project(folder: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


def names(snapshot: Snapshot) -> set[str]:
    argv = ["git", f"--git-dir={snapshot.store}", "ls-tree", "-r", "--name-only", snapshot.tree]
    return set(subprocess.run(argv, capture_output=True, text=True, check=True).stdout.splitlines())


@pytest.mark.parametrize("tracked", [False, True])
def test_secrets_are_left_out_and_named(tmp_path: Path, tracked: bool) -> None:
    root, store = project(tmp_path / "proj", SECRET | PLAIN), tmp_path / "store"
    if tracked:
        subprocess.run(["git", "init", "-q"], cwd=root, check=True)
        subprocess.run(["git", "add", "-f", "."], cwd=root, check=True)
    first = take(root, store)
    assert names(first) == set(PLAIN) and first.secrets == sorted(SECRET)
    again = take(root, store)
    assert again == first, "also if nothing is read again"


def test_what_the_user_includes_is_uploaded(tmp_path: Path) -> None:
    root, store = project(tmp_path / "proj", SECRET | PLAIN), tmp_path / "store"
    take(root, store)
    both = take(root, store, include=[".env", "id_*", "server.pem"])
    assert names(both) == {*PLAIN, ".env", "id_ed25519", "server.pem"}
    assert set(both.secrets) == set(SECRET) - {".env", "id_ed25519", "server.pem"}
    assert names(take(root, store)) == set(PLAIN), "only for the runs that include it"


def test_a_file_that_becomes_a_key(tmp_path: Path) -> None:
    root, store = project(tmp_path / "proj", {"train.py": "", "notes": "text\n"}), tmp_path / "store"
    assert names(take(root, store)) == {"train.py", "notes"}
    (root / "notes").write_text(KEY)
    found = take(root, store)
    assert names(found) == {"train.py"} and found.secrets == ["notes"]
    (root / "notes").write_text("text again\n")
    assert names(take(root, store)) == {"train.py", "notes"}


def test_names_of_many_files() -> None:
    many = [f"src/package/module{number}.py".encode() for number in range(50_000)]
    assert secrets.by_name([*many, b"a/.env", b".netrc", b"x.pem/readme"]) == {b"a/.env", b".netrc"}


@pytest.mark.parametrize(
    "name",
    [
        *(b".netrc", b"_netrc", b".pgpass", b".my.cnf", b".git-credentials", b".pypirc", b".env", b".env.local"),
        *(b".vault-token", b"kubeconfig", b"my.kubeconfig", b"application_default_credentials.json"),
        *(b"a.pem", b"a.p12", b"a.pfx", b"a.ppk", b"a.keytab", b".docker/config.json", b".ssh/config"),
        *(b".gnupg/ring", b".aws/config", b".azure/token", b".kube/config", b".config/gcloud/token"),
    ],
)
def test_each_name_alone(name: bytes) -> None:
    """No name depends on another one in the same project."""
    assert secrets.by_name([b"train.py", name]) == {name}
    assert secrets.by_name([b"train.py", b"a/" + name]) == {b"a/" + name}
