"""Write agent/resweep/domain/default_rules.py from rules/invalidation.yaml.

The rules are needed where a config is fingerprinted, inside the user's service, where nothing shall be read
from disk nor parsed. A test holds the two files equal.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "rules" / "invalidation.yaml"
TARGET = ROOT / "agent" / "resweep" / "domain" / "default_rules.py"
HEAD = '''"""The rules of rules/invalidation.yaml, which says what they mean and why.

Written by .ci/write_default_rules.py: change the YAML file, then run it.
"""

from __future__ import annotations

DEFAULT_RULES: dict[str, object] = '''


def literal(data: object) -> str:
    """Return data as a Python literal."""
    return json.dumps(data).replace(": true", ": True").replace(": false", ": False")


if __name__ == "__main__":
    TARGET.write_text(HEAD + literal(yaml.safe_load(SOURCE.read_text())) + "\n")
    subprocess.run([sys.executable, "-m", "ruff", "format", "--quiet", TARGET], check=True)  # noqa: S603
