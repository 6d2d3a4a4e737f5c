"""Fixtures that several files of tests share."""

from __future__ import annotations

from pathlib import Path

import pytest

import offlock


@pytest.fixture
def socket_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of sockets in which the test is alone, with programs that find this package."""
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    monkeypatch.setenv("PYTHONPATH", str(Path(offlock.__file__).parents[1]))
    return tmp_path
