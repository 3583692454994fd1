"""Templates and static files: rendered with everything escaped, sent under one strict policy."""

from __future__ import annotations

import hashlib
from functools import cache
from http import HTTPStatus
from pathlib import Path

from jinja2 import Environment, PackageLoader, StrictUndefined
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from resweep.serve.pages import words

STATIC = Path(__file__).parent / "static"
KINDS = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
YEAR_S = 365 * 86400


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("resweep.serve.pages"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(words.FILTERS)
    environment.globals["static"] = static_url
    environment.globals["EFFECTS"] = words.EFFECTS
    environment.globals["PEAKS"] = words.PEAKS
    return environment


def text_of(template: str, **values: object) -> str:
    """Return a template's text."""
    return _environment().get_template(template).render(values)


def page(template: str, status: int = HTTPStatus.OK, **values: object) -> Response:
    """Return a page, or a part of one."""
    return HTMLResponse(text_of(template, **values), status, headers={"content-security-policy": POLICY})


@cache
def _file(name: str) -> tuple[bytes, str]:
    body = (STATIC / name).read_bytes()
    return body, hashlib.sha256(body).hexdigest()[:12]


def static_url(name: str) -> str:
    """Return the address of a static file; it changes with the file, so that browsers may keep it."""
    return f"/static/{name}?v={_file(name)[1]}"


async def static_file(request: Request) -> Response:
    """Send a file of the package's own; nothing else is reachable."""
    name = request.path_params["name"]
    if name not in {path.name for path in STATIC.iterdir() if path.suffix in KINDS}:
        return Response(status_code=HTTPStatus.NOT_FOUND)
    body, digest = _file(name)
    lasting = request.query_params.get("v") == digest
    return Response(
        body,
        media_type=KINDS[Path(name).suffix],
        headers={"cache-control": f"public, max-age={YEAR_S}, immutable" if lasting else "no-cache"},
    )
