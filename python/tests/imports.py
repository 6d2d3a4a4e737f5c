"""Finds and redirects calls of the interpreter in its import slots, as other tools do. Linux on x86-64."""

from __future__ import annotations

import ctypes
import mmap
import struct

libc = ctypes.CDLL(None, use_errno=True)

RELOCATIONS = (6, 7)  # GLOB_DAT and JUMP_SLOT


def word(address: int) -> int:
    return ctypes.c_uint64.from_address(address).value


def base_of_interpreter() -> int:
    """Returns the address of the object that contains the interpreter's code."""
    code = ctypes.cast(ctypes.pythonapi.PyEval_SaveThread, ctypes.c_void_p).value or 0
    with open("/proc/self/maps") as file:
        maps = [line.split() for line in file]
    ranges = [(*_range(fields[0]), fields[-1]) for fields in maps]
    name = next(name for start, end, name in ranges if start <= code < end)
    return min(start for start, _, at in ranges if at == name)


def _range(text: str) -> tuple[int, int]:
    start, end = text.split("-")
    return int(start, 16), int(end, 16)


def dynamic_section(base: int) -> tuple[int, dict[int, int]]:
    """Returns the number to add to the object's addresses, and the entries of its dynamic section."""
    header = ctypes.string_at(base, 64)
    kind, (at,), (size, count) = (
        struct.unpack_from("<H", header, 16)[0],
        struct.unpack_from("<Q", header, 32),
        struct.unpack_from("<HH", header, 54),
    )
    bias = base if kind == 3 else 0
    entries: dict[int, int] = {}
    for index in range(count):
        segment = base + at + index * size
        if ctypes.c_uint32.from_address(segment).value == 2:
            entry = bias + word(segment + 16)
            while word(entry):
                entries[word(entry)] = word(entry + 8)
                entry += 16
    return bias, entries


def slot_of(name: bytes) -> int:
    """Returns the address of the pointer through which the interpreter calls a function."""
    bias, entries = dynamic_section(base_of_interpreter())
    strings, symbols = entries[5], entries[6]
    for table, size in ((7, 8), (23, 2)):
        for entry in range(entries.get(table, 0), entries.get(table, 0) + entries.get(size, 0), 24):
            offset, info = word(entry), word(entry + 8)
            symbol = symbols + (info >> 32) * 24
            if info & 0xFFFFFFFF in RELOCATIONS and (
                ctypes.string_at(strings + ctypes.c_uint32.from_address(symbol).value) == name
            ):
                return bias + offset
    raise LookupError(name)


def put(slot: int, function: int) -> None:
    """Redirects the interpreter's calls of a function."""
    page = slot & ~(mmap.PAGESIZE - 1)
    assert libc.mprotect(ctypes.c_void_p(page), mmap.PAGESIZE, mmap.PROT_READ | mmap.PROT_WRITE) == 0
    ctypes.c_uint64.from_address(slot).value = function


class Hook:
    """Counts calls and forwards them. It is machine code, because the interpreter calls it while it acquires the lock."""

    def __init__(self, function: int) -> None:
        self._memory = mmap.mmap(-1, mmap.PAGESIZE, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
        self.address = ctypes.addressof(ctypes.c_char.from_buffer(self._memory))
        counter = self.address + 64
        # movabs rax, counter; lock inc qword [rax]; movabs rax, function; jmp rax
        count = b"\x48\xb8" + struct.pack("<Q", counter) + b"\xf0\x48\xff\x00"
        self._memory.write(count + b"\x48\xb8" + struct.pack("<Q", function) + b"\xff\xe0")

    @property
    def calls(self) -> int:
        return word(self.address + 64)
