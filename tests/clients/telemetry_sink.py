"""Stores the OpenTelemetry requests of a client: `telemetry_sink.py FILE COMMAND...`.

Listens on OTLP's port on loopback while the command runs; each line of the file has the path, the
body and the header with the token. It imports nothing of ours, because it runs with the client's
environment.
"""

import base64
import gzip
import json
import subprocess
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

PORT = 4318
LAST_EXPORT_S = 1.0  # a client may end before its last request is answered


class Handler(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        body = self._chunks() if self.headers.get("transfer-encoding") else self._whole()
        if self.headers.get("content-encoding") == "gzip":
            body = gzip.decompress(body)
        line = {"path": self.path, "body": base64.b64encode(body).decode()}
        line["authorization"] = self.headers.get("authorization", "")
        with open(sys.argv[1], "a") as file:
            file.write(json.dumps(line) + "\n")
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", "2")
        self.end_headers()
        self.wfile.write(b"{}")

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
    threading.Thread(target=server.serve_forever, daemon=True).start()
    code = subprocess.call(sys.argv[2:])
    time.sleep(LAST_EXPORT_S)
    return code


if __name__ == "__main__":
    sys.exit(main())
