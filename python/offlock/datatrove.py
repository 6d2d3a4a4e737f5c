"""A step of datatrove's pipelines that writes files of tokens.

Each task writes its part of the shards; once all have ended, the same step with one task writes the list of all files, and
makes what is missing. Needs datatrove: ``pip install offlock[datatrove]``::

    tokens = pipeline.read("corpus/", num_threads=1).tokens("o200k_base")
    step = TokensWriter(tokens, "out/", output="megatron")
    parts = LocalPipelineExecutor([step], tasks=64, workers=16, logging_dir="logs/parts")
    LocalPipelineExecutor([step], tasks=1, logging_dir="logs/list", depends=parts).run()

The files, and the list of them, are those that :meth:`offlock.pipeline.Tokens.write` makes in one process, byte for byte.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

try:
    from datatrove.pipeline.base import PipelineStep
except ImportError as error:
    raise ImportError("offlock.datatrove needs datatrove: pip install offlock[datatrove]") from error

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator

    from offlock._types import Eos, TokenFiles
    from offlock.pipeline import Tokens

__all__ = ["TokensWriter"]


class TokensWriter(PipelineStep):  # type: ignore[misc]
    """Writes the tokens of every shard that belongs to the task's rank; see :meth:`offlock.pipeline.Tokens.write`.

    Finished shards are left alone, so a task that has failed or was killed can run again. Documents of steps before it
    pass through: the step reads the shards itself.
    """

    name = "offlock"
    type = "🔢 - TOKENIZER"

    def __init__(
        self,
        tokens: Tokens,
        folder: str | os.PathLike[str],
        *,
        output: TokenFiles,
        eos: Eos | None = None,
        eos_token: str = "<|endoftext|>",
    ) -> None:
        super().__init__()
        self.tokens, self.folder = tokens, folder
        self.options: dict[str, Any] = {"output": output, "eos": eos, "eos_token": eos_token}

    def run(self, data: Any = None, rank: int = 0, world_size: int = 1) -> Iterator[Any]:
        """Passes documents on, and writes the shards of the task; of one task alone, all of them, and the list of files."""
        yield from data or ()
        way = {"resume": True} if world_size == 1 else {"part": (rank, world_size)}
        with self.track_time("task"):
            summary = self.tokens.write(self.folder, **way, **self.options)
        for label in ("documents", "bytes", "tokens", "failed"):
            self.stat_update(label, value=getattr(summary, label), unit="task")
