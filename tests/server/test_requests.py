"""Requests to a running daemon whose replies the quick tests check: status line, 413 and 503."""

import signal
import socket

import pytest

from .running import MAX_WAIT_S, Running
from .test_daemon import SESSION, status_input, stop_and_read_log


def test_status_line_uses_the_usage_not_the_percentage_of_the_client(
    shared_daemon: Running,
) -> None:
    line = shared_daemon.hook(status_input(90_000), "statusline", NO_COLOR="1")
    assert line.startswith("████░░░░░░ 45.0%* 90K/200K window | 77K to compaction")
    assert "* client says 1794714107%" in line
    assert "unknown, 200K window" in shared_daemon.hook(
        status_input(None), "statusline", NO_COLOR="1"
    )


@pytest.mark.parametrize(
    ("path", "most"),
    [(f"/v1/sessions/{SESSION}/messages", 1 << 20), ("/v1/events", 16 << 20),
     ("/hooks/claude", 4 << 20), ("/hooks/context-usage", 4 << 20)],
)  # fmt: skip
def test_body_over_the_limit_of_its_route_is_rejected_and_one_at_the_limit_read(
    shared_daemon: Running, path: str, most: int
) -> None:
    code, error = shared_daemon.refused(path, b" " * (most + 1))
    assert (code, error["hint"]) == (413, "Send less at a time.")
    assert f"more than {most:,} bytes" in error["error"]
    code, _ = shared_daemon.refused(path, b" " * most) if path != "/hooks/claude" else (422, None)
    assert code == 422
    assert shared_daemon.get("/healthz")["status"] == "ok"


def test_interrupt_during_a_request_answers_503_without_a_traceback(daemon: Running) -> None:
    with socket.create_connection(("127.0.0.1", daemon.port), MAX_WAIT_S) as asking:
        head = f"POST /v1/events HTTP/1.1\r\nHost: 127.0.0.1:{daemon.port}\r\n"
        head += f"Authorization: Bearer {daemon.secret}\r\nExpect: 100-continue\r\n"
        asking.sendall(f"{head}Content-Length: 9\r\n\r\n{{".encode())
        # The request is being read.
        assert asking.recv(4_096) == b"HTTP/1.1 100 Continue\r\n\r\n"
        text = stop_and_read_log(daemon, signal.SIGINT)
        assert asking.recv(4_096).startswith(b"HTTP/1.1 503")
    assert "Traceback" not in text
