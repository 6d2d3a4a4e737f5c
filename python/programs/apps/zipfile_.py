"""zipfile writes and reads archives."""

import io
import zipfile
import zlib

TEXT = b"The quick brown fox jumps over the lazy dog. " * 4000


def main() -> None:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=6) as archive:
        archive.writestr("text.txt", TEXT)
        with archive.open("stream.txt", "w") as stream:
            for start in range(0, len(TEXT), 1000):
                stream.write(TEXT[start : start + 1000])
    assert len(file.getvalue()) < len(TEXT) / 10
    with zipfile.ZipFile(file) as archive:
        assert archive.testzip() is None
        assert archive.read("text.txt") == archive.read("stream.txt") == TEXT
        assert zlib.crc32(TEXT) == archive.getinfo("text.txt").CRC
        with archive.open("text.txt") as member:
            assert member.read(10) == TEXT[:10]
            member.seek(len(TEXT) - 5)
            assert member.read() == TEXT[-5:]
    damaged = bytearray(file.getvalue())
    damaged[60:90] = bytes(30)
    with zipfile.ZipFile(io.BytesIO(damaged)) as archive:
        try:
            archive.read("text.txt")
        except (zipfile.BadZipFile, zlib.error):
            return
    raise AssertionError("a damaged archive was read")
