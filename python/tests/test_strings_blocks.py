"""Tests strings of kind "block", which CPython treats as its own, and the conditions under which they are refused."""

from __future__ import annotations

import platform

import pytest
from hypothesis import given
from hypothesis import strategies as st
from interpreter import HAS_GIL, IS_DEBUG_BUILD, with_gil
from processes import run
from stringmaking import WIDTHS

from offlock import strings

PRELUDE = """
import gc, sys, tracemalloc
from offlock import strings
def lines(count=20_000):
    return strings.lines(b"a line of text\\n" * count, kind="block")
"""
ALLOCATORS = """
import ctypes

class Allocator(ctypes.Structure):
    _fields_ = [(name, ctypes.c_void_p) for name in ("context", "malloc", "calloc", "realloc", "free")]

api = ctypes.pythonapi
for function in (api.PyMem_GetAllocator, api.PyMem_SetAllocator):
    function.argtypes, function.restype = [ctypes.c_int, ctypes.POINTER(Allocator)], None

def allocator():
    found = Allocator()
    api.PyMem_GetAllocator(2, found)
    return found
"""


def test_blocks_are_there_where_they_can_be() -> None:
    found = strings.capabilities()
    assert found["str"] == strings.Capability(True, "")
    assert found["view"] == strings.Capability(True, "")
    assert found["block"].available == HAS_GIL


@pytest.mark.skipif(HAS_GIL, reason="about builds without a GIL")
def test_without_a_gil_blocks_are_refused() -> None:
    with pytest.raises(RuntimeError, match="strings cannot be built in blocks: without a GIL, a thread may"):
        strings.enable_blocks()


@with_gil
def test_blocks_have_to_be_enabled() -> None:
    run(
        """
        reason = "call offlock.strings.enable_blocks() first"
        assert strings.capabilities()["block"] == (False, reason)
        try:
            lines()
        except RuntimeError as error:
            assert str(error) == f"strings cannot be built in blocks: {reason}"
        else:
            raise AssertionError
        strings.enable_blocks()
        strings.enable_blocks()
        assert strings.capabilities()["block"] == (True, "")
        assert len(lines()) == 20_000
        """,
        prelude=PRELUDE,
    )


@with_gil
def test_threads_may_enable_blocks_at_once() -> None:
    run(
        """
        import sys, threading
        sys.setswitchinterval(1e-6)
        failures = []
        start = threading.Barrier(8)

        def enable():
            start.wait()
            try:
                strings.enable_blocks()
            except RuntimeError as error:
                failures.append(error)

        threads = [threading.Thread(target=enable) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not failures, failures
        """,
        prelude=PRELUDE,
    )


@with_gil
def test_blocks_are_refused_while_tracemalloc_traces() -> None:
    run(
        """
        tracemalloc.start()
        try:
            strings.enable_blocks()
        except RuntimeError as error:
            assert "tracemalloc is tracing; enable blocks before it starts" in str(error)
        else:
            raise AssertionError
        assert "tracemalloc" in strings.capabilities()["block"].reason
        tracemalloc.stop()
        strings.enable_blocks()
        assert len(lines()) == 20_000
        """,
        prelude=PRELUDE,
    )


@with_gil
def test_tracemalloc_may_start_and_stop_later() -> None:
    run(
        """
        strings.enable_blocks()
        before = lines()
        tracemalloc.start()
        during = lines()
        kept = [line + "!" for line in before]
        del before[::2]
        tracemalloc.take_snapshot()
        tracemalloc.stop()
        after = lines()
        del before, during, after
        gc.collect()
        tracemalloc.start()
        del kept
        assert len(lines()) == 20_000
        """,
        prelude=PRELUDE,
    )


@with_gil
@pytest.mark.skipif(platform.machine() != "x86_64", reason="writes machine code")
def test_another_tool_that_has_wrapped_the_allocator_is_noticed() -> None:
    run(
        """
        import mmap, struct
        original = allocator()
        wrapped = Allocator.from_buffer_copy(original)
        code = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
        code.write(b"\\x49\\xbb" + struct.pack("<Q", original.free) + b"\\x41\\xff\\xe3")  # jump there
        wrapped.free = ctypes.addressof(ctypes.c_char.from_buffer(code))
        api.PyMem_SetAllocator(2, wrapped)
        try:
            strings.enable_blocks()
        except RuntimeError as error:
            assert "another tool has wrapped the object allocator" in str(error)
        else:
            raise AssertionError
        api.PyMem_SetAllocator(2, original)
        strings.enable_blocks()
        assert len(lines()) == 20_000
        """,
        prelude=PRELUDE + ALLOCATORS,
    )


@with_gil
def test_a_tool_that_puts_the_old_allocator_back_is_noticed() -> None:
    run(
        """
        original = allocator()
        strings.enable_blocks()
        made = lines()
        hooked = allocator()
        assert hooked.free != original.free
        api.PyMem_SetAllocator(2, original)
        try:
            lines()
        except RuntimeError as error:
            assert "the hook is gone" in str(error)
        else:
            raise AssertionError
        api.PyMem_SetAllocator(2, hooked)
        assert lines() == made
        """,
        prelude=PRELUDE + ALLOCATORS,
    )


@with_gil
@given(text=st.sampled_from(WIDTHS) | st.text(min_size=2, max_size=300), more=st.text(max_size=300))
def test_strings_in_blocks_grow_and_shrink(text: str, more: str) -> None:
    """CPython reallocates a string if it has the only reference to it."""
    encoded = text.encode()
    [made] = strings.from_offsets(encoded, [0, len(encoded)], kind="block")
    assert type(made) is str
    made += more
    made += "—"
    assert made == text + more + "—"
    assert hash(made) == hash(text + more + "—")


@with_gil
def test_strings_in_blocks_are_interned_and_marshalled() -> None:
    run(
        """
        import marshal
        strings.enable_blocks()
        words = [f"word_{number}" for number in range(1000)]
        made = strings.lines("\\n".join(words).encode(), kind="block")
        assert marshal.loads(marshal.dumps(made)) == words
        interned = [sys.intern(word) for word in made]
        assert all(a is sys.intern(b) for a, b in zip(interned, words))
        class Holder: pass
        for word in made:
            setattr(Holder, word, 1)
        del made, interned
        gc.collect()
        assert Holder.word_7 == 1
        """,
        prelude=PRELUDE,
    )


@pytest.mark.skipif(IS_DEBUG_BUILD, reason="a debug build does not allow changes to its own types")
def test_where_the_layout_is_unknown_there_are_plain_strings_only() -> None:
    """Types report unexpected sizes before offlock checks the layout of `str`."""
    run(
        """
        import ctypes, gc, sys
        def change(class_, name, value):
            [attributes] = gc.get_referents(class_.__dict__)[:1]
            attributes[name] = value
            ctypes.pythonapi.PyType_Modified(ctypes.py_object(class_))
        change(str, "__sizeof__", lambda self: 1001)
        change(type, "__basicsize__", property(lambda self: 1001))
        from offlock import strings
        found = strings.capabilities()
        assert found["str"] == (True, "")
        assert not found["block"].available
        has_gil = getattr(sys, "_is_gil_enabled", lambda: True)()
        for kind in ("block", "view") if has_gil else ("view",):
            assert not found[kind].available
            assert found[kind].reason.startswith("the layout of str is not understood: "), found[kind]
            for make in (lambda: strings.lines(b"a", kind=kind), strings.enable_blocks):
                try:
                    make()
                except RuntimeError as error:
                    expected = ["the layout of str is not understood", "enable_blocks"]
                    if not has_gil:
                        expected.append("without a GIL")
                    assert any(text in str(error) for text in expected), error
                else:
                    raise AssertionError(make)
        text = "plain\\nna\u00efve\\nd\u00eda\u2014noche\\na \U00010a69 letter\\n\\nx\\n\u00e9" * 99
        assert strings.lines(text.encode()) == text.splitlines()
        assert strings.lines(text.encode(), into=strings.Arena).list("str") == text.splitlines()
        assert strings.compact(strings.lines(text.encode())) == text.splitlines()
        """
    )
