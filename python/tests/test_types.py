"""Checks the static types of calls whose result depends on their arguments: mypy checks this file, pytest runs it."""

from __future__ import annotations

import io
from pathlib import Path
from typing import assert_type

import offlock
from offlock import gzip


def test_the_mode_says_what_a_gzip_file_is(tmp_path: Path) -> None:
    path = tmp_path / "file.gz"
    with assert_type(gzip.open(path, "wt", encoding="utf-8"), io.TextIOWrapper) as text:
        text.write("text")
    with assert_type(gzip.open(path), gzip.GzipFile) as file:
        assert file.read() == b"text"
    mode = "".join(["r", "t"])
    with assert_type(gzip.open(path, mode), "gzip.GzipFile | io.TextIOWrapper") as either:
        assert either.read() == "text"
    with assert_type(gzip.open(io.BytesIO(path.read_bytes()), "rb", threads=2), gzip.GzipFile) as file:
        assert file.read() == b"text"


def test_replacing_is_a_call_and_a_context() -> None:
    with assert_type(offlock.replace("zlib"), offlock.Replacement) as replaced:
        assert_type(replaced, offlock.Replacement)
        assert replaced == ("zlib",)
