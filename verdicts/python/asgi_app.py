"""A Starlette application: /hello is light, /report computes in a thread, as endpoints that are not async do."""

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route
from work import compute

from offlock.middleware import ASGI


async def hello(_: Request) -> Response:
    compute(0.0001)
    return PlainTextResponse("ok")


def report(_: Request) -> Response:
    compute(0.04)
    return PlainTextResponse("ok")


app = ASGI(Starlette(routes=[Route("/hello", hello), Route("/report", report)]))
