"""The examples for other trainers on real desktops: a plain script, and TRL."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from testing.paths import REPOSITORY
from testing.workers.env_server_thread import TOKEN, application, episodes_over, serving
from training.content.task_sets.first_desk import generate

pytestmark = [pytest.mark.slow, pytest.mark.desktop]

EXAMPLES = REPOSITORY / "deploy" / "client" / "examples"
COLOUR = next(task for task in generate() if task.task_id == "first-desk/colour/0000")


@pytest.fixture(scope="module")
def server(desk_client) -> Iterator[str]:
    episodes = episodes_over(desk_client, max_episodes=4)
    with serving(application(episodes, tasks=(COLOUR,))) as url:
        yield url
    episodes.close_all()


def run(*words: str, paths: tuple[Path, ...] = (), cwd: Path) -> str:
    path = ":".join(map(str, (*paths, REPOSITORY / "deploy" / "client")))
    done = subprocess.run(
        [sys.executable, *words], cwd=cwd, capture_output=True, text=True, check=False, timeout=500,
        env={"PYTHONPATH": path, "PATH": "/usr/bin:/bin", "HOME": str(cwd), "TRL_EXPERIMENTAL_SILENCE": "1"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


def test_the_plain_script(server, tmp_path):
    out = run(str(EXAMPLES / "random_agent.py"), server, TOKEN, "--episodes", "2", cwd=tmp_path)
    lines = out.strip().splitlines()
    assert len(lines) == 2
    assert all("reward 0 after" in line or "reward 1 after" in line for line in lines)


SCRIPTED = """
import json, sys
from pathlib import Path
import torch
from transformers import AutoTokenizer, Qwen3Config, Qwen3ForCausalLM
sys.path.insert(0, sys.argv[1])
import trl_grpo

url, token, words, folder = sys.argv[2:6]
SOLUTION = json.loads(sys.argv[7])
GIVING_UP = [{"name": "finish", "arguments": {"solved": False}}]
tokenizer = AutoTokenizer.from_pretrained(words)
tokenizer.chat_template = Path(sys.argv[6]).read_text()

class Scripted(Qwen3ForCausalLM):
    '''Every other member of a group solves the task by calls of tools; the others say that it cannot be.'''

    def generate(self, input_ids=None, attention_mask=None, **settings):
        rows = []
        for place, row in enumerate(input_ids):
            num_done = tokenizer.decode(row).count("</tool_response>")
            calls = SOLUTION if place % 2 else GIVING_UP
            text = "Done."
            if num_done < len(calls):
                text = "<tool_call>\\n" + json.dumps(calls[num_done]) + "\\n</tool_call>"
            rows.append(tokenizer(text + "<|im_end|>")["input_ids"])
        length = max(map(len, rows))
        pad = tokenizer.pad_token_id
        new = torch.tensor([row + [pad] * (length - len(row)) for row in rows])
        return torch.cat([input_ids, new], dim=1)

config = Qwen3Config(
    vocab_size=len(tokenizer), hidden_size=32, intermediate_size=64, num_hidden_layers=1,
    num_attention_heads=2, num_key_value_heads=1, head_dim=16, max_position_embeddings=8192,
)
model = Scripted(config)
options = trl_grpo.parse([
    url, token, "--model", "scripted", "--output", folder, "--steps", "1", "--num-tasks", "1",
    "--group-size", "2", "--text-only", "--cpu", "--max-completion-length", "2048",
])
options.model = model
trainer = trl_grpo.make_trainer(options, processing_class=tokenizer)
trainer.train()
print(json.dumps(trainer.state.log_history[0]))
"""


def test_a_step_of_trls_grpo_on_two_desktops(server, tmp_path):
    import trl

    template = Path(trl.__file__).parent / "chat_templates" / "qwen3.jinja"
    words = REPOSITORY / "training" / "checkpoints_shipped" / "first-desk"
    clicks = [action for action in COLOUR.oracle["actions"] if action["kind"] == "click"]
    calls = [{"name": "click", "arguments": {"x": each["x"], "y": each["y"]}} for each in clicks]
    calls.append({"name": "finish", "arguments": {"solved": True}})
    folders = (str(EXAMPLES), server, TOKEN, str(words), str(tmp_path / "out"), str(template))
    arguments = (*folders, json.dumps(calls))
    log = json.loads(run("-c", SCRIPTED, *arguments, cwd=tmp_path).splitlines()[-1])
    assert log["tools/call_frequency"] == (len(calls) + 1) / 2
    assert log["tools/failure_frequency"] == 0.0
    assert log["rewards/TrlDesktop/mean"] == 0.5
    assert log["grad_norm"] > 0
