"""A server with compressed answers, for programs that are clients."""

from __future__ import annotations

import contextlib
import gzip
import threading
import zlib
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

TEXT = "The quick brown fox jumps over the lazy dog. " * 400
BODIES = {
    "/gzip": lambda: ("gzip", gzip.compress(TEXT.encode())),
    "/deflate": lambda: ("deflate", zlib.compress(TEXT.encode())),
    "/damaged": lambda: ("gzip", gzip.compress(TEXT.encode())[:20] + b"\xff" * 40),
}


class Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        encoding, body = BODIES[self.path]()
        self.send_response(200)
        self.send_header("Content-Type", "text/plain; charset=utf-8")
        self.send_header("Content-Encoding", encoding)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Writes no log."""


@contextlib.contextmanager
def server() -> Iterator[str]:
    """Runs a server during the block, whose value is its address."""
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as running:
        threading.Thread(target=running.serve_forever, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{running.server_port}"
        finally:
            running.shutdown()
