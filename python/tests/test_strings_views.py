"""Tests that views behave like `str`."""

from __future__ import annotations

import codecs
import copy
import ctypes
import datetime
import gc
import importlib
import io
import json
import marshal
import operator
import os
import pickle
import re
import struct
import sys
import unittest
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from stringmaking import WIDTHS, view

from offlock import strings

short = st.text(st.sampled_from("aAbß ıſ1é—ж𐩡\t\n.ﬁ٣"), max_size=8)
texts = st.sampled_from(WIDTHS) | st.text(max_size=30) | short
numbers = st.integers(-9, 40)

# Every method of str, with useful arguments.
ARGUMENTS: dict[str, st.SearchStrategy[tuple[Any, ...]]] = {
    **dict.fromkeys(
        ["capitalize", "casefold", "isalnum", "isalpha", "isascii", "isdecimal", "isdigit"], st.just(())
    ),
    **dict.fromkeys(
        ["isidentifier", "islower", "isnumeric", "isprintable", "isspace", "istitle"], st.just(())
    ),
    **dict.fromkeys(["isupper", "lower", "swapcase", "title", "upper", "__hash__", "__len__"], st.just(())),
    **dict.fromkeys(["__repr__", "__str__", "__getnewargs__"], st.just(())),
    **dict.fromkeys(
        ["center", "ljust", "rjust"], st.tuples(numbers) | st.tuples(numbers, st.sampled_from("*é—𐩡"))
    ),
    **dict.fromkeys(["zfill", "__mul__", "__rmul__"], st.tuples(numbers)),
    "expandtabs": st.just(()) | st.tuples(numbers),
    **dict.fromkeys(["count", "find", "rfind"], st.tuples(short) | st.tuples(short, numbers, numbers)),
    **dict.fromkeys(["index", "rindex", "__contains__"], st.tuples(short)),
    **dict.fromkeys(
        ["startswith", "endswith"], st.tuples(short) | st.tuples(st.tuples(short, short), numbers)
    ),
    **dict.fromkeys(["strip", "lstrip", "rstrip"], st.just(()) | st.tuples(short | st.none())),
    **dict.fromkeys(["removeprefix", "removesuffix"], st.tuples(short)),
    **dict.fromkeys(["partition", "rpartition"], st.tuples(short)),
    **dict.fromkeys(["split", "rsplit"], st.just(()) | st.tuples(short | st.none(), numbers)),
    "splitlines": st.tuples(st.booleans()),
    "replace": st.tuples(short, short) | st.tuples(short, short, numbers),
    "join": st.tuples(st.lists(texts, max_size=4)),
    "translate": st.tuples(st.dictionaries(st.sampled_from("aé—𐩡").map(ord), short | st.none())),
    "encode": st.tuples(
        st.sampled_from(["utf-8", "ascii", "latin-1", "utf-16", "utf-32", "idna"]),
        st.sampled_from(["strict", "replace", "xmlcharrefreplace"]),
    ),
    "format": st.tuples(short, numbers),
    "format_map": st.tuples(st.dictionaries(short, short)),
    "__format__": st.tuples(st.sampled_from(["", ">12", "é<9.3", "s", "d"])),
    "__getitem__": st.tuples(numbers | st.slices(20)),
    **dict.fromkeys(
        ["__add__", "__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__"], st.tuples(texts)
    ),
    "__mod__": st.tuples(short | st.tuples(short, numbers)),
    "__iter__": st.just(()),
}
NOT_CALLED = {"maketrans", "__class__", "__doc__", "__getattribute__", "__new__", "__rmod__", "__sizeof__"}


class Subclass(str):
    """A subclass to compare views with: for a subclass some methods return a copy, for `str` the object itself."""

    __slots__ = ()


def outcome(call: Callable[[], object]) -> tuple[object, ...]:
    """Returns the result of a call with its types, or the exception."""
    try:
        result = call()
    except Exception as error:  # any exception is compared
        return type(error), re.sub(r"\b(offlock\.strings\.View|Subclass)\b", "str", str(error))
    if hasattr(result, "__next__"):
        result = list(result)  # type: ignore[call-overload]
    parts = result if isinstance(result, (list, tuple)) else [result]
    return result, [Subclass if type(part) is strings.View else type(part) for part in parts]


def test_every_method_is_compared() -> None:
    methods = {name for name in vars(str) if name not in NOT_CALLED}
    assert methods == set(ARGUMENTS)


@pytest.mark.parametrize("name", ARGUMENTS)
@settings(deadline=None)
@given(data=st.data())
def test_methods_return_what_those_of_str_do(name: str, data: st.DataObject) -> None:
    text, arguments = data.draw(texts), data.draw(ARGUMENTS[name])
    expected = outcome(lambda: getattr(Subclass(text), name)(*arguments))
    assert outcome(lambda: getattr(view(text), name)(*arguments)) == expected
    assert expected[0] == outcome(lambda: getattr(text, name)(*arguments))[0]


@pytest.mark.parametrize("name", ARGUMENTS)
@settings(deadline=None)
@given(data=st.data())
def test_methods_take_views_as_arguments(name: str, data: st.DataObject) -> None:
    text, arguments = data.draw(texts), data.draw(ARGUMENTS[name])
    as_subclass, as_views = (
        tuple(kind(a) if isinstance(a, str) else a for a in arguments) for kind in (Subclass, view)
    )
    expected = outcome(lambda: getattr(text, name)(*as_subclass))
    assert outcome(lambda: getattr(text, name)(*as_views)) == expected
    assert outcome(lambda: getattr(view(text), name)(*as_views))[0] == expected[0]


OPERATORS = [
    operator.eq,
    operator.ne,
    operator.lt,
    operator.le,
    operator.add,
    operator.mod,
    operator.contains,
]


@pytest.mark.parametrize("operation", OPERATORS)
@given(left=texts, right=texts)
def test_operators_take_views_on_both_sides(
    operation: Callable[[Any, Any], object], left: str, right: str
) -> None:
    for a, b in [(view(left), view(right)), (left, view(right)), (view(left), right)]:
        assert outcome(lambda a=a, b=b: operation(a, b))[0] == outcome(lambda: operation(left, right))[0]  # type: ignore[misc]


@given(text=texts)
def test_a_view_is_a_str_and_hashes_like_one(text: str) -> None:
    made = view(text)
    assert isinstance(made, str)
    assert hash(made) == hash(text)
    assert {text: 1}[made] == {made: 1}[text] == 1
    assert {made} == {text}
    assert f"{made}|{made:>9}|{made!r}" == f"{text}|{text:>9}|{text!r}"
    assert sys.getsizeof(made) > 0


@given(text=texts)
def test_copies_of_a_view_are_plain(text: str) -> None:
    made = view(text)
    copies = [
        copy.copy(made),
        copy.deepcopy(made),
        str(made),
        "".join([made]),
        made[:],
        json.loads(json.dumps(made)),
    ]
    copies += [pickle.loads(pickle.dumps(made, protocol)) for protocol in range(pickle.HIGHEST_PROTOCOL + 1)]
    for plain in copies:
        assert plain == text
        assert type(plain) is str


@pytest.mark.parametrize("value", ["1_000", " 12 ", "٣٤", "-7", "0x1f", "1e3", "nan", "", "1" * 400])
@pytest.mark.parametrize("convert", [int, float, complex, lambda text: int(text, 16)])
def test_numbers_are_read_from_views(value: str, convert: Callable[[str], object]) -> None:
    # In memory a digit follows the number, which must not be read as a part of it.
    encoded = value.encode()
    [made, _] = strings.from_offsets(encoded + b"5", [0, len(encoded), len(encoded) + 1], kind="view")
    assert outcome(lambda: repr(convert(made))) == outcome(lambda: repr(convert(value)))


def test_code_in_c_that_wants_a_zero_at_the_end_gets_one(tmp_path: Any) -> None:
    words = b"utf-8,%Y-%m-%d,<2h,upper,1+1,name"
    codec, date, layout, method, expression, attribute = strings.split(words, ",", kind="view")
    assert codecs.lookup(codec).name == "utf-8"
    assert datetime.date(2020, 1, 2).strftime(date) == "2020-01-02"
    assert datetime.datetime.strptime("2020-01-02", date).day == 2
    assert struct.calcsize(layout) == 4
    assert getattr("a", method)() == "A"
    assert eval(expression) == 2
    holder = type("Holder", (), {})()
    setattr(holder, attribute, 1)
    assert holder.name == 1
    path = view(str(tmp_path / "día—noche.txt"))
    with open(path, "w", encoding=view("utf-8")) as file:
        file.write(view("día—noche"))
    assert os.stat(path).st_size == len("día—noche".encode())
    assert ctypes.create_unicode_buffer(view("día—noche")).value == "día—noche"
    assert ctypes.c_wchar_p(view("a 𐩡 letter")).value == "a 𐩡 letter"


def test_regular_expressions_take_views() -> None:
    text = "día—noche, día—noche"
    assert re.findall(view("d.a"), view(text)) == ["día", "día"]
    assert re.sub(view("día"), view("ß"), view(text)) == re.sub("día", "ß", text)
    match = re.search("—", view(text))
    assert match is not None
    assert (match.group(), match.start()) == ("—", 3)


def test_streams_take_views() -> None:
    stream = io.StringIO()
    stream.write(view("día—noche"))
    print(view("x"), view("é"), sep=view("—"), file=stream)
    assert stream.getvalue() == "día—nochex—é\n"
    assert strings.decode_many([io.BytesIO(view("ж").encode()).read()]) == ["ж"]


def test_what_views_are_not_good_for() -> None:
    made = view("name")
    with pytest.raises(ValueError, match="unmarshallable"):
        marshal.dumps(made)
    with pytest.raises(TypeError, match="can't intern"):
        sys.intern(made)
    assert marshal.loads(marshal.dumps(str(made))) == "name"
    assert sys.intern(str(made)) is sys.intern("name")


def test_the_class_makes_no_instances_and_no_subclasses() -> None:
    for attempt in (
        lambda: strings.View("x"),
        lambda: strings.View(),
        lambda: str.__new__(strings.View, "x"),
        lambda: strings.View.__new__(strings.View, "x"),
        lambda: object.__new__(strings.View),
        lambda: type("Sub", (strings.View,), {}),
        lambda: setattr(strings.View, "x", 1),
        lambda: setattr(view("x"), "__class__", str),
        lambda: setattr(view("x"), "attribute", 1),
        lambda: setattr(type("Other", (str,), {})("x"), "__class__", strings.View),
    ):
        with pytest.raises((TypeError, AttributeError)):
            attempt()


def test_views_are_not_tracked_by_the_collector() -> None:
    made = view("día—noche")
    assert not gc.is_tracked(made)
    assert gc.get_referents(made) == []


def test_utf8_of_a_view_is_at_hand() -> None:
    api = ctypes.pythonapi.PyUnicode_AsUTF8AndSize
    api.restype, api.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.POINTER(ctypes.c_ssize_t)]
    size = ctypes.c_ssize_t()
    for text in WIDTHS:
        made = view(text)
        before = sys.getsizeof(made)
        address = api(made, ctypes.byref(size))
        assert ctypes.string_at(address, size.value + 1) == text.encode() + b"\0"
        assert sys.getsizeof(made) == before, "nothing was allocated"


class ViewMaker:
    """Replaces the class with which CPython's tests make strings."""

    maketrans = staticmethod(str.maketrans)

    def __mro_entries__(self, _: object) -> tuple[type[str]]:
        return (str,)  # classes derived from it make plain strings

    def __call__(self, text: object = "") -> str:
        try:
            return view(str(text))
        except UnicodeEncodeError:  # a lone surrogate, which UTF-8 cannot represent
            return str(text)


def test_cpythons_own_tests_of_str_pass_over_views() -> None:
    pytest.importorskip("test.string_tests", reason="this Python comes without its tests")
    theirs: type[unittest.TestCase] = _tests_of_str()

    class TestView(theirs):  # type: ignore[misc, valid-type]
        type2test = ViewMaker()
        # These tests need a class to derive from, or expect the name of the class in a message.
        test_bug1001011 = test_fixtype = test_subscript = None

        def fixtype(self, value: Any) -> Any:
            if isinstance(value, str):
                return self.type2test(value)
            if isinstance(value, (list, tuple)):
                return type(value)(map(self.fixtype, value))
            if isinstance(value, dict):
                return {self.fixtype(k): self.fixtype(v) for k, v in value.items()}
            return value

    suite = unittest.defaultTestLoader.loadTestsFromTestCase(TestView)
    report = io.StringIO()
    result = unittest.TextTestRunner(stream=report).run(suite)
    assert result.wasSuccessful(), report.getvalue()
    assert result.testsRun - len(result.skipped) > 100


def _tests_of_str() -> Any:
    if sys.version_info >= (3, 13):
        return importlib.import_module("test.test_str").StrTest
    return importlib.import_module("test.test_unicode").UnicodeTest
