"""Tests offlock.replace: the originals' names refer to offlock's modules, wherever they have been imported."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from processes import run

import offlock

PRELUDE = """
import importlib, importlib.util, io, pickle, sys, types
import offlock

def module(name, text):
    made = types.ModuleType(name)
    sys.modules[name] = made
    exec(text, made.__dict__)
    return made
"""


def program(text: str) -> None:
    """Runs a program in a new process, because replacements must not remain in this one."""
    run(text, prelude=PRELUDE)


def test_what_is_imported_later_is_ours() -> None:
    program("""
        assert offlock.replace() == ("zlib", "gzip", "msgpack", "tiktoken")
        import gzip, msgpack, tiktoken, zlib
        assert zlib is offlock.zlib and gzip is offlock.gzip
        assert msgpack is offlock.msgpack and tiktoken is offlock.tiktoken
        import msgpack._cmsgpack, msgpack.exceptions, msgpack.ext, msgpack.fallback
        import tiktoken._educational, tiktoken.core, tiktoken.load, tiktoken.model, tiktoken.registry
        from msgpack._cmsgpack import Unpacker
        from msgpack.fallback import Packer, unpackb
        assert unpackb(Packer().pack([1])) == [1] and Unpacker is msgpack.Unpacker
        assert tiktoken.core.Encoding is tiktoken.Encoding is offlock.tiktoken.Encoding
        assert msgpack.ext.Timestamp is offlock.msgpack.Timestamp
        assert msgpack._cmsgpack is msgpack.fallback is offlock.msgpack.fallback
        others = [
            name for name, module in sys.modules.items()
            if name.partition(".")[0] in ("msgpack", "tiktoken") and not module.__name__.startswith("offlock.")
        ]
        assert others == [], others
        assert importlib.util.find_spec("tiktoken.nonesuch") is None
    """)


def test_originals_need_not_be_installed() -> None:
    program("""
        class Hidden:
            def find_spec(self, name, path=None, target=None):
                if name.partition(".")[0] in ("msgpack", "tiktoken"):
                    raise ModuleNotFoundError(name)

        sys.meta_path.insert(0, Hidden())
        offlock.replace()
        import msgpack.fallback, tiktoken.load
        assert msgpack.unpackb(msgpack.packb(1)) == 1
        assert tiktoken.get_encoding("gpt2").n_vocab == 50257
    """)


def test_what_loaded_modules_took_from_the_originals_is_ours() -> None:
    program("""
        import gzip, msgpack, tiktoken, zlib, zipfile
        taker = module("taker",
            "import gzip as packed, msgpack.ext as ext, tiktoken.load, zlib;"
            "from gzip import GzipFile, compress as gzip_compress;"
            "from msgpack import Packer as P, packb;"
            "from tiktoken import Encoding, get_encoding;"
            "from zlib import crc32 as checksum, error, DEFLATED;"
            "value = 8"
        )
        own = module("offlock.own", "import zlib")
        originals = gzip, msgpack, tiktoken, zlib
        offlock.replace()
        assert own.zlib is originals[3], "what is offlock's own may want the original"
        assert zipfile.zlib is offlock.zlib and zipfile.crc32 is offlock.zlib.crc32
        assert (taker.packed, taker.ext, taker.tiktoken, taker.zlib) == (
            offlock.gzip, offlock.msgpack.ext, offlock.tiktoken, offlock.zlib)
        assert (taker.GzipFile, taker.gzip_compress) == (offlock.gzip.GzipFile, offlock.gzip.compress)
        assert (taker.P, taker.packb) == (offlock.msgpack.Packer, offlock.msgpack.packb)
        assert (taker.Encoding, taker.get_encoding) == (offlock.tiktoken.Encoding, offlock.tiktoken.get_encoding)
        assert taker.checksum is offlock.zlib.crc32
        assert taker.error is originals[3].error is offlock.zlib.error
        assert (taker.DEFLATED, taker.value) == (8, 8)
        assert zlib is offlock.zlib, "names of the main module are ours, too"
    """)


def test_one_alone_leaves_the_others() -> None:
    program("""
        import gzip, msgpack, zlib
        gzip_, msgpack_ = [gzip], [msgpack]
        assert offlock.replace("zlib") == ("zlib",)
        assert sys.modules["gzip"] is gzip is gzip_[0] and sys.modules["msgpack"] is msgpack_[0]
        assert gzip.zlib is zlib is offlock.zlib, "the original's gzip uses our zlib"
        assert gzip.decompress(gzip.compress(b"text")) == b"text"
        assert offlock.replace("gzip", "zlib") == ("gzip",)
        assert gzip is offlock.gzip
    """)


def test_files_are_instances_of_either_class() -> None:
    program("""
        import gzip
        classes = (gzip.GzipFile, str)  # out of reach
        offlock.replace()
        file = gzip.open(io.BytesIO(gzip.compress(b"text")))
        assert isinstance(file, gzip.GzipFile) and isinstance(file, classes)
        assert type(file) is offlock.gzip.GzipFile and file.read() == b"text"
    """)


def test_originals_come_back() -> None:
    program("""
        import gzip, msgpack, tiktoken.load, zlib
        saved = {name: module for name, module in sys.modules.items()
                 if name.partition(".")[0] in ("gzip", "msgpack", "tiktoken", "zlib")}
        taker = module("taker", "import zlib; from zlib import crc32, adler32; from msgpack import packb")
        crc32, packb = taker.crc32, [taker.packb]
        offlock.replace()
        assert "tiktoken._tiktoken" in saved and "tiktoken._tiktoken" not in sys.modules
        taker.adler32 = len  # what the program changed meanwhile stays
        import tiktoken._educational
        offlock.restore("zlib")
        assert sys.modules["zlib"] is saved["zlib"] is taker.zlib is zlib and sys.modules["gzip"] is offlock.gzip
        offlock.restore()
        assert {name: sys.modules.get(name) for name in saved} == saved
        assert "tiktoken._educational" not in sys.modules
        assert (taker.crc32, taker.packb, taker.adler32) == (zlib.crc32, packb[0], len)
        assert taker.crc32 is not offlock.zlib.crc32
        offlock.restore()
    """)


def test_a_block_puts_back_what_it_replaced() -> None:
    program("""
        import msgpack, zlib
        original = [zlib]
        offlock.replace("msgpack")
        with offlock.replace("zlib", "msgpack") as names:
            assert names == ("zlib",) and zlib is offlock.zlib
            with offlock.replace("zlib") as none:
                assert none == ()
            assert zlib is offlock.zlib
        assert zlib is original[0] is sys.modules["zlib"] and msgpack is offlock.msgpack
        try:
            with offlock.replace("zlib"):
                1 / 0
        except ZeroDivisionError:
            pass
        assert zlib is original[0]
    """)


@pytest.mark.parametrize("call", [offlock.replace, offlock.restore])
def test_what_cannot_be_replaced_is_named(call: object) -> None:
    with pytest.raises(ValueError, match="offlock replaces zlib, gzip, msgpack and tiktoken, not 'bz2'"):
        call("zlib", "bz2")  # type: ignore[operator]
    assert sys.modules["zlib"].__name__ == "zlib"


def test_modules_that_load_late_stay_unloaded() -> None:
    program("""
        import zlib
        spec = importlib.util.find_spec("antigravity")
        spec.loader = importlib.util.LazyLoader(spec.loader)
        late = importlib.util.module_from_spec(spec)
        sys.modules["antigravity"] = late
        spec.loader.exec_module(late)
        offlock.replace()
        assert type(late).__name__ == "_LazyModule"
    """)


def test_pickles_of_the_originals_are_read() -> None:
    program("""
        import msgpack, tiktoken, zlib
        names = ["zlib.error", "zlib.crc32", "gzip.BadGzipFile", "gzip.GzipFile", "msgpack.ext.ExtType"]
        objects = [msgpack.Timestamp(1, 2), msgpack.ExtType(5, b"x"), zlib.error("text"), ("tiktoken.core", "Encoding")]
        custom = tiktoken.Encoding("mine", pat_str=".", mergeable_ranks={bytes([n]): n for n in range(256)},
                                   special_tokens={"<|end|>": 256})
        pickles = [pickle.dumps(thing) for thing in [*objects, custom]]
        references = [f"c{name.rpartition('.')[0]}\\n{name.rpartition('.')[2]}\\n.".encode() for name in names]
        offlock.replace()
        stamp, ext, error, _, encoding = [pickle.loads(data) for data in pickles]
        assert type(stamp) is offlock.msgpack.Timestamp and stamp == msgpack.Timestamp(1, 2)
        assert type(ext) is offlock.msgpack.ExtType and ext == (5, b"x")
        assert type(error) is offlock.zlib.error
        assert type(encoding) is offlock.tiktoken.Encoding and encoding.encode("ab") == [97, 98]
        found = [pickle.loads(data) for data in references]
        assert found == [offlock.zlib.error, offlock.zlib.crc32, offlock.gzip.BadGzipFile, offlock.gzip.GzipFile,
                         offlock.msgpack.ExtType]
    """)


def test_pickles_of_ours_are_read_where_nothing_is_replaced() -> None:
    program("""
        offlock.replace()
        import gzip, msgpack, tiktoken, zlib
        things = [msgpack.Timestamp(1, 2), tiktoken.get_encoding("gpt2"), zlib.crc32, gzip.GzipFile, msgpack.packb]
        data = pickle.dumps(things)
        offlock.restore()
        stamp, encoding, *others = pickle.loads(data)
        assert others == [offlock.zlib.crc32, offlock.gzip.GzipFile, offlock.msgpack.packb]
        assert stamp == offlock.msgpack.Timestamp(1, 2) and type(encoding) is offlock.tiktoken.Encoding
        assert encoding.encode("text") == things[1].encode("text")
    """)


def test_the_module_can_be_called_as_well() -> None:
    program("""
        import offlock.replace
        assert offlock.replace("zlib") == ("zlib",)
        import zlib
        assert zlib is offlock.zlib
    """)


# The command.

SHOW = """
import sys
import zlib
print(zlib.__name__, __name__, __file__, __package__, __spec__ and __spec__.name, sys.argv, sys.path[0], sep="|")
"""


def command(*arguments: str, cwd: Path, flags: tuple[str, ...] = ()) -> subprocess.CompletedProcess[str]:
    parent = str(Path(offlock.__file__).parents[1])
    return subprocess.run(
        [sys.executable, *flags, *arguments],
        cwd=cwd,
        env={"PYTHONPATH": parent, "PATH": ""},
        capture_output=True,
        text=True,
        check=False,
    )


def replaced(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return command("-m", "offlock.replace", *arguments, cwd=cwd)


@pytest.fixture
def programs(tmp_path: Path) -> Path:
    (tmp_path / "inner").mkdir()
    (tmp_path / "inner" / "app.py").write_text(SHOW)
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "__init__.py").touch()
    (tmp_path / "package" / "__main__.py").write_text(SHOW)
    (tmp_path / "package" / "broken.py").write_text("import nonesuch")
    (tmp_path / "single.py").write_text(SHOW)
    with zipfile.ZipFile(tmp_path / "app.pyz", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("__main__.py", SHOW)
    return tmp_path


@pytest.mark.parametrize(
    "arguments",
    [
        ["inner/app.py"],
        ["inner/app.py", "--only", "x", "-m", "-h"],
        ["inner/app.py", "--", "-x"],
        ["-m", "single", "-v", "--only", "x"],
        ["-m", "package", "--help"],
        ["-m", "inner.app"],
        ["package", "x"],
        ["app.pyz", "x"],
    ],
)
def test_a_program_finds_what_it_finds_when_python_runs_it(programs: Path, arguments: list[str]) -> None:
    alone = command(*arguments, cwd=programs)
    result = replaced(*arguments, cwd=programs)
    assert (result.returncode, result.stderr) == (0, "")
    ours, *found = result.stdout.strip().split("|")
    original, *expected = alone.stdout.strip().split("|")
    assert (ours, original) == ("offlock.zlib", "zlib")
    assert found == expected


@pytest.mark.parametrize(
    ("only", "names"),
    [
        ("zlib", "offlock.zlib gzip msgpack"),
        ("gzip,msgpack", "zlib offlock.gzip offlock.msgpack"),
    ],
)
def test_only_what_is_named_is_replaced(tmp_path: Path, only: str, names: str) -> None:
    (tmp_path / "app.py").write_text(
        "import zlib, gzip, msgpack; print(zlib.__name__, gzip.__name__, msgpack.__name__)"
    )
    assert replaced("--only", only, "app.py", cwd=tmp_path).stdout.strip() == names


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        ([], 2, "a program is missing: give the path of a script, or -m and the name of a module"),
        (["-m"], 2, "a program is missing"),
        (["--only", "zlib,bz2", "single.py"], 2, "choose from zlib, gzip, msgpack, tiktoken, not 'bz2'"),
        (["--nonsense", "single.py"], 2, "unrecognized arguments: --nonsense"),
        (["nonesuch.py"], 2, "nonesuch.py': [Errno 2] No such file or directory"),
        (["inner"], 1, "can't find '__main__' module in"),
        (["-m", "nonesuch"], 1, "No module named nonesuch"),
        (["-m", "nonesuch.part"], 1, "No module named nonesuch.part"),
        (["-m", "xml"], 1, "'xml' is a package and cannot be executed: it has no __main__"),
        (["-m", "package.broken"], 1, "ModuleNotFoundError: No module named 'nonesuch'"),
    ],
)
def test_errors_say_what_is_wrong(programs: Path, arguments: list[str], status: int, message: str) -> None:
    result = replaced(*arguments, cwd=programs)
    assert result.returncode == status
    assert message in result.stderr
    assert result.stdout == ""


def test_the_command_explains_itself(tmp_path: Path) -> None:
    result = replaced("--help", cwd=tmp_path)
    assert (result.returncode, result.stderr) == (0, "")
    assert "--only NAMES" in result.stdout


def test_the_end_of_a_program_is_its_own(tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text(
        "import atexit, pickle, sys, threading, time\n"
        "class Thing: pass\n"
        "def late():\n"
        "    time.sleep(0.1)\n"
        "    print(type(pickle.loads(pickle.dumps(Thing()))) is Thing)\n"
        "atexit.register(print, 'exit')\n"
        "threading.Thread(target=late).start()\n"
        "sys.exit(7)\n"
    )
    result = replaced("app.py", cwd=tmp_path)
    assert (result.returncode, result.stdout, result.stderr) == (7, "True\nexit\n", "")
