"""The Python and the platform that an environment is made for, in the words of uv and pip. No I/O."""

from __future__ import annotations

import re

import msgspec

from yurt.errors import UserError

UV_GLIBC = (17, 28, 31, 32, 33, 34, 35, 36, 37, 38, 39, 40)
"""The minor versions of glibc 2 that uv accepts in `--python-platform`."""

UV_MANYLINUX = ("x86_64", "aarch64")
UV_OTHERS = {
    ("x86_64", "musl"): "x86_64-unknown-linux-musl",
    ("aarch64", "musl"): "aarch64-unknown-linux-musl",
    ("riscv64", "glibc"): "riscv64-unknown-linux",
}

OLD_NAMES = {17: "manylinux2014", 12: "manylinux2010", 5: "manylinux1"}
OLDEST = {"x86_64": 5, "i686": 5}
"""The oldest minor version of glibc 2 that wheels for a machine can require; 17 for all others."""


class Target(msgspec.Struct, frozen=True):
    """A Python such as `3.11.2`, a machine such as `x86_64`, and a C library such as `glibc 2.36` or `musl 1.2`."""

    python: str
    machine: str
    libc: str

    @property
    def python_version(self) -> str:
        """The Python version without its last part: `3.11`."""
        return ".".join(self.python.split(".")[:2])

    @property
    def libc_family(self) -> str:
        return self.libc.partition(" ")[0]

    @property
    def uv_platform(self) -> str:
        """The value of uv's `--python-platform`: the newest one that this platform supports. UserError if none."""
        other = UV_OTHERS.get((self.machine, self.libc_family))
        if other:
            return other
        minor = max((each for each in UV_GLIBC if each <= self._libc_minor), default=0)
        if self.libc_family != "glibc" or self.machine not in UV_MANYLINUX or not minor:
            raise UserError(
                f"uv cannot resolve packages for {self.machine} with {self.libc}",
                code="usage",
                hint="create a virtual environment on the site, and name it with `venv` of the context",
            )
        return f"{self.machine}-manylinux_2_{minor}"

    @property
    def pip_platforms(self) -> list[str]:
        """The platform tags of compatible wheels, newest first, as in pip's `--platform`."""
        if self.libc_family == "musl":
            tags = [f"musllinux_1_{minor}_{self.machine}" for minor in range(self._libc_minor, 0, -1)]
            return [*tags, f"linux_{self.machine}"]
        tags = []
        for minor in range(self._libc_minor, OLDEST.get(self.machine, 17) - 1, -1):
            tags.append(f"manylinux_2_{minor}_{self.machine}")
            if minor in OLD_NAMES:
                tags.append(f"{OLD_NAMES[minor]}_{self.machine}")
        return [*tags, f"linux_{self.machine}"]

    @property
    def markers(self) -> dict[str, str]:
        """The values of environment markers (PEP 508) on this platform."""
        return {
            "implementation_name": "cpython",
            "implementation_version": self.python,
            "os_name": "posix",
            "platform_machine": self.machine,
            "platform_python_implementation": "CPython",
            "platform_release": "",
            "platform_system": "Linux",
            "platform_version": "",
            "python_full_version": self.python,
            "python_version": self.python_version,
            "sys_platform": "linux",
            "extra": "",
        }

    def satisfies(self, specifier: str) -> bool:
        """Return whether the Python satisfies a specifier such as `>=3.9`; an empty one, always.

        ValueError for an invalid specifier.
        """
        if not specifier:
            return True
        from packaging.specifiers import SpecifierSet

        return SpecifierSet(specifier).contains(self.python, prereleases=True)

    @property
    def _libc_minor(self) -> int:
        """The minor version of the C library; 0 if the site did not tell."""
        found = re.search(r"\.(\d+)", self.libc)
        return int(found[1]) if found else 0
