"""Generates the reference page of site profiles: every key, from the struct of a profile."""

from __future__ import annotations

from tools.reference import envelopes
from yurt.model.profile import SAFE_KEYS, Profile

INTRODUCTION = """\
# Site profiles

A site profile is a YAML file with what is publicly known about a cluster. [How to write, use and correct
one](../how-to/site-profiles.md). `name`, `title` and at least one entry of `sources` are required; leave out what you
cannot prove with a source. `base: NAME` takes over everything else from a profile that comes with yurt; the sources of
both count. A profile with an unknown key is not used. Its size is limited to 64 KB.

A login node belongs to the site if its name matches one of `hosts`. `*` stands for any text and must be followed by at
least two words of the name: `*.big.example`. A site is also recognised by a probe if `clusters` and `marks` all match.

"""


def page() -> str:
    text = INTRODUCTION
    _data, found = envelopes.schema_of(Profile)
    for name in ("Profile", *sorted(each for each in found if each != "Profile")):
        definition = found[name]
        text += "" if name == "Profile" else f"## {name}\n{definition['description']}\n\n"
        text += "| key | type | meaning |\n|---|---|---|\n"
        for key, each in definition["properties"].items():
            text += f"| `{key}` | {envelopes.type_of(each)} | {each['description']} |\n"
        text += "\n"
    keys = ", ".join(f"`{key}`" for key in SAFE_KEYS)
    return f"{text}## Keys of a context\n`context` may set: {keys}. See [contexts.yaml](contexts.md).\n"
