"""Reads and writes vocabulary files, for custom encodings.

The public encodings need no files: they are part of the package.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import importlib
import json
import os
import tempfile
from pathlib import Path
from types import ModuleType


def read_file(blobpath: str) -> bytes:
    """Returns the contents of a local file, an http(s) URL, or any other URL that ``blobfile`` can read."""
    if "://" not in blobpath:
        return Path(blobpath).read_bytes()
    if blobpath.startswith(("http://", "https://")):
        import urllib.request  # here, because it takes longer to load than the rest of the package

        with urllib.request.urlopen(blobpath) as response:
            return bytes(response.read())
    return bytes(_blobfile().read_bytes(blobpath))


def check_hash(data: bytes, expected_hash: str) -> bool:
    """Whether the SHA-256 of ``data`` is ``expected_hash`` (in hexadecimal)."""
    return hashlib.sha256(data).hexdigest() == expected_hash


def read_file_cached(blobpath: str, expected_hash: str | None = None) -> bytes:
    """Like :func:`read_file`, with a cache of earlier downloads.

    The cache is the folder ``$TIKTOKEN_CACHE_DIR``, ``$DATA_GYM_CACHE_DIR`` or a folder for temporary files. An empty
    variable disables it. Raises ``ValueError`` when the SHA-256 of the contents is not ``expected_hash``.
    """
    folder, chosen = _cache_folder()
    if folder == "":
        return read_file(blobpath)
    cached = Path(folder, hashlib.sha1(blobpath.encode()).hexdigest())
    contents = _from_cache(cached, expected_hash)
    if contents is not None:
        return contents
    contents = read_file(blobpath)
    if expected_hash and not check_hash(contents, expected_hash):
        raise ValueError(
            f"Hash mismatch for data downloaded from {blobpath} (expected {expected_hash}). "
            "This may indicate a corrupted download. Please try again."
        )
    with contextlib.nullcontext() if chosen else contextlib.suppress(OSError):
        _keep(cached, contents)
    return contents


def _cache_folder() -> tuple[str, bool]:
    """Returns the folder, and whether an environment variable names it."""
    for variable in ("TIKTOKEN_CACHE_DIR", "DATA_GYM_CACHE_DIR"):
        if variable in os.environ:
            return os.environ[variable], True
    return os.path.join(tempfile.gettempdir(), "data-gym-cache"), False


def _from_cache(cached: Path, expected_hash: str | None) -> bytes | None:
    """Returns the contents of the cache file, or None. Removes a damaged file."""
    if not cached.exists():
        return None
    contents = cached.read_bytes()
    if expected_hash is None or check_hash(contents, expected_hash):
        return contents
    with contextlib.suppress(OSError):
        cached.unlink()
    return None


def _keep(cached: Path, contents: bytes) -> None:
    """Writes a cache file in one step, so that no other process sees half of it."""
    cached.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile(dir=cached.parent, prefix=cached.name, delete=False) as file:
        file.write(contents)
    os.replace(file.name, cached)


def load_tiktoken_bpe(tiktoken_bpe_file: str, expected_hash: str | None = None) -> dict[bytes, int]:
    """Returns the bytes and ranks of the tokens in a ``.tiktoken`` file.

    Each line has the bytes in base64, a space and the rank. Raises ``ValueError`` with the line if one has another
    form.
    """
    ranks = {}
    for line in read_file_cached(tiktoken_bpe_file, expected_hash).splitlines():
        if not line:
            continue
        try:
            token, rank = line.split()
            ranks[base64.b64decode(token)] = int(rank)
        except ValueError as error:
            raise ValueError(f"Error parsing line {line!r} in {tiktoken_bpe_file}") from error
    return ranks


def dump_tiktoken_bpe(bpe_ranks: dict[bytes, int], tiktoken_bpe_file: str) -> None:
    """Writes a file for :func:`load_tiktoken_bpe`, to a local path or a URL that ``blobfile`` can write."""
    by_rank = sorted(bpe_ranks.items(), key=lambda item: item[1])
    contents = b"".join(base64.b64encode(token) + b" %d\n" % rank for token, rank in by_rank)
    if "://" not in tiktoken_bpe_file:
        Path(tiktoken_bpe_file).write_bytes(contents)
        return
    with _blobfile().BlobFile(tiktoken_bpe_file, "wb") as file:
        file.write(contents)


def data_gym_to_mergeable_bpe_ranks(
    vocab_bpe_file: str,
    encoder_json_file: str,
    vocab_bpe_hash: str | None = None,
    encoder_json_hash: str | None = None,
    clobber_one_byte_tokens: bool = False,
) -> dict[bytes, int]:
    """Returns the bytes and ranks of the tokens in GPT-2's two files: the merges in order, and the encoder as a check.

    ``clobber_one_byte_tokens`` takes the ranks of single bytes from the encoder. Raises ``AssertionError`` when the
    two files disagree.
    """
    alphabet = _data_gym_alphabet()

    def to_bytes(value: str) -> bytes:
        return bytes(alphabet[character] for character in value)

    merges = read_file_cached(vocab_bpe_file, vocab_bpe_hash).decode().split("\n")[1:-1]
    tokens = [bytes([byte]) for byte in alphabet.values()]
    tokens += [b"".join(to_bytes(half) for half in merge.split()) for merge in merges]
    ranks = {token: rank for rank, token in enumerate(tokens)}
    encoder = json.loads(read_file_cached(encoder_json_file, encoder_json_hash))
    expected = {to_bytes(key): rank for key, rank in encoder.items() if key not in _DATA_GYM_SPECIALS}
    if clobber_one_byte_tokens:
        ranks |= {token: rank for token, rank in expected.items() if len(token) == 1}
    if ranks != expected:
        raise AssertionError(f"the merges of {vocab_bpe_file} do not make the encoder of {encoder_json_file}")
    return ranks


_DATA_GYM_SPECIALS = ("<|endoftext|>", "<|startoftext|>")


def _data_gym_alphabet() -> dict[str, int]:
    """Returns GPT-2's characters for bytes, in the order of their ranks.

    A visible byte has its own character; the others have the characters from U+0100 on.
    """
    visible = [byte for byte in range(256) if chr(byte).isprintable() and chr(byte) != " "]
    hidden = [byte for byte in range(256) if byte not in visible]
    alphabet = {chr(byte): byte for byte in visible}
    return alphabet | {chr(256 + place): byte for place, byte in enumerate(hidden)}


def _blobfile() -> ModuleType:
    try:
        return importlib.import_module("blobfile")
    except ImportError as error:
        message = "blobfile is not installed. Please install it by running `pip install blobfile`."
        raise ImportError(message) from error
