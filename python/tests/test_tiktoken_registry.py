"""Tests encodings by name, plugins that add encodings, and vocabulary files."""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest
from reference import NAMES, ours

import offlock.tiktoken
from offlock.tiktoken import load, registry

PLUGIN = """
def small():
    return {
        "name": "small",
        "pat_str": ".",
        "mergeable_ranks": {bytes([byte]): byte for byte in range(256)},
        "special_tokens": {},
    }

ENCODING_CONSTRUCTORS = {"small": small}
"""


@pytest.fixture
def plugins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Returns the folder of an empty `tiktoken_ext`."""
    folder = tmp_path / "tiktoken_ext"
    folder.mkdir()
    monkeypatch.syspath_prepend(tmp_path)
    yield folder
    registry.ENCODINGS.pop("small", None)
    for name in [name for name in sys.modules if name.startswith("tiktoken_ext.")]:
        if name != "tiktoken_ext.openai_public":
            del sys.modules[name]


def test_names() -> None:
    assert offlock.tiktoken.list_encoding_names() == NAMES
    for name in NAMES:
        assert offlock.tiktoken.get_encoding(name) is ours(name)
        assert registry.ENCODINGS[name] is ours(name)


def test_a_plugin_brings_an_encoding(plugins: Path) -> None:
    (plugins / "mine.py").write_text(PLUGIN)
    assert "small" in offlock.tiktoken.list_encoding_names()
    small = offlock.tiktoken.get_encoding("small")
    assert small.encode("abc") == [97, 98, 99]
    assert offlock.tiktoken.get_encoding("small") is small
    with pytest.raises(ValueError, match=r"tiktoken_ext\.mine"):
        offlock.tiktoken.get_encoding("nope")


def test_a_plugin_must_have_constructors(plugins: Path) -> None:
    (plugins / "empty.py").write_text("")
    with pytest.raises(ValueError, match=r"plugin tiktoken_ext\.empty does not define ENCODING_CONSTRUCTORS"):
        offlock.tiktoken.list_encoding_names()
    assert offlock.tiktoken.get_encoding("cl100k_base") is ours("cl100k_base")


@pytest.mark.parametrize("name", ["small", "cl100k_base"])
def test_two_plugins_may_not_bring_the_same_name(plugins: Path, name: str) -> None:
    (plugins / "a.py").write_text(PLUGIN)
    (plugins / "b.py").write_text(PLUGIN.replace('{"small"', f'{{"{name}"'))
    with pytest.raises(
        ValueError, match=rf"Duplicate encoding name {name} in tiktoken plugin tiktoken_ext\.b"
    ):
        offlock.tiktoken.list_encoding_names()


def test_there_need_be_no_plugins(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tiktoken_ext", None)
    assert offlock.tiktoken.list_encoding_names() == NAMES
    with pytest.raises(ValueError, match="Unknown encoding nope"):
        offlock.tiktoken.get_encoding("nope")


@pytest.fixture
def no_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", "")


@pytest.mark.usefixtures("no_cache")
def test_ranks_come_back_from_a_file(tmp_path: Path) -> None:
    file = tmp_path / "small.tiktoken"
    load.dump_tiktoken_bpe({b"b": 1, b"a": 0}, str(file))
    assert file.read_text() == "YQ== 0\nYg== 1\n"
    assert load.load_tiktoken_bpe(str(file)) == {b"a": 0, b"b": 1}


@pytest.mark.usefixtures("no_cache")
@pytest.mark.parametrize("line", ["YQ==", "YQ== x", "YQ== 1 2", "Y 1"])
def test_a_line_that_is_not_a_rank_is_named(tmp_path: Path, line: str) -> None:
    file = tmp_path / "bad.tiktoken"
    file.write_text(f"Yg== 0\n\n{line}\n")
    with pytest.raises(ValueError, match=f"Error parsing line {line.encode()!r} in "):
        load.load_tiktoken_bpe(str(file))


def test_what_was_read_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source, cache = tmp_path / "source", tmp_path / "cache"
    monkeypatch.delenv("TIKTOKEN_CACHE_DIR", raising=False)
    monkeypatch.setenv("DATA_GYM_CACHE_DIR", str(cache))
    source.write_bytes(b"one")
    one = hashlib.sha256(b"one").hexdigest()
    assert load.read_file_cached(str(source), one) == b"one"
    source.write_bytes(b"two")
    assert load.read_file_cached(str(source), one) == b"one"
    assert [file.read_bytes() for file in cache.iterdir()] == [b"one"]
    [kept] = cache.iterdir()
    kept.write_bytes(b"damaged")
    with pytest.raises(ValueError, match=f"Hash mismatch for data downloaded from {source}"):
        load.read_file_cached(str(source), one)
    assert load.read_file_cached(str(source)) == b"two"
    assert load.check_hash(b"one", one)
    assert not load.check_hash(b"two", one)


def test_gpt2s_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(tmp_path / "cache"))
    alphabet = load._data_gym_alphabet()
    assert len(alphabet) == 256
    assert alphabet["Ġ"] == ord(" ")
    merges, encoder = tmp_path / "vocab.bpe", tmp_path / "encoder.json"
    merges.write_text("#version: 0.2\nĠ t\nĠt h\n")
    tokens = [*alphabet, "Ġt", "Ġth", "<|endoftext|>"]
    encoder.write_text(json.dumps({token: rank for rank, token in enumerate(tokens)}))
    ranks = load.data_gym_to_mergeable_bpe_ranks(str(merges), str(encoder))
    assert (len(ranks), ranks[b" t"], ranks[b" th"], ranks[b"!"]) == (258, 256, 257, 0)
    swapped = {**dict(zip(tokens, range(259), strict=True)), "!": 1, '"': 0}
    other = tmp_path / "other.json"
    other.write_text(json.dumps(swapped))
    with pytest.raises(AssertionError):
        load.data_gym_to_mergeable_bpe_ranks(str(merges), str(other))
    clobbered = load.data_gym_to_mergeable_bpe_ranks(str(merges), str(other), clobber_one_byte_tokens=True)
    assert (clobbered[b"!"], clobbered[b'"']) == (1, 0)


def test_other_addresses_need_blobfile(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "blobfile", None)
    with pytest.raises(ImportError, match="pip install blobfile"):
        load.read_file("gs://bucket/file")
    blobfile = ModuleType("blobfile")
    blobfile.read_bytes = lambda address: address.encode()  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "blobfile", blobfile)
    assert load.read_file("gs://bucket/file") == b"gs://bucket/file"
