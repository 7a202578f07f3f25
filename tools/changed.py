"""The tests of what changed against main, for `make test CHANGED=1`: chosen by names, imports and folders.

A changed file of tests runs itself. For any other changed file, these files of tests run, most telling first:

1. those of its name in its room: `tests/where/test_where*.py` for `src/yurt/where/where.py`,
   `tests/backends/test_profile*.py` for `src/yurt/backends/job/profile.sh`
2. those that import it, anywhere in the file; those that name it, if it is not a Python module
3. those of a module that imports or names it, if at most FEW modules do
4. those of its room, if more than FEW modules import it, if it is not a Python module, or if there are no others; a
   page's room is `tests/docs`
"""

from __future__ import annotations

import ast
import re
import subprocess
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path, PurePosixPath

FEW = 8
"""Most modules that may import a changed one for their tests to be chosen, too."""

REASONS = ("changed", "same name", "import or name it", "of a module that imports or names it", "same folder")


def base(root: Path) -> str:
    """Return the commit that a branch began at; on main, what is on origin; without either, the last commit but one."""
    mains = [] if git(root, "branch", "--show-current") == ["main"] else ["main"]
    known = [name for name in [*mains, "origin/main"] if git(root, "rev-parse", "-q", "--verify", name)]
    found = git(root, "merge-base", "HEAD", *known) if known else git(root, "rev-parse", "-q", "--verify", "HEAD~1")
    return found[0] if found else "HEAD"


def changed_since(root: Path, commit: str) -> list[str]:
    """Return the files that differ from a commit, whether committed or not, and new files that git does not ignore."""
    differ = git(root, "diff", "--name-only", "--no-renames", commit)
    return sorted({*differ, *git(root, "ls-files", "--others", "--exclude-standard")})


def git(root: Path, *words: str) -> list[str]:
    """Return the lines that git prints; none if it fails."""
    argv = ["git", "-C", str(root), "-c", "core.quotePath=false", *words]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    return done.stdout.splitlines()


class Tree:
    """The Python files of a checkout: what they import, and their tests."""

    def __init__(self, root: Path) -> None:
        self.root = root
        listed = git(root, "ls-files", "--cached", "--others", "--exclude-standard", "*.py")
        self.texts = {path: (root / path).read_text() for path in listed if (root / path).is_file()}
        self.tests = sorted(path for path in self.texts if is_test(path))
        self.imports: dict[str, set[str]] = {}

    def choose(self, changed: list[str]) -> dict[str, str]:
        """Return the files of tests to run and why each was chosen, most telling first."""
        steps = [self._steps(path) for path in changed]
        chosen: dict[str, str] = {}
        for number, reason in enumerate(REASONS):
            for found in steps:
                chosen.update({path: reason for path in found[number] if path not in chosen})
        return chosen

    def unmapped(self, path: str) -> bool:
        return not any(self._steps(path))

    def _steps(self, path: str) -> list[list[str]]:
        """Return the tests of a changed file by reason."""
        if is_test(path):
            return [[path] if path in self.texts else [], [], [], [], []]
        named, users = self.named(path), self.users(path)
        direct = [each for each in users if is_test(each)]
        between = [each for each in users if each.startswith("src/")]
        through: list[str] = []
        if len(between) <= FEW:
            for each in between:
                through += [*self.named(each), *filter(is_test, self.users(each))]
        enough = path.endswith(".py") and len(between) <= FEW and (named or direct or through)
        room = [] if enough else self.room(path)
        return [[], named, direct, through, room]

    def named(self, path: str) -> list[str]:
        """Return the tests with the name of a file, in its room."""
        name, room = PurePosixPath(path).stem, room_of(path)
        return [
            test
            for test in self.tests
            if room and room_of(test) == room and f"{PurePosixPath(test).stem}_".startswith(f"test_{name}_")
        ]

    def room(self, path: str) -> list[str]:
        """Return the tests in the folder that mirrors that of a file, or in the closest one above with tests."""
        folder = PurePosixPath(mirror(path)).parent
        while len(folder.parts) > 1:
            if found := [test for test in self.tests if PurePosixPath(test).is_relative_to(folder)]:
                return found
            folder = folder.parent
        return []

    def users(self, path: str) -> list[str]:
        """Return the files that import a module, or that contain the name of another file."""
        name = PurePosixPath(path).name
        if not path.endswith(".py"):
            word = re.compile(rf"(?<![\w.-]){re.escape(name)}(?![\w-])")
            return [each for each, text in self.texts.items() if name in text and word.search(text)]
        if name == "conftest.py":
            return self.room(path)
        module = module_of(path)
        package = f"from {module.rpartition('.')[0]} import"
        mention = (each for each, text in self.texts.items() if module in text or package in text)  # to parse few files
        return [each for each in mention if module in self._imported(each)]

    def _imported(self, path: str) -> set[str]:
        """Return the modules that a file imports, also inside functions. A name from a package may be one."""
        if path not in self.imports:
            found: set[str] = set()
            for node in ast.walk(parsed(self.texts[path])):
                if isinstance(node, ast.Import):
                    found.update(alias.name for alias in node.names)
                elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                    inside = {f"{node.module}.{alias.name}" for alias in node.names}
                    found |= inside if inside <= self._modules else {node.module, *inside}
            self.imports[path] = found
        return self.imports[path]

    @cached_property
    def _modules(self) -> set[str]:
        return {module_of(path) for path in self.texts}


def parsed(text: str) -> ast.Module:
    """Return the syntax tree of a file; an empty one if it is not Python, which the checks of changed files report."""
    try:
        return ast.parse(text)
    except SyntaxError:
        return ast.Module([], [])


def is_test(path: str) -> bool:
    return path.startswith("tests/") and PurePosixPath(path).match("test_*.py")


def module_of(path: str) -> str:
    return path.removeprefix("src/").removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def mirror(path: str) -> str:
    """Return where the tests of a file are: `tests/dev/x` for `src/yurt/dev/x`; pages at the top are docs."""
    if path.startswith("src/yurt/"):
        return f"tests/{path.removeprefix('src/yurt/')}"
    if path.endswith(".md"):
        return f"tests/docs/{path}"
    if path.startswith("tools/"):
        return f"tests/suite/{path.removeprefix('tools/')}"
    return path if path.startswith("tests/") else ""


def room_of(path: str) -> str:
    """Return the folder of tests with tests named like a file; empty if there is none."""
    parts = PurePosixPath(mirror(path)).parts
    return "" if not parts else parts[1] if len(parts) > 2 else "."


def lines(chosen: dict[str, str], most: int = 6) -> Iterator[str]:
    """Yield a line for each reason, with some of the files that were chosen for it."""
    for reason in REASONS:
        if found := [path for path, why in chosen.items() if why == reason]:
            more = f" and {len(found) - most} more" if len(found) > most else ""
            yield f"{reason} ({len(found)}): {' '.join(found[:most])}{more}"
