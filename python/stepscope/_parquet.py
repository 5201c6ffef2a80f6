"""Started by `stepscope export --to parquet` (src/cli/export_parquet.cpp).

Rows of CSV on stdin become a Parquet file on stdout, block by block; the columns' names and Arrow
types are the first argument, as JSON. Exit code 2, and why on stderr, when that fails.
"""

from __future__ import annotations

import importlib
import json
import sys
from typing import Any

BLOCK_BYTES = 8 << 20  # of CSV: a row group each
WRONG_USE = 2


def fail(message: str, hint: str) -> int:
    print(f"stepscope: {message}\nhint: {hint}", file=sys.stderr)
    return WRONG_USE


def write(columns: list[list[str]], arrow: Any, csv: Any, parquet: Any) -> None:
    names = [name for name, _ in columns]
    schema = arrow.schema([(name, arrow.type_for_alias(kind)) for name, kind in columns])
    rows: Any = sys.stdin.buffer
    with parquet.ParquetWriter(sys.stdout.buffer, schema, compression="zstd") as writer:
        if not rows.peek(1):  # what reads CSV takes no rows for a mistake
            return
        batches = csv.open_csv(
            rows,
            read_options=csv.ReadOptions(column_names=names, block_size=BLOCK_BYTES),
            parse_options=csv.ParseOptions(newlines_in_values=True),
            convert_options=csv.ConvertOptions(column_types=schema),
        )
        for batch in batches:
            writer.write_batch(batch)


def main() -> int:
    try:
        modules = [
            importlib.import_module(name) for name in ("pyarrow", "pyarrow.csv", "pyarrow.parquet")
        ]
    except ModuleNotFoundError as error:
        return fail(
            f"--to parquet needs the package {error.name}, which {sys.executable} does not have",
            f"{sys.executable} -m pip install pyarrow; or: --to csv, the same rows",
        )
    try:
        write(json.loads(sys.argv[1]), *modules)
        sys.stdout.flush()
    except (OSError, ValueError) as error:  # pyarrow's own are both
        return fail(f"could not write the Parquet file: {error}", "or: --to csv, the same rows")
    except KeyboardInterrupt:
        return 130
    return 0
