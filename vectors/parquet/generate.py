"""Writes `files.jsonl` with pyarrow."""

import io
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

TEXTS = [
    "off the lock",
    "",
    None,
    "naïve 日本語 🙂",
    "off the lock, again",
    "a" * 300,
    None,
    "x",
    "off the lock",
]
STRING = pa.string()
LONG = [f"{number} {'lorem ipsum ' * (number % 7)}" for number in range(60)]


def table(texts: list[str | None], kind: pa.DataType = STRING, nullable: bool = True) -> pa.Table:
    ids = pa.array(range(len(texts)), pa.int64())
    schema = pa.schema([pa.field("id", pa.int64()), pa.field("text", kind, nullable)])
    return pa.table([ids, pa.array(texts, kind)], schema)


def cases() -> dict[str, tuple[pa.Table, list[str | None], dict[str, Any]]]:
    made = {}
    for codec in ("none", "snappy", "gzip", "zstd", "lz4"):
        for version in ("1.0", "2.0"):
            options = {"compression": codec, "data_page_version": version, "use_dictionary": version == "2.0"}
            made[f"{codec}, pages of version {version}"] = (table(TEXTS + LONG), TEXTS + LONG, options)
    some = [text for text in TEXTS if text is not None]
    made["a dictionary, old pages"] = (table(TEXTS * 5), TEXTS * 5, {"use_dictionary": True})
    made["a dictionary that is given up"] = (
        table(LONG),
        LONG,
        {
            "use_dictionary": True,
            "dictionary_pagesize_limit": 200,
            "write_batch_size": 8,
            "data_page_size": 100,
        },
    )
    for encoding in ("DELTA_LENGTH_BYTE_ARRAY", "DELTA_BYTE_ARRAY"):
        for version in ("1.0", "2.0"):
            made[f"{encoding}, pages of version {version}"] = (
                table(TEXTS + LONG),
                TEXTS + LONG,
                {
                    "use_dictionary": False,
                    "column_encoding": {"text": encoding},
                    "data_page_version": version,
                },
            )
    made["a column without missing values"] = (table(some, nullable=False), some, {})
    made["large strings"] = (table(TEXTS, pa.large_string()), TEXTS, {})
    made["bytes"] = (table(TEXTS, pa.binary()), TEXTS, {})
    made["only missing values"] = (table([None] * 9), [None] * 9, {})
    made["a column of nothing"] = (table([None] * 9, pa.null()), [None] * 9, {})
    made["several groups of rows"] = (table(TEXTS + LONG), TEXTS + LONG, {"row_group_size": 10})
    made["several pages"] = (
        table(TEXTS + LONG),
        TEXTS + LONG,
        {"data_page_size": 100, "write_batch_size": 4, "use_dictionary": False},
    )
    made["checksums"] = (table(TEXTS), TEXTS, {"write_page_checksum": True})
    made["no rows"] = (table([]), [], {})
    made["an index of pages"] = (table(LONG), LONG, {"write_page_index": True})
    return made


def main() -> None:
    with open(Path(__file__).with_name("files.jsonl"), "w") as out:
        for name, (content, texts, options) in cases().items():
            file = io.BytesIO()
            pq.write_table(content, file, store_schema=False, **options)
            print(json.dumps({"name": name, "bytes": file.getvalue().hex(), "texts": texts}), file=out)


if __name__ == "__main__":
    main()
