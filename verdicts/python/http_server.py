"""The standard library's server with a thread for each connection: /hello is light, /report computes."""

import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from work import compute

from offlock import lock


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        with lock.mark(f"GET {self.path}"):
            compute(0.04 if self.path == "/report" else 0.0001)
            self.send_response(200)
            self.send_header("Content-Length", "2")
            self.end_headers()
            self.wfile.write(b"ok")

    def log_message(self, *_: object) -> None:
        """Writes no log."""


server = ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler)
server.daemon_threads = True
server.serve_forever()
