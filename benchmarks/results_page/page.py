"""The text of docs/results.md."""

from __future__ import annotations

from benchmarks.report import RESULTS
from benchmarks.results_page import gpu, learning, real_weights, system
from benchmarks.results_page.claim import Claim, read, table
from testing.paths import REPOSITORY

PAGE = REPOSITORY / "docs" / "results.md"
HEAD = """# Results

Written by `.venv/bin/python -m benchmarks.results_page` from `benchmarks/results/`. \
Each row is the last call of a benchmark; its file holds the whole record, with commit and load. \
Figures of different machines cannot be compared.
"""
NEVER_RUN = """
## Never run

- Eight GPUs; more than one host of GPUs with NCCL; mixtures of experts at their published sizes.
- A Windows guest; OSWorld's own image and its clouds; the sandbox cluster of a vendor.
- The container images with SGLang or QEMU.
- Learning of published models on real tasks to the end.
"""
AREAS: dict[str, tuple[Claim, ...]] = {
    "Real weights": real_weights.REAL_WEIGHTS,
    "Learning": learning.LEARNING,
    "On NVIDIA GPUs": gpu.GPU,
    **system.areas(),
}
TAUGHT = """\
- GRPO makes a minority behaviour of the start the greedy one; First desk creates no new skill \
([ADR 9](adr/0009-a-start-with-habits.md)). Rejection fine-tuning on the run's own successes does as well.
- Compare seeds. Random rewards moved one of three seeds far up, by chance. A run that rises greedily and \
not when sampled is called *sharpened*, not learned.
- Look at how trajectories end. By OSWorld's rule a solved state counts even when no action is written \
until the limit. `first-desk.v2` pays only what the agent ended, and `void_turns: no_credit` lets no turn \
without an action have a positive advantage. Single steps still had up to 18 % of unparsable turns.
- Imitate only what the agent ended. One of three rejection runs of SmolLM2 took successes that a limit \
ended as well, and learned never to stop. Imitation leaves them out since; First desk learns as much by it \
(one seed: 92 % greedily, 85 % sampled).
- Replay where groups fail in a mix with what is learned already. Alone, the same injections made SmolLM2 \
forget renaming; in a mix it lost at most 3 points against GRPO, sampled.
- Partial scores need a start that can do parts. A form of eight fields stood still while any value went \
into any field. SFT found which within 10 steps, and GRPO took held-out fields from 51 to 80 %, sampled; \
20 more steps of SFT may do as much (72 % in another run).
- On one shared GPU train in turns. With GPUs for each side, one step ahead gives up to 1.7 times as many \
trajectories; two steps ahead need a lower rate, and can fall back late.
- With 0.0136 nats between engine and trainer, gspo's published clip against the engine takes the \
gradient of a third of all on-policy sequences. One update per batch leaves a recomputed clip without work.
- The verdict on top of a run says what came of it by paired tests; its remedy follows from when the \
trouble began. A remedy is a suggestion: the tasks' own limits of turns win over any setting."""
CONTROLS = """Held-out success by seed; every arm has the same start. Rejection fine-tuning, which uses only \
the sign of the reward, does as well as GRPO. One run that rises greedily, and not when sampled, proves no \
learning.

![Rollouts and held-out success of the five arms](images/learning_controls.svg)"""
ALGORITHMS = """Shares with their 95 % interval, which takes each sample as independent. \
Replay made no difference that these runs could show: too few groups failed as a whole.

![Rollouts and held-out success of the seven arms](images/ablation.svg)"""
VOID_TURNS = """By OSWorld's rule a state counts however the agent ended; here the agent has to end it. \
The other tables of this page use OSWorld's rule. With `mask` three of five seeds end above 2 % of \
unparsable turns, so it does not ship. The arms with an ended score are equal within their intervals: \
reasons chose `no_credit`. The run that once fell apart never did so again, so `keep` was not shown to be \
unsafe."""
CREDIT = """Menus of up to five turns alone, 4 groups of 8 a step. A state is all that was read and done up \
to it. Branches go on from the middle of what no sibling shares; each continuation does the turns before it \
again, which counts. Other work shared the machine, so that equal turns are the fair measure. Against \
GRPO: points of mean held-out success from the start until the same was spent, sampled, by pairs of one \
seed, with Student's interval. Intervals at the end take each draw for one trial, also of one task or seed. \
Greedily the arms end alike, so that what they differ in when sampled may be how sharp they are. \
In an earlier run a state was its screen alone: behind a menu that closed, right and wrong rows shared one \
value. Shared states were worth -2 points [-27, +24] then at equal steps, branches +5 [-5, +16], and no arm \
came to 80 %.

![Rollouts and held-out success by step, with GRPO, branches and shared states](images/ablation_credit.svg)"""
TRAINING = "Ready: tensors lie on the GPU. Whole: from PNG files to new weights."
WHOLE_STEPS = """The real trainer, policy server and SGLang, with recorded screens and a sync a step. \
On one shared GPU sampling ahead gains nothing: both sides compute at once and slow each other down."""
LEARNED = """One GPU, 13 cores and 96 desktops a seed; a step of 128 trajectories takes 12 s. Intervals take \
each draw for one trial. `mixed` joins form and toggle and is never trained on. Toggle and pick stay near \
chance, but for pick in seed 2. `press`: the start answers in the right form and names a widget at random.

![Rollouts of forms by seed, and of copying with replay](images/real_weights.svg)"""
REPLAYED = """All groups of the start fail; each gets a demonstration with an advantage. Where nothing else \
is trained, everything else is forgotten; in a mix at most 3 points are lost against GRPO, sampled. \
GRPO itself unlearned literal orders there, from 87 to 77 %. Imitation has a \
start of its own, by the same recipe and seed. `copy/sft_grpo` shares a third one with `copy/grpo`, which \
never updated it. The mixes and form8 (demonstrated) began with `mix/start`, form8 (weak start) with \
another start of that recipe and 32 more steps of SFT on form8 alone."""
EIGHT_FIELDS = """No replay: a form of eight fields in ten turns, paid by the share that is right. SFT of \
the published model ended when a look at held-out tasks reached a fifth; by chance it is an eighth. \
The last look before had 7 %, this one 51 %. Of training tasks the demonstrations show all 240.

![Right fields by step: rollouts from three starts, and held out during SFT](images/eight_fields.svg)"""
DETAILS = {
    "Real weights": (
        ("What was learned", LEARNED, real_weights.learned),
        ("Replay where every group fails", REPLAYED, real_weights.replayed),
        ("Partial scores", EIGHT_FIELDS, real_weights.filled),
    ),
    "Learning": (
        ("What the runs teach", TAUGHT, str),
        ("Controls", CONTROLS, learning.controls),
        ("Algorithms", ALGORITHMS, learning.ablation),
        ("Credit by turn", CREDIT, learning.credit),
        ("Turns without an action", VOID_TURNS, learning.void_turns),
    ),
    "On NVIDIA GPUs": (
        ("Training", TRAINING, gpu.training),
        ("Whole steps", WHOLE_STEPS, gpu.whole_steps),
    ),
}


def page() -> str:
    """The whole text."""
    text = HEAD + _missed()
    for area, claims in AREAS.items():
        text += f"\n## {area}\n\n" + table(
            ["claim", "figure", "n", "machine", "date", "bar"], [_row(claim) for claim in claims]
        )
        for title, words, rows in DETAILS.get(area, ()):
            text += f"\n### {title}\n{words}\n\n{rows()}"
    return text + NEVER_RUN


def claims() -> tuple[Claim, ...]:
    """All of the page."""
    return tuple(claim for part in AREAS.values() for claim in part)


def result_files() -> list[str]:
    """The results that are there, by the names that claims give."""
    return sorted(str(path.relative_to(RESULTS).with_suffix("")) for path in RESULTS.rglob("*.json"))


def _missed() -> str:
    lines = [f"- {words} (`{claim.result}`)\n" for claim in claims() for words in claim.missed]
    return "\n## Bars that were missed\n\n" + "".join(lines)


def _row(claim: Claim) -> list[str]:
    record = read(claim.result)
    return [
        f"{claim.says} (`{claim.result}`)",
        claim.figure(record["figures"]),
        claim.n(record["figures"]),
        record["machine"],
        record["date"][:10],
        "met" if record["passed"] else "**missed**",
    ]
