"""Decides what starts the container of a run: Apptainer or Singularity, or Pyxis, which is a part of srun. Pure."""

from __future__ import annotations

from yurt.model.facts import Facts

ENGINES = ("apptainer", "singularity")
SQUASHED = (".sqsh", ".squashfs")
"""Image files that Pyxis uses as they are."""


def pyxis_image(image: str, facts: Facts | None) -> str:
    """Return the image as Pyxis names it; empty if Apptainer or Singularity starts the container.

    A file is for Pyxis if its name says that it is a squashfs image, and a name with `#` is one of Pyxis. Images of a
    registry are for Pyxis if the site has no other engine.
    """
    if not image or facts is None or "pyxis" not in facts.tools:
        return ""
    if image.endswith(SQUASHED):
        return image if image.startswith(("/", "./")) else f"./{image}"  # else Pyxis takes it for one of a registry
    scheme, colon, _rest = image.partition("://")
    if image[0] in "/." or image.endswith(".sif") or (colon and scheme != "docker"):
        return ""
    name = image.removeprefix("docker://")
    if "#" in name:
        return name
    engines = {*facts.tools, *(facts.node.tools if facts.node is not None else ())}
    if engines.intersection(ENGINES):
        return ""
    name = name.removeprefix("index.docker.io/").removeprefix("docker.io/")
    host, slash, path = name.partition("/")
    is_host = slash and ("." in host or ":" in host or host == "localhost")
    return f"{host}#{path}" if is_host else name
