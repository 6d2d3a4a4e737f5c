"""`offlock.datatrove` in datatrove's local executor, compared with one process."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from conftest import SHARDS, add_shard, everything
from datatrove.executor import LocalPipelineExecutor
from datatrove.pipeline.base import PipelineStep

from offlock import pipeline
from offlock.datatrove import TokensWriter


@pytest.mark.parametrize("workers", [1, 2])
def test_all_tasks_together_write_the_same_as_one_process(
    tokens: pipeline.Tokens, whole: Path, tmp_path: Path, workers: int
) -> None:
    step = TokensWriter(tokens, tmp_path / "out", output="megatron")
    assert isinstance(step, PipelineStep)
    parts = LocalPipelineExecutor([step], tasks=4, workers=workers, logging_dir=str(tmp_path / "parts"))
    last = LocalPipelineExecutor([step], tasks=1, logging_dir=str(tmp_path / "last"), depends=parts)
    last.run()
    assert everything(tmp_path / "out") == everything(whole)
    for name in ("parts", "last"):
        [stats] = json.loads((tmp_path / name / "stats.json").read_text())
        assert stats["stats"]["documents"]["total"] == sum(20 + 10 * number for number in range(SHARDS - 1))


def test_documents_of_other_steps_pass_through(tokens: pipeline.Tokens, tmp_path: Path) -> None:
    step = TokensWriter(tokens, tmp_path / "out", output="megatron")
    assert list(step(iter(["a document"]), 0, 3)) == ["a document"]
    assert list(step(None, 1, 3)) == []


def test_errors_name_the_record(tokens: pipeline.Tokens, corpus: Path, tmp_path: Path) -> None:
    (corpus / "empty.jsonl").write_text('{"text": "a"}\n{"text": 5}\n')
    step = TokensWriter(pipeline.read(corpus).tokens("gpt2"), tmp_path / "out", output="megatron")
    executor = LocalPipelineExecutor([step], tasks=2, workers=2, logging_dir=str(tmp_path / "logs"))
    with pytest.raises(pipeline.RecordError, match="not a string but a number") as caught:
        executor.run()
    assert (caught.value.path, caught.value.record, caught.value.offset) == (
        str(corpus / "empty.jsonl"),
        2,
        14,
    )


PROGRAM = """
import sys
from datatrove.executor import LocalPipelineExecutor
from offlock import pipeline
from offlock.datatrove import TokensWriter

if __name__ == "__main__":
    corpus, out, logs = sys.argv[1:]
    step = TokensWriter(pipeline.read(corpus, num_threads=1).tokens("gpt2"), out, output="megatron")
    parts = LocalPipelineExecutor([step], tasks=4, workers=2, logging_dir=logs + "/parts")
    LocalPipelineExecutor([step], tasks=1, logging_dir=logs + "/last", depends=parts).run()
"""


def test_a_rerun_completes_what_was_killed(tmp_path: Path) -> None:
    """A worker that dies makes datatrove's local executor wait for ever. The program is ended, and run again."""
    for number in range(4):
        add_shard(tmp_path / "corpus" / f"{number}.jsonl", 5000, number)
    pipeline.read(tmp_path / "corpus").tokens("gpt2").write(tmp_path / "whole", output="megatron")
    program, out = tmp_path / "program.py", tmp_path / "out"
    program.write_text(PROGRAM)
    command = [sys.executable, program, tmp_path / "corpus", out, tmp_path / "logs"]
    with open(tmp_path / "output", "w") as output:
        first = subprocess.Popen(command, stdout=output, stderr=output, start_new_session=True)
        try:
            # Folders of unfinished files are called after the processes.
            os.kill(worker_at_work(out), signal.SIGKILL)
            assert not (out / "manifest.json").exists()
        finally:
            os.killpg(first.pid, signal.SIGKILL)
            first.wait()
        again = subprocess.run(command, stdout=output, stderr=output, timeout=120, check=False)
    assert again.returncode == 0, (tmp_path / "output").read_text()
    assert everything(out) == everything(tmp_path / "whole")


def worker_at_work(out: Path) -> int:
    end = time.monotonic() + 60
    while time.monotonic() < end:
        for path in out.glob(".offlock/unfinished/*-*/*.bin"):
            return int(path.parent.name.split("-")[0])
        time.sleep(0.005)
    raise AssertionError("no task has begun a shard")
