"""The model card of an exported checkpoint: what it is, how to load it, how it did, what it learned from.

Markdown with the header that the Hugging Face hub reads; the export writes it as README.md.
"""

import contextlib
from collections.abc import Iterable, Iterator
from typing import Any

import yaml
from django.db.models import Count

from training.contracts.config import to_yaml
from training.contracts.types import Purpose
from training.planning.model_families import family_of_folder
from training.planning.model_folders import hub_model
from webapp.analysis.lineage.family_tree import edges_of
from webapp.analysis.series.metric_series import whole_series
from webapp.experiments.model_folders import model_folder
from webapp.experiments.models import CheckpointRecord, Evaluation, Experiment
from webapp.experiments.queries.evaluations import all_evaluations
from webapp.experiments.queries.rows_behind_resume import lost_trajectories
from webapp.replay.models import ReplayUseRecord
from webapp.trajectories.models import Trajectory

EVALUATION_HEAD = (
    *("evaluation", "step", "tasks", "temperature", "solved, ended by the agent", "solved at a limit"),
    "by OSWorld's rule",
)
RULES = "OSWorld's rule scores the state also where a limit ended the trajectory. Intervals are of 95 %."
CURVES = (
    *("rollout/solved", "rollout/success", "rollout/reward_mean", "loss/policy", "loss/kl", "loss/entropy"),
    "sft/loss",
)
MAX_CURVE_ROWS = 12
MAX_ANCESTORS = 32

LOADING_TEXT = """## Load

```sh
pip install torch "transformers>=5"
```
```python
from transformers import AutoModelForCausalLM, AutoTokenizer

model = AutoModelForCausalLM.from_pretrained("FOLDER")
tokenizer = AutoTokenizer.from_pretrained("FOLDER")
```

SGLang (`python -m sglang.launch_server --model-path FOLDER`) and vLLM (`vllm serve FOLDER`) read it too."""

LOADING = """## Load

```sh
pip install torch torchvision "transformers>=5" pillow
```
```python
from transformers import AutoModelForImageTextToText, AutoProcessor

model = AutoModelForImageTextToText.from_pretrained("FOLDER")
processor = AutoProcessor.from_pretrained("FOLDER")
```

transformers builds the processor with its video part, which needs torchvision. SGLang
(`python -m sglang.launch_server --model-path FOLDER`) and vLLM (`vllm serve FOLDER`) read the same folder."""


def model_card(checkpoint: CheckpointRecord, dtype: str) -> str:
    """The card of `checkpoint`, exported as `dtype`."""
    experiment = checkpoint.experiment
    has_vision = _has_vision(checkpoint)
    reads = ", ".join(experiment.settings.prompt.observation) or "nothing of the screen"
    parts = [
        _header(experiment, has_vision=has_vision),
        f"# {experiment.name}, step {checkpoint.step}",
        f"A policy that drives desktops: it reads {reads} and answers with actions. Trained with Deskhand, "
        f"experiment {experiment.pk}; policy version {checkpoint.policy_version}, saved "
        f"{checkpoint.created_at:%Y-%m-%d}, exported as {dtype}.",
        LOADING if has_vision else LOADING_TEXT,
        _screens(experiment),
        "## Evaluations",
        _table(EVALUATION_HEAD, _evaluations(experiment)) or "None.",
        RULES,
        *(f"Measured by {text}." for text in dict.fromkeys(_stamps(experiment))),
        "## Curves",
        _curves(experiment, checkpoint.step),
        "## Data",
        "\n".join(f"- {line}" for line in _data(experiment, checkpoint)),
        "## Config",
        f"```yaml\n{to_yaml(experiment.settings).strip()}\n```",
    ]
    return "\n\n".join(parts) + "\n"


def _has_vision(checkpoint: CheckpointRecord) -> bool:
    """Whether its family sees pictures; yes where its folder is on another machine and it was shown some."""
    settings = checkpoint.experiment.settings
    for path in (checkpoint.path, settings.model.path):
        if (folder := model_folder(path)) is not None:
            with contextlib.suppress(ValueError, OSError):
                return family_of_folder(folder).has_vision
    return settings.prompt.shows_screen


def _header(experiment: Experiment, *, has_vision: bool) -> str:
    settings = experiment.settings
    head: dict[str, Any] = {
        "library_name": "transformers",
        "pipeline_tag": "image-text-to-text" if has_vision else "text-generation",
        "tags": ["computer-use", "deskhand", settings.algorithm.name],
    }
    if (base := hub_model(settings.model.path)) is not None:
        head |= {"base_model": base.repository}
    return f"---\n{yaml.safe_dump(head, sort_keys=False).strip()}\n---"


def _screens(experiment: Experiment) -> str:
    """Without these a reader's prompts would differ from those that it was trained on."""
    model, prompt = experiment.settings.model, experiment.settings.prompt
    pictures = (
        f"Screenshots of {model.min_pixels} to {model.max_pixels} pixels"
        if prompt.shows_screen
        else ("No screenshots")
    )
    return (
        f"{pictures}; prompt style `{prompt.style}`, "
        f"actions in the dialect `{prompt.dialect}`, coordinates `{prompt.coordinate_space.value}`, history "
        f"`{prompt.history}`."
    )


def _evaluations(experiment: Experiment) -> Iterator[tuple[object, ...]]:
    for found in all_evaluations(experiment):
        yield (
            found.name,
            found.checkpoint.step if found.checkpoint else found.step,
            found.num_tasks,
            "" if found.temperature is None else f"{found.temperature:g}",
            _solved(found),
            "not counted" if found.num_solved_at_limit is None else found.num_solved_at_limit,
            f"{found.num_success} of {found.num_samples}: {found.success:.1%} "
            f"({found.low:.1%} to {found.high:.1%})",
        )


def _stamps(experiment: Experiment) -> Iterator[str]:
    """What measured, each once."""
    for found in all_evaluations(experiment):
        yield found.eyes_text


def _solved(found: Evaluation) -> str:
    missing = f"; {found.missing_text}" if found.missing_text else ""
    if found.solved is None:
        return f"not counted{missing}"
    shown = found.shown
    share = f"{shown.value:.1%} ({shown.low:.1%} to {shown.high:.1%})"
    return f"{shown.won} of {found.num_samples}: {share}{missing}"


def _curves(experiment: Experiment, last_step: int) -> str:
    """Values at equal distances up to the checkpoint's step."""
    lines = {name: line for name, line in whole_series(experiment, list(CURVES)).items() if line["x"]}
    steps = sorted({step for line in lines.values() for step in line["x"] if step <= last_step})
    every = -(-len(steps) // MAX_CURVE_ROWS) or 1
    shown = [step for place, step in enumerate(reversed(steps)) if place % every == 0][::-1]
    values = {name: dict(zip(line["x"], line["y"], strict=True)) for name, line in lines.items()}
    rows = ((int(step), *(_number(values[name].get(step)) for name in lines)) for step in shown)
    return _table(("step", *lines), rows) or "No steps were recorded."


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.4g}"


def _data(experiment: Experiment, checkpoint: CheckpointRecord) -> Iterator[str]:
    tasks = experiment.settings.tasks
    yield f"Began with the weights `{experiment.settings.model.path}`."
    yield from _ancestors(experiment)
    yield f"Tasks: `{tasks.task_set}`, revision {tasks.revision or 'not recorded'}."
    kept = Trajectory.objects.filter(group__experiment=experiment).exclude(lost_trajectories())
    rows = kept.values("purpose").order_by("purpose")
    counts = {row["purpose"]: row["number"] for row in rows.annotate(number=Count("pk"))}
    for purpose in (Purpose.TRAIN, Purpose.EVALUATION):
        yield f"{counts.get(purpose.value, 0)} trajectories for {purpose.value}."
    uses = ReplayUseRecord.objects.filter(experiment=experiment, step__lte=checkpoint.step)
    yield f"{uses.values('entry').distinct().count()} replay entries, used {uses.count()} times."
    yield f"SFT stage before it: {'yes' if experiment.settings.sft.enabled else 'no'}."


def _ancestors(experiment: Experiment) -> Iterator[str]:
    """The experiments that its weights or settings came from, the nearest first."""
    above = {edge.child: edge for edge in edges_of(experiment.team_id)}
    pk = experiment.pk
    for _ in range(MAX_ANCESTORS):
        if (edge := above.get(pk)) is None:
            return
        saved = f" with the weights of its step {edge.checkpoint[1]}" if edge.checkpoint else ""
        yield f"Experiment {pk} was {'cloned' if edge.is_clone else 'continued'} from {edge.parent}{saved}."
        pk = edge.parent


def _table(head: Iterable[str], rows: Iterable[tuple[object, ...]]) -> str:
    """A Markdown table; "" without rows."""
    cells = [[str(cell).replace("|", "\\|") for cell in row] for row in rows]
    if not cells:
        return ""
    names = list(head)
    return "\n".join(f"| {' | '.join(row)} |" for row in (names, ["---"] * len(names), *cells))
