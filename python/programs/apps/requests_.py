"""requests decompresses answers."""

import requests
from serving import TEXT, server


def main() -> None:
    with server() as address, requests.Session() as session:
        for path in ("/gzip", "/deflate"):
            assert session.get(address + path).text == TEXT
        with session.get(f"{address}/gzip", stream=True) as answer:
            assert b"".join(answer.iter_content(500)).decode() == TEXT
        try:
            session.get(f"{address}/damaged")
        except requests.exceptions.ContentDecodingError:
            return
    raise AssertionError("a damaged answer was read")
