"""Runs popular programs with offlock's modules in place of the originals, which are made to fail."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
APPS = sorted((HERE / "apps").glob("*.py"), key=lambda path: path.stem)


@pytest.mark.parametrize("order", ["first", "after"])
@pytest.mark.parametrize("app", APPS, ids=[path.stem for path in APPS])
def test_it_runs(app: Path, order: str) -> None:
    paths = [str(HERE.parent), str(HERE)]
    result = subprocess.run(
        [sys.executable, str(HERE / "run.py"), order, str(app)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert (result.returncode, result.stderr) == (0, "")


def test_the_originals_fail_when_they_are_called(tmp_path: Path) -> None:
    app = tmp_path / "app.py"
    app.write_text(
        "import zlib\nkept = {'crc32': zlib.crc32, 'zlib': zlib}\ndef main(): kept['zlib'].crc32(b'')\n"
    )
    result = subprocess.run(
        [sys.executable, str(HERE / "run.py"), "after", str(app)],
        env={**os.environ, "PYTHONPATH": str(HERE.parent)},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert "the original was called" in result.stderr
