"""Serve pages beside a report that holds the lock, find the cause, replace one import, and measure again.

Usage: demo.py python|ruby --out FOLDER -- INTERPRETER [ARGUMENT ...]     (with offlock on its load path)
"""

from __future__ import annotations

import argparse
import asyncio
import difflib
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from load import Answers, load

HERE = Path(__file__).parent


@dataclass(frozen=True)
class Language:
    """How the demo serves the application of a language."""

    name: str
    source: str
    """The file with the application."""
    usual: str
    """The line that loads the usual library."""
    ours: str
    """The line that loads offlock's in its place."""
    library: str
    report_clients: int
    serve: tuple[str, ...]
    """The arguments of the interpreter, in which {port} and {source} are filled in."""
    offlock: tuple[str, ...]
    """The arguments of the interpreter that run the command `offlock`."""


PYTHON = Language(
    "python",
    "app.py",
    "import msgpack",
    "import offlock.msgpack as msgpack",
    "msgpack",
    2,
    ("-m", "uvicorn", "--port", "{port}", "--log-level", "warning", "--lifespan", "off", "app:app"),
    ("-m", "offlock"),
)
RUBY = Language(
    "ruby",
    "config.ru",
    'require "zlib"',
    'require "offlock/replace/zlib"',
    "Ruby's Zlib",
    4,
    ("-S", "puma", "--config", str(HERE / "puma.rb"), "--bind", "tcp://127.0.0.1:{port}", "{source}"),
    (str(HERE.parents[1] / "ruby/exe/offlock"),),
)


class Demo:
    """The demo in one language; everything that it writes goes to the folder `out`."""

    def __init__(self, language: Language, interpreter: list[str], out: Path, seconds: float) -> None:
        self.language, self.interpreter, self.out, self.seconds = language, interpreter, out, seconds

    def run(self) -> None:
        """Tell the whole story."""
        language = self.language
        usual = (HERE / language.source).read_text()
        ours = usual.replace(language.usual, language.ours)
        rows = {"no reports": self.measure("quiet", usual, 0)}
        rows[f"reports, {language.library}"] = self.measure("before", usual, language.report_clients)
        print(f"\n`offlock trace` says of the server with {language.library}:\n", flush=True)
        self.offlock("summary", str(self.trace("before")))
        print("\nSo one line is replaced:\n")
        print("".join(changed_lines(usual, ours)))
        rows["reports, offlock"] = self.measure("after", ours, language.report_clients)
        check_answers(list(rows.values())[1:])
        print_table(f"{language.name.capitalize()}, {os.cpu_count()} cores", rows)
        page = self.out / f"{language.name}.html"
        self.offlock(
            "compare", str(self.trace("before")), str(self.trace("after")), "--report", str(page), quiet=True
        )
        print(f"\nBefore and after, on one page: {page}", flush=True)

    def measure(self, name: str, source: str, report_clients: int) -> Answers:
        """Serve the application while clients send requests, with a trace of the lock."""
        folder = self.out / self.language.name / name
        folder.mkdir(parents=True, exist_ok=True)
        file = folder / self.language.source
        file.write_text(source)
        with self.serving(file, self.trace(name)) as port:
            return asyncio.run(load(port, self.seconds, report_clients))

    def trace(self, name: str) -> Path:
        """Return the path of a trace."""
        return self.out / self.language.name / f"{name}.offlock"

    @contextmanager
    def serving(self, source: Path, trace: Path) -> Iterator[int]:
        """Start the server with `offlock trace`, and stop it at the end."""
        port = free_port()
        served = [part.format(port=port, source=source) for part in self.language.serve]
        command = [*self.interpreter, *self.language.offlock, "trace", "--no-summary", "--output", str(trace)]
        server = subprocess.Popen([*command, "--", *self.interpreter, *served], cwd=source.parent)
        try:
            wait_for(port, server)
            yield port
        finally:
            server.send_signal(signal.SIGINT)
            server.wait(30)

    def offlock(self, *arguments: str, quiet: bool = False) -> None:
        """Run the command offlock."""
        output = subprocess.DEVNULL if quiet else None
        subprocess.run([*self.interpreter, *self.language.offlock, *arguments], check=True, stdout=output)


def changed_lines(before: str, after: str) -> Iterator[str]:
    """Yield the lines that differ, as in a diff."""
    lines = difflib.unified_diff(before.splitlines(True), after.splitlines(True), n=0)
    return (f"    {line}" for line in lines if re.match(r"[-+][^-+]", line))


def free_port() -> int:
    """Return a port that no server uses."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port: int = server.getsockname()[1]
        return port


def wait_for(port: int, server: subprocess.Popen[bytes]) -> None:
    """Wait until the server accepts connections."""
    for _ in range(600):
        if server.poll() is not None:
            sys.exit("demo: the server ended before it answered")
        try:
            socket.create_connection(("127.0.0.1", port)).close()
            return
        except ConnectionRefusedError:
            time.sleep(0.05)
    sys.exit("demo: the server does not answer")


def check_answers(measured: list[Answers]) -> None:
    """Exit unless all pages are the same, and all reports."""
    texts = set.union(*(answers.texts for answers in measured))
    if len(texts) != 2:
        sys.exit(f"demo: the answers differ: {texts}")


def print_table(title: str, rows: dict[str, Answers]) -> None:
    """Print how long pages took."""
    print(f"{title:<24}{'a page takes, ms':>36}{'pages':>10}{'reports':>10}")
    print(f"{'':<24}{'p50':>12}{'p99':>12}{'max':>12}{'a second':>10}{'a second':>10}")
    for name, answers in rows.items():
        late = "".join(f"{answers.percentile(share):>12.1f}" for share in (0.5, 0.99, 1.0))
        rates = [len(answers.pages) / answers.seconds, len(answers.reports) / answers.seconds]
        print(f"{name:<24}{late}" + "".join(f"{rate:>10.1f}" for rate in rates))


def main() -> None:
    """Run the demo in one language."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("language", choices=["python", "ruby"])
    parser.add_argument(
        "interpreter", nargs="+", help="the interpreter and its arguments, with offlock on its load path"
    )
    parser.add_argument("--out", type=Path, required=True, help="the folder for all results")
    parser.add_argument(
        "--seconds", type=float, default=8.0, help="length of a measurement (default: %(default)s)"
    )
    arguments = parser.parse_args()
    out = arguments.out.resolve()
    out.mkdir(parents=True, exist_ok=True)
    language = PYTHON if arguments.language == "python" else RUBY
    Demo(language, arguments.interpreter, out, arguments.seconds).run()


if __name__ == "__main__":
    main()
