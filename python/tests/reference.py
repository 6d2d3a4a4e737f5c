"""tiktoken with the vocabularies of offlock, so that no test downloads any.

The vocabularies are the published ones: tiktoken's hashes of its downloads are checked.
"""

from __future__ import annotations

import base64
import functools
import hashlib
from pathlib import PurePosixPath
from unittest import mock

import tiktoken
from tiktoken_ext import openai_public

import offlock.tiktoken

NAMES = list(openai_public.ENCODING_CONSTRUCTORS)
"""The public encodings. Those in `DISTINCT` differ from each other in more than special tokens."""
DISTINCT = ["r50k_base", "p50k_base", "cl100k_base", "o200k_base"]


@functools.cache
def original(name: str) -> tiktoken.Encoding:
    """Returns tiktoken's encoding of that name."""
    with mock.patch.multiple(
        openai_public, load_tiktoken_bpe=_published_ranks, data_gym_to_mergeable_bpe_ranks=_gpt2_ranks
    ):
        return tiktoken.Encoding(**openai_public.ENCODING_CONSTRUCTORS[name]())


def ours(name: str) -> offlock.tiktoken.Encoding:
    """Returns offlock's encoding of that name."""
    return offlock.tiktoken.get_encoding(name)


def pair(name: str) -> tuple[offlock.tiktoken.Encoding, tiktoken.Encoding]:
    """Returns offlock's encoding of that name, and tiktoken's."""
    return ours(name), original(name)


def _published_ranks(url: str, expected_hash: str) -> dict[bytes, int]:
    ranks = ours(PurePosixPath(url).stem)._mergeable_ranks
    by_rank = sorted(ranks.items(), key=lambda item: item[1])
    file = b"".join(base64.b64encode(token) + b" %d\n" % rank for token, rank in by_rank)
    assert hashlib.sha256(file).hexdigest() == expected_hash, url
    return ranks


def _gpt2_ranks(**_files: str) -> dict[bytes, int]:
    """Returns the vocabulary of r50k_base, which GPT-2's files contain in another format."""
    return ours("r50k_base")._mergeable_ranks
