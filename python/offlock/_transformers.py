"""Puts offlock behind the fast tokenizers of Hugging Face's ``transformers``.

A fast tokenizer of ``transformers`` keeps a ``tokenizers.Tokenizer``. A :class:`Backend` takes its place: it is used like
the original, but texts are encoded by offlock. It returns to the original for what offlock does not do, and whenever the
original may have been changed it is converted and compared anew.
"""

from __future__ import annotations

import functools
import importlib
import logging
import re
import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

if TYPE_CHECKING:
    from typing import Self

LOGGER = logging.getLogger("offlock.tokenizer")

READING = {
    "decode", "decode_batch", "encode_special_tokens", "get_added_tokens_decoder", "get_vocab", "get_vocab_size",
    "id_to_token", "no_padding", "no_truncation", "enable_padding", "enable_truncation", "num_special_tokens_to_add",
    "padding", "save", "to_str", "token_to_id", "truncation",
}  # fmt: skip
"""What changes no id, apart from padding and truncation, which are looked at in each call."""

MODEL = [
    "dropout",
    "unk_token",
    "continuing_subword_prefix",
    "end_of_word_suffix",
    "byte_fallback",
    "ignore_merges",
]
"""What can be changed of a model."""

PROBES = [
    "", " ", "a", "Hello, world!", "  two  blanks ", "don't I'LL we'Re\u017f", "12345 1,000.00", "line\n\n\nlines\r\n",
    "naïve e\u0301 \u0041\u030a ﬁ Ⅷ", "日本語のテキスト。中文", "한국어 \u1112\u1161\u11ab", "🙂👨‍👩‍👧 \u200d", "\u0000\u0007\ufffd",
    "x = {'a': [1, 2]}  # code", "<s></s><|endoftext|>[CLS]", "\u00a0\u3000tab\tend ", "ẞß İ ſ K", "नमस्ते ไทย العربية",
]  # fmt: skip
"""Texts by which a conversion is checked."""

SURROGATES = re.compile("[\ud800-\udfff]")

Read = Callable[[bytes], Any]
_T = TypeVar("_T")


class TokenizerReport(NamedTuple):
    """What has become of a tokenizer.

    Attributes:
        name: the name or the path that it was loaded from.
        obstacle: the reason why it was left alone; ``None`` if offlock encodes its texts.
    """

    name: str
    obstacle: str | None


class TransformersPatch:
    """The patch of :func:`offlock.tokenizer.patch_transformers`, which it takes back with :meth:`undo` or at the end of a ``with``."""

    def __init__(self, read: Read) -> None:
        """Patches the class of all fast tokenizers. ``read`` makes offlock's from a file's content."""
        transformers = importlib.import_module("transformers")
        if int(transformers.__version__.split(".")[0]) < 5:
            raise RuntimeError(f"patch_transformers needs transformers 5, not {transformers.__version__}")
        self._read = read
        self._class: Any = transformers.PreTrainedTokenizerFast
        self._original: Callable[..., Any] | None = None
        self._met: weakref.WeakKeyDictionary[Any, str | None] = weakref.WeakKeyDictionary()
        self._patch()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.undo()

    def report(self) -> list[TokenizerReport]:
        """Returns the tokenizers that have encoded something since the patch, and why any were left alone."""
        return [TokenizerReport(_name(each), obstacle) for each, obstacle in list(self._met.items())]

    def undo(self) -> None:
        """Gives all tokenizers their own ``tokenizers.Tokenizer`` back."""
        if self._original is None:
            return
        self._class._encode_plus, self._original = self._original, None
        for tokenizer in list(self._met):
            if isinstance(tokenizer._tokenizer, Backend):
                tokenizer._tokenizer = tokenizer._tokenizer._original

    def _patch(self) -> None:
        original = self._class._encode_plus
        self._original = original

        @functools.wraps(original)
        def encode_plus(tokenizer: Any, *arguments: Any, **options: Any) -> Any:
            self._meet(tokenizer)
            return original(tokenizer, *arguments, **options)

        self._class._encode_plus = encode_plus

    def _meet(self, tokenizer: Any) -> None:
        if tokenizer in self._met or isinstance(tokenizer._tokenizer, Backend):
            return
        backend = Backend(tokenizer._tokenizer, self._read)
        self._met[tokenizer] = backend._obstacle
        if backend._obstacle is None:
            tokenizer._tokenizer = backend
        else:
            LOGGER.warning("%s is left to tokenizers: %s", _name(tokenizer), backend._obstacle)


def _name(tokenizer: Any) -> str:
    return str(getattr(tokenizer, "name_or_path", "") or type(tokenizer).__name__)


class Backend:
    """A ``tokenizers.Tokenizer`` whose texts are encoded by offlock."""

    def __init__(self, original: Any, read: Read) -> None:
        """Converts the tokenizer. ``_obstacle`` is the reason if that is not possible."""
        vars(self).update(_original=original, _read=read, _source="", _is_checked=False)
        vars(self).update(_ours=None, _obstacle=None)
        self._check()

    def __getattr__(self, name: str) -> Any:
        """Other attributes are the original's; some of them can be used to change it."""
        if name.startswith("_"):
            raise AttributeError(name)
        if name not in READING and name != "model":
            vars(self)["_is_checked"] = False
        return getattr(self._original, name)

    def __setattr__(self, name: str, value: object) -> None:
        if name not in READING:
            vars(self)["_is_checked"] = False
        setattr(self._original, name, value)

    def __reduce__(self) -> tuple[Any, ...]:
        """Copies and pickles are of the original."""
        return _same, (self._original,)

    def encode_batch(
        self, input: Any, is_pretokenized: bool = False, add_special_tokens: bool = True
    ) -> list[Any]:
        """Returns the encodings of texts."""
        encodings = None
        if not is_pretokenized and all(map(_is_text, input)):
            encodings = self._encode(list(input), add_special_tokens)
        if encodings is None:
            encodings = self._original.encode_batch(
                input, is_pretokenized=is_pretokenized, add_special_tokens=add_special_tokens
            )
        return encodings

    def _encode(self, texts: list[str], add_special_tokens: bool) -> list[Any] | None:
        ours, original = self._converted(), self._original
        if ours is None:
            return None
        rows = ours.encode_batch(
            texts, add_special_tokens=add_special_tokens, split_special_tokens=original.encode_special_tokens
        )
        truncation, padding = original.truncation, original.padding
        if truncation is not None and any(len(row) > truncation["max_length"] for row in rows):
            return None
        length = max(map(len, rows), default=0)
        if padding is not None:
            length = padding["length"] or length
            multiple = padding["pad_to_multiple_of"]
            length = -(-length // multiple) * multiple if multiple else length
        encode = functools.partial(original.encode, add_special_tokens=add_special_tokens)
        return [
            Encoding(row, length if padding else len(row), padding or {}, functools.partial(encode, text))
            for row, text in zip(rows, texts, strict=True)
        ]

    def _converted(self) -> Any:
        if not self._is_checked or self._model_state() != self._model:
            self._check()
        return self._ours

    def _check(self) -> None:
        """Converts the original, unless it is as it was."""
        own = vars(self)
        source = self._original.to_str()
        if source != self._source:
            ours, obstacle = _converted(type(self._original), source, self._read)
            if obstacle and self._source:
                LOGGER.warning("a changed tokenizer is left to tokenizers: %s", obstacle)
            own.update(_ours=ours, _obstacle=obstacle)
        own.update(_source=source, _is_checked=True, _model=self._model_state())

    def _model_state(self) -> list[object]:
        model = self._original.model
        return [getattr(model, name, None) for name in MODEL]


class Encoding:
    """An encoding: ids and masks, and an original for everything else, made when it is needed."""

    n_sequences = 1

    def __init__(self, ids: list[int], length: int, padding: dict[str, Any], make: Callable[[], Any]) -> None:
        """Fills the row up to a length."""
        count = max(0, length - len(ids))
        pads, zeros, ones = [padding.get("pad_id", 0)] * count, [0] * count, [1] * len(ids)
        types, none = [padding.get("pad_type_id", 0)] * count, [0] * len(ids)
        self._make = make
        self.overflowing: list[Any] = []
        if padding.get("direction") == "left":
            self.ids, self.attention_mask, self.type_ids = pads + ids, zeros + ones, types + none
        else:
            self.ids, self.attention_mask, self.type_ids = ids + pads, ones + zeros, none + types
        self._pad = {**padding, "length": length}

    def __len__(self) -> int:
        return len(self.ids)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self._full(), name)

    def __reduce__(self) -> tuple[Any, ...]:
        """Copies and pickles are of the original."""
        return _same, (self._full(),)

    def _full(self) -> Any:
        full = self.__dict__.get("_made")
        if full is None:
            full = self._make()
            if len(full.ids) < len(self.ids):
                options = {
                    name: self._pad[name] for name in ["direction", "pad_id", "pad_type_id", "pad_token"]
                }
                full.pad(self._pad["length"], **options)
            self.__dict__["_made"] = full
        return full


def _is_text(text: object) -> bool:
    """Whether a text is one for offlock, too, which would repair surrogates that are refused."""
    return type(text) is str and (text.isascii() or not SURROGATES.search(text))


def _same(original: _T) -> _T:
    return original


def _converted(kind: Any, source: str, read: Read) -> tuple[Any, str | None]:
    """Returns offlock's tokenizer, or the reason why there is none."""
    try:
        ours = read(source.encode())
    except ValueError as error:
        return None, str(error)
    theirs = kind.from_str(source)
    theirs.no_truncation()
    theirs.no_padding()
    texts = [*PROBES, *ours.added_tokens, *(f"a {token} b" for token in ours.added_tokens)]
    for split in [False, True]:
        theirs.encode_special_tokens = split
        for add in [False, True]:
            encodings = theirs.encode_batch(texts, add_special_tokens=add)
            rows = ours.encode_batch(texts, add_special_tokens=add, split_special_tokens=split)
            for text, row, encoding in zip(texts, rows, encodings, strict=True):
                if row != encoding.ids:
                    return None, f"the ids of {text!r} would differ"
                if any(encoding.type_ids):
                    return None, "its template has other types than 0"
    return ours, None
