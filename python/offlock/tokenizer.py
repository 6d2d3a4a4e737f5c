"""Tokenizers of models with byte-level byte pair encoding, without the interpreter lock.

``Tokenizer("path/to/model")`` reads a ``tokenizer.json`` (Llama 3, Qwen, DeepSeek, GPT-OSS, Phi-4 and others), Mistral's
``tekken.json`` or a ``.tiktoken`` file from the disk; nothing is downloaded. The ids are those of Hugging Face's
``tokenizers``.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, overload

from offlock import _aio
from offlock._chat_template import ChatTemplate
from offlock._chunks import Chunk, placed
from offlock._offlock import Cancel, ModelTokenizer, Stream
from offlock._transformers import TokenizerReport, TransformersPatch

if TYPE_CHECKING:
    from typing import Self

    import numpy as np
    import numpy.typing as npt
    from typing_extensions import Buffer

    from offlock._types import Boundary, Release

__all__ = ["Chunk", "Stream", "Tokenizer", "TokenizerReport", "TransformersPatch", "patch_transformers"]

FILES = ("tokenizer.json", "tekken.json")
"""The files of a model's folder that can be read without a pattern, in the order of preference."""


class Tokenizer(ModelTokenizer):
    """The tokenizer of a model: converts text to token ids and back. Immutable; can be shared between threads."""

    _arguments: tuple[str | bytes, str | None, dict[str, int] | None]

    def __new__(
        cls,
        source: str | os.PathLike[str] | Buffer,
        *,
        pattern: str | None = None,
        special_tokens: Mapping[str, int] | None = None,
    ) -> Self:
        """Reads a model's files.

        ``source`` is a file, the folder of a model, or the content of a file as bytes. In a folder, ``tokenizer.json``
        is preferred to ``tekken.json``; with a pattern, the only ``.tiktoken`` file is read.

        A ``.tiktoken`` file has a vocabulary alone: ``pattern`` is the regular expression that matches one piece of
        text, and ``special_tokens`` maps the texts of special tokens to their ids.

        Raises ``ValueError`` for a file that is not valid, and for a model that is not byte-level byte pair encoding;
        the message names what is missing. Raises ``FileNotFoundError`` when there is no file.
        """
        if special_tokens is not None and pattern is None:
            raise ValueError("special_tokens are for .tiktoken files, which need a pattern too")
        if isinstance(source, (str, os.PathLike)):
            if not os.fspath(source):
                raise FileNotFoundError("the path of the tokenizer's file is empty")
            kept: str | bytes = os.path.abspath(source)
            content = _file(Path(source), pattern is not None).read_bytes()
        else:
            kept = content = source if type(source) is bytes else bytes(memoryview(source))
        specials = None if special_tokens is None else dict(special_tokens)
        self = super().__new__(cls, content, pattern, specials)
        self._arguments = (kept, pattern, specials)
        return self

    def __repr__(self) -> str:
        return f"<Tokenizer with {self.vocab_size} tokens>"

    def __reduce__(self) -> tuple[object, ...]:
        """Pickles the path, which is read again, or the content that was given."""
        return _restore, (type(self), *self._arguments)

    def encode_to_numpy(
        self,
        text: str,
        *,
        add_special_tokens: bool = True,
        split_special_tokens: bool = False,
        release: Release = "auto",
    ) -> npt.NDArray[np.uint32]:
        """Like ``encode``, but returns a read-only numpy array, without a copy of the ids."""
        import numpy as np

        packed = self.encode_packed(
            text,
            add_special_tokens=add_special_tokens,
            split_special_tokens=split_special_tokens,
            release=release,
        )
        return np.frombuffer(packed, dtype=np.uint32)

    def encode_batch_to_numpy(
        self,
        texts: Iterable[str],
        *,
        max_length: int | None = None,
        truncation_side: Literal["left", "right"] = "right",
        pad_to: int | None = None,
        pad_to_multiple_of: int = 1,
        pad_token_id: int = 0,
        padding_side: Literal["left", "right"] = "right",
        num_threads: int | None = 8,
        add_special_tokens: bool = True,
        split_special_tokens: bool = False,
        release: Release = "auto",
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Encodes many texts into two arrays with a row for each: the ids, and the attention mask.

        A text with more than ``max_length`` tokens, those of the template included, loses tokens on the
        ``truncation_side``. Shorter rows are filled up with ``pad_token_id`` on the ``padding_side``, to the length of the
        longest row, but to ``pad_to`` at least, rounded up to a multiple of ``pad_to_multiple_of``. The mask has 1 for
        tokens and 0 for what fills a row up.
        """
        import numpy as np

        for name, value in [
            ("max_length", max_length),
            ("pad_to", pad_to),
            ("pad_to_multiple_of", pad_to_multiple_of),
            ("pad_token_id", pad_token_id),
        ]:
            if value is not None and value < 0:
                raise ValueError(f"{name} must not be negative, it is {value}")
        ids, mask, *shape = self._encode_padded(
            texts,
            max_length=max_length,
            truncation_side=truncation_side,
            length=pad_to,
            multiple_of=pad_to_multiple_of,
            pad_token=pad_token_id,
            padding_side=padding_side,
            num_threads=num_threads,
            add_special_tokens=add_special_tokens,
            split_special_tokens=split_special_tokens,
            release=release,
            cancel=None,
        )
        # No generators: CPython 3.12 may crash when there is no memory for one.
        first = np.frombuffer(ids, dtype=np.int64).reshape(shape)
        second = np.frombuffer(mask, dtype=np.int64).reshape(shape)
        return first, second

    @overload
    def apply_chat_template(
        self,
        messages: Iterable[Mapping[str, Any]],
        *,
        tokenize: Literal[True] = True,
        chat_template: str | None = None,
        tools: Sequence[Mapping[str, Any]] | None = None,
        add_generation_prompt: bool = False,
        **variables: object,
    ) -> list[int]: ...

    @overload
    def apply_chat_template(
        self,
        messages: Iterable[Mapping[str, Any]],
        *,
        tokenize: Literal[False],
        chat_template: str | None = None,
        tools: Sequence[Mapping[str, Any]] | None = None,
        add_generation_prompt: bool = False,
        **variables: object,
    ) -> str: ...

    def apply_chat_template(
        self,
        messages: Iterable[Mapping[str, Any]],
        *,
        tokenize: bool = True,
        chat_template: str | None = None,
        tools: Sequence[Mapping[str, Any]] | None = None,
        add_generation_prompt: bool = False,
        **variables: object,
    ) -> list[int] | str:
        """Returns the prompt that the messages of a chat are for the model: ids or, with ``tokenize=False``, text.

        The arguments are those of the method of that name in ``transformers``, but those that shape its result, such as
        ``padding``, ``return_tensors`` or ``continue_final_message``, raise ``TypeError``. The template and the tokens that it uses
        come from ``tokenizer_config.json``, ``chat_template.jinja`` and ``additional_chat_templates`` in the tokenizer's
        folder. ``chat_template`` is the name of one of several, or a template itself. ``tools`` are dicts of JSON
        schemas. Templates are rendered by the package ``jinja2``, in a sandbox, with the lock held; ``variables`` are
        for them. As in ``transformers``, keys of a message without a value (``None``) are left out.

        Raises ``ValueError`` when there is no template or no message, when the template refuses the messages, and for
        a ``tokenizer_config.json`` that is not valid; ``ImportError`` without ``jinja2``, and the exceptions of ``jinja2``.
        """
        found = self.__dict__.get("_chat_template") or ChatTemplate(self._arguments[0])
        template: ChatTemplate = self.__dict__.setdefault("_chat_template", found)
        text = template.render(messages, chat_template, tools, add_generation_prompt, variables)
        return self.encode(text, add_special_tokens=False) if tokenize else text

    def num_tokens_from_messages(
        self,
        messages: Iterable[Mapping[str, Any]],
        *,
        chat_template: str | None = None,
        tools: Sequence[Mapping[str, Any]] | None = None,
        add_generation_prompt: bool = True,
        **variables: object,
    ) -> int:
        """Returns the number of tokens of the prompt that the messages of a chat are for the model.

        The arguments and exceptions are those of :meth:`apply_chat_template`. The beginning of the reply counts, unless
        ``add_generation_prompt`` is false.
        """
        text = self.apply_chat_template(
            messages,
            tokenize=False,
            chat_template=chat_template,
            tools=tools,
            add_generation_prompt=add_generation_prompt,
            **variables,
        )
        return self.count(text, add_special_tokens=False)

    async def aencode(
        self, text: str, *, add_special_tokens: bool = True, split_special_tokens: bool = False
    ) -> list[int]:
        """``encode`` for asyncio.

        A long text is encoded on another thread while the event loop runs. Cancelling the await ends that work.
        """
        return await _aio.run(
            len(text),
            lambda cancel: self.encode(
                text,
                add_special_tokens=add_special_tokens,
                split_special_tokens=split_special_tokens,
                cancel=cancel,
            ),
        )

    async def aencode_batch(
        self,
        texts: Iterable[str],
        *,
        num_threads: int | None = 8,
        add_special_tokens: bool = True,
        split_special_tokens: bool = False,
    ) -> list[list[int]]:
        """``encode_batch`` for asyncio; see :meth:`aencode`."""
        listed = list(texts)
        return await _aio.run(
            sum(map(len, listed)),
            lambda cancel: self.encode_batch(
                listed,
                num_threads=num_threads,
                add_special_tokens=add_special_tokens,
                split_special_tokens=split_special_tokens,
                cancel=cancel,
            ),
        )

    async def acount(
        self, text: str, *, add_special_tokens: bool = True, split_special_tokens: bool = False
    ) -> int:
        """``count`` for asyncio; see :meth:`aencode`."""
        return await _aio.run(
            len(text),
            lambda cancel: self.count(
                text,
                add_special_tokens=add_special_tokens,
                split_special_tokens=split_special_tokens,
                cancel=cancel,
            ),
        )

    async def acount_batch(
        self,
        texts: Iterable[str],
        *,
        num_threads: int | None = 8,
        add_special_tokens: bool = True,
        split_special_tokens: bool = False,
    ) -> list[int]:
        """``count_batch`` for asyncio; see :meth:`aencode`."""
        listed = list(texts)
        return await _aio.run(
            sum(map(len, listed)),
            lambda cancel: self.count_batch(
                listed,
                num_threads=num_threads,
                add_special_tokens=add_special_tokens,
                split_special_tokens=split_special_tokens,
                cancel=cancel,
            ),
        )

    async def atruncate(
        self,
        text: str,
        max_tokens: int,
        *,
        add_special_tokens: bool = True,
        split_special_tokens: bool = False,
    ) -> str:
        """``truncate`` for asyncio; see :meth:`aencode`."""
        return await _aio.run(
            len(text),
            lambda cancel: self.truncate(
                text,
                max_tokens,
                add_special_tokens=add_special_tokens,
                split_special_tokens=split_special_tokens,
                cancel=cancel,
            ),
        )

    def chunks(
        self,
        text: str,
        max_tokens: int,
        *,
        overlap: int = 0,
        boundary: Boundary = "token",
        release: Release = "auto",
        cancel: Cancel | None = None,
    ) -> list[Chunk]:
        """Cuts ``text`` into chunks of at most ``max_tokens`` tokens, each as long as it can be.

        As :meth:`offlock.tiktoken.Encoding.chunks`, which describes the arguments. The number of tokens of a chunk is
        that of its text without the model's template, ``count(chunk.text, add_special_tokens=False)``. An added token,
        such as ``<|im_end|>``, is not cut. A chunk of a text that the model normalizes to another one may be shorter
        than it could be.
        """
        chunks = self._chunks(
            text, max_tokens, Chunk, overlap=overlap, boundary=boundary, release=release, cancel=cancel
        )
        return placed(text, chunks)

    async def achunks(
        self, text: str, max_tokens: int, *, overlap: int = 0, boundary: Boundary = "token"
    ) -> list[Chunk]:
        """``chunks`` for asyncio; see :meth:`aencode`."""
        return await _aio.run(
            len(text),
            lambda cancel: self.chunks(text, max_tokens, overlap=overlap, boundary=boundary, cancel=cancel),
        )

    async def adecode(
        self, tokens: Sequence[int], errors: str = "replace", *, skip_special_tokens: bool = True
    ) -> str:
        """``decode`` for asyncio; see :meth:`aencode`."""
        return await _aio.run(
            len(tokens),
            lambda cancel: self.decode(
                tokens, errors, skip_special_tokens=skip_special_tokens, cancel=cancel
            ),
        )


def patch_transformers() -> TransformersPatch:
    """Lets the fast tokenizers of ``transformers`` encode texts with offlock, where the ids are the same.

    Each tokenizer is converted when it first encodes something, and compared with its own results. One that offlock cannot
    read, or whose ids would differ, is left alone: ``report()`` of the result and the logger ``offlock.tokenizer`` say
    why. So are single calls with pairs of texts, words instead of texts, or texts that have to be cut. Offsets and
    everything else that a result has besides ids and masks come from the original, when they are asked for. If a program
    changes a tokenizer, it is converted and compared anew.

    ``undo()`` of the result, or the end of a ``with`` block, takes the patch back. Raises ``ImportError`` without
    ``transformers``, and ``RuntimeError`` for a version before 5.
    """
    return TransformersPatch(Tokenizer)


def _restore(
    cls: type[Tokenizer], source: str | bytes, pattern: str | None, special_tokens: dict[str, int] | None
) -> Tokenizer:
    return cls(source, pattern=pattern, special_tokens=special_tokens)


def _file(path: Path, has_pattern: bool) -> Path:
    """Returns the file to read: ``path`` itself, or the one in this folder."""
    if not path.is_dir():
        return path
    if has_pattern:
        files = sorted(path.glob("*.tiktoken"))
        if len(files) != 1:
            raise FileNotFoundError(f"{path} has {len(files)} .tiktoken files, not one")
        return files[0]
    for name in FILES:
        if (path / name).is_file():
            return path / name
    raise FileNotFoundError(f"{path} has neither {' nor '.join(FILES)}")
