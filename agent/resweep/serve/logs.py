"""Log entries on stderr: lines of text, or one JSON object each."""

from __future__ import annotations

import logging
import sys
from datetime import UTC, datetime
from typing import Literal

import msgspec


class JsonLines(logging.Formatter):
    """One JSON object an entry: ts (ISO 8601, UTC), level, logger, message, and error where there is one."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the entry."""
        entry = {
            "ts": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        if record.exc_info:
            entry["error"] = self.formatException(record.exc_info)
        return msgspec.json.encode(entry).decode()


def set_up(kind: Literal["plain", "json"], level: str) -> None:
    """Send what resweep logs to stderr; other libraries only from `warning` on."""
    handler = logging.StreamHandler(sys.stderr)
    plain = logging.Formatter("%(asctime)s %(levelname)-7s %(message)s", "%Y-%m-%dT%H:%M:%S")
    handler.setFormatter(JsonLines() if kind == "json" else plain)
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.WARNING)
    logging.getLogger("resweep").setLevel(level.upper())
    logging.getLogger("apscheduler").setLevel(logging.CRITICAL)  # our own runner says it better
