"""Tests threads, processes and the exit of the interpreter while calls run."""

from __future__ import annotations

import pytest
from processes import run


# A thread that acquires the lock while CPython frees the states of threads may read its own state after that: take_gil
# (Python/ceval_gil.h in 3.11) checks whether the program exits, and then reads the state. With -X dev freed memory is
# overwritten, so about one in 300 programs whose threads acquire the lock all the time crashes there.
@pytest.mark.parametrize(
    ("flags", "sizes"),
    [((), (10, 1_000, 100_000, 50_000_000)), (("-X", "dev"), (100_000, 1_000_000, 10_000_000, 50_000_000))],
)
def test_daemon_threads_may_be_off_the_lock_when_the_program_ends(
    flags: tuple[str, ...], sizes: tuple[int, ...]
) -> None:
    for delay in (0.0, 0.05, 0.2):
        run(
            f"""
            def work(size):
                while True:
                    enc.encode(text[:size], release="always")
            for size in {sizes}:
                threading.Thread(target=work, args=(size,), daemon=True).start()
            time.sleep({delay})
            """,
            *flags,
        )


def test_a_daemon_thread_may_be_on_a_batch_when_the_program_ends() -> None:
    run(
        """
        def work():
            while True:
                enc.encode_batch([text[:10_000_000]] * 4, num_threads=4)
        threading.Thread(target=work, daemon=True).start()
        time.sleep(0.1)
        """
    )


def test_a_forked_child_encodes_while_the_parent_is_off_the_lock() -> None:
    out = run(
        """
        import warnings
        warnings.simplefilter("ignore", DeprecationWarning)  # of forking with threads
        part = text[:20_000_000]
        def encode():
            enc.encode_batch([part, part], num_threads=2)
        worker = threading.Thread(target=encode)
        worker.start()
        for name in offlock.tiktoken.list_encoding_names():
            child = os.fork()
            if child == 0:
                fresh = offlock.tiktoken.get_encoding(name)  # not loaded before in most cases
                right = fresh.decode(fresh.encode(text[:100_000])) == text[:100_000]
                right &= len(fresh.encode_batch([text[:100_000]] * 4)) == 4
                os._exit(0 if right else 1)
            say(name, os.waitpid(child, 0)[1])
        worker.join()
        """
    )
    assert [line.split()[1] for line in out.splitlines()] == ["0"] * 7


def test_a_child_forked_while_an_encoding_loads_can_load_it_too() -> None:
    out = run(
        """
        import warnings
        warnings.simplefilter("ignore", DeprecationWarning)
        def load():
            offlock.tiktoken.get_encoding("o200k_base")
        loader = threading.Thread(target=load)
        loader.start()
        statuses = []
        for _ in range(5):
            child = os.fork()
            if child == 0:
                signal.alarm(30)
                os._exit(0 if offlock.tiktoken.get_encoding("o200k_base").encode("hello") == [24912] else 1)
            statuses.append(os.waitpid(child, 0)[1])
            time.sleep(0.005)
        loader.join()
        say(statuses)
        """
    )
    assert out == "[0, 0, 0, 0, 0]\n"


def test_an_interrupt_reaches_a_forked_child() -> None:
    out = run(
        """
        child = os.fork()
        if child == 0:
            signal.setitimer(signal.ITIMER_REAL, 0.1)
            signal.signal(signal.SIGALRM, signal.default_int_handler)
            try:
                enc.encode_ordinary(text)
                os._exit(1)
            except KeyboardInterrupt:
                os._exit(0)
        say(os.waitpid(child, 0)[1])
        """
    )
    assert out == "0\n"


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_encodings_travel_to_worker_processes(method: str) -> None:
    out = run(
        f"""
        import multiprocessing
        if __name__ == "__main__":
            with multiprocessing.get_context("{method}").Pool(2) as pool:
                say(pool.map(enc.encode, ["hello world", "hello"]), pool.map(enc.count, ["hello world"]))
        """
    )
    assert out == "[[15339, 1917], [15339]] [2]\n"


def test_other_threads_run_while_one_is_off_the_lock() -> None:
    """A counting thread makes progress during a call off the lock, not during one that holds it."""
    out = run(
        """
        sys.setswitchinterval(1e-4)
        part = text[:10_000_000] * 8
        ticks, stop = 0, False
        def tick():
            global ticks
            while not stop:
                ticks += 1
        threading.Thread(target=tick, daemon=True).start()
        def ticks_during(release):
            before = ticks
            enc.count(part, release=release)
            return ticks - before
        off, on = ticks_during("always"), ticks_during("never")
        stop = True
        say(off > 1_000, on < off / 10, off, on)
        """
    )
    assert out.startswith("True True") or _free_threaded(), out


def _free_threaded() -> bool:
    import sysconfig

    return bool(sysconfig.get_config_var("Py_GIL_DISABLED"))
