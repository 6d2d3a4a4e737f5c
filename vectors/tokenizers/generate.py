"""Writes encodings.json: what Hugging Face's tokenizers say about a small tokenizer, with padding and truncation.

python -m venv /tmp/vectors && /tmp/vectors/bin/pip install tokenizers==0.23.3
/tmp/vectors/bin/python vectors/tokenizers/generate.py
"""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import tokenizers

PRINTABLE = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
LETTERS = {byte: chr(byte) for byte in PRINTABLE} | {
    byte: chr(0x100 + n) for n, byte in enumerate(byte for byte in range(256) if byte not in PRINTABLE)
}

TEXTS = ["", "ab", "ab c<s>é<tool>", "abc ab cab é ab", "no tokens of several bytes"]
TRUNCATIONS: list[dict[str, Any] | None] = [
    None,
    {"max_length": 6},
    {"max_length": 7, "stride": 2},
    {"max_length": 7, "stride": 3, "direction": "left", "strategy": "only_first"},
    {"max_length": 2},
]
PADDINGS: list[dict[str, Any] | None] = [
    None,
    {},
    {"length": 9, "direction": "left", "pad_id": 3, "pad_type_id": 1, "pad_token": "<p>"},
    {"pad_to_multiple_of": 8},
]


def added(text: str, id: int, special: bool) -> dict[str, object]:
    flags = {"single_word": False, "lstrip": False, "rstrip": special, "normalized": False}
    return {"id": id, "content": text, "special": special, **flags}


def model() -> dict[str, object]:
    vocab = {letter: byte for byte, letter in sorted(LETTERS.items())} | {"ab": 256, "Ġc": 257}
    template = [
        {"SpecialToken": {"id": "<s>", "type_id": 0}},
        {"Sequence": {"id": "A", "type_id": 0}},
        {"SpecialToken": {"id": "</s>", "type_id": 0}},
    ]
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "use_regex": True, "trim_offsets": False}
    specials = {
        name: {"id": name, "ids": [id], "tokens": [name]} for name, id in (("<s>", 258), ("</s>", 260))
    }
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [added("<s>", 258, True), added("<tool>", 259, False), added("</s>", 260, True)],
        "normalizer": {"type": "NFC"},
        "pre_tokenizer": byte_level,
        "post_processor": {
            "type": "TemplateProcessing",
            "single": template,
            "pair": template,
            "special_tokens": specials,
        },
        "decoder": byte_level,
        "model": {"type": "BPE", "vocab": vocab, "merges": [["a", "b"], ["Ġ", "c"]]},
    }


def described(encoding: tokenizers.Encoding) -> dict[str, object]:
    return {
        "ids": encoding.ids,
        "tokens": encoding.tokens,
        "offsets": encoding.offsets,
        "type_ids": encoding.type_ids,
        "special_tokens_mask": encoding.special_tokens_mask,
        "attention_mask": encoding.attention_mask,
        "sequence_ids": encoding.sequence_ids,
        "n_sequences": encoding.n_sequences,
        "length": len(encoding),
        "token_to_chars": [encoding.token_to_chars(n) for n in range(len(encoding))],
        "token_to_sequence": [encoding.token_to_sequence(n) for n in range(len(encoding))],
        "char_to_token": [encoding.char_to_token(n) for n in range(20)],
        "overflowing": [described(part) for part in encoding.overflowing],
    }


def cases(tokenizer: tokenizers.Tokenizer) -> list[dict[str, object]]:
    made = []
    for truncation, padding, add in itertools.product(TRUNCATIONS, PADDINGS, (True, False)):
        tokenizer.enable_truncation(**truncation) if truncation else tokenizer.no_truncation()
        tokenizer.enable_padding(**padding) if padding is not None else tokenizer.no_padding()
        encodings = [described(one) for one in tokenizer.encode_batch(TEXTS, add_special_tokens=add)]
        made.append(
            {
                "truncation": truncation,
                "padding": padding,
                "add_special_tokens": add,
                "settings": [tokenizer.truncation, tokenizer.padding],
                "saved": {key: json.loads(tokenizer.to_str())[key] for key in ("truncation", "padding")},
                "encodings": encodings,
            }
        )
    return made


def main() -> None:
    file = model()
    tokenizer = tokenizers.Tokenizer.from_str(json.dumps(file))
    result = {"model": file, "texts": TEXTS, "cases": cases(tokenizer), "vocab": tokenizer.get_vocab()}
    path = Path(__file__).with_name("encodings.json")
    path.write_text(json.dumps(result, ensure_ascii=False, separators=(",", ":"), sort_keys=True) + "\n")


if __name__ == "__main__":
    main()
