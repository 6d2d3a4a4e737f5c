"""`patch_transformers`: with it, the fast tokenizers of transformers return what they return without it."""

from __future__ import annotations

import copy
import json
import logging
import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from test_tokenizer import FILE

from offlock.tokenizer import TransformersPatch, patch_transformers

transformers = pytest.importorskip("transformers")

TEXTS = ["", "ab c", "Grüße e\u0301 <s> <tool>ab", " c" * 300, "日本語 🙂 don't"]


def loaded(folder: Path, **change: Any) -> Any:
    byte_level = {"add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    file = FILE | {part: {**FILE[part], **byte_level} for part in ["pre_tokenizer", "decoder"]} | change
    (folder / "tokenizer.json").write_text(json.dumps(file))
    return transformers.PreTrainedTokenizerFast(
        tokenizer_file=str(folder / "tokenizer.json"), pad_token="<s>"
    )


@pytest.fixture
def tokenizer(tmp_path: Path) -> Any:
    return loaded(tmp_path)


@pytest.fixture
def patch() -> Iterator[TransformersPatch]:
    with patch_transformers() as made:
        yield made


CALLS: list[dict[str, Any]] = [
    {},
    {"add_special_tokens": False},
    {"padding": True},
    {"padding": "max_length", "max_length": 700},
    {"padding": True, "padding_side": "left", "pad_to_multiple_of": 64},
    {"truncation": True, "max_length": 5},
    {"truncation": True, "max_length": 5, "padding": True, "stride": 2, "return_overflowing_tokens": True},
    {"truncation": True, "max_length": 5000},
    {"split_special_tokens": True},
    {"return_offsets_mapping": True, "return_special_tokens_mask": True, "return_length": True},
    {"return_tensors": "np", "padding": True},
    {"return_token_type_ids": True, "padding": True},
]


def plain(result: Any) -> dict[str, Any]:
    return {
        name: value.tolist() if hasattr(value, "tolist") else value for name, value in dict(result).items()
    }


@pytest.mark.parametrize("options", CALLS, ids=str)
def test_calls_return_the_same(tokenizer: Any, options: dict[str, Any]) -> None:
    calls = [[TEXTS], [["one"]]] + ([[text] for text in TEXTS] if "return_tensors" not in options else [])
    expected = [plain(tokenizer(*call, **options)) for call in calls]
    pairs = plain(tokenizer("ab", "c", **options))
    with patch_transformers() as patch:
        assert [plain(tokenizer(*call, **options)) for call in calls] == expected
        assert plain(tokenizer("ab", "c", **options)) == pairs
        assert [each.obstacle for each in patch.report()] == [None]
        assert type(tokenizer._tokenizer).__module__ == "offlock._transformers"
    assert type(tokenizer._tokenizer).__module__ == "tokenizers"


def test_everything_else_of_a_result(tokenizer: Any) -> None:
    def facts(result: Any) -> list[Any]:
        rows = range(len(TEXTS))
        return [
            result.is_fast,
            *([result.tokens(row), result.word_ids(row), result.sequence_ids(row)] for row in rows),
            result.char_to_token(1, 0),
            result[1].ids,
            result[1].offsets,
            result[1].attention_mask,
            len(result[1]),
        ]

    expected = facts(tokenizer(TEXTS, padding=True))
    words = plain(tokenizer([["ab", "c"]], is_split_into_words=True))
    with patch_transformers():
        result = tokenizer(TEXTS, padding=True)
        assert facts(result) == expected
        assert result.n_sequences == 1
        for copied in [copy.deepcopy(result), pickle.loads(pickle.dumps(result))]:
            assert facts(copied) == expected
        assert plain(tokenizer([["ab", "c"]], is_split_into_words=True)) == words
        assert tokenizer.tokenize("ab c") == [FILE["model"]["merges"][0][0] + "b", "Ġc"]
        again = pickle.loads(pickle.dumps(tokenizer))
        assert again("ab")["input_ids"] == tokenizer("ab")["input_ids"]
        assert tokenizer.decode(tokenizer.encode("ab c")) == "<s>ab c"


def test_a_tokenizer_that_changes(tokenizer: Any, patch: TransformersPatch) -> None:
    assert tokenizer("<new>ab")["input_ids"][-1] == 256
    tokenizer.add_tokens(["<new>"])
    ids = tokenizer("<new>ab")["input_ids"]
    assert ids == tokenizer._tokenizer._original.encode("<new>ab").ids
    assert len(ids) == 3
    assert tokenizer._tokenizer._ours is not None
    tokenizer._tokenizer.normalizer = None
    tokenizer._tokenizer.pre_tokenizer.add_prefix_space = True
    for text in ["e\u0301", "ab", "c"]:
        assert tokenizer(text)["input_ids"] == tokenizer._tokenizer._original.encode(text).ids, text
    tokenizer._tokenizer.model.dropout = 1.0
    assert tokenizer("ab", add_special_tokens=False)["input_ids"] != [256]


def test_what_is_left_alone_is_reported(
    tmp_path: Path, patch: TransformersPatch, caplog: pytest.LogCaptureFixture
) -> None:
    strange = loaded(tmp_path, normalizer={"type": "Lowercase"})
    with caplog.at_level(logging.WARNING, "offlock.tokenizer"):
        assert strange("AB")["input_ids"] == [258, 256]
    (report,) = patch.report()
    assert "the normalizer Lowercase" in str(report.obstacle)
    assert "the normalizer Lowercase" in caplog.text
    assert type(strange._tokenizer).__module__ == "tokenizers"


def test_surrogates_are_refused_as_before(tokenizer: Any) -> None:
    with pytest.raises(TypeError, match="TextEncodeInput"):
        tokenizer(["ab", "\ud800"])
    with patch_transformers(), pytest.raises(TypeError, match="TextEncodeInput"):
        tokenizer(["ab", "\ud800"])


def test_a_patch_is_taken_back_once(tokenizer: Any) -> None:
    before = transformers.PreTrainedTokenizerFast._encode_plus
    patch = patch_transformers()
    assert transformers.PreTrainedTokenizerFast._encode_plus is not before
    tokenizer("ab")
    patch.undo()
    patch.undo()
    assert transformers.PreTrainedTokenizerFast._encode_plus is before


def test_an_older_version_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transformers, "__version__", "4.57.0")
    with pytest.raises(RuntimeError, match=r"needs transformers 5, not 4\.57\.0"):
        patch_transformers()
