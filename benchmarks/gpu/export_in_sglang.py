"""Does stock SGLang serve exports of the trained families but Qwen3-VL as transformers computes them?

    python -m benchmarks.gpu.export_in_sglang [--only qwen3 qwen3_5] [--side-by-side 8] [--dtype float16]

Random models of small widths with ordinary heads, exported by `training.checkpoints.export`. Compared are the
logprobs of one prompt's tokens, and of families with eyes those of an answer's first token after each of two
pictures. The bar is `ROUNDINGS` times what rounding alone does to transformers. One GPU serves all families
side by side; Qwen3-VL has a GPU test with First desk's weights. Needs DESKHAND_SGLANG_PYTHON and, of an
unpacked site folder, DESKHAND_SGLANG_PATH.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import traceback
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from benchmarks.report import RESULTS, finish, print_table
from testing.training.sglang_exports import SERVED, START_S, faults, make_export, measured
from testing.training.tiny_families import NAMES
from training.checkpoints.export import Dtype
from training.sampler.sglang.server_arguments import SglangInstallation

HEADER = ("model type", "tokens", "mean", "largest", "rounding", "pictures: mean", "ready s", "verdict")


def row_of(
    sglang: SglangInstallation, export: Path, model_type: str, dtype: Dtype, start_s: float
) -> dict[str, Any]:
    """A family's figures, or why there are none."""
    try:
        found = measured(sglang, export, model_type, dtype, start_s)
        found["faults"] = faults(found)
    except Exception as error:  # noqa: BLE001 - the other families say something, too
        traceback.print_exc()
        found = {"faults": [repr(error)[:200]], "said": str(error)[-3000:]}
    print(model_type, found, flush=True)
    return found


def cells(model_type: str, row: dict[str, Any]) -> tuple[object, ...]:
    """A line of the table."""
    verdict = row["faults"][0] if row["faults"] else "agrees"
    if "text" not in row:
        return (model_type, *("",) * (len(HEADER) - 2), verdict)
    text = row["text"]
    nats = (f"{text[name]:.5f}" for name in ("mean", "largest", "rounding"))
    pictures = " ".join(f"{one['mean']:.5f}" for one in row["pictures"])
    return (model_type, text["tokens"], *nats, pictures, row["ready_s"], verdict)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="+", choices=NAMES, default=list(SERVED), metavar="MODEL_TYPE")
    parser.add_argument("--side-by-side", type=int, default=8, help="servers at once on the GPU")
    parser.add_argument("--dtype", choices=("float16", "bfloat16", "float32"), default="float16")
    parser.add_argument("--start-s", type=float, default=START_S, help="seconds that a server may take")
    parser.add_argument("--results", type=Path, default=RESULTS / "gpu")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        sglang = SglangInstallation.from_environment(os.environ, folder)
        # One after the other: their weights come from torch's one random state.
        exports = {name: make_export(folder / name, name, options.dtype) for name in options.only}
        with ThreadPoolExecutor(options.side_by_side) as pool:
            turns = {
                name: pool.submit(row_of, sglang, export, name, options.dtype, options.start_s)
                for name, export in exports.items()
            }
            rows = {name: turn.result() for name, turn in turns.items()}
    print_table(HEADER, [cells(name, row) for name, row in rows.items()])
    passed = not any(row["faults"] for row in rows.values())
    return finish("export_in_sglang", {"families": rows}, passed=passed, results=options.results)


if __name__ == "__main__":
    sys.exit(main())
