"""Finds out whether the script of a spec file loads its parameters as mrunner passes them: from `--config FILE`.

Reads the files of the project that the command names, and those that they import. Nothing is executed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

MOST_FILES = 300
"""Files to read at most; scripts call get_configuration() themselves, or close by."""

LONGEST_PATH = 4096

_BETWEEN_PATHS = re.compile(r"[\s;&|<>()'\"=]+")
_PATH = re.compile(r".+\.py\b")
_MODULE = re.compile(r"-m\s+([\w.]+)")


def asks(words: Sequence[str], keys: Iterable[str], *, helpers: bool, python_path: str = "") -> bool:
    """Whether a command takes its parameters from `--config FILE`.

    It does if a file of it calls get_configuration(). With `helpers`, the spec file was made with those of mrunner, and
    a script with an option --config and with none of `keys` takes them so as well.
    """
    folders = [Path(), *(Path(each) for each in python_path.split(":") if each)]
    files = [*scripts(words, folders)]
    if any(_calls(text) for text in _texts(files, [*(file.parent for file in files), *folders])):
        return True
    options = [f"--{name}" for key in keys for name in (key, key.replace("_", "-"))]
    texts = [read_text(file) for file in files] if helpers else []
    return any(_names(text, "--config") and not any(_names(text, each) for each in options) for text in texts)


def _calls(text: str) -> bool:
    return re.search(r"\bget_configuration\b", text) is not None and ("mrunner" in text or _names(text, "--config"))


def _names(text: str, option: str) -> bool:
    return f'"{option}"' in text or f"'{option}'" in text


def scripts(words: Sequence[str], folders: Sequence[Path]) -> Iterator[Path]:
    """Yield the Python files that a command names, as paths or as modules in these folders."""
    line = " ".join(words)
    for piece in _BETWEEN_PATHS.split(line):
        found = _PATH.match(piece) if len(piece) <= LONGEST_PATH else None
        if found is not None and Path(found[0]).is_file():
            yield Path(found[0])
    for name in _MODULE.findall(line):
        yield from _modules([name], folders)


def _texts(scripts: Sequence[Path], folders: Sequence[Path]) -> Iterator[str]:
    """Yield the text of the scripts and of everything in the project that they import."""
    known, todo = set[Path](), list(scripts)
    while todo and len(known) < MOST_FILES:
        file = todo.pop(0)
        if file in known:
            continue
        known.add(file)
        text = read_text(file)
        yield text
        todo += _modules(_imports(text), [file.parent, *folders])


def _imports(text: str) -> list[str]:
    """Return the names of the modules that a text may import; a name from a module may be a module itself."""
    import ast

    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return []
    found: list[str] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found += [each.name for each in node.names]
        elif isinstance(node, ast.ImportFrom):
            module = node.module or ""
            found += [module] if module else []
            found += [f"{module}.{each.name}".strip(".") for each in node.names]
    return found


def _modules(names: Iterable[str], folders: Sequence[Path]) -> list[Path]:
    """Return the files of modules, each from the first folder that has it."""
    found: list[Path] = []
    for name in names:
        path = name.replace(".", "/")
        places = (folder / f"{path}{end}" for folder in folders for end in (".py", "/__init__.py", "/__main__.py"))
        found += [file for file in places if file.is_file()][:1]
    return found


def read_text(file: Path) -> str:
    """Return the start of a script; empty if it cannot be read."""
    try:
        with file.open(encoding="utf-8", errors="replace") as stream:
            return stream.read(1 << 20)
    except OSError:
        return ""


def is_spec(file: Path) -> bool:
    """Whether a file is a spec file of mrunner, and not a script."""
    text = read_text(file)
    if "mrunner" not in text or "__main__" in text or _calls(text):
        return False
    return bool({"mrunner.helpers.specification_helper", "mrunner.experiment"}.intersection(_imports(text)))
