"""The page docs/configuration.md, from the settings. `python -m resweep.serve.settings_page` prints it."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import Field, fields
from typing import Any

from resweep.serve.settings_sources import describe
from resweep.settings import Known, Settings, known

HEAD = """\
# Configuration

This page is made from the settings by `python -m resweep.serve.settings_page`.

The agent runs without any configuration: it listens on `127.0.0.1:9464`, keeps an SQLite file and a token in
its home folder, and reads the spool into which recorders of the same user write. Everything below is for when
that is not what you want.

## Where settings come from

1. `resweep.toml`, the nearest one from the current folder upward, or the file named by `--settings` or
   `RESWEEP_SETTINGS`. `resweep init MODULE:OBJECT` writes one. Paths in it are beside the file.
2. The environment: `RESWEEP_` and the name of the setting, with its section in between unless that is
   `agent` or `record`.
3. Flags of the command.

The later wins. An unknown name is an error that names the nearest known one; so is a variable that looks like
a slip of the pen. Variables of others are left alone, such as those that Kubernetes adds beside a Service
called `resweep`. `resweep doctor` shows every setting with its origin.

A home folder holds everything that one agent and its recorders share on one machine:

| file | what |
|---|---|
| `spool/` | batches that wait for the agent; `spool/bad/`: those that could not be read, with reasons |
| `resweep.db` | the store, with `-wal` and `-shm` beside it |
| `token` | the bearer token, where none was set; readable by its owner alone |
| `session_key` | the key that signs the cookies of the pages; without it everybody signs in anew |
| `agent.json` | the address on which the agent listens, for the commands |

Point recorders and agent at the same home with the variable `RESWEEP_HOME`, for instance on a volume:
recorders read the variable, not the setting of the file.

## Token

The API needs `Authorization: Bearer TOKEN`; the [pages](pages.md) ask for the token once and give a cookie.
Only `/healthz` needs neither. Set `RESWEEP_TOKEN` (or `agent.token`) to
choose it. On loopback an agent without one makes its own and keeps it in the home folder, where the commands
find it; on any other address it refuses to start. For Prometheus:

```yaml
scrape_configs:
  - job_name: resweep
    authorization:
      credentials_file: /path/to/token
    static_configs:
      - targets: ["127.0.0.1:9464"]
```

## Secrets

`token`, `secret` and `salt` belong in the environment. They are never shown, logged or stored.
"""
TAIL = """\
## [severities]

How loud each reason of a flag is, where the default does not suit: a reason and one of `notice`, `warning`,
`page`. The reasons are listed in docs/definitions.md.

```toml
[severities]
untuned = "warning"
k_mismatch = "page"
```

## Example

```toml
[agent]
listen = "127.0.0.1:9464"
home = "/var/lib/resweep"

[otlp]
endpoint = "http://127.0.0.1:4318/v1/metrics"
interval_s = 30

[webhook]
url = "https://ci.example.org/hooks/resweep"

[severities]
untuned = "warning"
```
"""


def render_markdown() -> str:
    """Return the whole page."""
    sections = (line for one in fields(Settings) if one.name != "severities" for line in _section(one))
    return "\n".join([HEAD, *sections, TAIL])


def _section(of: Field[Any]) -> Iterator[str]:
    kind: Any = of.default_factory
    yield f"## [{of.name}]\n\n{kind.__doc__}\n"
    yield "| setting | variable | takes | default | what it does |"
    yield "|---|---|---|---|---|"
    yield from (_row(one) for one in known() if one.section == of.name)
    yield ""


def _row(one: Known) -> str:
    cells = (f"`{one.name}`", f"`{one.variable}`", _takes(one), _default(one.default), one.doc)
    return f"| {' | '.join(cells)} |"


def _takes(one: Known) -> str:
    low = "" if one.low is None else f", at least {one.low:g}"
    high = "" if one.high is None else f", at most {one.high:g}"
    return f"{describe(one.type)}{low}{high}"


def _default(value: object) -> str:
    if value is None:
        return ""
    return f"`{str(value).lower() if isinstance(value, bool) else value}`"


if __name__ == "__main__":
    sys.stdout.write(render_markdown())
