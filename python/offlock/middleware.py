"""Marks each request of a web application, so that a trace's summary can name the endpoint that holds the lock.

A WSGI application, under gunicorn or another server that has a thread per request::

    application = offlock.middleware.WSGI(application)
    app.wsgi_app = offlock.middleware.WSGI(app.wsgi_app)  # Flask

An ASGI application, under uvicorn for example::

    app.add_middleware(offlock.middleware.ASGI)  # Starlette and FastAPI

A mark has the method and the route, ``GET /users/<int:id>``, if the framework tells the route (Flask, Bottle,
Starlette, FastAPI), otherwise the path with ``*`` in place of numbers and long identifiers, ``GET /users/*``. From
the hundredth name on, new ones are ``GET (other)``. Costs about a microsecond per request while no trace is running.
"""

from __future__ import annotations

import contextlib
import functools
import re
import sys
from collections.abc import Awaitable, Callable, Generator, Iterable, Iterator, MutableMapping
from contextvars import ContextVar
from typing import Any

from ._offlock import lock as _native

__all__ = ["ASGI", "WSGI"]

_MOST_NAMES = 100

_Environ = dict[str, Any]
_Scope = MutableMapping[str, Any]
_Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
_Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]

_VARIABLE = re.compile(r"(?<=/)(?:\d+|(?=[^/]*\d)[0-9a-fA-F-]{8,}|[^/]{41,})(?=/|$)")


class _Names:
    """The names of marks, a bounded number: paths come from clients."""

    def __init__(self) -> None:
        self._known: set[str] = set()

    def of(self, method: str, route: str | None, path: str) -> str:
        name = f"{method} {route or _VARIABLE.sub('*', path)}"
        if name not in self._known:
            if len(self._known) >= _MOST_NAMES:
                return f"{method} (other)" if method in _METHODS else "(other)"
            self._known.add(name)
        return name


_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})


class WSGI:
    """A WSGI application that marks the requests to another one.

    A mark lasts from the call until the server has taken the whole answer.
    """

    def __init__(self, app: Callable[[_Environ, Any], Iterable[bytes]]) -> None:
        self.app = app
        self._names = _Names()

    def __call__(self, environ: _Environ, start_response: Any) -> Iterable[bytes]:
        _native.mark_begin(environ["REQUEST_METHOD"])
        try:
            body = self.app(environ, start_response)
        except BaseException:
            self._end(environ)
            raise
        if isinstance(body, (list, tuple, environ.get("wsgi.file_wrapper", tuple))):
            self._end(environ)
            return body
        return _Body(body, lambda: self._end(environ))

    def _end(self, environ: _Environ) -> None:
        path = environ.get("SCRIPT_NAME", "") + environ.get("PATH_INFO", "")
        _native.mark_end(self._names.of(environ["REQUEST_METHOD"], _route_of_environ(environ), path))


def _route_of_environ(environ: _Environ) -> str | None:
    request = environ.get("werkzeug.request")  # Flask's
    rule = getattr(request, "url_rule", None) or environ.get("bottle.route")
    return getattr(rule, "rule", None)


class _Body:
    """An answer that is made while the server iterates over it."""

    def __init__(self, body: Iterable[bytes], end: Callable[[], None]) -> None:
        self._body = body
        self._end = end

    def __iter__(self) -> Iterator[bytes]:
        return iter(self._body)

    def close(self) -> None:
        end, self._end = self._end, _nothing  # once, even if a server closes twice
        try:
            if close := getattr(self._body, "close", None):
                close()
        finally:
            end()


def _nothing() -> None:
    pass


class ASGI:
    """An ASGI application that marks the requests to another one.

    Requests take turns on the thread of the event loop, so there is a mark for each stretch between two awaits that
    are not ready at once; their number is not that of the requests.

    What a request runs in a thread is marked there: by ``asyncio.to_thread`` and ``anyio.to_thread.run_sync``, with
    which Starlette and FastAPI run an endpoint that is not ``async``. The middleware replaces these two functions by
    ones that do that for a request, and otherwise only call the original. Other ways to a thread, such as Django's
    ``sync_to_async`` or an executor of the application, lose the mark: decorate the function with `offlock.lock.mark`.
    """

    def __init__(self, app: Callable[[_Scope, _Receive, _Send], Awaitable[None]]) -> None:
        self.app = app
        self._names = _Names()
        _mark_threads()

    async def __call__(self, scope: _Scope, receive: _Receive, send: _Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        request = _Request(scope, self._names)
        token = _current.set(request)
        try:
            await _Steps(self.app(scope, receive, send), request)
        finally:
            # A coroutine that nobody awaits any more may be closed in another context, which has not the token's value.
            with contextlib.suppress(ValueError):
                _current.reset(token)


class _Request:
    """A request to an ASGI application."""

    def __init__(self, scope: _Scope, names: _Names) -> None:
        self._scope = scope
        self._names = names

    def marked(self, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
        """Calls a function in a mark. Its name is known at the end, when the framework has found the route."""
        method = self._scope["method"]
        _native.mark_begin(method)
        try:
            return function(*args, **kwargs)
        finally:
            _native.mark_end(self._names.of(method, _route_of_scope(self._scope), self._scope["path"]))


_current: ContextVar[_Request | None] = ContextVar("offlock.middleware.request", default=None)
"""The request for which a task of an event loop works."""


def _mark_threads() -> None:
    """Makes what a request runs in a thread be marked, with each of these libraries that is loaded."""
    if _native.switched_off():
        return
    for module, name in (("asyncio", "to_thread"), ("anyio.to_thread", "run_sync")):
        home = sys.modules.get(module)
        original = getattr(home, name, None)
        if original and not hasattr(original, "marks_requests"):
            setattr(home, name, _marking(original))


def _marking(original: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
    @functools.wraps(original)
    async def to_thread(function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
        request = _current.get()
        if request is not None:
            function = functools.partial(request.marked, function)
        return await original(function, *args, **kwargs)

    to_thread.marks_requests = True  # type: ignore[attr-defined]
    return to_thread


class _Steps:
    """An awaitable that marks each step of another one."""

    def __init__(self, answer: Awaitable[None], request: _Request) -> None:
        self._steps: Any = answer.__await__()
        self._request = request

    def __await__(self) -> Generator[Any, Any, None]:
        step, argument = self._steps.send, None
        while True:
            try:
                awaited = self._request.marked(step, argument)
            except StopIteration:
                return
            try:
                step, argument = self._steps.send, (yield awaited)
            except GeneratorExit:
                self._steps.close()
                raise
            except BaseException as error:
                step, argument = self._steps.throw, error


def _route_of_scope(scope: _Scope) -> str | None:
    path = getattr(scope.get("route"), "path", None)
    return None if path is None else scope.get("root_path", "") + path
