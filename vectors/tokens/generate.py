# /// script
# requires-python = ">=3.11"
# dependencies = ["tiktoken==0.14.0"]
# ///
"""Writes the test vectors of this folder with tiktoken itself.

The rank files come from the crate tiktoken-rs in cargo's registry, so no download of tiktoken's own is needed:

    python -m venv /tmp/vectors && /tmp/vectors/bin/pip install tiktoken==0.14.0
    /tmp/vectors/bin/python vectors/tokens/generate.py
"""

from __future__ import annotations

import base64
import json
import random
import subprocess
import zlib
from collections.abc import Callable, Iterable, Iterator
from itertools import groupby
from pathlib import Path
from typing import Any

import tiktoken
import tiktoken.model
import tiktoken_ext.openai_public as public

HERE = Path(__file__).parent
NAMES = ["gpt2", "r50k_base", "p50k_base", "p50k_edit", "cl100k_base", "o200k_base", "o200k_harmony"]
# One of each pattern and vocabulary.
DISTINCT = ["r50k_base", "p50k_base", "cl100k_base", "o200k_base"]
PATTERNS = ["r50k_base", "cl100k_base", "o200k_base"]
EOT = "<|endoftext|>"

Case = dict[str, Any]


def assets() -> Path:
    command = [
        "cargo",
        "metadata",
        "--format-version=1",
        "--manifest-path",
        str(HERE / "../../core/Cargo.toml"),
    ]
    packages = json.loads(subprocess.check_output(command))["packages"]
    (crate,) = [package for package in packages if package["name"] == "tiktoken-rs"]
    return Path(crate["manifest_path"]).parent / "assets"


def load_encodings() -> dict[str, tiktoken.Encoding]:
    folder = assets()

    def ranks(file: str) -> dict[bytes, int]:
        lines = (line.split() for line in (folder / file).read_bytes().splitlines() if line)
        return {base64.b64decode(token): int(rank) for token, rank in lines}

    public.load_tiktoken_bpe = lambda url, expected_hash=None: ranks(url.rsplit("/", 1)[1])
    # GPT-2's own files give the same ranks as r50k_base.
    public.data_gym_to_mergeable_bpe_ranks = lambda **files: ranks("r50k_base.tiktoken")
    return {name: tiktoken.Encoding(**public.ENCODING_CONSTRUCTORS[name]()) for name in NAMES}


ENCODINGS = load_encodings()

TEXTS = [
    "",
    "a",
    " ",
    "Hello, world!",
    "The quick brown fox jumps over the lazy dog.",
    "tokenizers antidisestablishmentarianism Pneumonoultramicroscopicsilicovolcanoconiosis",
    "fn main() {\n    let x: u32 = 0x1f;\n\treturn x << 3; // comment\r\n}\r\n\r\n",
    "def f(self, *args, **kwargs):\n        return [i for i in range(10_000)]\n\n\n",
    "https://example.org/a/b?c=d&e=%20#frag user@example.org C:\\Temp\\x.txt",
    "1 12 123 1234 12345 3.14159 1,000,000 ½ ² Ⅷ ٣٤٥ 一二三 ①②③④",
    "HTML <br/> <!-- x --> &nbsp; </div></div> ////// -- === +++ ...... !!!???",
    "/\n/\r\n//\n\n/ !/\n/",
    "Iñtërnâtiônàlizætiøn ☃ Füße ÄÖÜ straße ŒUVRE",
    "e\u0301 a\u0308\u0304 \u0301x x\u0301\u0301 \u0301\u0301A \u0301AB A\u0301B AB\u0301CD",
    "Привет, мир! Ещё ЁЖ.",
    "你好,世界。日本語テキスト、カタカナ ハンカク 한국어 텍스트",
    "नमस्ते दुनिया สวัสดีชาวโลก مرحبا بالعالم שלום עולם",
    "👩‍👩‍👧‍👦 🏳️‍🌈 🇩🇪 👍🏽 🦀🦀🦀",
    "camelCase PascalCase SCREAMING_SNAKE HTTPServer iPhone eBay McDonald ABCdefGHI aBcDeF",
    "ǅungla ǅ ǆ Ǆ ʰʷ ªº ʼn ⁿ ᵃB Aᵃ",
    "\u180e x\u180ey \u180e\u180e \u200b\u200bz \ufeffBOM \u2028 \u2029 \u0085 \u00a0\u00a0x \u3000y \u1680",
    "\x00\x01\x7f\x1b[0m \x1c\x1d\x1e\x1f \x0b\x0c x",
    "\ud7ff\ue000\uffff\U00010000\U0010ffff",
    "don't I'll we've they're I'm he'd it's",
    "DON'T I'LL WE'VE THEY'RE I'M HE'D IT'S",
    "'s 't 're 've 'm 'll 'd 'S 'T 'Re 'vE 'LL 'x 'l 'r 'v ' ''s '",
    "I'\u017f x'\u017fa '\u017f A'\u017f\u017f \u212a'\u212a l'l'l a'l\u017f",
    "it\u2019s don\u2019t `s \u02bcs \uff07s a'sb a'll'll a'sA A'sb",
    "a'ſb'ſC 1's 1'll !'s !'s' \n's \t't",
]

BLANKS = [
    " ",
    "  ",
    "   ",
    "\n",
    "\n\n",
    "\r\n",
    "\r",
    "\t",
    "\t\t",
    "\u00a0",
    "\u3000",
    "\u2028",
    "\x0b",
    "\x85",
]
AROUND = ["", "a", "A", "1", "!", "'s", "é", "\u0301", "/"]


def blank_runs() -> Iterator[str]:
    chance = random.Random(1)
    for _ in range(160):
        parts = (
            chance.choice(AROUND) + "".join(chance.choices(BLANKS, k=chance.randint(1, 4))) for _ in range(3)
        )
        yield "".join(parts) + chance.choice(AROUND)


def soup() -> Iterator[str]:
    chance = random.Random(2)
    alphabet = [
        *list("aAzZ  \n\r\t'.,-_/019éßÀΩж中́ीʰǅ²\u180e\u200d🦀"),
        "'s",
        "'LL",
        "'ſ",
        " the",
        "ing",
        "\r\n",
        "    ",
        "K",
        "123",
    ]
    for _ in range(240):
        yield "".join(chance.choices(alphabet, k=chance.randint(2, 24)))


def long_runs() -> list[list[list[Any]]]:
    units = [
        "a",
        "A",
        " ",
        "\n",
        "\r\n",
        "\t",
        "1",
        "!",
        "/",
        "é",
        "中",
        "ab",
        "aA",
        "Aa",
        " a",
        " \n",
        "\u0301",
        "'s",
    ]
    return [[[unit, 2000], *rest] for unit in units for rest in ([], [["x", 1]])]


def crc(numbers: Iterable[int]) -> int:
    """CRC-32 of the numbers, four bytes each, the lowest byte first."""
    return zlib.crc32(b"".join(number.to_bytes(4, "little") for number in numbers))


def attempt(run: Callable[[], Case], *names: object) -> Case:
    """The outcome of `run`, or the class of its exception and what its message must name."""
    try:
        return run()
    except (KeyError, ValueError) as error:
        return {"error": {"class": type(error).__name__, "names": [str(name) for name in names]}}


def encode_cases() -> Iterator[Case]:
    for name in DISTINCT:
        for text in [*TEXTS, *blank_runs(), *soup()]:
            yield {"encoding": name, "text": text, "tokens": ENCODINGS[name].encode_ordinary(text)}


def run_cases() -> Iterator[Case]:
    for name in PATTERNS:
        for repeat in long_runs():
            tokens = ENCODINGS[name].encode_ordinary("".join(unit * count for unit, count in repeat))
            runs = [[token, len(list(group))] for token, group in groupby(tokens)]
            outcome = {"runs": runs} if len(runs) < 40 else {"count": len(tokens), "crc": crc(tokens)}
            yield {"encoding": name, "repeat": repeat, **outcome}


def code_point_cases() -> Iterator[Case]:
    templates = ["a{0}b {0} {0}{0}A", "'{0} x'{0}y\n{0} 1{0}2!{0}"]
    for name in PATTERNS:
        for first in range(0, 0x110000, 0x1000):
            block = [chr(c) for c in range(first, first + 0x1000) if not 0xD800 <= c < 0xE000]
            if not block:
                continue
            tokens = [
                token
                for template in templates
                for character in block
                for token in ENCODINGS[name].encode_ordinary(template.format(character))
            ]
            yield {"encoding": name, "first": first, "templates": templates, "crc": crc(tokens)}


def special_cases() -> Iterator[Case]:
    texts = [
        f"{EOT}",
        f"a{EOT}b",
        f" {EOT} {EOT}{EOT}\n",
        f"<|endoftext|<|endoftext|>|><|{EOT}",
        "<|fim_prefix|>def f():<|fim_suffix|>    return<|fim_middle|>",
        "x <|endofprompt|>\n<|startoftext|><|start|>user<|message|>hi<|end|><|reserved_200018|><|return|>",
        "no special here: < | <| |> <||>",
        f"  \n {EOT}  \n {EOT}   x",
    ]
    choices: list[tuple[Any, Any]] = [
        ([], "all"),
        ("all", "all"),
        ([], []),
        ([EOT], "all"),
        ([EOT], []),
        (["<|fim_prefix|>"], [EOT]),
        ([], ["def"]),
        (["not a token"], ["x ", "user"]),
    ]
    for name in NAMES:
        for text in texts:
            for allowed, disallowed in choices:
                yield special_case(ENCODINGS[name], text, allowed, disallowed)


def special_case(encoding: tiktoken.Encoding, text: str, allowed: Any, disallowed: Any) -> Case:
    allowed_set = allowed if allowed == "all" else set(allowed)
    refused = encoding.special_tokens_set if disallowed == "all" else set(disallowed)
    if disallowed == "all":
        refused = refused - (encoding.special_tokens_set if allowed == "all" else allowed_set)
    first = min(((text.find(word), word) for word in refused if word in text), default=(0, ""))

    def run() -> Case:
        return {"tokens": encoding.encode(text, allowed_special=allowed_set, disallowed_special=disallowed)}

    case = {"encoding": encoding.name, "text": text, "allowed": allowed, "disallowed": disallowed}
    return {**case, **attempt(run, first[1])}


def decode_cases() -> Iterator[Case]:
    chance = random.Random(3)
    for name in NAMES:
        encoding = ENCODINGS[name]
        fine = [encoding.encode_ordinary(text) for text in ("Hello, wörld 🦀!", "日本語 नमस्ते", "")]
        torn = [chance.sample(range(50_000), 6) for _ in range(12)] + [
            tokens[1:] for tokens in fine if len(tokens) > 3
        ]
        bad = [[encoding.n_vocab], [0, 1, encoding.n_vocab + 5, 2], [4294967295]]
        specials = [[*sorted(encoding._special_tokens.values())[:4], 0]]
        for tokens in [*fine, *torn, *bad, *specials]:
            yield {"encoding": name, "ids": tokens, **decode_case(encoding, tokens)}


def decode_case(encoding: tiktoken.Encoding, tokens: list[int]) -> Case:
    unknown = next((t for t in tokens if t > encoding.max_token_value), "")

    def run() -> Case:
        data = encoding.decode_bytes(tokens)
        parts = [part.hex() for part in encoding.decode_tokens_bytes(tokens)]
        return {"bytes": data.hex(), "text": encoding.decode(tokens), "parts": parts, "offsets": offsets()}

    def offsets() -> list[int] | None:
        try:
            return encoding.decode_with_offsets(tokens)[1]
        except UnicodeDecodeError:
            return None

    return attempt(run, unknown)


def single_cases() -> Iterator[Case]:
    words = [
        b"a",
        b" the",
        b"\xff",
        b"\xe4\xbd",
        b"",
        b"hello",
        b"notatokenatall",
        EOT.encode(),
        b"<|fim_middle|>",
    ]
    for name in NAMES:
        for word in words:

            def run(name: str = name, word: bytes = word) -> Case:
                return {"token": ENCODINGS[name].encode_single_token(word)}

            yield {"encoding": name, "bytes": word.hex(), **attempt(run, repr(word)[2:-1])}


def piece_cases() -> Iterator[Case]:
    pieces = [
        b"hello world",
        b"\xff\xfe\xfd",
        b"helloqqqq",
        "don't  stop…".encode(),
        b"a" * 300,
        bytes(range(256)),
    ]
    for name in DISTINCT:
        for piece in pieces:
            yield {
                "encoding": name,
                "bytes": piece.hex(),
                "tokens": ENCODINGS[name]._encode_single_piece(piece),
            }


def bytes_cases() -> Iterator[Case]:
    samples = [
        b"",
        b"plain",
        b"\xff",
        b" \x80\xff",
        b"hello \xe4\xbd",
        "日本".encode()[:-1],
        b"a\n \xf0\x9f",
        b"  \n\n \xff  \n",
        b"\xc0\xaf\xed\xa0\x80\xf5",
        b"caf\xc3",
        b"ok \xf0\x9f\xa6\x80 \xf0\x9f\xa6 end",
    ]
    for name in DISTINCT:
        for sample in samples:
            yield {"encoding": name, "bytes": sample.hex(), "tokens": ENCODINGS[name]._encode_bytes(sample)}


def unstable_cases() -> Iterator[Case]:
    texts = ["", "hello fanta", "a  \n\n", "x\n", " \n ", "zqx", f"hi{EOT}", "日", "  !", "wond'l"]
    for name in DISTINCT:
        for text in texts:
            stable, completions = ENCODINGS[name].encode_with_unstable(text, allowed_special="all")
            ways = sorted(completions)
            outcome = (
                {"completions": ways}
                if len(ways) <= 40
                else {"count": len(ways), "crc": crc(token for way in ways for token in [*way, 0xFFFFFFFF])}
            )
            yield {"encoding": name, "text": text, "stable": stable, **outcome}


def custom_cases() -> Iterator[Case]:
    letters = [bytes([b]) for b in range(256)]
    ranks = {
        token: rank for rank, token in enumerate([*letters, b"ab", b"bc", b"abc", b"abcd", b"  ", b"cd"])
    }
    overlapping = {"<a": 300, "<ab": 301, "<abc>": 302, "b>": 303, "é<": 304, "<<": 305}
    customs = [
        {"pattern": r"\w+|\s+|[^\w\s]+", "specials": overlapping},
        {"pattern": r"(?s:.)+?(?=b|$)|b", "specials": {}},
        {"pattern": r"\p{L}+(?!c)|.", "specials": {"ab": 1000, "a": 4_000_000_000}},
        {"pattern": r"[a-c]+", "specials": overlapping},
    ]
    texts = ["abcd", "<abc><ab<a<<abcb>é<ab", "xyz abc\n\n ab", "aéb ", "bbabcabdc é"]
    for custom in customs:
        encoding = tiktoken.Encoding(
            "custom", pat_str=custom["pattern"], mergeable_ranks=ranks, special_tokens=custom["specials"]
        )
        described = {**custom, "specials": list(custom["specials"].items())}
        described |= {"ranks": {token.hex(): rank for token, rank in ranks.items() if rank >= 256}}
        for text in texts:
            for allowed in ([], "all", ["<a"], ["<abc>", "ab"]):
                allowed_set = allowed if allowed == "all" else set(allowed)
                tokens = encoding.encode(text, allowed_special=allowed_set, disallowed_special=())
                yield {"custom": described, "text": text, "allowed": allowed, "tokens": tokens}


def encoding_facts() -> list[Case]:
    return [
        {
            "name": name,
            "pattern": encoding._pat_str,
            "n_vocab": encoding.n_vocab,
            "n_ranks": len(encoding._mergeable_ranks),
            "specials": len(encoding._special_tokens),
            "specials_crc": crc(
                part
                for text, token in sorted(encoding._special_tokens.items())
                for part in [*text.encode(), token]
            ),
            "ranks_crc": crc(
                part for token, rank in sorted(encoding._mergeable_ranks.items()) for part in [*token, rank]
            ),
        }
        for name, encoding in ENCODINGS.items()
    ]


def model_facts() -> Case:
    return {
        "models": tiktoken.model.MODEL_TO_ENCODING,
        "prefixes": list(tiktoken.model.MODEL_PREFIX_TO_ENCODING.items()),
        "unknown": ["", "gpt", "text-davinci-004", "GPT-4", "o1mini", "ft:", "gpt-4.1x"],
    }


def write_lines(file: str, cases: Iterable[object]) -> None:
    text = "".join(json.dumps(case, separators=(",", ":")) + "\n" for case in cases)
    (HERE / file).write_text(text)


def main() -> None:
    write_lines("encode.jsonl", encode_cases())
    write_lines("runs.jsonl", run_cases())
    write_lines("code_points.jsonl", code_point_cases())
    write_lines("specials.jsonl", special_cases())
    write_lines("decode.jsonl", decode_cases())
    write_lines("single_tokens.jsonl", single_cases())
    write_lines("pieces.jsonl", piece_cases())
    write_lines("bytes.jsonl", bytes_cases())
    write_lines("unstable.jsonl", unstable_cases())
    write_lines("custom.jsonl", custom_cases())
    write_lines("encodings.jsonl", encoding_facts())
    (HERE / "models.json").write_text(json.dumps(model_facts(), indent=1) + "\n")


if __name__ == "__main__":
    main()
