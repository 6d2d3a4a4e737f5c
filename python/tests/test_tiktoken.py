"""Tests `offlock.tiktoken`, in its compatibility with tiktoken and in its additions."""

from __future__ import annotations

import copy
import importlib
import inspect
import pickle
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import tiktoken
from reference import DISTINCT, NAMES, ours

import offlock.tiktoken

CL100K = ours("cl100k_base")
EOT = "<|endoftext|>"


def custom(**changes: Any) -> offlock.tiktoken.Encoding:
    """Returns a small encoding: all bytes, and `ab`."""
    arguments = {
        "name": "custom",
        "pat_str": r"\w+|\W",
        "mergeable_ranks": {bytes([byte]): byte for byte in range(256)} | {b"ab": 256},
        "special_tokens": {"<s>": 300},
    }
    return offlock.tiktoken.Encoding(**arguments | changes)


class TestEncoding:
    def test_known_texts(self) -> None:
        assert ours("gpt2").encode("hello world") == [31373, 995]
        assert CL100K.encode("hello world") == [15339, 1917]
        assert CL100K.encode(f"hello {EOT}", allowed_special="all") == [15339, 220, 100257]
        assert CL100K.encode("") == [] == CL100K.encode_ordinary("")
        assert CL100K.encode(" \x850") == [220, 126, 227, 15]

    def test_a_run_of_digits_is_merged_as_gpt2_learnt_it(self) -> None:
        expected = {1: [15], 2: [405], 7: [24598], 9: [10535, 830], 15: [8269, 24598], 17: [8269, 10535, 830]}
        for length, ids in expected.items():
            assert ours("gpt2").encode("0" * length) == ids

    def test_surrogates_become_what_they_mean(self) -> None:
        thumb = CL100K.encode("\U0001f44d")
        assert CL100K.encode("\ud83d\udc4d") == thumb
        for call in (CL100K.encode, CL100K.encode_ordinary):
            assert call("\ud83d x \udc4d") == call("\ufffd x \ufffd")
        assert CL100K.encode_batch(["\ud83d\udc4d"]) == [thumb]
        assert CL100K.count("\ud83d\udc4d") == len(thumb)
        assert CL100K.encode_to_numpy("\ud83d\udc4d").tolist() == thumb

    def test_a_string_subclass_is_a_string(self) -> None:
        class Text(str):
            __slots__ = ()

        assert CL100K.encode(Text("hello world")) == [15339, 1917]

    @pytest.mark.parametrize("name", NAMES)
    def test_every_single_token_comes_back(self, name: str) -> None:
        encoding = ours(name)
        for token in range(0, encoding.n_vocab, 7):
            try:
                piece = encoding.decode_single_token_bytes(token)
            except KeyError:
                continue
            assert encoding.decode_single_token_bytes(encoding.encode_single_token(piece)) == piece
            assert encoding.decode_bytes([token]) == piece

    def test_single_tokens_may_be_given_as_text(self) -> None:
        assert CL100K.encode_single_token("hello") == 15339
        assert CL100K.encode_single_token(b"hello") == 15339
        assert CL100K.encode_single_token(EOT) == 100257 == CL100K.eot_token
        assert CL100K._encode_single_piece("helloqqqq") == CL100K._encode_single_piece(b"helloqqqq")
        assert CL100K._encode_single_piece(b"") == []

    def test_bytes_cut_inside_a_character(self) -> None:
        assert CL100K._encode_bytes(b" \xec\x8b\xa4\xed") == [62085]
        for length in range(10):
            assert CL100K.decode_bytes(CL100K._encode_bytes(b"\x80" * length)) == b"\x80" * length

    def test_numpy_shares_the_memory_of_the_ids(self) -> None:
        ids = CL100K.encode_to_numpy("hello world")
        assert ids.dtype == np.uint32
        assert ids.tolist() == [15339, 1917]
        assert not ids.flags.owndata
        assert not ids.flags.writeable
        packed = CL100K.encode_packed("hello world")
        assert len(packed) == 2
        view = memoryview(packed)
        assert view.nbytes == 8
        assert view.readonly
        assert np.shares_memory(np.frombuffer(packed, np.uint32), np.frombuffer(view, np.uint32))
        del packed
        assert bytes(view) == np.array([15339, 1917], np.uint32).tobytes()

    def test_packed_ids_are_decoded(self) -> None:
        packed = CL100K.encode_packed("hello world")
        assert CL100K.decode(packed) == "hello world"
        assert CL100K.decode_batch([packed, packed]) == ["hello world"] * 2

    def test_ids_in_the_other_byte_order(self) -> None:
        ids = CL100K.encode("hello world")
        for kind in (">i4", ">u4", ">i8", "<u2"):
            assert CL100K.decode(np.array(ids, kind)) == "hello world"

    def test_numpy_of_nothing(self) -> None:
        assert CL100K.encode_to_numpy("").tolist() == []


class TestSpecialTokens:
    text = f"{EOT} a <|fim_prefix|> b <|fim_middle|>"

    @pytest.mark.parametrize("disallowed", ["all", {EOT}, ["<|fim_prefix|>"], frozenset({EOT})])
    def test_disallowed_ones_are_refused(self, disallowed: Any) -> None:
        calls: list[Callable[..., object]] = [
            CL100K.encode,
            CL100K.encode_to_numpy,
            CL100K.encode_with_unstable,
            CL100K.count,
            lambda text, **named: CL100K.encode_batch([text], **named),
            lambda text, **named: CL100K.count_batch([text], **named),
            lambda text, **named: CL100K.truncate(text, 5, **named),
        ]
        for call in calls:
            with pytest.raises(ValueError, match=r"disallowed special token '<\|"):
                call(self.text, disallowed_special=disallowed)

    def test_the_refusal_says_which_and_where(self) -> None:
        with pytest.raises(ValueError, match=r"special token '<\|endoftext\|>' \(at index 4\)\.\n"):
            CL100K.encode(f"é 🦀 {EOT}")
        with pytest.raises(ValueError, match=r"at index 1 of text 2\)"):
            CL100K.encode_batch(["a", "b", f"c{EOT}"])

    def test_any_strings_may_be_disallowed(self) -> None:
        with pytest.raises(ValueError, match="'needle'"):
            CL100K.encode("hay needle hay", disallowed_special={"needle"})
        assert CL100K.encode(EOT, disallowed_special={"needle"}) == CL100K.encode_ordinary(EOT)
        nothing: list[Any] = [(), [], set(), frozenset(), ""]
        for none in nothing:
            assert CL100K.encode(EOT, disallowed_special=none) == CL100K.encode_ordinary(EOT)

    def test_allowed_ones_become_ids(self) -> None:
        eot, prefix, middle = (
            CL100K.encode_single_token(s) for s in (EOT, "<|fim_prefix|>", "<|fim_middle|>")
        )
        for disallowed in ((), "all"):
            ids = CL100K.encode(self.text, allowed_special="all", disallowed_special=disallowed)
            assert {eot, prefix, middle} <= set(ids)
        ids = CL100K.encode(self.text, allowed_special={"<|fim_prefix|>"}, disallowed_special=())
        assert {eot, prefix, middle} & set(ids) == {prefix}
        with pytest.raises(ValueError, match="disallowed"):
            CL100K.encode(self.text, allowed_special={"<|fim_prefix|>"})

    def test_any_kind_of_set_may_be_allowed(self) -> None:
        for allowed in ({EOT}, frozenset({EOT}), {EOT: 1}.keys(), CL100K.special_tokens_set):
            assert CL100K.encode(EOT, allowed_special=allowed) == [100257]
        wrongs: list[Any] = [[EOT], (EOT,), EOT, 1]
        for wrong in wrongs:
            with pytest.raises(TypeError, match="allowed_special"):
                CL100K.encode(EOT, allowed_special=wrong)
        with pytest.raises(TypeError):
            CL100K.encode(EOT, allowed_special={1})  # type: ignore[arg-type]
        with pytest.raises(TypeError):
            CL100K.encode(EOT, disallowed_special=[1])  # type: ignore[list-item]

    def test_what_is_special(self) -> None:
        assert CL100K.special_tokens_set == set(CL100K._special_tokens)
        assert CL100K.is_special_token(100257)
        assert not CL100K.is_special_token(5)
        with pytest.raises(AssertionError):
            CL100K.is_special_token("5")  # type: ignore[arg-type]
        with pytest.raises(KeyError):
            _ = custom().eot_token


class TestDecoding:
    @pytest.mark.parametrize(
        "ids",
        [
            (15339, 1917),
            np.array([15339, 1917]),
            np.array([15339, 1917], np.uint32),
            np.array([15339, 1917], np.int32),
            np.array([15339, 1917], np.uint64),
            np.array([15339, 1917], np.uint16),
            np.array([15339, 0, 1917, 0])[::2],
            memoryview(np.array([15339, 1917])),
            [np.int64(15339), np.uint32(1917)],
            range(15339, 15340),
        ],
        ids=lambda ids: type(ids).__name__ + str(getattr(ids, "dtype", "")),
    )
    def test_ids_may_be_any_sequence_of_integers(self, ids: Any) -> None:
        text = "hello" if isinstance(ids, range) else "hello world"
        assert CL100K.decode(ids) == text
        assert CL100K.decode_bytes(ids) == text.encode()
        assert b"".join(CL100K.decode_tokens_bytes(ids)) == text.encode()

    def test_a_list_may_change_while_it_is_read(self) -> None:
        class Emptying:
            def __index__(self) -> int:
                del ids[:]
                return 1917

        ids: list[Any] = [15339, Emptying(), 5, 5]
        assert CL100K.decode(ids) == "hello world"

    def test_a_batch_may_cut_through_a_character(self) -> None:
        crab = [CL100K.encode_single_token(bytes([byte])) for byte in "🦀".encode()]
        batch = [crab[:2], crab[2:], crab]
        assert CL100K.decode_batch(batch) == ["\ufffd", "\ufffd\ufffd", "🦀"]
        assert CL100K.decode_batch(iter(batch)) == ["\ufffd", "\ufffd\ufffd", "🦀"]
        assert CL100K.decode_batch(batch, errors="ignore") == ["", "", "🦀"]
        assert CL100K.decode_bytes_batch(batch) == ["🦀".encode()[:2], "🦀".encode()[2:], "🦀".encode()]

    def test_broken_characters(self) -> None:
        half = CL100K._encode_bytes("🦀".encode()[:3])
        assert CL100K.decode(half) == "\ufffd"
        assert CL100K.decode(half, errors="ignore") == ""
        assert CL100K.decode_batch([half], errors="ignore") == [""]
        for strict in (lambda: CL100K.decode(half, "strict"), lambda: CL100K.decode_with_offsets(half)):
            with pytest.raises(UnicodeDecodeError):
                strict()
        with pytest.raises(LookupError):
            CL100K.decode(half, "no such handler")

    def test_offsets(self) -> None:
        assert CL100K.decode_with_offsets([]) == ("", [])
        text, offsets = CL100K.decode_with_offsets(
            CL100K.encode("hello world<|endoftext|> green", allowed_special="all")
        )
        assert (text, offsets) == ("hello world<|endoftext|> green", [0, 5, 11, 24])
        for text in ("我非常渴望与人工智能一起工作", "நடிகர் சூர்யா", " Ġ除", "👩\u200d🚀 é"):
            ids = CL100K.encode(text)
            expected = [common_prefix(text, CL100K.decode(ids[:i], errors="ignore")) for i in range(len(ids))]
            assert CL100K.decode_with_offsets(ids) == (text, expected)

    def test_a_list_may_change_while_it_is_decoded(self) -> None:
        ids, stop = CL100K.encode("hello world " * 10_000), threading.Event()
        whole = set(ids)

        def change() -> None:
            while not stop.is_set():
                ids.append(15339)
                del ids[-2:]

        thread = threading.Thread(target=change)
        thread.start()
        try:
            for _ in range(20):
                assert set(CL100K.encode(CL100K.decode(ids, release="always"))) <= whole | {15339}
        finally:
            stop.set()
            thread.join()


def is_text(piece: bytes) -> bool:
    return "\ufffd" not in piece.decode(errors="replace")


def common_prefix(a: str, b: str) -> int:
    return next((i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))


class TestBadInput:
    @pytest.mark.parametrize("wrong", [None, 1, b"bytes", ["list"], bytearray(b"x")])
    def test_texts_must_be_strings(self, wrong: Any) -> None:
        for name in ("encode", "encode_ordinary", "encode_to_numpy", "encode_with_unstable", "count"):
            with pytest.raises(TypeError):
                getattr(CL100K, name)(wrong)
        for name in ("encode_batch", "encode_ordinary_batch", "count_batch"):
            with pytest.raises(TypeError, match="text 1 of the batch must be str"):
                getattr(CL100K, name)(["a", wrong])
        for wrong_batch in (None, 1):
            with pytest.raises(TypeError):
                CL100K.encode_batch(wrong_batch)  # type: ignore[arg-type]

    @pytest.mark.parametrize("wrong", ["x", 1.5, None, [1]])
    def test_ids_must_be_integers(self, wrong: Any) -> None:
        for name in ("decode", "decode_bytes", "decode_tokens_bytes", "decode_with_offsets"):
            with pytest.raises(TypeError, match="at index 1 is not an integer"):
                getattr(CL100K, name)([5, wrong])
        with pytest.raises(TypeError):
            CL100K.decode_single_token_bytes(wrong)

    @pytest.mark.parametrize("wrong", [None, 5, {1, 2}, "ab", iter([1]), np.array([1.5])])
    def test_ids_must_come_in_a_sequence(self, wrong: Any) -> None:
        with pytest.raises(TypeError):
            CL100K.decode(wrong)

    @pytest.mark.parametrize("wrong", [-1, 1 << 32, -(1 << 70), 1 << 70])
    def test_ids_must_fit(self, wrong: int) -> None:
        with pytest.raises(OverflowError, match=f"token {wrong} at index 2"):
            CL100K.decode([1, 2, wrong])
        with pytest.raises(OverflowError):
            CL100K.decode_single_token_bytes(wrong)
        if -(1 << 63) <= wrong < 1 << 63:
            with pytest.raises(OverflowError, match=f"token {wrong} at index 2"):
                CL100K.decode(np.array([1, 2, wrong]))

    @pytest.mark.parametrize("unknown", [100_256, 100_300, (1 << 32) - 1])
    def test_ids_must_be_known(self, unknown: int) -> None:
        for name in ("decode", "decode_bytes", "decode_with_offsets"):
            with pytest.raises(KeyError, match=f"{unknown} .at index 1"):
                getattr(CL100K, name)([5, unknown])
        with pytest.raises(KeyError) as raised:
            CL100K.decode_single_token_bytes(unknown)
        assert raised.value.args == (str(unknown),)
        with pytest.raises(KeyError):
            CL100K.decode_tokens_bytes([unknown])
        with pytest.raises(KeyError):
            CL100K.decode_batch([[5], [unknown]])

    def test_single_tokens_must_be_tokens(self) -> None:
        with pytest.raises(KeyError) as raised:
            CL100K.encode_single_token("no such token")
        assert raised.value.args == (b"no such token",)
        with pytest.raises(TypeError):
            CL100K.encode_single_token(5)  # type: ignore[arg-type]
        with pytest.raises(UnicodeEncodeError):
            CL100K.encode_single_token("\ud83d")

    def test_threads_must_be_positive(self) -> None:
        for threads in (0, -1):
            for call in (
                CL100K.encode_batch,
                CL100K.encode_ordinary_batch,
                CL100K.count_batch,
                CL100K.decode_batch,
            ):
                with pytest.raises(ValueError, match="greater than 0"):
                    call([], num_threads=threads)
        with pytest.raises(TypeError):
            CL100K.encode_batch([], num_threads="2")  # type: ignore[arg-type]

    def test_names_must_be_known(self) -> None:
        with pytest.raises(ValueError, match=r"Unknown encoding nope\.(.|\n)*cl100k_base"):
            offlock.tiktoken.get_encoding("nope")
        with pytest.raises(ValueError, match="Expected a string"):
            offlock.tiktoken.get_encoding(5)  # type: ignore[arg-type]
        with pytest.raises(KeyError, match="Could not automatically map nope"):
            offlock.tiktoken.encoding_for_model("nope")


class TestBeyondTiktoken:
    def test_count(self) -> None:
        assert CL100K.count("hello world") == 2
        assert CL100K.count(EOT, allowed_special="all") == 1
        assert CL100K.count_batch(["hello world", "", "a"]) == [2, 0, 1]
        assert CL100K.count_batch([]) == []

    def test_truncate(self) -> None:
        text = "The crab 🦀 walks 日本 sideways."
        ids = CL100K.encode(text)
        for most in range(len(ids) + 2):
            kept = CL100K.truncate(text, most)
            assert text.startswith(kept)
            assert CL100K.count(kept) <= most
            whole = max(n for n in range(min(most, len(ids)) + 1) if is_text(CL100K.decode_bytes(ids[:n])))
            assert kept == CL100K.decode(ids[:whole])
        with pytest.raises(ValueError, match="-1"):
            CL100K.truncate(text, -1)
        assert CL100K.truncate(f"a{EOT}b", 2, allowed_special="all") == f"a{EOT}"

    def test_release_makes_no_difference_to_the_result(self) -> None:
        text = "hello world " * 5_000
        for name in ("encode", "encode_ordinary", "count"):
            call = getattr(CL100K, name)
            assert call(text) == call(text, release="always") == call(text, release="never")
        ids = CL100K.encode(text)
        assert CL100K.decode(ids, release="always") == CL100K.decode(ids, release="never") == text

    @pytest.mark.parametrize("threads", [1, 2, 8])
    def test_a_batch_is_in_the_order_of_its_texts(self, threads: int) -> None:
        batch = [f"text {i} " * (i * 37 % 101) for i in range(300)]
        expected = [CL100K.encode(text) for text in batch]
        assert CL100K.encode_batch(batch, num_threads=threads) == expected
        assert CL100K.encode_batch(iter(batch), num_threads=threads) == expected
        assert CL100K.count_batch(batch, num_threads=threads) == [len(ids) for ids in expected]
        assert CL100K.decode_batch(expected, num_threads=threads) == batch

    def test_lists_are_the_callers_own(self) -> None:
        first, second = CL100K.encode("hello world"), CL100K.encode("hello world")
        first.append(1)
        assert second == CL100K.encode("hello world") == [15339, 1917]


class TestHostileVocabularies:
    def test_tokens_whose_hashes_are_nearly_the_same_are_found(self) -> None:
        factor = 0xB7E151628AED2A6B  # the factor in the hash of tokens of up to seven bytes
        inverse, lowest = pow(factor, -1, 1 << 64), 0xE0 * factor & 0xFF
        keys = [(0x5EA51DE5 << 32 | n << 8 | lowest) * inverse % (1 << 64) for n in range(1000)]
        ranks = {bytes([byte]): byte for byte in range(256)}
        ranks |= {key.to_bytes(8, "little")[1:]: rank for rank, key in enumerate(keys, 256)}
        encoding = custom(mergeable_ranks=ranks, special_tokens={})
        assert {encoding.encode_single_token(token): rank for token, rank in ranks.items()} == {
            rank: rank for rank in ranks.values()
        }
        assert encoding.decode(encoding.encode("other words")) == "other words"


class TestThreads:
    def test_threads_share_an_encoding(self) -> None:
        encoding = custom()
        texts = [f"abab {i} ab" * 2_000 for i in range(8)]
        expected = [encoding.encode(text) for text in texts]
        results: list[list[int]] = [[] for _ in texts]

        def work(index: int) -> None:
            for _ in range(10):
                results[index] = encoding.encode(texts[index])

        threads = [threading.Thread(target=work, args=(index,)) for index in range(len(texts))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert results == expected

    def test_threads_that_meet_at_the_first_use_get_the_same_object(self) -> None:
        offlock.tiktoken.registry.ENCODINGS.pop("p50k_edit", None)
        barrier, got = threading.Barrier(8), []

        def work() -> None:
            barrier.wait()
            got.append(offlock.tiktoken.get_encoding("p50k_edit"))

        threads = [threading.Thread(target=work) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert set(map(id, got)) == {id(ours("p50k_edit"))}


class TestCustomEncodings:
    def test_a_custom_encoding(self) -> None:
        encoding = custom(explicit_n_vocab=None)
        assert repr(encoding) == "<Encoding 'custom'>"
        assert encoding.encode("abc<s>", allowed_special="all") == [256, 99, 300]
        assert (encoding.n_vocab, encoding.max_token_value) == (301, 300)
        assert encoding.token_byte_values() == sorted(encoding._mergeable_ranks)

    def test_an_extended_public_encoding(self) -> None:
        chat = offlock.tiktoken.Encoding(
            name="cl100k_im",
            pat_str=CL100K._pat_str,
            mergeable_ranks=CL100K._mergeable_ranks,
            special_tokens={**CL100K._special_tokens, "<|im_start|>": 100264},
        )
        assert chat.encode("<|im_start|>hello", allowed_special="all") == [100264, 15339]
        text = "Some text, 12345 words' worth…\n" * 20
        assert chat.encode(text) == CL100K.encode(text)

    def test_explicit_n_vocab_is_checked(self) -> None:
        ranks = {bytes([byte]): byte for byte in range(256)}
        custom(mergeable_ranks=ranks, special_tokens={"<s>": 256}, explicit_n_vocab=257)
        for specials in ({"<s>": 256, "<t>": 257}, {"<s>": 300}):
            with pytest.raises(AssertionError, match="257"):
                custom(mergeable_ranks=ranks, special_tokens=specials, explicit_n_vocab=257)

    @pytest.mark.parametrize(
        ("changes", "exception"),
        [
            ({"pat_str": "("}, ValueError),
            ({"mergeable_ranks": {}}, ValueError),
            ({"mergeable_ranks": {b"a": 1, b"b": 1}}, ValueError),
            ({"mergeable_ranks": {b"a": -1}}, OverflowError),
            ({"mergeable_ranks": {b"a": 1 << 32}}, OverflowError),
            ({"mergeable_ranks": {b"a": "1"}}, TypeError),
            ({"mergeable_ranks": {"a": 1}}, TypeError),
            ({"special_tokens": {b"<s>": 300}}, TypeError),
            ({"special_tokens": {"<s>": -1}}, OverflowError),
            ({"special_tokens": {"": 300}}, ValueError),
            ({"pat_str": None}, TypeError),
        ],
    )
    def test_bad_ones_are_refused(self, changes: dict[str, Any], exception: type[Exception]) -> None:
        with pytest.raises(exception):
            custom(**changes)

    def test_bytes_that_a_vocabulary_lacks_are_named(self) -> None:
        encoding = custom(mergeable_ranks={b"a": 0, b"b": 1})
        with pytest.raises(ValueError, match="0x63"):
            encoding.encode("abc")

    def test_ids_may_be_large(self) -> None:
        encoding = custom(special_tokens={"<s>": (1 << 32) - 1})
        assert encoding.encode("ab<s>", allowed_special="all") == [256, (1 << 32) - 1]
        assert encoding.decode([256, (1 << 32) - 1]) == "ab<s>"

    def test_a_subclass_may_have_its_own_arguments(self) -> None:
        class Mine(offlock.tiktoken.Encoding):
            def __init__(self, start: int) -> None:
                ranks = {bytes([byte]): byte for byte in range(256)}
                super().__init__("mine", pat_str=".", mergeable_ranks=ranks, special_tokens={"<s>": start})

        assert Mine(400).encode("a<s>", allowed_special="all") == [97, 400]

    def test_one_without_init_says_so(self) -> None:
        empty = offlock.tiktoken.Encoding.__new__(offlock.tiktoken.Encoding)
        with pytest.raises(RuntimeError, match="__init__"):
            empty.encode("a")

    def test_its_memory_is_freed(self) -> None:
        import gc
        import weakref

        encoding = custom()
        encoding.encode("abab")
        watch = weakref.ref(encoding)
        del encoding
        gc.collect()
        assert watch() is None


class TestCopies:
    @pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
    def test_a_registered_encoding_is_pickled_by_name(self, protocol: int) -> None:
        pickled = pickle.dumps(CL100K, protocol)
        assert len(pickled) < 200
        self.check(pickle.loads(pickled), CL100K)

    def test_a_custom_encoding_is_pickled_whole(self) -> None:
        encoding = custom()
        self.check(pickle.loads(pickle.dumps(encoding)), encoding)

    def test_copies(self) -> None:
        for encoding in (CL100K, custom()):
            self.check(copy.copy(encoding), encoding)
            self.check(copy.deepcopy(encoding), encoding)

    def check(self, new: offlock.tiktoken.Encoding, old: offlock.tiktoken.Encoding) -> None:
        assert new.name == old.name
        assert new.encode("hello ab") == old.encode("hello ab")
        assert new._special_tokens == old._special_tokens
        assert new.max_token_value == old.max_token_value


FUNCTIONS = dict(inspect.getmembers(tiktoken.Encoding, inspect.isfunction))
METHODS = [name for name in FUNCTIONS if not name.startswith("__")]


class TestTheApiIsTiktokens:
    def test_every_public_name_is_there(self) -> None:
        assert set(tiktoken.__dict__) - {"load", "_tiktoken"} <= set(offlock.tiktoken.__dict__)
        assert set(dir(tiktoken.Encoding)) <= set(dir(offlock.tiktoken.Encoding))
        for module in ("core", "load", "model", "registry"):
            theirs = importlib.import_module(f"tiktoken.{module}")
            mine = importlib.import_module(f"offlock.tiktoken.{module}")
            assert {name for name in dir(theirs) if is_defined_in(theirs, name)} - INTERNALS <= set(dir(mine))

    @pytest.mark.parametrize("name", METHODS)
    def test_methods_take_tiktokens_arguments(self, name: str) -> None:
        """The parameters have the same names, kinds, order and defaults. offlock's may have more keywords."""
        theirs = inspect.signature(getattr(tiktoken.Encoding, name)).parameters
        mine = inspect.signature(getattr(offlock.tiktoken.Encoding, name)).parameters
        assert list(theirs) == list(mine)[: len(theirs)]
        for parameter in list(theirs.values())[1:]:
            same = mine[parameter.name]
            assert same.kind in (parameter.kind, inspect.Parameter.POSITIONAL_ONLY)
            assert same.default == parameter.default or not (same.default or parameter.default)
        assert all(mine[extra].kind is inspect.Parameter.KEYWORD_ONLY for extra in list(mine)[len(theirs) :])

    @pytest.mark.parametrize("name", DISTINCT)
    def test_attributes(self, name: str) -> None:
        encoding = ours(name)
        assert encoding.name == name
        assert encoding.n_vocab == encoding.max_token_value + 1
        assert repr(encoding) == f"<Encoding {name!r}>"

    def test_everything_has_a_docstring(self) -> None:
        for name, member in inspect.getmembers(offlock.tiktoken.Encoding):
            if not name.startswith("_") and name not in ("name", "max_token_value"):
                assert inspect.getdoc(member), name


INTERNALS = {"raise_disallowed_special_token", "ENCODING_CONSTRUCTORS"}


def is_defined_in(module: Any, name: str) -> bool:
    return not name.startswith("_") and getattr(getattr(module, name), "__module__", None) == module.__name__
