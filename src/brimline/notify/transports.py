"""The transports of notices: terminal, desktop, webhook, command."""

import asyncio
import os
import shutil
import signal
import ssl
import stat
import sys
from base64 import b64encode
from collections.abc import Iterable, Sequence
from contextlib import suppress
from urllib.parse import SplitResult, unquote, urlsplit

from brimline._version import __version__
from brimline.errors import BrimlineError
from brimline.loopback import is_loopback
from brimline.observations import Pane
from brimline.tmux.pane import find_tty, remove_controls

WEBHOOK_TIMEOUT_S = 5.0
COMMAND_TIMEOUT_S = 10.0
MAX_SHOWN_CHARS = 500  # on a terminal or a desktop

APPLESCRIPT = (
    "on run argv",
    "display notification (item 2 of argv) with title (item 1 of argv)",
    "end run",
)

_WRITE = os.O_WRONLY | os.O_NOCTTY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC


class TransportFailed(BrimlineError):
    """A notice could not be sent."""


async def ring_terminal(pane: Pane, bell: bool, text: str | None) -> None:
    """Ring the bell of a pane's terminal and show a text; raises TransportFailed or OSError."""
    tty = await asyncio.to_thread(find_tty, pane)
    if tty is None:
        raise TransportFailed("the pane is gone")
    _write(tty, (b"\a" if bell else b"") + (b"" if text is None else osc9_sequence(text)))


def osc9_sequence(text: str) -> bytes:
    """Return the OSC 9 sequence that shows a text, wrapped so that tmux passes it on."""
    shown = " ".join(remove_controls(text).split())[:MAX_SHOWN_CHARS].encode("utf-8", "replace")
    return b"\x1bPtmux;\x1b\x1b]9;%b\x07\x1b\\" % shown


def _write(tty: str, data: bytes) -> None:
    """Write to a terminal of our user; raises TransportFailed or OSError."""
    handle = os.open(tty, _WRITE)
    try:
        status = os.fstat(handle)
        is_own = stat.S_ISCHR(status.st_mode) and status.st_uid == os.geteuid()
        if not is_own or not os.isatty(handle):
            raise TransportFailed(f"{tty} is not a terminal of this user")
        if os.write(handle, data) != len(data):
            raise TransportFailed(f"{tty} did not accept all of the notice")
    finally:
        os.close(handle)


async def show_on_desktop(title: str, text: str) -> None:
    """Show a desktop notification; raises TransportFailed or OSError."""
    words = [" ".join(remove_controls(part).split())[:MAX_SHOWN_CHARS] for part in (title, text)]
    if sys.platform == "darwin":
        await run_command(["osascript", *(w for line in APPLESCRIPT for w in ("-e", line)), *words])
    elif shutil.which("notify-send"):
        await run_command(["notify-send", "--app-name=Brimline", "--", *words])
    else:
        raise TransportFailed("notify-send is not installed")


async def run_command(
    command: Sequence[str], stdin: bytes = b"", timeout_s: float = COMMAND_TIMEOUT_S
) -> None:
    """Run a command; raises TransportFailed or OSError.

    After `timeout_s` it is killed with all that it started.
    """
    process = await asyncio.create_subprocess_exec(
        *command,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        async with asyncio.timeout(timeout_s):
            await process.communicate(stdin)
    except TimeoutError as error:
        raise TransportFailed(f"{command[0]} did not end within {timeout_s:g} s") from error
    finally:
        if process.returncode is None:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            await process.wait()
    if process.returncode:
        raise TransportFailed(f"{command[0]} exited with code {process.returncode}")


async def post_webhook(address: str, body: bytes, timeout_s: float = WEBHOOK_TIMEOUT_S) -> None:
    """Post JSON to a webhook; retry once; raises TransportFailed."""
    for is_last in (False, True):
        try:
            async with asyncio.timeout(timeout_s):
                status = await _post_once(urlsplit(address), body)
        except (OSError, TimeoutError, ValueError) as error:
            if is_last:
                raise TransportFailed(f"{type(error).__name__}: {error}") from error
            continue
        if 200 <= status < 300:
            return
        if is_last or status < 500:
            raise TransportFailed(f"the webhook answered with HTTP status {status}")


async def _post_once(url: SplitResult, body: bytes) -> int:
    """Return the HTTP status. Redirects are not followed: the notice is for this address only."""
    if url.scheme not in ("http", "https") or url.hostname is None:
        raise TransportFailed("expected an http or https address")
    proxy = find_proxy(url)
    reader, writer = await _connect(url if proxy is None else proxy)
    try:
        if proxy is not None and url.scheme == "https":
            await _open_tunnel(reader, writer, url, proxy)
        writer.write(_request(url, body, proxy))
        await writer.drain()
        return _parse_status(await reader.readline(), "webhook")
    finally:
        writer.close()


def find_proxy(url: SplitResult) -> SplitResult | None:
    """Return the proxy for an address, by the environment; raises TransportFailed.

    A loopback address has none.
    """
    from urllib.request import getproxies_environment, proxy_bypass  # slow to import

    address = getproxies_environment().get(url.scheme)
    if not address or is_loopback(url.hostname or "") or proxy_bypass(_host_port(url)):
        return None
    proxy = urlsplit(address if "://" in address else f"http://{address}")
    if proxy.scheme not in ("http", "https") or proxy.hostname is None:
        name = f"{url.scheme.upper()}_PROXY"
        raise TransportFailed(f"{name}: expected http://HOST:PORT: got a {proxy.scheme} address")
    return proxy


def _port(url: SplitResult) -> int:
    return url.port or (443 if url.scheme == "https" else 80)


def _host_port(url: SplitResult) -> str:
    host = url.hostname or ""
    return f"[{host}]:{_port(url)}" if ":" in host else f"{host}:{_port(url)}"


async def _connect(url: SplitResult) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    is_https = url.scheme == "https"
    return await asyncio.open_connection(url.hostname, _port(url), ssl=is_https or None)


async def _open_tunnel(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, url: SplitResult, proxy: SplitResult
) -> None:
    """Let a proxy connect to the address, and encrypt what follows; raises TransportFailed."""
    target = _host_port(url)
    lines = (f"CONNECT {target} HTTP/1.1", f"Host: {target}", *_proxy_credentials(proxy))
    writer.write(_head(lines))
    await writer.drain()
    status = _parse_status(await reader.readline(), "proxy")
    if status != 200:
        raise TransportFailed(f"the proxy answered with HTTP status {status}")
    while (await reader.readline()).strip():
        pass
    await writer.start_tls(ssl.create_default_context(), server_hostname=url.hostname)


def _parse_status(line: bytes, who: str) -> int:
    match line.split():
        case [version, status, *_] if version.startswith(b"HTTP/") and status.isdigit():
            return int(status)
        case _:
            raise TransportFailed(f"the {who} did not answer with HTTP")


def _request(url: SplitResult, body: bytes, proxy: SplitResult | None) -> bytes:
    host = url.netloc.rpartition("@")[2]
    target = (url.path or "/") + (f"?{url.query}" if url.query else "")
    lines = [
        f"Host: {host}",
        f"User-Agent: brimline/{__version__}",
        "Content-Type: application/json",
        f"Content-Length: {len(body)}",
        "Connection: close",
    ]
    if proxy is not None and url.scheme == "http":  # else the proxy sees only the tunnel
        target = f"http://{host}{target}"
        lines += _proxy_credentials(proxy)
    return _head((f"POST {target} HTTP/1.1", *lines)) + body


def _head(lines: Iterable[str]) -> bytes:
    return "".join(f"{remove_controls(line)}\r\n" for line in lines).encode() + b"\r\n"


def _proxy_credentials(proxy: SplitResult) -> list[str]:
    if proxy.username is None:
        return []
    user = f"{unquote(proxy.username)}:{unquote(proxy.password or '')}"
    return [f"Proxy-Authorization: Basic {b64encode(user.encode()).decode()}"]
