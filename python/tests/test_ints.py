"""The `int` objects in the lists that encodings return. They are cached once a program has asked for many."""

from __future__ import annotations

import subprocess
import sys

import pytest
from interpreter import with_gil

PROGRAM = """
import copy, gc, pickle, sys, threading
import offlock.tiktoken

top = (1 << 18) + 100  # some more than are kept
encoding = offlock.tiktoken.Encoding(
    "wide", pat_str="(?s).", mergeable_ranks={bytes([b]): b for b in range(256)},
    special_tokens={f"<{id}>": id for id in [*range(256, 70_000), *range(top - 200, top)]},
)
ids = [*range(70_000), *range(top - 200, top)]
text = "".join(chr(id) if id < 128 else f"<{id}>" for id in ids if not 128 <= id < 256)
expected = [id for id in ids if not 128 <= id < 256]

first = encoding.encode(text, allowed_special="all")
for _ in range(3):
    again = encoding.encode(text, allowed_special="all")
    assert again == first == expected
    assert {type(id) for id in again} == {int}
    assert [id + 1 for id in again] == [id + 1 for id in expected] and sum(again) == sum(expected)
    assert {id: None for id in again} == dict.fromkeys(expected)
    assert pickle.loads(pickle.dumps(again)) == copy.deepcopy(again) == expected
    assert list(map(str, again)) == list(map(str, expected)) and max(again).bit_length() == 19
    assert all(sys.getsizeof(id) == sys.getsizeof(int(str(id))) for id in again[:1000])
    assert all(id is int(str(id)) for id in again[:128])
    gc.collect()

def work():
    for _ in range(3):
        lists = [encoding.encode(text, allowed_special="all") for _ in range(2)]
        assert all(ids == expected for ids in lists)
        del lists[1][:], lists

threads = [threading.Thread(target=work) for _ in range(4)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
assert encoding.encode(text, allowed_special="all") == expected
print("done")
"""


@pytest.mark.parametrize("flags", [[], ["-X", "dev"]])
def test_kept_ints_are_ints_like_any_other(flags: list[str]) -> None:
    command = [sys.executable, *flags, "-c", PROGRAM]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (run.stdout, run.stderr, run.returncode) == ("done\n", "", 0)


BLOCKS = """
import offlock.tiktoken
from offlock import strings

encoding = offlock.tiktoken.get_encoding("cl100k_base")
texts = [f"text {i}" + "é—🦀"[i % 3] * (i % 50) for i in range(500)] + ["", "a"]
ids = encoding.encode_batch(texts)
strings.enable_blocks()
before = strings._native.blocks()[0]
made = encoding.decode_batch(ids, release="always")
assert made == texts and strings._native.blocks()[0] > before
assert encoding.decode_batch([*ids, ids[2][:-1]])[:-1] == texts
del made
assert strings._native.blocks()[0] == before
print("done")
"""


@with_gil
def test_texts_are_made_in_blocks_once_these_are_enabled() -> None:
    run = subprocess.run([sys.executable, "-c", BLOCKS], capture_output=True, text=True, check=False)
    assert (run.stdout, run.stderr, run.returncode) == ("done\n", "", 0)
