"""pandas writes and reads compressed tables."""

import gzip
import io
import tempfile
import zipfile
from pathlib import Path

import pandas as pd


def main() -> None:
    table = pd.DataFrame({"number": range(5000), "name": [f"name {n}" for n in range(5000)]})
    with tempfile.TemporaryDirectory() as folder:
        for name in ("table.csv.gz", "table.csv.zip"):
            path = Path(folder, name)
            table.to_csv(path, index=False)
            assert pd.read_csv(path).equals(table)
        with gzip.open(Path(folder, "table.csv.gz"), "rt") as lines:
            assert sum(1 for _ in lines) == 5001
        with zipfile.ZipFile(Path(folder, "table.csv.zip")) as archive:
            assert archive.testzip() is None
        table.to_pickle(Path(folder, "table.pkl.gz"))
        assert pd.read_pickle(Path(folder, "table.pkl.gz")).equals(table)
    packed = io.BytesIO()
    table.to_csv(packed, index=False, compression={"method": "gzip", "compresslevel": 1, "mtime": 1})
    assert packed.getvalue()[4:8] == b"\1\0\0\0"
    with gzip.GzipFile(fileobj=io.BytesIO(packed.getvalue())) as file:
        assert pd.read_csv(file).equals(table)
