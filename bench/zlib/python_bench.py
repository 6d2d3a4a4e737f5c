"""Compares offlock.zlib with zlib, isal, zlib-ng and deflate: script/python bench/zlib/python_bench.py [--json FILE]

Peers that are not installed are left out. Every answer is compared before anything is timed. A row works through 1 MB of
different data, because the branch predictor would learn a short input that repeats. The texts come from the folder
OFFLOCK_DATA or .cache/corpora.
"""

from __future__ import annotations

import gzip
import importlib
import json
import math
import os
import random
import resource
import statistics
import subprocess
import sys
import threading
import time
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from offlock import zlib as ours

sys.path.append(str(Path(__file__).resolve().parents[1]))
from bench import by_figure, keep, make_parser

Call = Callable[[bytes], bytes]

ROOT = Path(__file__).resolve().parents[2]
DATA = Path(os.environ.get("OFFLOCK_DATA", ROOT / ".cache/corpora"))
NOVEL = next(
    (file for file in (DATA / "mobydick.txt", DATA / "lines.txt") if file.exists()), DATA / "lines.txt"
)
"""Moby Dick if its file exists, otherwise other prose."""
SIZES = {"1 KB": 1_000, "10 KB": 10_000, "100 KB": 100_000, "10 MB": 10_000_000}
LEVELS = (1, 6, 9)


def peer(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError:
        print(f"{name} is not installed: left out", file=sys.stderr)
        return None


ISAL, NG, DEFLATE = peer("isal.isal_zlib"), peer("zlib_ng.zlib_ng"), peer("deflate")


def samples() -> dict[str, dict[str, list[bytes]]]:
    """Returns text and random bytes in pieces of each size: 1 MB in all, or one larger piece."""
    text = gzip.decompress((DATA / "prose.txt.gz").read_bytes()) * 3
    noise = random.Random(42).randbytes(10_000_000)

    def pieces(data: bytes, size: int) -> list[bytes]:
        return [data[at : at + size] for at in range(0, max(size, 1_000_000 // size * size), size)]

    return {
        kind: {name: pieces(data, size) for name, size in SIZES.items()}
        for kind, data in {"text": text[200_000:], "random": noise}.items()
    }


def compressors(pieces: list[bytes], level: int) -> dict[str, Call]:
    calls: dict[str, Call] = {
        "offlock": lambda plain: ours.compress(plain, level),
        "zlib": lambda plain: zlib.compress(plain, level),
    }
    if ISAL:
        # isal's levels are 0 to 3; its default is the nearest to zlib's 6.
        fit = {1: 1, 6: 2, 9: 3}[level]
        calls["isal"] = lambda plain: ISAL.compress(plain, fit)
    if NG:
        calls["zlib-ng"] = lambda plain: NG.compress(plain, level)
    if DEFLATE:
        calls["deflate"] = lambda plain: DEFLATE.zlib_compress(plain, level)
    for name, call in calls.items():
        assert all(zlib.decompress(call(plain)) == plain for plain in pieces), name
    return calls


def decompressors(pieces: list[bytes]) -> dict[str, Call]:
    size = len(pieces[0])
    calls: dict[str, Call] = {"offlock": ours.decompress, "zlib": zlib.decompress}
    if ISAL:
        calls["isal"] = ISAL.decompress
    if NG:
        calls["zlib-ng"] = NG.decompress
    if DEFLATE:  # its interface needs the size of the output, which the others find out
        calls["deflate (told the size)"] = lambda packed: DEFLATE.zlib_decompress(packed, size)
    for name, call in calls.items():
        assert all(call(zlib.compress(plain)) == plain for plain in pieces), name
    return calls


def measure(calls: dict[str, Call], inputs: Sequence[bytes], rounds: int = 5) -> dict[str, float]:
    """Returns the median seconds for all inputs for each contestant. The contestants take turns."""
    times: dict[str, list[float]] = {name: [] for name in calls}
    for turn in range(rounds):
        names = list(calls)
        for name in names[turn % len(names) :] + names[: turn % len(names)]:
            call = calls[name]
            start = time.perf_counter()
            for data in inputs:
                call(data)
            times[name].append(time.perf_counter() - start)
    return {name: statistics.median(values) for name, values in times.items()}


def row(calls: dict[str, Call], inputs: Sequence[bytes], plain_bytes: int) -> dict[str, Any]:
    times = measure(calls, inputs, rounds=7 if plain_bytes < 10**7 else 3)
    others = {name: seconds for name, seconds in times.items() if name not in ("offlock", "zlib")}
    result: dict[str, Any] = {
        "MB_per_s": {name: round(plain_bytes / 1e6 / seconds, 1) for name, seconds in times.items()},
        "times_zlib": round(times["zlib"] / times["offlock"], 2),
    }
    if others:
        best = min(others, key=lambda name: others[name])
        result["times_best_other"] = {best: round(others[best] / times["offlock"], 2)}
    return result


def decompressing(pieces: list[bytes]) -> dict[str, Any]:
    packed = [zlib.compress(plain, 6) for plain in pieces]
    return row(decompressors(pieces), packed, sum(map(len, pieces)))


def compressing(pieces: list[bytes], level: int) -> dict[str, Any]:
    calls = compressors(pieces, level)
    result = row(calls, pieces, sum(map(len, pieces)))
    sizes = {name: sum(len(call(plain)) for plain in pieces) for name, call in calls.items()}
    result["size_to_zlibs"] = {name: round(size / sizes["zlib"], 4) for name, size in sizes.items()}
    return result


def through_stream(maker: Callable[[], Any], method: str, data: bytes) -> bytes:
    stream = maker()
    made = [getattr(stream, method)(data[at : at + 65_536]) for at in range(0, len(data), 65_536)]
    return b"".join([*made, stream.flush()])


def streaming(plain: bytes) -> dict[str, Any]:
    packed = zlib.compress(plain, 6)
    rows = {}
    for level in LEVELS:
        modules = {"offlock": ours, "zlib": zlib, **({"zlib-ng": NG} if NG else {})}
        calls: dict[str, Call] = {
            name: lambda data, level=level, module=module: through_stream(  # type: ignore[misc]
                lambda: module.compressobj(level), "compress", data
            )
            for name, module in modules.items()
        }
        for call in calls.values():
            assert zlib.decompress(call(plain)) == plain
        rows[f"deflate level {level}"] = row(calls, [plain], len(plain))
    modules = {
        "offlock": ours,
        "zlib": zlib,
        **({"zlib-ng": NG} if NG else {}),
        **({"isal": ISAL} if ISAL else {}),
    }
    calls = {
        name: lambda data, module=module: through_stream(module.decompressobj, "decompress", data)  # type: ignore[misc]
        for name, module in modules.items()
    }
    for call in calls.values():
        assert call(packed) == plain
    rows["inflate"] = row(calls, [packed], len(plain))
    return rows


def seconds_of(work: Callable[[bytes], Any], items: Sequence[bytes], threads: int) -> float:
    """Returns the seconds that `threads` threads take for all of `items` together."""

    def work_through(share: Sequence[bytes]) -> None:
        for item in share:
            work(item)

    shares = [items[number::threads] for number in range(threads)]
    workers = [threading.Thread(target=work_through, args=(share,)) for share in shares]
    start = time.perf_counter()
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    return time.perf_counter() - start


def threads_to_serial(pieces: list[bytes], threads: int, rounds: int = 5) -> dict[str, float]:
    """Returns the speed of `threads` threads as a multiple of that of one."""
    packed = [zlib.compress(plain) for plain in pieces]
    result = {}
    for name, module in {"offlock": ours, "zlib": zlib}.items():
        for what, work, inputs in [
            ("inflate", module.decompress, packed),
            ("deflate", lambda item, module=module: module.compress(item, 6), pieces),
        ]:
            once = measure({name: work}, inputs, rounds=1)[name]
            items = list(inputs) * threads * math.ceil(0.3 / once / threads)
            times: dict[int, list[float]] = {1: [], threads: []}
            for _ in range(rounds):
                for number, taken in times.items():
                    taken.append(seconds_of(work, items, number))
            one, many = map(statistics.median, times.values())
            result[f"{what}, {name}"] = round(one / many, 2)
    return result


def gigabyte() -> dict[str, Any]:
    """Returns the growth of the peak memory, in MB, of a process that compresses and decompresses 1 GB piece by piece."""
    program = (
        "import resource, sys\n"
        "from offlock import zlib\n"
        "piece = open(sys.argv[1], 'rb').read(1 << 20)\n"
        "rss = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "packer, unpacker = zlib.compressobj(1), zlib.decompressobj()\n"
        "made, before = 0, rss()\n"
        "for _ in range(1024):\n"
        "    made += len(unpacker.decompress(packer.compress(piece)))\n"
        "made += len(unpacker.decompress(packer.flush()))\n"
        "assert made == 1024 * len(piece), made\n"
        "print((rss() - before) / 1024)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(NOVEL)],
        capture_output=True,
        text=True,
        check=True,
    )
    return {"piece_MB": 1.05, "growth_MB": round(float(done.stdout), 1)}


def main() -> None:
    options = make_parser().parse_args()
    data = samples()
    rows: dict[str, Any] = {}
    for kind, by_size in data.items():
        for size, pieces in by_size.items():
            rows[f"inflate, {kind}, {size}"] = decompressing(pieces)
            for level in LEVELS if len(pieces) > 1 else (6,):
                rows[f"deflate level {level}, {kind}, {size}"] = compressing(pieces, level)
    noise, text = data["random"], data["text"]
    threads = {
        "1,000 random bytes, 4 threads": threads_to_serial(noise["1 KB"], 4),
        "1 KB of text, 4 threads": threads_to_serial(text["1 KB"], 4),
        "10 KB of text, 4 threads": threads_to_serial(text["10 KB"], 4),
        "100 KB of text, 2 threads": threads_to_serial(text["100 KB"], 2),
        "10 MB of text, 2 threads": threads_to_serial(text["10 MB"], 2),
    }
    streams = {
        f"10 MB of text in pieces of 64 KB, {name}": row for name, row in streaming(text["10 MB"][0]).items()
    }
    memory = {
        "1 GB stream": gigabyte(),
        "the whole program": {"peak_rss_MB": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024},
    }
    for name, figures in (rows | streams).items():
        print(f"{name:50} x{figures['times_zlib']:<6} {figures.get('times_best_other', '')}")
    print(json.dumps(threads | memory, indent=1))
    gains = {name: {"times_one_thread": figures} for name, figures in threads.items()}
    kept = by_figure(rows | streams | gains | memory)
    keep(options.json, kept, "isal", "zlib-ng", "deflate", zlib=zlib.ZLIB_RUNTIME_VERSION)


if __name__ == "__main__":
    main()
