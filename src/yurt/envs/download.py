"""Downloads files with known SHA-256 into a folder, several at a time. A file is complete or absent.

Proxies and certificates are those of the environment, or those of pip's settings. User names and passwords are those of
the indexes and of ~/.netrc, and are only sent to their own hosts.
"""

from __future__ import annotations

import base64
import errno
import hashlib
import http.client
import os
import shutil
import ssl
import tempfile
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import BinaryIO
from urllib.parse import urlsplit, urlunsplit

from yurt import private
from yurt.envs.indexes import Settings, passwords
from yurt.envs.uv_config import origin
from yurt.errors import DownloadError, RefusedError, UserError, here_is_full
from yurt.model.site_words import count

AT_ONCE = 6
TRIES = 3
SILENCE = 60.0
"""Seconds without a byte after which a connection is lost."""

PIECE = 1 << 18
ASIDE = "part-"
"""The prefix of folders with incomplete files."""

DAY = 86400
LOST = (urllib.error.URLError, http.client.HTTPException, TimeoutError, ConnectionError)
"""Errors of a connection. Those of a disk are other kinds of OSError."""


class Downloader:
    """Downloads into `folder`. `passwords` are user names and passwords by origin."""

    def __init__(self, folder: Path, pip: Settings, passwords: Mapping[str, tuple[str, str]]) -> None:
        self._folder, self._passwords = folder, passwords
        self._stop = threading.Event()
        self._opener = _opener(pip, trusting=False)
        self._trusting = _opener(pip, trusting=True) if pip.trusted else self._opener
        self._trusted = pip.trusted

    def all(self, files: Sequence[tuple[str, str, str]]) -> Iterator[Path]:
        """Yield the path of each file (address or path, SHA-256, name) when it is complete.

        The first error ends all downloads. DownloadError: a host cannot be reached. UserError: the content is not
        the expected one. RefusedError: the disk is full.
        """
        private.make_folder(self._folder)
        self._remove_leftovers()
        with (
            tempfile.TemporaryDirectory(prefix=ASIDE, dir=self._folder) as aside,
            ThreadPoolExecutor(min(AT_ONCE, len(files) or 1)) as pool,
        ):
            waiting = [pool.submit(self._one, Path(aside), *file) for file in files]
            try:
                for each in as_completed(waiting):
                    yield each.result()
            except BaseException:
                self._stop.set()
                pool.shutdown(cancel_futures=True)
                raise

    def one(self, place: str) -> bytes:
        """Return the content of an address whose SHA-256 is not known. Errors as in `all`."""
        private.make_folder(self._folder)
        with tempfile.TemporaryDirectory(prefix=ASIDE, dir=self._folder) as aside:
            part = Path(aside) / "content"
            try:
                self._copy(place, part)
            except LOST as error:
                raise _unreachable(place, error) from None
            except OSError as error:
                raise _unwritable(self._folder, error) from None
            return part.read_bytes()

    def _one(self, aside: Path, place: str, sha256: str, name: str) -> Path:
        part = aside / sha256
        try:
            digest = self._copy(place, part)
        except LOST as error:
            raise _unreachable(place, error) from None
        except OSError as error:
            raise _unwritable(self._folder, error) from None
        if digest != sha256:
            raise UserError(
                f"the content of '{name}' does not match its hash",
                code="config-invalid",
                hint="if the index changed on purpose, resolve the packages again",
            )
        target = self._folder / sha256 / name
        private.make_folder(target.parent)
        part.rename(target)
        return target

    def _copy(self, place: str, part: Path) -> str:
        """Copy an address or a path to a file, with some retries; return the SHA-256."""
        attempt = 1
        while True:
            try:
                with self._open(place) as source:
                    return self._write(source, part)
            except LOST as error:
                refused = isinstance(error, urllib.error.HTTPError) and error.code < 500
                if refused or attempt == TRIES or self._stop.wait(0.3 * attempt):
                    raise
                attempt += 1

    def _open(self, place: str) -> BinaryIO:
        if "://" not in place:
            return Path(place).open("rb")
        parts = urlsplit(place)
        host = parts.netloc.rpartition("@")[2]
        request = urllib.request.Request(urlunsplit(parts._replace(netloc=host, fragment="")))
        if (login := self._login(place)) and parts.scheme in ("http", "https"):
            text = base64.b64encode(":".join(login).encode()).decode()
            request.add_unredirected_header("Authorization", f"Basic {text}")
        trusted = host in self._trusted or parts.hostname in self._trusted
        opened: BinaryIO = (self._trusting if trusted else self._opener).open(request, timeout=SILENCE)
        return opened

    def _login(self, place: str) -> tuple[str, str] | None:
        import netrc

        parts = urlsplit(place)
        if known := passwords([place]).get(origin(place)) or self._passwords.get(origin(place)):
            return known
        try:
            # Not `authenticators`: it returns the entry `default`, which is for no host in particular.
            found = netrc.netrc(os.environ.get("NETRC")).hosts.get(parts.hostname or "")
        except (OSError, netrc.NetrcParseError):
            return None
        return (found[0], found[2] or "") if found and parts.hostname != "default" else None

    def _write(self, source: BinaryIO, part: Path) -> str:
        digest, size = hashlib.sha256(), 0
        with open(part, "wb", opener=private.opener) as file:
            while piece := source.read(PIECE):
                if self._stop.is_set():
                    raise ConnectionError("interrupted")
                digest.update(piece)
                size += len(piece)
                file.write(piece)
            file.flush()
            os.fsync(file.fileno())
        headers = getattr(source, "headers", None) or {}
        if size < count(headers.get("Content-Length") or ""):
            raise ConnectionError("the connection was closed")
        return digest.hexdigest()

    def _remove_leftovers(self) -> None:
        """Remove what killed downloads left behind."""
        for each in self._folder.glob(f"{ASIDE}*"):
            try:
                if time.time() - each.stat().st_mtime > DAY:
                    shutil.rmtree(each, ignore_errors=True)
            except OSError:
                continue


def _opener(pip: Settings, *, trusting: bool) -> urllib.request.OpenerDirector:
    """Return an opener with pip's settings where the environment has none; `trusting` accepts any certificate."""

    context = ssl.create_default_context(cafile=os.environ.get("SSL_CERT_FILE") or pip.cert or None)
    if trusting:
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    proxies = urllib.request.getproxies() or ({"http": pip.proxy, "https": pip.proxy} if pip.proxy else {})
    return urllib.request.build_opener(
        urllib.request.HTTPSHandler(context=context), urllib.request.ProxyHandler(proxies)
    )


def _unreachable(place: str, error: Exception) -> DownloadError:
    host = urlsplit(place).hostname or place
    reason = getattr(error, "reason", None) or error
    return DownloadError(
        f"cannot download from {host}: {reason}", code="connection-lost", hint="check the connection, then try again"
    )


def _unwritable(folder: Path, error: OSError) -> RefusedError:
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return here_is_full(folder, str(error), hint="free some space, then try again")
    return RefusedError(
        f"cannot write {folder}: {error.strerror}", code="cannot-write", hint="check who owns the folder"
    )
