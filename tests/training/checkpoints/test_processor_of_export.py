"""An export loads with AutoProcessor in a fresh environment that has what the model card asks for, alone."""

import json
import subprocess
import venv
from pathlib import Path

import pytest
import transformers

from training.checkpoints.export import export_checkpoint
from training.content.recipes.tiny.make_checkpoint import make_tiny

TORCHVISION = "torchvision==0.28.0"
"""Of torch 2.13, whose CPU build pip takes where it finds one."""
PROGRAM = """
import json, sys
import torch
if "+cpu" in torch.__version__:
    # The registry's torchvision is built for CUDA: its compiled operators do not load beside a CPU torch, and
    # its Python only asks that these two are declared. The processor uses none of them.
    operators = torch.library.Library("torchvision", "DEF")
    for name in ("nms", "qnms"):
        operators.define(f"{name}(Tensor boxes, Tensor scores, float limit) -> Tensor")
from PIL import Image
import transformers
from transformers import AutoModelForImageTextToText, AutoProcessor
processor = AutoProcessor.from_pretrained(sys.argv[1])
model = AutoModelForImageTextToText.from_pretrained(sys.argv[1], dtype="float32")
parts = [{"type": "image", "image": Image.new("RGB", (256, 192))}, {"type": "text", "text": "Click OK."}]
asked = processor.apply_chat_template(
    [{"role": "user", "content": parts}], tokenize=True, return_dict=True, return_tensors="pt",
    add_generation_prompt=True,
)
answer = model.generate(**asked, max_new_tokens=3, min_new_tokens=3, do_sample=False)
num_new = answer.shape[1] - asked["input_ids"].shape[1]
print(json.dumps({"processor": type(processor).__name__, "new": num_new, "from": transformers.__file__}))
"""


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_an_export_loads_with_its_processor_in_a_fresh_environment(tmp_path: Path) -> None:
    checkpoint = tmp_path / "00001-grpo-000001"
    make_tiny(checkpoint / "model", seed=3)
    (checkpoint / "COMPLETE").write_text("")
    folder = export_checkpoint(checkpoint, tmp_path / "plain")
    venv.create(tmp_path / "fresh", with_pip=True)
    python = tmp_path / "fresh" / "bin" / "python"
    packages = ["torch==2.13.0", TORCHVISION, f"transformers=={transformers.__version__}", "pillow"]
    subprocess.run([python, "-m", "pip", "install", "--quiet", *packages], check=True)
    done = subprocess.run(
        [python, "-I", "-c", PROGRAM, str(folder)],
        cwd=tmp_path, capture_output=True, text=True, check=False,
        env={"HF_HUB_OFFLINE": "1", "HOME": str(tmp_path)},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout.splitlines()[-1])
    assert (said["processor"], said["new"]) == ("Qwen3VLProcessor", 3)
    assert said["from"].startswith(str(tmp_path / "fresh"))
