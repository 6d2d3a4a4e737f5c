"""`offlock.ray` on two local workers, compared with one process."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import ray
from conftest import SHARDS, add_shard, everything

import offlock.ray
from offlock import pipeline

OUTPUTS = ["megatron", "datatrove", "llmc", "nanogpt", "dolma", "mds", "parquet"]


@pytest.fixture(scope="module", autouse=True)
def cluster() -> Iterator[None]:
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    yield
    ray.shutdown()


@pytest.fixture
def large(tmp_path: Path) -> pipeline.Tokens:
    """Shards that take about a second each."""
    for number in range(4):
        add_shard(tmp_path / "large" / f"{number}.jsonl", 6000, number)
    return pipeline.read(tmp_path / "large").tokens("gpt2")


def facts(summary: pipeline.Summary) -> list[Any]:
    shards = [
        (shard.path, shard.documents, shard.bytes, shard.tokens, shard.files) for shard in summary.shards
    ]
    return [summary.documents, summary.bytes, summary.tokens, summary.failed, summary.percentile(50), shards]


def unfinished(out: Path) -> tuple[int, str] | None:
    """Returns the process that writes a file, and its name, as soon as there is one: they stand in the file's path."""
    for path in out.glob(".offlock/unfinished/*-*/*.bin"):
        return int(path.parent.name.split("-")[0]), str(path)
    return None


def awaited(out: Path) -> tuple[int, str]:
    end = time.monotonic() + 60
    while (found := unfinished(out)) is None:
        assert time.monotonic() < end, "no shard was begun"
        time.sleep(0.005)
    return found


def tokenizer() -> dict[str, Any]:
    """Returns the file of a tokenizer whose tokens are the single bytes, written as such files write them."""
    shown = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    letters = [*map(chr, shown), *(chr(0x100 + number) for number in range(256 - len(shown)))]
    vocabulary = {letter: number for number, letter in enumerate(letters)}
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "use_regex": True}
    model = {"type": "BPE", "vocab": vocabulary, "merges": []}
    return {"version": "1.0", "pre_tokenizer": byte_level, "decoder": byte_level, "model": model}


def await_end(out: Path) -> None:
    """Waits for the workers of a program that is gone. Ray ends them, a little later."""
    end = time.monotonic() + 60
    with open(out / ".offlock" / "lock", "r+") as lock:
        while time.monotonic() < end:
            with contextlib.suppress(BlockingIOError):
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return
            time.sleep(0.01)
    raise AssertionError("workers go on")


@pytest.mark.parametrize("output", OUTPUTS)
def test_two_workers_write_the_same_as_one_process(
    tokens: pipeline.Tokens, tmp_path: Path, output: Any
) -> None:
    whole = tokens.write(tmp_path / "whole", output=output)
    summary = offlock.ray.write(tokens, tmp_path / "out", output=output)
    assert facts(summary) == facts(whole)
    assert (len(summary.shards), summary.resumed, summary.failures) == (SHARDS, 0, ())
    assert everything(tmp_path / "out") == everything(tmp_path / "whole")


def test_a_rerun_leaves_finished_shards_alone(tokens: pipeline.Tokens, whole: Path) -> None:
    with pytest.raises(ValueError, match="results of an earlier run; resume it"):
        offlock.ray.write(tokens, whole, output="megatron")
    before = everything(whole)
    times = [path.stat().st_mtime_ns for path in sorted(whole.rglob("*.bin"))]
    assert offlock.ray.write(tokens, whole, output="megatron", resume=True).resumed == SHARDS
    assert [path.stat().st_mtime_ns for path in sorted(whole.rglob("*.bin"))] == times
    (whole / "part 0" / "0.bin").unlink()
    assert offlock.ray.write(tokens, whole, output="megatron", resume=True).resumed == SHARDS - 1
    assert everything(whole) == before
    with pytest.raises(ValueError, match="made with another eos"):
        offlock.ray.write(tokens, whole, output="megatron", eos="none", resume=True)


def test_actors_that_wait_for_a_processor_are_not_waited_for(
    tokens: pipeline.Tokens, whole: Path, tmp_path: Path
) -> None:
    offlock.ray.write(tokens, tmp_path / "out", output="megatron", num_actors=SHARDS, num_cpus=2)
    assert everything(tmp_path / "out") == everything(whole)


def test_an_interrupt_ends_the_workers(large: pipeline.Tokens, tmp_path: Path) -> None:
    out = tmp_path / "out"

    def interrupt() -> None:
        awaited(out)
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    thread.start()
    with pytest.raises(KeyboardInterrupt):
        offlock.ray.write(large, out, output="nanogpt")
    thread.join()
    finished = len(list(out.glob("*.bin")))
    assert finished < 4
    await_end(out)
    summary = offlock.ray.write(large, out, output="nanogpt", resume=True)
    assert (summary.documents, summary.resumed) == (4 * 6000, finished)


def test_a_tokenizer_that_is_gone(corpus: Path, tmp_path: Path) -> None:
    path = tmp_path / "tokenizer.json"
    path.write_text(json.dumps(tokenizer()))
    tokens = pipeline.read(corpus).tokens(tokenizer=path)
    path.unlink()
    with pytest.raises(FileNotFoundError) as caught:
        offlock.ray.write(tokens, tmp_path / "out", output="llmc", eos="none")
    assert caught.value.filename == str(path)


def test_a_worker_that_is_killed_is_replaced(large: pipeline.Tokens, tmp_path: Path) -> None:
    large.write(tmp_path / "whole", output="nanogpt")
    out, killed = tmp_path / "out", list[str]()

    def kill() -> None:
        for _ in range(2):
            process, name = awaited(out)
            os.kill(process, signal.SIGKILL)
            killed.append(name)
            while os.path.exists(f"/proc/{process}"):
                time.sleep(0.01)
            # What it was writing lies there until the run ends, but is not looked at again.
            with contextlib.suppress(FileNotFoundError):
                os.rename(name, name + ".killed")

    thread = threading.Thread(target=kill)
    thread.start()
    summary = offlock.ray.write(large, out, output="nanogpt", num_actors=2)
    thread.join()
    assert len(set(killed)) == 2
    assert summary.documents == 4 * 6000
    assert everything(out) == everything(tmp_path / "whole")


def test_a_shard_whose_workers_die_too_often_is_named(large: pipeline.Tokens, tmp_path: Path) -> None:
    thread = threading.Thread(target=lambda: os.kill(awaited(tmp_path / "out")[0], signal.SIGKILL))
    thread.start()
    with pytest.raises(ray.exceptions.RayActorError) as caught:
        offlock.ray.write(large, tmp_path / "out", output="nanogpt", num_actors=1, max_retries=0)
    thread.join()
    assert caught.value.__notes__ == [
        f"while it was writing the tokens of {tmp_path}/large/0.jsonl",
    ]


PROGRAM = """
import sys
import offlock.ray
import ray
from offlock import pipeline

ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
tokens = pipeline.read(sys.argv[1]).tokens("gpt2")
print(offlock.ray.write(tokens, sys.argv[2], output="nanogpt", resume="resume" in sys.argv).resumed)
"""


def test_the_program_is_killed_and_run_again(large: pipeline.Tokens, tmp_path: Path) -> None:
    large.write(tmp_path / "whole", output="nanogpt")
    out = tmp_path / "out"
    command = [sys.executable, "-c", PROGRAM, str(tmp_path / "large"), str(out)]
    program = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    while not list(out.glob(".offlock/done/*.json")):
        assert program.poll() is None
        time.sleep(0.01)
    with pytest.raises(ValueError, match="another run writes to this folder"):
        offlock.ray.write(large, out, output="nanogpt", resume=True)
    program.kill()
    program.communicate()
    await_end(out)
    again = subprocess.run([*command, "resume"], capture_output=True, text=True, timeout=120, check=False)
    assert again.returncode == 0, again.stderr
    assert int(again.stdout) >= 1
    assert everything(out) == everything(tmp_path / "whole")


def test_records_that_fail(corpus: Path, tmp_path: Path) -> None:
    (corpus / "empty.jsonl").write_text('{"text": "a"}\n{"text": 5}\n')
    (corpus / "part 1" / "x.jsonl").write_text("{}\n" * 1500)
    for error in ("skip", "report"):
        tokens = pipeline.read(corpus, num_threads=1, on_error=error).tokens("gpt2")  # type: ignore[arg-type]
        whole = tokens.write(tmp_path / f"whole-{error}", output="llmc")
        summary = offlock.ray.write(tokens, tmp_path / error, output="llmc")
        assert (summary.failed, list(map(str, summary.failures))) == (1501, list(map(str, whole.failures)))
    tokens = pipeline.read(corpus / "empty.jsonl").tokens("gpt2")
    with pytest.raises(pipeline.RecordError, match="not a string but a number") as caught:
        offlock.ray.write(tokens, tmp_path / "fail", output="llmc")
    error = caught.value
    assert type(error) is pipeline.RecordError
    assert (error.path, error.record, error.offset) == (str(corpus / "empty.jsonl"), 2, 14)
    assert not (tmp_path / "fail" / "manifest.json").exists()


def test_a_shard_that_is_gone(corpus: Path, tokens: pipeline.Tokens, tmp_path: Path) -> None:
    (corpus / "empty.jsonl").unlink()
    with pytest.raises(FileNotFoundError) as caught:
        offlock.ray.write(tokens, tmp_path / "out", output="llmc")
    assert caught.value.filename == str(corpus / "empty.jsonl")


def test_names_are_those_that_the_program_uses(
    corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    tokens = pipeline.read(corpus.name).tokens("gpt2")
    tokens.write("whole", output="dolma")
    offlock.ray.write(tokens, "out", output="dolma")
    assert everything(tmp_path / "out") == everything(tmp_path / "whole")


def test_what_cannot_work_is_refused_before_a_worker_starts(
    tokens: pipeline.Tokens, tmp_path: Path, corpus: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(offlock.ray, "_parts", None)
    (corpus / "part 0" / "same.jsonl").write_text("")
    (corpus / "part 1" / "same.jsonl").write_text("")
    same = pipeline.read([corpus / "part 0" / "same.jsonl", corpus / "part 1" / "same.jsonl"]).tokens("gpt2")
    wrong: list[tuple[pipeline.Tokens, dict[str, Any], str]] = [
        (tokens, {"output": "csv"}, "output must be"),
        (tokens, {"output": "llmc", "eos_token": "</s>"}, "no special token </s>"),
        (tokens, {"output": "llmc", "num_actors": 0}, "num_actors must be at least 1, it is 0"),
        (tokens, {"output": "llmc", "num_cpus": 0}, "num_cpus must be more than 0, it is 0"),
        (same, {"output": "llmc"}, "results would have the same name"),
    ]
    for each, arguments, message in wrong:
        with pytest.raises(ValueError, match=message):
            offlock.ray.write(each, tmp_path / "out", **arguments)
    assert not (tmp_path / "out").exists()
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "file").touch()
    with pytest.raises(ValueError, match="the folder has other files"):
        offlock.ray.write(tokens, tmp_path / "other", output="llmc")
