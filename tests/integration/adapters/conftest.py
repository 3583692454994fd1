"""These run in the environment of their own library alone (see test_record_adapters.py)."""

from __future__ import annotations

import os

if not os.environ.get("RESWEEP_ADAPTER"):
    collect_ignore_glob = ["test_*.py"]
