"""A WSGI application: /light answers at once, /computing computes for some milliseconds first."""

from __future__ import annotations

from typing import Any


def app(environ: dict[str, Any], start_response: Any) -> list[bytes]:
    """Answers with the sum of the squares below a number."""
    count = 30_000 if environ["PATH_INFO"] == "/computing" else 10
    body = str(sum(number * number for number in range(count))).encode()
    start_response("200 OK", [("content-type", "text/plain"), ("content-length", str(len(body)))])
    return [body]
