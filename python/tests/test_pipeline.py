"""Shards counted, written and read in batches, compared with the slow and obvious way."""

from __future__ import annotations

import asyncio
import gzip
import itertools
import json
import os
import pickle
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from test_tokenizer import FILE

import offlock
from offlock import msgpack, pipeline, tiktoken
from offlock.tokenizer import Tokenizer

ENCODING = tiktoken.get_encoding("gpt2")
TEXTS = [f"document {number} of many, {'blah ' * (number % 50)}é\n" for number in range(3000)]


def shard(folder: Path, name: str, texts: list[str]) -> Path:
    """Writes texts to a shard of the format and compression that its name says."""
    if "msgpack" in name:
        content = b"".join(msgpack.packb({"id": number, "text": text}) for number, text in enumerate(texts))
    else:
        content = "\n".join(json.dumps({"text": text}) for text in texts).encode()
    path = folder / name
    path.write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
    return path


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    folder = tmp_path / "corpus"
    folder.mkdir()
    shard(folder, "a.jsonl.gz", TEXTS[:1000])
    shard(folder, "b.msgpack", TEXTS[1000:2000])
    shard(folder, "c.jsonl", TEXTS[2000:])
    return folder


@pytest.fixture
def large(tmp_path: Path) -> Path:
    """A shard of about 20 MB, which takes a second to encode: its texts do not repeat words."""
    chance = random.Random(7)
    letters = bytes(
        ord("abcdefghijklmnop"[number % 16]) if number % 10 else ord(" ") for number in range(256)
    )
    texts = [chance.randbytes(7_000).translate(letters).decode() for _ in range(3000)]
    return shard(tmp_path, "large.jsonl", texts)


def threads_of_pipelines() -> int:
    names = (task / "comm" for task in Path("/proc/self/task").iterdir())
    return sum(name.read_text().startswith("offlock-pipelin") for name in names if name.exists())


def within(seconds: float, condition: Callable[[], bool]) -> bool:
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.01)
    return True


@pytest.mark.parametrize("num_threads", [None, 1, 3])
def test_count(corpus: Path, num_threads: int | None) -> None:
    summary = pipeline.read(corpus, num_threads=num_threads).tokens("gpt2").count()
    lengths = sorted(len(ENCODING.encode_ordinary(text)) for text in TEXTS)
    assert (summary.documents, summary.tokens) == (3000, sum(lengths))
    assert summary.bytes == sum(len(text.encode()) for text in TEXTS)
    assert (summary.failed, summary.failures, summary.resumed) == (0, (), 0)
    assert (summary.longest, summary.percentile(50)) == (lengths[-1], lengths[1499])
    paths = [str(corpus / name) for name in ("a.jsonl.gz", "b.msgpack", "c.jsonl")]
    assert [shard.path for shard in summary.shards] == paths
    assert [(shard.documents, shard.failed, shard.files) for shard in summary.shards] == [(1000, 0, ())] * 3
    assert sum(shard.tokens for shard in summary.shards) == summary.tokens
    assert "3000 documents" in repr(summary)
    assert "a.jsonl.gz: 1000 documents" in repr(summary.shards[0])


@pytest.mark.parametrize("num_threads", [None, 1, 3])
def test_batches(corpus: Path, num_threads: int | None) -> None:
    tokens = pipeline.read(corpus, num_threads=num_threads).tokens("gpt2")
    lists: list[list[int]] = []
    for batch in tokens:
        lists += batch.lists()
        ids, offsets = batch.to_numpy()
        assert (ids.dtype.name, offsets.dtype.name, ids.flags.writeable) == ("uint32", "uint64", False)
        cut = [ids[a:b].tolist() for a, b in itertools.pairwise(offsets)]
        assert cut == batch.lists()
        assert len(batch) == len(cut)
        assert memoryview(batch.tokens).cast("I").tolist() == ids.tolist()
        numbers = memoryview(batch.records).cast("Q").tolist()
        assert numbers == list(range(numbers[0], numbers[0] + len(batch)))
        assert (batch.failed, batch.failures) == (0, ())
        assert repr(batch).startswith(f"<Batch of {len(batch)} documents of {batch.path}, ")
    assert lists == [ENCODING.encode_ordinary(text) for text in TEXTS]


def test_batches_become_arrow_arrays(corpus: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    for batch in pipeline.read(corpus).tokens("gpt2"):
        ids, offsets = batch.to_numpy()
        array = pyarrow.LargeListArray.from_arrays(offsets.view("int64"), ids)
        assert array.to_pylist() == batch.lists()


def test_progress_of_batches(large: Path) -> None:
    with pipeline.read(large).tokens("gpt2").batches() as batches:
        assert batches.bytes_total == large.stat().st_size
        seen = [batches.bytes_read for _ in batches]
    assert seen == sorted(seen)
    assert seen[-1] == batches.bytes_total


def test_write_and_resume(corpus: Path, tmp_path: Path) -> None:
    tokens = pipeline.read(corpus).tokens("gpt2")
    summary = tokens.write(tmp_path / "out", output="nanogpt")
    assert [shard.files for shard in summary.shards] == [("a.bin",), ("b.bin",), ("c.bin",)]
    ids = np.fromfile(tmp_path / "out" / "b.bin", dtype=np.uint16)
    eot = ENCODING.eot_token
    expected = [id for text in TEXTS[1000:2000] for id in [*ENCODING.encode_ordinary(text), eot]]
    assert ids.tolist() == expected
    with pytest.raises(ValueError, match=r"out: .*resume"):
        tokens.write(tmp_path / "out", output="nanogpt")
    assert tokens.write(tmp_path / "out", output="nanogpt", resume=True).resumed == 3
    without = tokens.write(tmp_path / "none", output="nanogpt", eos="none")
    assert without.tokens == summary.tokens - 3000


def test_the_command_continues_what_the_library_wrote(corpus: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    pipeline.read(corpus).tokens("gpt2").write(out, output="megatron")
    command = [sys.executable, "-m", "offlock", "tokens", "write", str(corpus), "-o", str(out), "--resume"]
    command += ["--encoding", "gpt2", "--output", "megatron", "--json"]
    run = subprocess.run(command, capture_output=True, check=True)
    assert json.loads(run.stdout)["resumed"] == 3


def contents(folder: Path) -> dict[str, bytes]:
    files = (path for path in folder.rglob("*") if path.is_file() and path.name != "lock")
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def test_parts_of_a_run_in_other_processes(corpus: Path, tmp_path: Path) -> None:
    (corpus / "b c").mkdir()
    shard(corpus, "b c/empty.jsonl", [])
    tokens = pipeline.read(corpus).tokens("gpt2")
    out = tmp_path / "out"
    tokens.write(tmp_path / "whole", output="megatron")
    tokens.prepare(out, output="megatron")
    program = """
import pickle, sys
tokens = pickle.load(sys.stdin.buffer)
summary = tokens.write(sys.argv[1], output="megatron", part=(int(sys.argv[2]), 3))
print(len(summary.shards), summary.resumed)
"""
    packed = pickle.dumps(tokens)
    # Parts know their shards by the list that they were given, not by what lies in the folder now.
    shard(corpus, "another.jsonl", [])
    for resumed in (0, 1):
        said = []
        for index in range(3):
            command = [sys.executable, "-c", program, str(out), str(index)]
            said.append(subprocess.run(command, input=packed, capture_output=True, check=True).stdout)
        assert said == [f"{shards} {resumed * shards}\n".encode() for shards in (2, 1, 1)]
    assert not (out / "manifest.json").exists()
    with pytest.raises(ValueError, match="results of an earlier run; resume it"):
        tokens.prepare(out, output="megatron")
    summary = asyncio.run(tokens.awrite(out, output="megatron", resume=True))
    assert (summary.documents, summary.resumed) == (3000, 4)
    assert contents(out) == contents(tmp_path / "whole")


def test_parts_that_there_cannot_be(corpus: Path, tmp_path: Path) -> None:
    tokens = pipeline.read(corpus).tokens("gpt2")
    for part in ((1, 1), (-1, 2), (0, 0), (0, -1)):
        with pytest.raises(ValueError, match="part must be an index and a greater count, not"):
            tokens.write(tmp_path / "out", output="llmc", part=part)
    for wrong in (1, "01", [0, 2], (0, 1.5)):
        with pytest.raises(TypeError):
            tokens.write(tmp_path / "out", output="llmc", part=wrong)  # type: ignore[arg-type]
    assert not (tmp_path / "out").exists()
    assert asyncio.run(tokens.awrite(tmp_path / "out", output="llmc", part=(7, 8))).shards == ()


def test_tokens_are_pickled_with_everything(tmp_path: Path) -> None:
    from test_tokenizer import FILE

    (tmp_path / "tokenizer.json").write_text(json.dumps(FILE))
    path = tmp_path / "a.jsonl"
    path.write_text('{"data": {"text": "ab"}}\n{"text": "longer than the others, by far"}\n{}\n')
    options: dict[str, Any] = {"format": "jsonl", "max_doc_bytes": 25, "on_error": "report", "num_threads": 2}
    corpus = pipeline.read(path, **options).field("data", "text")
    loaded = Tokenizer(json.dumps(FILE).encode())
    chosen = [corpus.tokens("gpt2"), corpus.tokens(model="gpt-4")]
    for tokens in (*chosen, corpus.tokens(tokenizer=tmp_path), corpus.tokens(tokenizer=loaded)):
        copy = pickle.loads(pickle.dumps(tokens))
        assert (type(copy), copy.name, copy.corpus.paths) == (pipeline.Tokens, tokens.name, (str(path),))
        counts = [each.count() for each in (tokens, copy)]
        assert [(count.documents, count.tokens, count.failed) for count in counts] == [
            (1, counts[0].tokens, 2)
        ] * 2
        assert [str(failure) for failure in counts[0].failures] == list(map(str, counts[1].failures))
    assert "longer than 25 bytes" in str(counts[1].failures)


def test_engines_that_are_not_installed_are_named(
    corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import offlock.ray

    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(ImportError, match=r"pip install offlock\[ray\]"):
        offlock.ray.write(pipeline.read(corpus).tokens("gpt2"), tmp_path / "out", output="llmc")
    assert not (tmp_path / "out").exists()
    monkeypatch.setitem(sys.modules, "datatrove", None)
    with pytest.raises(ImportError, match=r"pip install offlock\[datatrove\]"):
        import offlock.datatrove


def test_fields_and_formats(tmp_path: Path) -> None:
    path = tmp_path / "nested.jsonl"
    path.write_text('{"data": {"text": "one two"}, "text": "three"}\n')
    corpus = pipeline.read(path)
    assert corpus.field("data", "text").tokens("gpt2").count().tokens == 2
    assert corpus.tokens("gpt2").count().tokens == 1
    assert pipeline.read(path, format="lines").tokens("gpt2").count().bytes == path.stat().st_size - 1
    assert (corpus.paths, corpus.size) == ((str(path),), path.stat().st_size)
    assert repr(corpus) == f"<Corpus of 1 shards, {corpus.size} bytes>"
    with pytest.raises(TypeError, match="keys that lead to the text"):
        corpus.field()


def test_choices_of_the_encoding(corpus: Path, tmp_path: Path) -> None:
    shards = pipeline.read(corpus)
    assert shards.tokens().name == "o200k_base"
    assert shards.tokens(model="gpt-4").name == "cl100k_base"
    choices: list[tuple[dict[str, Any], str]] = [
        ({"encoding": "gpt5"}, "gpt5: this encoding is not known"),
        ({"model": "gtp-4"}, "gtp-4: this model is not known"),
        ({"model": "gpt-4", "encoding": "gpt2"}, "only one of"),
    ]
    for arguments, message in choices:
        with pytest.raises(ValueError, match=message):
            shards.tokens(**arguments)
    with pytest.raises(FileNotFoundError) as caught:
        shards.tokens(tokenizer=tmp_path / "none")
    assert caught.value.filename == str(tmp_path / "none")
    (tmp_path / "tokenizer.json").write_text("{}")
    with pytest.raises(ValueError, match=r"tokenizer\.json"):
        shards.tokens(tokenizer=tmp_path)


def test_wrong_arguments(corpus: Path, tmp_path: Path) -> None:
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"format": "csv"}, "format must be 'jsonl', 'msgpack', 'lines', 'text', 'parquet', not 'csv'"),
        ({"on_error": "ignore"}, "on_error must be 'fail', 'skip', 'report', not 'ignore'"),
        ({"max_doc_bytes": 0}, "max_doc_bytes must be at least 1, it is 0"),
        ({"num_threads": 0}, "num_threads must be at least 1, it is 0"),
    ]
    for arguments, message in wrong:
        with pytest.raises(ValueError, match=message):
            pipeline.read(corpus, **arguments).tokens("gpt2")
    tokens = pipeline.read(corpus).tokens("gpt2")
    with pytest.raises(ValueError, match="output must be 'megatron', "):
        tokens.write(tmp_path / "out", output="csv")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="eos must be 'append', 'prepend', 'none', not 'both'"):
        tokens.write(tmp_path / "out", output="llmc", eos="both")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="percent must be between 0 and 100, it is 101"):
        tokens.count().percentile(101)
    with pytest.raises(FileNotFoundError) as caught:
        pipeline.read(tmp_path / "none")
    assert (caught.value.filename, caught.value.errno) == (str(tmp_path / "none"), 2)
    (tmp_path / "empty").mkdir()
    with pytest.raises(ValueError, match="no file in this folder"):
        pipeline.read([tmp_path / "empty"])


def test_records_that_fail(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(b'{"text":"one"}\n{"text":5}\n{"text":"\xff"}\n{"text":"two"}')
    tokens = pipeline.read(path).tokens("gpt2")
    for run in (tokens.count, lambda: list(tokens)):
        with pytest.raises(pipeline.RecordError, match="not a string but a number") as caught:
            run()
        error = caught.value
        assert (error.path, error.record, error.offset) == (str(path), 2, 15)
        copy = pickle.loads(pickle.dumps(error))
        assert (str(copy), copy.record, copy.offset) == (str(error), 2, 15)

    skipped = pipeline.read(path, on_error="skip").tokens("gpt2")
    assert (skipped.count().failed, skipped.count().failures) == (2, ())
    reported = pipeline.read(path, on_error="report").tokens("gpt2")
    [batch] = reported
    assert batch.lists() == [ENCODING.encode("one"), ENCODING.encode("two")]
    for failures in (reported.count().failures, batch.failures):
        assert [(error.record, error.offset) for error in failures] == [(2, 15), (3, 26)]
    assert memoryview(batch.records).cast("Q").tolist() == [1, 4]


def test_at_most_a_thousand_failures_are_kept(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text("{}\n" * 3000)
    summary = pipeline.read(path, on_error="report").tokens("gpt2").count()
    assert (summary.failed, len(summary.failures)) == (3000, 1000)


def test_truncated_data(tmp_path: Path) -> None:
    path = shard(tmp_path, "a.jsonl.gz", TEXTS)
    path.write_bytes(path.read_bytes()[:-10])
    with pytest.raises(pipeline.RecordError, match="the gzip data ends early"):
        pipeline.read(path).tokens("gpt2").count()


def test_other_threads_run_meanwhile(large: Path) -> None:
    """A thread that wakes every millisecond is as punctual as beside an idle program, within what a busy machine does."""
    latest, done = 0.0, threading.Event()

    def probe() -> None:
        nonlocal latest
        while not done.is_set():
            began = time.perf_counter()
            time.sleep(0.001)
            latest = max(latest, time.perf_counter() - began)

    thread = threading.Thread(target=probe)
    thread.start()
    pipeline.read(large).tokens("gpt2").count()
    done.set()
    thread.join()
    assert latest < 0.2


def test_threads_end_with_the_iterator(large: Path) -> None:
    before = threads_of_pipelines()
    tokens = pipeline.read(large, num_threads=3).tokens("gpt2")
    with tokens.batches() as batches:
        next(batches)
        assert threads_of_pipelines() > before
    assert within(5, lambda: threads_of_pipelines() == before)
    assert batches.next() is None

    for batch in tokens:  # noqa: B007
        break
    assert within(5, lambda: threads_of_pipelines() == before)

    left = tokens.batches()
    next(left)
    del left
    assert within(5, lambda: threads_of_pipelines() == before)


def test_cancel(large: Path) -> None:
    from concurrent.futures import CancelledError

    tokens = pipeline.read(large).tokens("gpt2")
    cancel = offlock.Cancel()
    timer = threading.Timer(0.1, cancel.cancel)
    timer.start()
    began = time.perf_counter()
    with pytest.raises(CancelledError):
        tokens.count(cancel=cancel)
    assert time.perf_counter() - began < 0.5
    with tokens.batches() as batches:
        with pytest.raises(CancelledError):
            batches.next(cancel=cancel)
        assert sum(map(len, batches)) > 0


def test_signals_end_a_run(large: Path, tmp_path: Path) -> None:
    tokens = pipeline.read(large).tokens("gpt2")

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    previous = signal.signal(signal.SIGALRM, interrupt)
    try:
        for run in (
            tokens.count,
            lambda: tokens.write(tmp_path / "out", output="nanogpt"),
            lambda: list(tokens),
        ):
            signal.setitimer(signal.ITIMER_REAL, 0.1)
            began = time.perf_counter()
            with pytest.raises(KeyboardInterrupt):
                run()
            assert time.perf_counter() - began < 0.5
    finally:
        signal.signal(signal.SIGALRM, previous)
    assert tokens.write(tmp_path / "out", output="nanogpt", resume=True).documents == 3000


def test_asyncio(corpus: Path, tmp_path: Path) -> None:
    tokens = pipeline.read(corpus).tokens("gpt2")

    async def main() -> None:
        summary = await tokens.acount()
        lists = [document async for batch in tokens for document in batch.lists()]
        assert lists == [ENCODING.encode_ordinary(text) for text in TEXTS]
        written = await tokens.awrite(tmp_path / "out", output="llmc", eos="none")
        assert (summary.documents, written.tokens) == (3000, summary.tokens)

    asyncio.run(main())


def test_an_event_loop_runs_while_it_waits_for_batches(large: Path) -> None:
    tokens = pipeline.read(large).tokens("gpt2")

    async def main() -> int:
        ticks = 0

        async def tick() -> None:
            nonlocal ticks
            while True:
                await asyncio.sleep(0.001)
                ticks += 1

        ticking = asyncio.create_task(tick())
        async for _ in tokens:
            pass
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(tokens.acount(), 0.05)
        ticking.cancel()
        return ticks

    assert asyncio.run(main()) > 20


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_the_child_of_a_fork_begins_anew(large: Path) -> None:
    tokens = pipeline.read(large).tokens("gpt2")
    batches = tokens.batches()
    next(batches)

    def child() -> None:
        with pytest.raises(ValueError, match="begin anew"):
            next(batches)
        batches.close()
        assert len(next(iter(tokens))) > 0

    pid = os.fork()
    if pid == 0:
        signal.alarm(60)
        status = 1
        try:
            child()
            status = 0
        finally:
            os._exit(status)
    assert os.waitpid(pid, 0)[1] == 0
    assert next(batches)


def test_several_threads_share_an_iterator(corpus: Path) -> None:
    batches = pipeline.read(corpus).tokens("gpt2").batches()
    counts: list[int] = []
    workers = [threading.Thread(target=lambda: counts.extend(map(len, batches))) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert sum(counts) == 3000


def test_memory_does_not_grow_with_the_shards(tmp_path: Path) -> None:
    shard(tmp_path, "a.jsonl.gz", [text * 100 for text in TEXTS])
    for number in range(4):
        os.link(tmp_path / "a.jsonl.gz", tmp_path / f"b{number}.jsonl.gz")
    program = """
import sys
from offlock import pipeline
for batch in pipeline.read(sys.argv[1]).tokens("gpt2"): pass
print(next(line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM:")))
"""
    run = subprocess.run([sys.executable, "-c", program, str(tmp_path)], capture_output=True, check=True)
    assert int(run.stdout) < 150 << 10


def test_progress_is_told(large: Path, tmp_path: Path) -> None:
    tokens = pipeline.read(large, num_threads=2).tokens("gpt2")
    size = large.stat().st_size
    for call in [tokens.count, lambda **more: tokens.write(tmp_path / "out", output="llmc", **more)]:
        told: list[tuple[int, int]] = []
        threads: set[int] = set()

        def progress(done: int, total: int) -> None:
            told.append((done, total))  # noqa: B023
            threads.add(threading.get_ident())  # noqa: B023

        call(progress=progress)
        assert {total for _, total in told} == {size}
        assert [done for done, _ in told] == sorted(done for done, _ in told)
        assert told[-1] == (size, size)
        assert len(told) > 3
        assert threads == {threading.get_ident()}


def test_what_progress_raises_ends_the_run(large: Path) -> None:
    calls: list[int] = []

    def progress(done: int, total: int) -> None:
        calls.append(done)
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        pipeline.read(large).tokens("gpt2").count(progress=progress)
    assert len(calls) == 1
    assert calls[0] < large.stat().st_size


def test_progress_is_told_in_other_threads_too(large: Path) -> None:
    told: list[int] = []
    tokens = pipeline.read(large).tokens("gpt2")
    thread = threading.Thread(target=lambda: tokens.count(progress=lambda done, total: told.append(done)))
    thread.start()
    thread.join()
    assert len(told) > 3


def test_a_tokenizer_object_is_the_same_as_its_file(corpus: Path, tmp_path: Path) -> None:
    file = tmp_path / "model" / "tokenizer.json"
    file.parent.mkdir()
    file.write_text(json.dumps(FILE))
    shard(corpus, "d.jsonl", ["one two"])
    shards = pipeline.read(corpus / "d.jsonl")
    loaded = shards.tokens(tokenizer=Tokenizer(file))
    read = shards.tokens(tokenizer=file.parent)
    assert loaded.name == f"a tokenizer of {Tokenizer(file).vocab_size} tokens"
    assert loaded.count().tokens == read.count().tokens > 0
    loaded.write(tmp_path / "out", output="datatrove", eos="none")
    # The checksum of the tokenizer is the same, so one can continue the run of the other.
    assert read.write(tmp_path / "out", output="datatrove", eos="none", resume=True).resumed == 1
    other = pipeline.read(corpus / "d.jsonl").tokens("gpt2")
    with pytest.raises(ValueError, match="other"):
        other.write(tmp_path / "out", output="datatrove", eos="none", resume=True)
    with pytest.raises(ValueError, match="only one of"):
        shards.tokens("gpt2", tokenizer=Tokenizer(file))
