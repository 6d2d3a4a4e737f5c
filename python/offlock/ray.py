"""Files of tokens, written by Ray on many processors or machines: each shard is a task, on a pool of actors.

The files are those that :meth:`offlock.pipeline.Tokens.write` makes in one process, byte for byte, and so is the list of
them, ``manifest.json``. Needs ``pip install offlock[ray]``, and a folder that all machines see under the same name::

    import offlock.ray
    from offlock import pipeline

    tokens = pipeline.read("/shared/corpus").tokens("o200k_base")
    summary = offlock.ray.write(tokens, "/shared/out", output="megatron")

A shard's files get their names when they are complete and on the disk. When a worker or a machine dies, Ray starts its
shard anew elsewhere; when the program dies, ``resume=True`` continues with the shards that were not finished.
"""

from __future__ import annotations

import contextlib
import importlib
import os
from typing import TYPE_CHECKING, Any, NamedTuple

from offlock.pipeline import Corpus, RecordError, Summary, Tokens, _Encoder

if TYPE_CHECKING:
    from offlock._types import Eos, TokenFiles

__all__ = ["write"]

MOST_FAILURES = 1000
"""The number of failures that a summary keeps."""


class _Run(NamedTuple):
    """What the actors work on."""

    corpus: Corpus
    encoder: _Encoder
    folder: str
    options: dict[str, Any]
    working_directory: str
    num_shards: int


class _Part(NamedTuple):
    """What became of a shard."""

    resumed: int
    failures: tuple[RecordError, ...]


class _Writer:
    """An actor, which keeps the encoding between shards."""

    def __init__(self) -> None:
        self._begun = False

    def begin(self, shared: list[Any]) -> None:
        """Gets the run from the reference in a list, and loads the encoding, for a first call.

        Not when the actor is made: Ray would not tell of what type an error is, and does not keep its arguments for an actor
        that is restarted. A reference in a list is not fetched with every call.
        """
        if self._begun:
            return
        self._run: _Run = _ray().get(shared[0])
        # For names of shards that are not absolute. If this machine has no such folder, they name no file either.
        with contextlib.suppress(OSError):
            os.chdir(self._run.working_directory)
        self._tokens = Tokens(self._run.corpus, self._run.encoder)
        self._begun = True

    def write(self, shared: list[Any], index: int) -> _Part:
        """Writes a shard, unless it is finished. After an actor was restarted, this can be its first call."""
        self.begin(shared)
        part = (index, self._run.num_shards)
        summary = self._tokens.write(self._run.folder, part=part, **self._run.options)
        return _Part(summary.resumed, summary.failures)


def write(
    tokens: Tokens,
    folder: str | os.PathLike[str],
    *,
    output: TokenFiles,
    eos: Eos | None = None,
    eos_token: str = "<|endoftext|>",
    resume: bool = False,
    num_actors: int | None = None,
    num_cpus: float = 1,
    max_retries: int = 3,
) -> Summary:
    """Writes the tokens of each shard to files in a folder, on Ray's actors; see :meth:`offlock.pipeline.Tokens.write`.

    ``num_actors`` work at a time; by default, as many as the cluster has processors for. Each has ``num_cpus`` of them,
    and as many threads. A shard whose worker dies is begun anew, ``max_retries`` times. Ray is started, or joined at the
    address in ``RAY_ADDRESS``, unless ``ray.init`` was called.

    Raises what :meth:`~offlock.pipeline.Tokens.write` raises, also what happens in a worker, an error of
    Ray when a shard's workers have died too often, and ``ImportError`` without Ray.
    """
    if num_actors is not None and num_actors < 1:
        raise ValueError(f"num_actors must be at least 1, it is {num_actors}")
    if num_cpus <= 0:
        raise ValueError(f"num_cpus must be more than 0, it is {num_cpus}")
    ray = _ray()
    place = os.path.abspath(folder)
    options: dict[str, Any] = {"output": output, "eos": eos, "eos_token": eos_token}
    tokens.prepare(place, resume=resume, **options)
    corpus = tokens.corpus._with_threads(max(1, int(num_cpus)))
    run = _Run(corpus, tokens._encoder, place, options, os.getcwd(), len(corpus.paths))
    parts = _parts(ray, run, num_actors, {"num_cpus": num_cpus, "max_task_retries": max_retries})
    resumed = sum(part.resumed for part in parts)
    failures = [failure for part in parts for failure in part.failures]
    summary = tokens.write(place, resume=True, **options)
    return summary._written_elsewhere(resumed, (*failures, *summary.failures)[:MOST_FAILURES])


def _ray() -> Any:
    try:
        return importlib.import_module("ray")
    except ImportError as error:
        raise ImportError("offlock.ray needs Ray: pip install offlock[ray]") from error


def _parts(ray: Any, run: _Run, num_actors: int | None, options: dict[str, Any]) -> list[_Part]:
    """Writes the shards on a pool of actors."""
    if not ray.is_initialized():
        ray.init()
    if num_actors is None:
        num_actors = int(ray.cluster_resources().get("CPU", 1) / options["num_cpus"])
    actor = ray.remote(max_restarts=-1, **options)(_Writer)
    pool = [actor.remote() for _ in range(max(1, min(num_actors, run.num_shards)))]
    try:
        return _distribute(ray, run, pool)
    finally:
        for each in pool:
            ray.kill(each)


def _distribute(ray: Any, run: _Run, pool: list[Any]) -> list[_Part]:
    """Gives one shard after the other to the actors that have begun: others may wait for a machine."""
    shared = [ray.put(run)]
    waiting: dict[Any, tuple[Any, int | None]] = {each.begin.remote(shared): (each, None) for each in pool}
    left = iter(range(run.num_shards))
    parts: dict[int, _Part] = {}
    while len(parts) < run.num_shards:
        [ready], _ = ray.wait(list(waiting), num_returns=1)
        each, index = waiting.pop(ready)
        result = _result(ray, ready, run, index)
        if index is not None:
            parts[index] = result
        if (index := next(left, None)) is not None:
            waiting[each.write.remote(shared, index)] = (each, index)
    return [parts[index] for index in range(run.num_shards)]


def _result(ray: Any, reference: Any, run: _Run, index: int | None) -> Any:
    try:
        return ray.get(reference)
    except ray.exceptions.RayTaskError as error:
        raise error.cause from error
    except ray.exceptions.RayError as error:
        if index is not None:
            error.add_note(f"while it was writing the tokens of {run.corpus.paths[index]}")
        raise
