"""Requests to web applications are marked."""

from __future__ import annotations

import asyncio
import contextvars
import sys
import threading
from collections.abc import Callable, Iterator
from functools import partial
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from offlock import lock
from offlock.middleware import ASGI, WSGI


def marks(program: Callable[[], object]) -> dict[str, int]:
    """Returns the name and number of the marks of a program."""
    with lock.measure() as measured:
        program()
    assert measured.summary is not None
    return {mark["name"]: mark["count"] for mark in measured.summary.to_dict()["marks"]}


def get(app: Any, path: str, **environ: object) -> list[bytes]:
    body = app({"REQUEST_METHOD": "GET", "PATH_INFO": path, **environ}, lambda *_: None)
    try:
        return list(body)
    finally:
        if hasattr(body, "close"):
            body.close()


def test_a_wsgi_request_is_marked() -> None:
    app = WSGI(lambda _, start: start("200 OK", []) or [b"hello"])
    assert get(app, "/hello") == [b"hello"]
    assert marks(lambda: [get(app, "/hello"), get(app, "/hello"), get(app, "/")]) == {
        "GET /hello": 2,
        "GET /": 1,
    }


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("/users/17", "/users/*"),
        ("/users/17/posts/4", "/users/*/posts/*"),
        ("/v1/f81d4fae-7dec-11d0-a765-00a0c91e6bf6", "/v1/*"),
        ("/a/" + "x" * 41, "/a/*"),
        ("/v2/decade/feedface", "/v2/decade/feedface"),
        ("/report.csv", "/report.csv"),
    ],
)
def test_what_varies_in_a_path_is_left_out(path: str, name: str) -> None:
    app = WSGI(lambda *_: [])
    assert marks(lambda: get(app, path)) == {f"GET {name}": 1}


def test_the_frameworks_route_is_the_name() -> None:
    app = WSGI(lambda *_: [])
    flask = SimpleNamespace(url_rule=SimpleNamespace(rule="/users/<name>"))
    bottle = SimpleNamespace(rule="/posts/<id>")
    requests = [{"werkzeug.request": flask}, {"bottle.route": bottle}]
    assert marks(lambda: [get(app, "/any", **request) for request in requests]) == {
        "GET /users/<name>": 1,
        "GET /posts/<id>": 1,
    }


def test_clients_cannot_make_endless_names() -> None:
    app = WSGI(lambda *_: [])

    def program() -> None:
        for number in range(150):
            get(app, f"/page-{number}")
        get(app, "/page", REQUEST_METHOD="ODD")

    names = marks(program)
    assert names.pop("GET (other)") == 50
    assert names.pop("(other)") == 1
    assert len(names) == 100


def test_a_mark_lasts_until_a_lazy_answer_is_closed() -> None:
    def lazy() -> Iterator[bytes]:
        with lock.mark("inner"):
            yield b"a"
        yield b"b"

    app = WSGI(lambda *_: lazy())
    with lock.measure() as measured:
        assert get(app, "/lazy") == [b"a", b"b"]
        with lock.mark("afterwards"):
            pass
    assert measured.summary is not None
    totals = {mark["name"]: mark["total"] for mark in measured.summary.to_dict()["marks"]}
    assert totals.keys() == {"GET /lazy", "inner", "afterwards"}
    assert totals["GET /lazy"] >= totals["inner"]


def test_an_error_ends_the_mark() -> None:
    def broken(*_: object) -> list[bytes]:
        raise ValueError("broken")

    def program() -> None:
        with pytest.raises(ValueError, match="broken"):
            get(WSGI(broken), "/broken")

    assert marks(program) == {"GET /broken": 1}


def request(app: Any, path: str, **scope: object) -> Any:
    async def receive() -> dict[str, str]:
        return {"type": "http.request"}

    async def send(_: object) -> None: ...

    return app({"type": "http", "method": "GET", "path": path, **scope}, receive, send)


def test_each_step_of_an_asgi_request_is_marked() -> None:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        await receive()  # ready at once
        await asyncio.sleep(0)
        scope["route"] = SimpleNamespace(path="/users/{name}")
        await asyncio.sleep(0)
        await send({})

    async def both() -> None:
        marked = ASGI(app)
        await asyncio.gather(request(marked, "/users/a"), request(marked, "/users/b", root_path="/api"))

    assert marks(lambda: asyncio.run(both())) == {
        "GET /users/a": 1,
        "GET /users/b": 1,
        "GET /users/{name}": 2,
        "GET /api/users/{name}": 2,
    }


def test_what_an_asgi_request_runs_in_a_thread_is_marked(monkeypatch: pytest.MonkeyPatch) -> None:
    async def run_sync(function: Callable[..., Any], *args: Any, limiter: int) -> Any:
        """As anyio's, whose keywords are its own."""
        return await asyncio.get_running_loop().run_in_executor(None, partial(function, *args)), limiter

    anyio = ModuleType("anyio.to_thread")
    anyio.run_sync = run_sync  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "anyio.to_thread", anyio)
    monkeypatch.setattr(asyncio, "to_thread", asyncio.to_thread)
    seen: list[object] = []
    awaited = threading.Event()

    def thread_may_end_once_the_task_waits() -> None:
        """Otherwise the result may be there before it is awaited, and the step goes on."""
        awaited.clear()
        asyncio.get_running_loop().call_soon(awaited.set)

    def report(*args: object, **kwargs: object) -> int:
        assert awaited.wait(10)
        seen.append((args, kwargs, threading.current_thread() is threading.main_thread()))
        return 7

    def broken() -> None:
        assert awaited.wait(10)
        raise KeyError("broken")

    async def app(scope: Any, *_: object) -> None:
        scope["route"] = SimpleNamespace(path="/report/{id}")
        thread_may_end_once_the_task_waits()
        seen.append(await asyncio.to_thread(report, 1, function=2))
        thread_may_end_once_the_task_waits()
        seen.append(await anyio.run_sync(report, 3, limiter=9))
        thread_may_end_once_the_task_waits()
        with pytest.raises(KeyError):
            await asyncio.to_thread(broken)

    async def program() -> None:
        await request(ASGI(ASGI(app)), "/report/1")
        seen.append(await asyncio.to_thread(report))  # outside of a request

    counts = marks(lambda: asyncio.run(program()))
    expected = [((1,), {"function": 2}, False), 7, ((3,), {}, False), (7, 9), ((), {}, False), 7]
    assert seen == expected
    assert set(counts) == {"GET /report/{id}"}
    # Three calls in threads, and the steps between them, once for each of the two middlewares.
    assert counts["GET /report/{id}"] == 3 + 2 * 4


def test_an_asgi_application_sees_errors_and_cancellation() -> None:
    seen = []

    async def app(*_: object) -> None:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            seen.append("cancelled")
            await asyncio.sleep(0)
            raise KeyError("after it") from None

    async def cancel() -> None:
        task = asyncio.ensure_future(request(ASGI(app), "/slow"))
        await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(KeyError):
            await task

    assert marks(lambda: asyncio.run(cancel())) == {"GET /slow": 3}
    assert seen == ["cancelled"]


def test_an_asgi_request_may_be_closed_in_another_context() -> None:
    async def app(*_: object) -> None:
        await asyncio.sleep(60)

    async def program() -> None:
        coroutine = request(ASGI(app), "/")
        contextvars.copy_context().run(coroutine.send, None)
        coroutine.close()

    assert marks(lambda: asyncio.run(program())) == {"GET /": 1}


def test_other_events_of_asgi_pass_unmarked() -> None:
    async def app(scope: Any, *_: object) -> None:
        scope["seen"] = True

    scope = {"type": "lifespan"}
    assert marks(lambda: asyncio.run(ASGI(app)(scope, None, None))) == {}  # type: ignore[arg-type]
    assert scope["seen"]
