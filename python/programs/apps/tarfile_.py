"""tarfile writes and reads compressed archives."""

import gzip
import io
import tarfile

TEXT = b"The quick brown fox jumps over the lazy dog. " * 4000


def add(archive: tarfile.TarFile) -> None:
    member = tarfile.TarInfo("text.txt")
    member.size = len(TEXT)
    archive.addfile(member, io.BytesIO(TEXT))


def main() -> None:
    for mode in ("w:gz", "w|gz"):
        file = io.BytesIO()
        with tarfile.open(fileobj=file, mode=mode) as archive:
            add(archive)
        packed = file.getvalue()
        assert TEXT in gzip.decompress(packed)
        for reading in ("r:gz", "r|gz", "r:*"):
            with tarfile.open(fileobj=io.BytesIO(packed), mode=reading) as archive:
                member = archive.next()
                assert member is not None
                content = archive.extractfile(member)
                assert content is not None
                assert content.read() == TEXT
    try:
        with tarfile.open(fileobj=io.BytesIO(b"no archive at all" * 100), mode="r:gz"):
            pass
    except tarfile.ReadError:
        return
    raise AssertionError("a file that is not an archive was opened")
