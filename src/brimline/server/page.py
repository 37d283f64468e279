"""The dashboard: one page, its script and its style, as they were built into the package."""

from pathlib import Path

from starlette.requests import Request
from starlette.responses import FileResponse, Response
from starlette.routing import Route

from brimline.server.answers import Refused

FOLDER = Path(__file__).with_name("page")
INDEX = "index.html"
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; font-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'"
)
HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
}
FOREVER = "public, max-age=31536000, immutable"
"""What has its hash in its name never changes."""


class Page:
    """Serves what is in a folder, and nothing else."""

    def __init__(self, folder: Path = FOLDER) -> None:
        self._files = {
            path.relative_to(folder).as_posix(): path
            for path in sorted(folder.rglob("*"))
            if path.is_file()
        }

    def routes(self) -> list[Route]:
        """The page at `/`, its parts below `/assets`."""
        return [Route("/", self.index), Route("/assets/{name}", self.asset)]

    async def index(self, request: Request) -> Response:
        """The page itself."""
        return self._file(INDEX, "no-cache")

    async def asset(self, request: Request) -> Response:
        """A part of it."""
        return self._file(f"assets/{request.path_params['name']}", FOREVER)

    def _file(self, name: str, cached: str) -> Response:
        path = self._files.get(name)
        if path is None:
            hint = "This Brimline was built without its page: `make page` builds it."
            raise Refused(404, f"no file {name!r}", None if self._files else hint)
        return FileResponse(path, headers={**HEADERS, "cache-control": cached})
