"""Stores the OpenTelemetry requests of a client: `telemetry_sink.py FILE SOCKET COMMAND...`.

Listens on OTLP's port on loopback while the command runs; each line of the file is a path, headers
and the body. A request is also passed on to a daemon's SOCKET, unless that is empty. It imports
nothing of ours, because it runs with the client's environment.
"""

import base64
import gzip
import http.client
import json
import select
import socket
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

PORT = 4318
MAX_WAIT_S = 60.0


class DaemonConnection(http.client.HTTPConnection):
    """HTTP over a Unix socket, which is open to a client without a network, too."""

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(MAX_WAIT_S)
        self.sock.connect(sys.argv[2])


class Handler(BaseHTTPRequestHandler):
    timeout = MAX_WAIT_S

    def do_POST(self) -> None:
        body = self._chunks() if self.headers.get("transfer-encoding") else self._whole()
        if self.headers.get("content-encoding") == "gzip":
            body = gzip.decompress(body)
        media = self.headers.get("content-type", "")
        line = {"path": self.path, "media": media, "body": base64.b64encode(body).decode()}
        line["authorization"] = self.headers.get("authorization", "")
        with open(sys.argv[1], "a") as file:
            file.write(json.dumps(line) + "\n")
        status, answer = self._pass_on(body, media) if sys.argv[2] else (200, b"{}")
        self.send_response(status)
        self.send_header("content-type", media)
        self.send_header("content-length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def _pass_on(self, body: bytes, media: str) -> tuple[int, bytes]:
        connection = DaemonConnection("brimline")
        connection.request("POST", self.path, body, {"content-type": media})
        response = connection.getresponse()
        return response.status, response.read()

    def _whole(self) -> bytes:
        return self.rfile.read(int(self.headers.get("content-length", 0)))

    def _chunks(self) -> bytes:
        chunks: list[bytes] = []
        while size := int(self.rfile.readline().strip(), 16):
            chunks.append(self.rfile.read(size))
            self.rfile.readline()
        self.rfile.readline()
        return b"".join(chunks)

    def log_message(self, format: str, *args: object) -> None:
        """Print nothing: standard error is the client's."""


def main() -> int:
    server = ThreadingHTTPServer(("127.0.0.1", PORT), Handler)
    server.daemon_threads = False
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    code = subprocess.call(sys.argv[3:])
    server.shutdown()
    # A client may end before its last requests are accepted and answered.
    while select.select([server], [], [], 0)[0]:
        server.handle_request()
    server.server_close()
    return code


if __name__ == "__main__":
    sys.exit(main())
