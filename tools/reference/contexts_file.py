"""Generates the reference page of contexts.yaml: every key, from the settings table."""

from __future__ import annotations

from yurt.model.context import Context, ContextResources
from yurt.model.settings import TABLE

INTRODUCTION = """\
# contexts.yaml

`contexts.yaml` is in `$YURT_CONFIG_HOME`, or in the platform's configuration folder (`~/.config/yurt` on Linux).

```yaml
contexts:
  alpha:
    type: slurm
    slurm_url: alice@alpha
current_context: alpha
```

The key of a context is its name: letters, digits, `.`, `_` and `-`, starting with a letter or a digit. `type` is
required; `slurm_url` is required for type `slurm`. The context `local` always exists and does not have to be in the
file.

mrunner files work unchanged: the column "other names" lists mrunner's names, and a mapping under `env` is read as
`variables`. A list can also be written as a space-separated string, and a mapping as a list or string of `key=value`
pairs. Values are read literally, so `12:00:00` and `0123` need no quotes. A time without a unit is in minutes; memory
without a unit is in MB. yurt accepts the keys of mrunner that it does not use, such as `google_project_id`,
`default_pvc_size` and `tpu`, and says so once. A context with errors does not affect the other contexts of the file.

"""


def page() -> str:
    table = {row.key: row for row in TABLE if row.key}
    keys = [*Context.__struct_fields__, *(f"resources.{key}" for key in ContextResources.__struct_fields__)]
    rows = "".join(
        f"| `{key}` | {table[key].about} | {', '.join(f'`{other}`' for other in table[key].aliases)} "
        f"| `{table[key].example}` |\n"
        for key in keys
    )
    return f"{INTRODUCTION}| key | meaning | other names | example |\n|---|---|---|---|\n{rows}"
