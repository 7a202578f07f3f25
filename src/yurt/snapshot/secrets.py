"""Recognises files that look like secrets, by name or content, so that they stay out of snapshots. Pure."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable

_NAMES = (
    rb"(?:\.netrc|_netrc|\.pgpass|\.my\.cnf|\.git-credentials|\.pypirc|\.npmrc|\.s3cfg|\.boto|\.databrickscfg"
    rb"|\.env|\.env\.(?!example|sample|template|dist)[^/\0]*|rclone\.conf|\.modal\.toml"
    rb"|\.vault-token|\.comet\.config|kubeconfig|[^/\0]*\.kubeconfig|application_default_credentials\.json"
    rb"|[^/\0]*\.(?:pem|p12|pfx|ppk|keytab))"
)
_FOLDERS = (
    rb"(?:\.docker/config\.json|\.config/containers/auth\.json|\.config/(?:git/credentials|hub)|\.cargo/credentials(?:\.toml)?"
    rb"|\.claude/\.credentials\.json|\.codex/auth\.json|\.gem/credentials|\.kaggle/(?:kaggle\.json|access_token)|\.terraform\.d/credentials\.tfrc\.json"
    rb"|(?:\.huggingface|\.cache/huggingface)/(?:stored_tokens|token)"
    rb"|\.(?:ssh|gnupg|aws|azure|oci|kube|password-store|config/(?:gcloud|gh|github-copilot|hub|glab-cli|wandb|rclone|sops)"
    rb"|local/share/keyrings)/[^\0]*)"
)
_BY_NAME = rb"[\0/](?:" + _NAMES + rb"|" + _FOLDERS + rb")(?=\0)"
_IN_NAMES = (
    b"netrc\0 .pgpass\0 .my.cnf\0 .git-credentials\0 .pypirc\0 .npmrc\0 .s3cfg\0 .boto\0 .databrickscfg\0 rclone.conf\0"
    b" .env .modal.toml\0 .vault-token\0 kubeconfig\0 _credentials.json\0 .pem\0 .p12\0 .pfx\0 .ppk\0 .keytab\0"
    b" .docker/ .ssh/ .gnupg/ .aws/ .azure/ .oci/ .kube/ .config/ .cargo/ .gem/ .kaggle/ .terraform.d/ huggingface/"
    b" .password-store/ .claude/ .codex/ .local/ .comet.config\0"
).split(b" ")
"""Parts of such names: every name that the pattern matches, and its end, contains one of them."""
# Only changed files are searched for these: re compiles them on first use.
_KEY = rb"-----BEGIN (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----"
_OTHER_KEYS = (b"PuTTY-User-Key-File-", b"AGE-SECRET-KEY-1")
_CLOUD_KEY = rb'"private_key"\s*:\s*"-----BEGIN '

LARGEST = 64 << 10
"""Keys are smaller than this."""


def by_name(names: Iterable[bytes]) -> set[bytes]:
    """Return the files whose names are those of credentials, environment files or keys."""
    joined = b"\0" + b"\0".join(names) + b"\0"
    found = set[bytes]()
    if not any(part in joined for part in _IN_NAMES):  # takes a tenth of the time of the pattern
        return found
    for hit in re.finditer(_BY_NAME, joined):
        found.add(joined[joined.rindex(b"\0", 0, hit.start() + 1) + 1 : joined.index(b"\0", hit.end())])
    return found


def is_path(path: str) -> bool:
    """Whether an absolute path is one of credentials or keys, or a folder of them."""
    name = os.fsencode(path)
    return bool(by_name([name, name + b"/any"]))


def is_certificate(name: bytes, content: bytes) -> bool:
    """Whether a .pem file contains certificates or public keys only."""
    return name.endswith(b".pem") and b"-----BEGIN " in content and not re.search(_KEY, content)


def by_content(content: bytes) -> bool:
    """Whether a file is a private key or the key of a cloud account. A program that contains such a text is not."""
    if len(content) > LARGEST:
        return False
    start = content[:200].lstrip(b"\xef\xbb\xbf \t\r\n")
    if start.startswith(b"-----BEGIN "):
        return bool(re.match(_KEY, start))
    return start.startswith(_OTHER_KEYS) or (start[:1] == b"{" and bool(re.search(_CLOUD_KEY, content)))
