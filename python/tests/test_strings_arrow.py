"""Compares strings from Arrow arrays with pyarrow's."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from stringmaking import KINDS, WIDTHS

from offlock import strings

pa = pytest.importorskip("pyarrow", reason="compares with pyarrow")

pytestmark = pytest.mark.parametrize("kind", KINDS)

values = st.lists(st.none() | st.text(max_size=30) | st.sampled_from(WIDTHS), max_size=40)
types = st.sampled_from([pa.string(), pa.large_string(), pa.string_view()])


@given(values=values, type_=types, start=st.integers(0, 5))
def test_arrays(kind: Any, values: list[str | None], type_: Any, start: int) -> None:
    array = pa.array(values, type_)
    assert strings.from_arrow(array, kind=kind) == values
    assert strings.from_arrow(array[start:], kind=kind) == values[start:]
    assert strings.from_arrow(array[start:-1], kind=kind, into=tuple) == tuple(values[start:-1])


@given(
    values=values,
    index=st.sampled_from([pa.int8(), pa.uint8(), pa.int16(), pa.uint32(), pa.int64(), pa.uint64()]),
    start=st.integers(0, 5),
)
def test_dictionaries(kind: Any, values: list[str | None], index: Any, start: int) -> None:
    found = pa.array(values, pa.string()).dictionary_encode()
    array = pa.DictionaryArray.from_arrays(found.indices.cast(index), found.dictionary)
    assert strings.from_arrow(array[start:], kind=kind) == values[start:]


def test_elements_of_a_dictionary_share_their_string(kind: Any) -> None:
    made = strings.from_arrow(pa.array(["one", "two", "one"]).dictionary_encode(), kind=kind)
    assert made[0] is made[2]


@pytest.mark.parametrize("type_", [pa.string(), pa.large_string(), pa.string_view()])
@pytest.mark.parametrize("nulls", [0, 3])
def test_elements_that_repeat_often_share_their_string(kind: Any, type_: Any, nulls: int) -> None:
    words = ["one", "two", "three", "été", "Большая", "a string of more than fifteen bytes", ""]
    values = [None if number % 10 < nulls else words[number % 7] for number in range(20_000)]
    array = pa.array(values, type_)
    for made in (
        strings.from_arrow(array, kind=kind),
        strings.from_arrow(pa.chunked_array([array[:9000], array[9000:]]), kind=kind, into=list),
        strings.from_arrow(array, into=strings.Arena).list(kind),
    ):
        assert made == values
        assert len({id(value) for value in made if value is not None}) <= 2 * len(words)


def test_a_value_that_is_not_utf8_is_named_among_many_that_repeat(kind: Any) -> None:
    values = [b"one", b"two"] * 4000 + [b"caf\xc3", b"one"]
    with pytest.raises(UnicodeDecodeError, match="in element 8000 of the Arrow array"):
        strings.from_arrow(pa.array(values, pa.binary()).cast(pa.string(), safe=False), kind=kind)


def test_a_dictionary_may_have_nulls_in_both_places(kind: Any) -> None:
    array = pa.DictionaryArray.from_arrays(pa.array([2, 0, None, 1, 0]), pa.array(["été", None, "b"]))
    assert strings.from_arrow(array, kind=kind) == array.to_pylist() == ["b", "été", None, None, "été"]


@given(chunks=st.lists(values, max_size=5), type_=types)
def test_chunks(kind: Any, chunks: list[list[str | None]], type_: Any) -> None:
    array = pa.chunked_array(chunks, type_)
    assert strings.from_arrow(array, kind=kind) == array.to_pylist()


@given(values=values)
def test_arenas_keep_the_nulls(kind: Any, values: list[str | None]) -> None:
    for array in (
        pa.array(values, pa.string()),
        pa.chunked_array([values, values], pa.string()),
        pa.array(values, pa.string()).dictionary_encode(),
    ):
        arena = strings.from_arrow(array, into=strings.Arena)
        assert len(arena) == len(array)
        assert arena.list(kind) == array.to_pylist()


def test_nulls_only(kind: Any) -> None:
    assert strings.from_arrow(pa.nulls(3), kind=kind) == [None] * 3
    assert strings.from_arrow(pa.array([None, None], pa.string()), kind=kind) == [None] * 2
    assert strings.from_arrow(pa.array([], pa.string()), kind=kind) == []


def test_what_lies_behind_a_null_does_not_matter(kind: Any) -> None:
    data = pa.py_buffer(b"ab\xff\xffcd")
    offsets = pa.py_buffer(memoryview(pa.array([0, 2, 4, 6], pa.int32()).buffers()[1])[:16])
    array = pa.StringArray.from_buffers(3, offsets, data, pa.py_buffer(b"\x05"))
    assert strings.from_arrow(array, kind=kind) == ["ab", None, "cd"]


def test_what_is_not_utf8_is_named(kind: Any) -> None:
    array = pa.array([b"good", None, b"b\xffd"]).view(pa.string())
    with pytest.raises(UnicodeDecodeError, match="byte 0xff in position 1") as error:
        strings.from_arrow(array, kind=kind)
    assert error.value.__notes__ == ["in element 2 of the Arrow array"]


def test_an_index_outside_of_the_dictionary_is_named(kind: Any) -> None:
    for index in (2, -1):
        array = pa.DictionaryArray.from_arrays(pa.array([0, index]), pa.array(["a", "b"]), safe=False)
        with pytest.raises(ValueError, match=f"index 1 is {index}, but the Arrow dictionary has 2 values"):
            strings.from_arrow(array, kind=kind)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ([1, 2], "list has neither __arrow_c_array__ nor __arrow_c_stream__"),
        (pa.array([1, 2]), "an Arrow array of strings is needed, not of format 'l'"),
        (pa.array([b"x"]), "an Arrow array of strings is needed, not of format 'z'"),
        (pa.table({"a": ["x"]}), "an Arrow array of strings is needed, not of format '\\+s'"),
        (pa.array([1, 2]).dictionary_encode(), "an Arrow array of strings is needed, not of format 'l'"),
    ],
)
def test_other_types_are_refused(kind: Any, value: Any, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        strings.from_arrow(value, kind=kind)


def test_what_somebody_took_before_is_refused(kind: Any) -> None:
    class Kept:
        def __init__(self, array: Any) -> None:
            self.capsules = array.__arrow_c_array__()

        def __arrow_c_array__(self, requested_schema: object = None) -> tuple[object, object]:
            capsules: tuple[object, object] = self.capsules
            return capsules

    kept = Kept(pa.array(["q"]))
    assert strings.from_arrow(kept, kind=kind) == ["q"]
    with pytest.raises(ValueError, match="arrow_schema was released"):
        strings.from_arrow(kept, kind=kind)


def test_streams_that_have_more_elements_than_there_are_numbers(kind: Any) -> None:
    """Nulls take no memory."""
    nulls = pa.Array.from_buffers(pa.null(), 2**62, [None])
    for chunks in [[nulls] * 2, [nulls] * 4, [nulls] * 4 + [pa.nulls(3)]]:

        class Stream:
            def __arrow_c_stream__(self, requested_schema: object = None, chunks: Any = chunks) -> object:
                return pa.chunked_array(chunks).__arrow_c_stream__()

        with pytest.raises(ValueError, match="more elements"):
            strings.from_arrow(Stream(), kind=kind, into=strings.Arena)


def test_nulls_in_runs_of_any_length(kind: Any) -> None:
    for before, after in [(0, 9000), (4095, 0), (4096, 1), (4097, 4096), (9000, 9000)]:
        values = [None] * before + ["a", None, "b"] + [None] * after + ["c"] + [None] * after
        assert strings.from_arrow(pa.array(values, pa.string()), kind=kind) == values
