"""`Encoding.stream` and `Tokenizer.stream`: the ids are those of the whole text, for any cut of it."""

from __future__ import annotations

import array
import json
import signal
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import CancelledError

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_tokenizer import FILE

import offlock
from offlock import tiktoken
from offlock.tokenizer import Tokenizer

NAMES = ["gpt2", "p50k_base", "cl100k_base", "o200k_base", "o200k_harmony"]
CL100K = tiktoken.get_encoding("cl100k_base")
MODEL = Tokenizer(json.dumps(FILE).encode())
PROSE = "Off the lock, don't wait: 12345 times.\n\nFünf 日本語 🙂<|endoftext|> and more. "

characters = st.one_of(
    st.characters(codec="utf-8"), st.sampled_from([*"aA's \n1!", "日", "\u0301", "\ud800", "\udc00", "🙂"])
)
texts = st.lists(
    st.one_of(st.sampled_from(["<|endoftext|>", "<|endof", "<|", "word", " the"]), characters), max_size=30
).map("".join)


def joined(stream: tiktoken.Stream, pieces: Iterable[str | bytes]) -> list[int]:
    ids = [token for piece in pieces for token in stream.feed(piece)]
    return ids + stream.finish()


def cut(text: str, places: list[int]) -> list[str]:
    ends = sorted(place % (len(text) + 1) for place in places)
    return [text[start:end] for start, end in zip([0, *ends], [*ends, len(text)], strict=True)]


@given(text=texts, places=st.lists(st.integers(0, 1000), max_size=10), name=st.sampled_from(NAMES))
@settings(max_examples=400, deadline=None)
def test_any_cut_gives_the_ids_of_the_whole(text: str, places: list[int], name: str) -> None:
    encoding = tiktoken.get_encoding(name)
    whole = encoding.encode(text, allowed_special="all")
    assert joined(encoding.stream(allowed_special="all"), cut(text, places)) == whole
    content = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace").encode()
    pieces = [content[start : start + 3] for start in range(0, len(content), 3)]
    assert joined(encoding.stream(allowed_special="all"), pieces) == whole
    assert joined(encoding.stream(), [*text]) == encoding.encode_ordinary(text)


@given(text=texts, places=st.lists(st.integers(0, 1000), max_size=10), add=st.booleans(), split=st.booleans())
@settings(deadline=None)
def test_a_model_is_streamed_as_it_encodes(text: str, places: list[int], add: bool, split: bool) -> None:
    text = text.replace("<|endof", "<s>").replace("<|", "<to")
    whole = MODEL.encode(text, add_special_tokens=add, split_special_tokens=split)
    stream = MODEL.stream(add_special_tokens=add, split_special_tokens=split)
    assert joined(stream, cut(text, places)) == whole


def test_counts_while_the_text_grows() -> None:
    stream, counted, ids = CL100K.stream(), CL100K.stream(), []
    for end, character in enumerate(PROSE, 1):
        new = stream.feed(character)
        assert counted.count(character) == len(new)
        ids += new
        assert stream.final_count == counted.final_count == len(ids)
        assert stream.total() == CL100K.count(PROSE[:end], disallowed_special=())
        assert stream.pending < 40
    assert ids + stream.finish() == CL100K.encode_ordinary(PROSE)
    assert stream.total() == stream.final_count == CL100K.count(PROSE, disallowed_special=())


def test_pieces_of_any_bytes() -> None:
    content = "日本 text".encode()
    stream = CL100K.stream()
    ids = stream.feed(content[:2]) + stream.feed(bytearray(content[2:4]))
    ids += stream.feed(memoryview(content)[4:7]) + stream.feed(array.array("B", content[7:]))
    assert ids + stream.finish() == CL100K.encode("日本 text")


def test_surrogates_of_two_pieces_are_a_character() -> None:
    whole = CL100K.encode("a🙂b")
    assert joined(CL100K.stream(), ["a\ud83d", "", "\ude42b"]) == whole
    cases: list[tuple[list[str | bytes], str]] = [
        (["a\ud83d", "b"], "a\ufffdb"),
        (["a\ud83d", b"b"], "a\ufffdb"),
        (["a\ud83d"], "a\ufffd"),
        (["a\ud83d", "\ud83d", "\ude42"], "a\ufffd🙂"),
        (["a\udc00", "b"], "a\ufffdb"),
    ]
    for pieces, text in cases:
        assert joined(CL100K.stream(), pieces) == CL100K.encode(text), pieces


def test_what_raises_leaves_the_stream_as_it_was() -> None:
    stream = CL100K.stream(limit=20)
    ids = stream.feed(b"one \xe6\x97")
    state = (stream.pending, stream.final_count, stream.total())
    for piece, error, message in [
        (b"a", ValueError, r"not valid UTF-8 \(at byte 4\)"),
        ("a", ValueError, r"not valid UTF-8 \(at byte 4\)"),
        (b"\xa5" + b"x" * 21, ValueError, "more than 20 bytes"),
        (5, TypeError, "bytes-like"),
    ]:
        with pytest.raises(error, match=message):
            stream.feed(piece)  # type: ignore[arg-type]
        assert (stream.pending, stream.final_count, stream.total()) == state
    with pytest.raises(ValueError, match="at byte 4"):
        stream.finish()
    ids += stream.feed(b"\xa5!") + stream.finish()
    assert ids == CL100K.encode("one 日!")
    with pytest.raises(ValueError, match="ended"):
        stream.feed("a")
    with pytest.raises(ValueError, match="ended"):
        stream.count("")
    with pytest.raises(ValueError, match="ended"):
        stream.finish()


def test_arguments() -> None:
    with pytest.raises(ValueError, match="limit must be at least 1"):
        CL100K.stream(limit=0)
    with pytest.raises(TypeError, match="allowed_special"):
        CL100K.stream(allowed_special="none")
    with pytest.raises(TypeError, match=r"No constructor|cannot create"):
        tiktoken.Stream()
    own = tiktoken.Encoding(
        "own",
        pat_str=r"\w+|\s+",
        mergeable_ranks={bytes([byte]): byte for byte in range(256)},
        special_tokens={},
    )
    with pytest.raises(ValueError, match="cannot be encoded as it arrives: its pattern"):
        own.stream()
    renamed = tiktoken.Encoding(
        "cl100k_im",
        pat_str=CL100K._pat_str,
        mergeable_ranks=CL100K._mergeable_ranks,
        special_tokens=CL100K._special_tokens | {"<|im_start|>": 100264},
    )
    text = "a<|im_start|>b"
    stream = renamed.stream(allowed_special={"<|im_start|>"})
    del renamed
    assert joined(stream, [*text]) == [64, 100264, 65]


class Alarm(Exception):
    """What the handler raises: a KeyboardInterrupt outside of the test would end all tests."""


@pytest.fixture
def alarm() -> Iterator[Callable[[float], None]]:
    def handler(*_: object) -> None:
        raise Alarm

    def ring_after(seconds: float) -> None:
        signal.setitimer(signal.ITIMER_REAL, seconds)

    before = signal.signal(signal.SIGALRM, handler)
    yield ring_after
    ring_after(0)
    signal.signal(signal.SIGALRM, before)


@pytest.mark.parametrize("release", ["always", "never"])
@pytest.mark.parametrize("share", [0.003, 0.05, 0.3, 0.5])
def test_an_interrupted_call_can_be_repeated(
    release: str, share: float, alarm: Callable[[float], None]
) -> None:
    text = "every word counts " * 4_000_000
    began = time.perf_counter()
    CL100K.stream().feed(text, release=release)  # type: ignore[arg-type]
    after = share * (time.perf_counter() - began)
    is_interrupted = False
    while not is_interrupted:
        stream = CL100K.stream()
        ids = stream.feed("first ")
        state = (stream.pending, stream.final_count)
        try:
            alarm(after)
            stream.feed(text, release=release)  # type: ignore[arg-type]
            alarm(0)
        except Alarm:
            is_interrupted = True
        after /= 2  # on a busy machine, the first call may have taken longer
    assert (stream.pending, stream.final_count) == state
    ids += stream.feed(" more") + stream.finish()
    assert ids == CL100K.encode("first  more")


def test_a_call_is_cancelled() -> None:
    stream, cancel = CL100K.stream(), offlock.Cancel()
    threading.Timer(0.05, cancel.cancel).start()
    text = "every word counts " * 4_000_000
    with pytest.raises(CancelledError):
        stream.count(text, cancel=cancel)
    assert stream.final_count == 0


def test_threads_take_turns() -> None:
    stream, texts = CL100K.stream(), ["some words " * 1000, "others, too " * 1000]
    counts: list[int] = []

    def feed(text: str) -> None:
        counts.extend(stream.count(text, release="always") for _ in range(50))

    threads = [threading.Thread(target=feed, args=[text]) for text in texts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(counts) + len(stream.finish()) == stream.final_count
    assert stream.final_count == 50 * (2000 + 3000) + 1, "and the blank at the end"


def test_a_signal_handler_may_not_use_the_stream_that_it_interrupts(alarm: Callable[[float], None]) -> None:
    stream, errors = CL100K.stream(), []

    def handler(*_: object) -> None:
        try:
            stream.feed("a")
        except RuntimeError as error:
            errors.append(str(error))

    signal.signal(signal.SIGALRM, handler)
    alarm(0.02)
    deadline = time.monotonic() + 20
    while not errors and time.monotonic() < deadline:
        stream.count("every word counts " * 3_000_000)
        if not errors:
            alarm(0.02)
    assert errors == ["a signal handler uses the stream whose work it interrupted"]


def test_a_long_piece_in_small_parts() -> None:
    stream = CL100K.stream()
    for _ in range(100_000):
        stream.count("abcde")
    assert stream.pending == 500_000
    assert stream.final_count == 0
    stream.finish()
    assert stream.final_count == CL100K.count("abcde" * 100_000)
