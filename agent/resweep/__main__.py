"""`python -m resweep` and the `resweep` command."""

from __future__ import annotations

import sys
from typing import NoReturn

_EXTRA = {"typer", "rich", "sqlalchemy", "alembic", "apscheduler", "starlette", "uvicorn", "httpx", "tomlkit"}


def main() -> NoReturn:
    """Run the command line; says what to install where only the recorder is."""
    try:
        from resweep.serve.cli.app import run
    except KeyboardInterrupt:
        sys.exit(130)
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in _EXTRA:
            raise
        sys.exit(_explain(error))
    sys.exit(run())


def _explain(error: ModuleNotFoundError) -> int:
    sys.stderr.write(
        f"resweep: expected the agent's parts to be installed; {error.name} is missing: "
        "pip install 'resweep[agent]'\n"
    )
    return 2


if __name__ == "__main__":
    main()
