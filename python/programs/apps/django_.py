"""Django compresses answers, whole ones and streams."""

import gzip

import django
from django.conf import settings
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.middleware.gzip import GZipMiddleware

settings.configure()
django.setup()
TEXT = "The quick brown fox jumps over the lazy dog. " * 400


def whole(_: HttpRequest) -> HttpResponse:
    return HttpResponse(TEXT)


def stream(_: HttpRequest) -> StreamingHttpResponse:
    return StreamingHttpResponse(TEXT[start : start + 1000] for start in range(0, len(TEXT), 1000))


def main() -> None:
    request = HttpRequest()
    request.META["HTTP_ACCEPT_ENCODING"] = "gzip"
    answer = GZipMiddleware(whole)(request)
    assert answer["Content-Encoding"] == "gzip"
    assert gzip.decompress(answer.content).decode() == TEXT
    assert len(answer.content) < len(TEXT) / 10
    pieces = list(GZipMiddleware(stream)(request))
    assert gzip.decompress(b"".join(pieces)).decode() == TEXT
