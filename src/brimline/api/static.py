"""The static files of the dashboard."""

from collections.abc import Mapping
from pathlib import Path

from starlette.requests import Request
from starlette.responses import FileResponse, Response
from starlette.routing import Route

from brimline.api.responses import RequestRefused

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
SIGN_IN_POLICY = "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'"
SIGN_IN_HEADERS = HEADERS | {
    "content-security-policy": SIGN_IN_POLICY,
    "cache-control": "no-store",
}
PLAIN_PAGE = """<!doctype html>
<html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>Brimline</title>
<style>
:root { color-scheme: light dark; }
body { font: 16px/1.6 system-ui, sans-serif; max-width: 34rem; margin: 18vh auto 0;
       padding: 0 1.5rem; }
h1 { font-size: 1.25rem; margin: 0 0 .75rem; }
pre { font: 15px/1.4 ui-monospace, monospace; padding: .75rem 1rem; border-radius: .5rem;
      background: color-mix(in srgb, currentColor 8%, transparent); }
p.quiet { opacity: .7; font-size: .875rem; }
a { color: inherit; }
input, button { font: inherit; padding: .4rem .6rem; }
input { width: 100%; box-sizing: border-box; margin: .25rem 0 .75rem; }
</style>
{content}
</html>
"""
SIGN_IN_CONTENT = """<h1>Brimline is running, but this browser is not signed in</h1>
<p>{reason} Open the page from a terminal of the same user:</p>
<pre>brimline open</pre>
<p class="quiet">The command makes a link that works once. Your browser then stays signed in for 30
days.</p>"""
NOT_SIGNED_IN = "Only the user who runs the daemon may see its sessions."
USED_LINK = "This link has been used, or is older than an hour."
FOREVER = "public, max-age=31536000, immutable"  # names contain a hash of the content


def sign_in_response(reason: str = NOT_SIGNED_IN) -> Response:
    """Return the page that says how to open the dashboard."""
    return plain_page(SIGN_IN_CONTENT.replace("{reason}", reason), 401)


def plain_page(content: str, status: int, headers: Mapping[str, str] = SIGN_IN_HEADERS) -> Response:
    """Return a page of a few words, which needs no other file."""
    return Response(PLAIN_PAGE.replace("{content}", content), status, headers, "text/html")


def page_routes() -> list[Route]:
    """Return the routes of the page and its assets."""
    files = {
        path.relative_to(FOLDER).as_posix(): path for path in FOLDER.rglob("*") if path.is_file()
    }

    def serve(name: str, caching: str) -> Response:
        if name not in files:
            hint = "Brimline was built without the page: run `make page`."
            raise RequestRefused(404, f"no file {name!r}", None if files else hint)
        return FileResponse(files[name], headers={**HEADERS, "cache-control": caching})

    async def index(request: Request) -> Response:
        return serve(INDEX, "no-cache")

    async def asset(request: Request) -> Response:
        return serve(f"assets/{request.path_params['name']}", FOREVER)

    return [Route("/", index), Route("/assets/{name}", asset)]
