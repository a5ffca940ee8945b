"""What the API takes and answers. Written by scripts/write_client.py: do not edit."""

from __future__ import annotations

from typing import Any, Literal, NotRequired

from typing_extensions import TypedDict


class Action(TypedDict):
    """One parsed desktop command. Coordinates are screen pixels of the desktop."""

    kind: ActionKind
    x: NotRequired[int | None]
    y: NotRequired[int | None]
    to_x: NotRequired[int | None]
    to_y: NotRequired[int | None]
    text: NotRequired[str | None]
    keys: NotRequired[list[str]]
    scroll_x: NotRequired[int]
    scroll_y: NotRequired[int]
    seconds: NotRequired[float]
    status: NotRequired[Literal["success", "failure"] | None]


ActionKind = Literal[
    "click",
    "double_click",
    "triple_click",
    "right_click",
    "middle_click",
    "move",
    "drag",
    "scroll",
    "type",
    "key",
    "wait",
    "terminate",
]


class AgreedOut(TypedDict):
    """A scanner against what people said; a problem is a rejected entry, or a trajectory with a bad turn."""

    num: int
    num_equal: int
    num_both: int
    num_scanner: int
    num_people: int
    kappa: float | None
    interval: list[float] | None


class AlarmOut(TypedDict):
    """A guard that fired."""

    name: str
    status: str
    severity: str
    step: int
    since_step: int
    value: float
    limit: float
    message: str
    remedy: str
    num_times: int
    acknowledged_by: NotRequired[str | None]
    at: str


class Alternatives(TypedDict):
    """The likeliest tokens at each place of a completion, for people; training never reads them."""

    token_ids: list[list[int]]
    texts: list[list[str]]
    logprobs: list[list[float]]


class ArmOut(TypedDict):
    """One combination of values over its seeds."""

    number: int
    status: str
    values: dict[str, Any]
    message: str
    mean: float | None
    interval: list[Any] | None
    start: float | None
    binomial: list[Any] | None
    num_samples: int
    num_finished: int
    experiments: list[int]


class AskedOut(TypedDict):
    """A model that was asked for attackers."""

    id: int
    status: str
    message: str
    num_scripts: int
    num_prompt_tokens: int
    num_completion_tokens: int


class AttacksOut(TypedDict):
    """How a version of a task stands."""

    counts: bool
    num_running: int
    attacks: list[ScriptedRunOut]
    asked: list[AskedOut]
    exploits: list[KnownExploitOut]
    successes: list[ScriptedRunOut]


AuditAction = Literal[
    "signed_in",
    "sign_in_failed",
    "signed_out",
    "password_changed",
    "member_added",
    "role_changed",
    "member_removed",
    "two_step_changed",
    "token_created",
    "token_revoked",
    "launched",
    "paused",
    "resumed",
    "cancelled",
    "cancel_undone",
    "edited",
    "deleted",
    "shared",
    "unshared",
    "reordered",
    "branched",
    "labelled",
    "label_undone",
    "exported",
    "export_removed",
    "imported",
    "watched",
    "took_control",
    "ended_control",
    "operated",
    "saved",
    "secret_granted",
    "rule_changed",
    "rule_deleted",
    "prices_changed",
    "notices_changed",
    "administered",
]


class AuditPage(TypedDict):
    """Newest first; `next` is the `after` of the next page."""

    items: list[AuditRow]
    next: str | None


class AuditRow(TypedDict):
    """One thing that a person did or saw."""

    id: int
    at: str
    person: str
    action: AuditAction
    kind: str
    object_id: str
    team: NotRequired[str | None]
    detail: dict[str, Any]


class Axis(TypedDict):
    """One knob and what it may be: listed values, or everything between two numbers."""

    path: str
    values: NotRequired[list[bool | int | float | str]]
    low: NotRequired[float | None]
    high: NotRequired[float | None]
    log: NotRequired[bool]
    whole: NotRequired[bool]


class BadLine(TypedDict):
    """A line that cannot be stored."""

    line: int
    reason: str


class BranchOut(TypedDict):
    """The group that was queued."""

    group_id: int
    parent_id: int
    branch_turn: int
    trajectory_ids: list[int]


class BulkOut(TypedDict):
    """How many changed; at most 5,000 at once, the rest needs another call."""

    changed: int
    left_out: int
    held_back: int


class CancelledOut(TypedDict):
    """The same, and how to take it back."""

    done: list[int]
    left: dict[str, str]
    undo: str


Channel = Literal["webhook", "slack", "discord", "email", "browser"]


class CheckOut(TypedDict):
    """One answer of the pre-flight panel."""

    level: str
    title: str
    detail: str
    path: str


class CheckpointFacts(TypedDict):
    """A saved checkpoint."""

    id: int
    step: int
    policy_version: int
    path: str
    size_bytes: int
    is_best: bool
    created_at: str
    deleted_at: str | None


class CheckpointOut(TypedDict):
    """A checkpoint and how it did."""

    checkpoint: CheckpointFacts
    evaluations: list[EvaluationOut]
    evaluating: list[int]


class Chosen(TypedDict):
    """The inbox's filter; everything may be left out."""

    verdict: NotRequired[Literal["", "inbox", "accepted", "rejected", "gold", "all"]]
    family: NotRequired[str]
    experiment: NotRequired[int | None]
    age: NotRequired[Literal["", "hour", "day", "week"]]
    tag: NotRequired[str]
    search: NotRequired[str]
    finding: NotRequired[int | None]


class ClusterOut(TypedDict):
    """Entries of one task that are near-identical."""

    id: int
    num: int
    num_inbox: int
    num_usable: int
    num_gold: int
    best_reward: float | None
    newest_entry: int
    task_id: str


class ClusterPageOut(TypedDict):
    """Largest first."""

    clusters: list[ClusterOut]
    num_clusters: int
    num_alone: int
    num_surplus: int
    num_waiting: int
    has_more: bool


class ComparedRun(TypedDict):
    """One of the experiments compared."""

    id: int
    name: str
    status: str
    sampled: EvaluationOut | None
    greedy: EvaluationOut | None
    sampled_against_first: PairedChangeOut | None
    greedy_against_first: PairedChangeOut | None


class ComparisonOut(TypedDict):
    """Experiments side by side."""

    runs: list[ComparedRun]
    differences: list[DifferenceOut]
    warnings: list[str]


class Completion(TypedDict):
    """What the policy server returned: text with the exact sampled tokens."""

    text: str
    token_ids: NotRequired[list[int]]
    token_texts: NotRequired[list[str]]
    behaviour_logprobs: NotRequired[list[float]]
    alternatives: NotRequired[Alternatives | None]
    policy_version: NotRequired[int]
    policy_versions: NotRequired[list[int]]
    finish_reason: NotRequired[Literal["stop", "length"]]
    num_prompt_tokens: NotRequired[int]
    prompt_digest: NotRequired[str]
    fingerprint: NotRequired[str]
    waited_s: NotRequired[float]
    spent_ms: NotRequired[dict[str, float]]


class ConfigText(TypedDict):
    """A config as text."""

    yaml: str


class CoverageCell(TypedDict):
    """Entries of a verdict."""

    verdict: str
    number: int


class CoverageRow(TypedDict):
    """Entries of a family."""

    family: str
    cells: list[CoverageCell]
    total: int


DeliveryStatus = Literal["waiting", "sending", "delivered", "failed", "dropped"]


class DesktopOut(TypedDict):
    """A desktop."""

    id: int
    name: str
    host: str
    provider: str
    phase: str
    state: str
    holder: str
    trajectory_id: int | None
    is_foreign: bool
    reason: str
    quarantine: str
    width: int
    height: int
    num_resets: int
    num_failures: int
    last_reset_s: float


class DesktopPage(TypedDict):
    """Newest first; `next` is the `after` of the next page."""

    items: list[DesktopOut]
    next: str | None


DesktopPhase = Literal["starting", "ready", "leased", "resetting", "dead", "quarantined", "gone"]


class DifferenceOut(TypedDict):
    """A knob that is not the same in all."""

    path: str
    values: list[str]


class DisagreementOut(TypedDict):
    """An entry that people see differently."""

    item: int
    entry: int
    labels: list[SaidOut]


class DryRunOut(TypedDict):
    """What rules would do."""

    num_entries: int
    num_entering: int
    num_tasks: int
    num_covered: int
    left_out: list[LeftOut]
    median_ratio: float | None
    expected_share: float | None


class EditOut(TypedDict):
    """The edit as it is stored."""

    id: int
    edit: dict[str, Any]


class EffectsOut(TypedDict):
    """What it would have changed."""

    num_trajectories: int
    num_groups: int
    mean: float | None
    correlation: float | None
    num_flat: int
    num_turned: int
    inverted: list[int]


class EntryPage(TypedDict):
    """Newest first; `next` is the `after` of the next page."""

    items: list[EntryRow]
    next: str | None


class EntryRow(TypedDict):
    """A replay entry."""

    id: int
    trajectory_id: int
    part: int
    family: str
    verdict: str
    tags: list[str]
    note: str
    labelled_by: NotRequired[str | None]
    labelled_at: str | None
    num_uses: int
    has_bad_turns: bool
    created_at: str


class EvaluationOut(TypedDict):
    """Success at one point and one temperature, with its 95 % Wilson interval."""

    name: str
    step: int
    policy_version: int
    split: str
    num_tasks: int
    samples_per_task: int
    num_requested: NotRequired[int | None]
    num_errored: NotRequired[int | None]
    is_complete: NotRequired[bool]
    num_samples: int
    num_success: int
    success: float
    low: float
    high: float
    num_solved_at_limit: NotRequired[int | None]
    solved: NotRequired[float | None]
    solved_low: NotRequired[float | None]
    solved_high: NotRequired[float | None]
    truncated_share: NotRequired[float | None]
    unparsable_share: NotRequired[float | None]
    temperature: NotRequired[float | None]


class ExperimentDetail(TypedDict):
    """One experiment."""

    id: int
    name: str
    preset: str
    status: str
    stage: str
    step: int
    policy_version: int
    priority: int
    message: str
    tags: list[str]
    archived_at: str | None
    team: str
    created_at: str
    started_at: str | None
    ended_at: str | None
    note: str
    config: dict[str, Any]
    stages: list[StageOut]
    evaluations: list[EvaluationOut]
    success_change: SuccessChangeOut | None
    success_change_of_state: SuccessChangeOut | None
    waiting_because: str


class ExperimentPage(TypedDict):
    """Newest first; `next` is the `after` of the next page."""

    items: list[ExperimentRow]
    next: str | None


class ExperimentRow(TypedDict):
    """An experiment in a list."""

    id: int
    name: str
    preset: str
    status: str
    stage: str
    step: int
    policy_version: int
    priority: int
    message: str
    tags: list[str]
    archived_at: str | None
    team: str
    created_at: str
    started_at: str | None
    ended_at: str | None


ExperimentStatus = Literal[
    "queued", "starting", "running", "pausing", "paused", "cancelling", "cancelled", "finished", "failed"
]


class ExploitOut(TypedDict):
    """A script that was paid without doing the task."""

    id: int
    name: str
    task_id: int
    score: float
    found_at: str
    dismissed_why: str


class ExportOut(TypedDict):
    """An export and how far it is."""

    id: int
    checkpoint_id: int
    dtype: str
    status: str
    path: str
    host: str
    done_bytes: int
    total_bytes: int
    message: str


class FindingOut(TypedDict):
    """Something that a scanner found in a trajectory."""

    trajectory: int
    turn: int | None
    note: str


class FindingPage(TypedDict):
    """Newest first; `next` is the `after` of the next page."""

    items: list[FindingOut]
    next: str | None


class FleetOut(TypedDict):
    """Everything but the desktops themselves."""

    totals: dict[str, int]
    hosts: list[HostOut]
    workers: list[WorkerOut]


class GroupDetail(TypedDict):
    """A group with its members, re-run ones too."""

    group: GroupRow
    members: list[TrajectoryRow]


class GroupPage(TypedDict):
    """Newest first; `next` is the `after` of the next page."""

    items: list[GroupRow]
    next: str | None


class GroupRow(TypedDict):
    """Sibling trajectories of one task."""

    id: int
    experiment_id: int | None
    task_id: str
    instruction: str
    family: str
    purpose: str
    source: str
    step: int
    size: int
    temperature: float
    num_final: int
    num_scored: int
    reward_mean: float | None
    reward_std: float | None
    is_cancelled: bool
    parent_id: int | None
    branch_turn: int | None
    created_at: str
    finished_at: str | None


class GuideOut(TypedDict):
    """One version."""

    task_set: str
    version: int
    text: str
    created_at: str


class HostOut(TypedDict):
    """A machine with a desk host."""

    id: int
    name: str
    status: str
    problem: str
    is_draining: bool
    max_desktops: int
    num_desktops: int
    num_leased: int
    running: int
    cores: int
    cpu_percent: float
    memory_mb: float
    memory_used_mb: float
    disk_mb: float
    disk_free_mb: float
    joined_id: int | None


class ImportOut(TypedDict):
    """An import: queued, checking, checked, approved, storing, finished, cancelled or failed."""

    id: int
    file_name: str
    task_set: NotRequired[str | None]
    keep_labels: bool
    takes_unknown: bool
    status: str
    message: str
    percent: float
    num_new: int
    num_known: int
    num_bad: int
    num_stored: int
    known: list[KnownLine]
    problems: list[BadLine]
    created_at: str
    ended_at: str | None


class ImportPage(TypedDict):
    """Newest first; `next` is the `after` of the next page."""

    items: list[ImportOut]
    next: str | None


class InvitationOut(TypedDict):
    """What lets one host join, within the hour."""

    server: str
    token: str
    command: str


class KeepIn(TypedDict):
    """Whether to keep a snapshot before every turn from now on."""

    keep: bool


class KeptOut(TypedDict):
    """How many were rejected, and how many are left because 5,000 are the most at once."""

    rejected: int
    left: int


Kind = Literal["finished", "failed", "alarm", "stalled", "queue_empty", "host_lost", "inbox_waits", "test"]


class KnownExploitOut(TypedDict):
    """With what it did on the version that was asked for."""

    id: int
    name: str
    task_id: int
    score: float
    found_at: str
    dismissed_why: str
    run: ScriptedRunOut | None


class KnownLine(TypedDict):
    """A line that holds what the team has already."""

    line: int
    entry: int


class LeftOut(TypedDict):
    """Entries that a rule keeps out."""

    reason: str
    entries: int


Limit = Literal["task_turns", "turns", "tokens", "time"]


class LinkOut(TypedDict):
    """A link to one version."""

    id: int
    version: int
    url: str
    expires_at: str
    revoked_at: str | None
    num_opened: int


class LogChunk(TypedDict):
    """Whole lines of a file."""

    lines: list[LogLine]
    start: int
    end: int
    num_bytes: int
    found: NotRequired[bool]
    is_searched: NotRequired[bool]


class LogFileOut(TypedDict):
    """A log file of an experiment."""

    name: str
    num_bytes: int
    modified_at: str


class LogLine(TypedDict):
    """One line."""

    offset: int
    level: str
    text: str


class ManyOut(TypedDict):
    """What became of each."""

    done: list[int]
    left: dict[str, str]


class Me(TypedDict):
    """The caller."""

    username: str
    teams: dict[str, str]


class MemberOut(TypedDict):
    """A person in the current team."""

    id: int
    username: str
    role: Role


class MetricsPage(TypedDict):
    """Series by name; `next` is the `after` of the next page, None on the last one."""

    series: dict[str, Series]
    next: str | None


class Milestone(TypedDict):
    """Something that holds on the way to the goal: reached as soon as its evaluator says 1."""

    name: str
    evaluator: dict[str, Any]


class NewMemberOut(TypedDict):
    """A person who was put into the team."""

    member: MemberOut
    password: str | None


class NextOut(TypedDict):
    """The caller's next label to give; nulls when all are in."""

    label: int | None
    entry: int | None
    trajectory: int | None


class NotificationOut(TypedDict):
    """A message, and how sending it went."""

    id: int
    rule: int
    kind: Kind
    title: str
    text: str
    path: str
    experiment: int | None
    status: DeliveryStatus
    num_tries: int
    problem: str
    created_at: str
    next_at: str


class NotificationPage(TypedDict):
    """Newest first; `next` is the `after` of the next page."""

    items: list[NotificationOut]
    next: str | None


class NotificationRuleOut(TypedDict):
    """A rule, without the path of its URL."""

    id: int
    channel: Channel
    kinds: list[Kind]
    target: str
    secret: str
    has_pictures: bool
    stalled_minutes: int
    inbox_hours: int
    is_on: bool
    since: str


class Observation(TypedDict):
    """What the policy is shown at one turn."""

    sha256: str
    width: int
    height: int
    text: NotRequired[str]


class OfferOut(TypedDict):
    """A kind of desktop for demonstrations."""

    name: str
    label: str
    provider: str


class OperationOut(TypedDict):
    """Something that an operator asked for, and what became of it."""

    id: int
    verb: str
    kind: str
    target: str
    host: str
    reason: str
    status: str
    outcome: str
    asked_by: str
    asked_at: str
    ended_at: str | None


class OperationPage(TypedDict):
    """Newest first; `next` is the `after` of the next page."""

    items: list[OperationOut]
    next: str | None


Page = Literal["experiments", "trajectories", "replay"]


class PairOut(TypedDict):
    """Two people over the entries that both labelled."""

    one: str
    other: str
    num: int
    agreement: float
    kappa: float | None


class PairedChangeOut(TypedDict):
    """What changed between two evaluations of the same tasks."""

    num_tasks: int
    fixed: int
    regressed: int
    difference: float
    low: float
    high: float
    p: float


class PasswordOut(TypedDict):
    """A new password, shown once."""

    password: str


class PersonOut(TypedDict):
    """One person's part."""

    name: str
    num_done: int
    num_open: int
    agreement: float | None
    median_s: float | None
    num_checks: int
    num_passed: int


class PolicyOut(TypedDict):
    """One version; it never changes."""

    id: int
    name: str
    version: int
    rules: dict[str, Any]
    note: str
    created_at: str


class PreflightOut(TypedDict):
    """What the launch page says before launching."""

    may_launch: bool
    checks: list[CheckOut]
    queue_position: int
    seconds: float
    at_most_seconds: float
    seconds_basis: str


class PresetOut(TypedDict):
    """A starting point of the launch form."""

    name: str
    title: str
    summary: str
    config: dict[str, Any]


class PreviewOut(TypedDict):
    """What a scan would read and cost; tokens are estimates, completion tokens and cost at most."""

    num_unread: int
    num_calls: int
    prompt_tokens: int
    completion_tokens: int
    cost: float | None


class Prices(TypedDict):
    """What the team pays; 0 = not counted."""

    currency: NotRequired[str]
    gpu_hour: NotRequired[float]
    desktop_hour: NotRequired[float]
    million_prompt_tokens: NotRequired[float]
    million_completion_tokens: NotRequired[float]


Purpose = Literal["train", "evaluation", "demonstration", "verification", "branch", "attack"]


class QueuedOut(TypedDict):
    """Trajectories that wait for desktops now."""

    num_queued: int


class ReachedMilestone(TypedDict):
    """A milestone of the trajectory's task."""

    name: str
    turn: int


class ReportPage(TypedDict):
    """Newest first; `next` is the `after` of the next page."""

    items: list[ReportRow]
    next: str | None


class ReportRow(TypedDict):
    """A report in the list."""

    id: int
    title: str
    num_versions: int
    written_at: str | None


class ReviewDetail(TypedDict):
    """With its agreement so far; labels of entries that are still open stay unseen."""

    id: int
    name: str
    num_labels: int
    created_at: str
    kappa: float | None
    num_items: int
    num_complete: int
    num_agreed: int
    pairs: list[PairOut]
    people: list[PersonOut]
    disagreements: list[DisagreementOut]


class ReviewOut(TypedDict):
    """A round of double annotation."""

    id: int
    name: str
    num_labels: int
    created_at: str


class RewardPreset(TypedDict):
    """Terms that add up, then limits."""

    terms: list[WeightedTerm]
    low: NotRequired[float | None]
    high: NotRequired[float | None]


class RewardTerm(TypedDict):
    """One named part of a reward: contribution = weight * value."""

    name: str
    value: float
    weight: float
    contribution: float
    note: NotRequired[str]


class RewardsOut(TypedDict):
    """What an experiment may be launched with."""

    names: list[str]
    saved: list[SavedPreset]


Role = Literal["viewer", "annotator", "operator", "admin"]


class RuleOut(TypedDict):
    """A rule."""

    id: int
    experiment: int | None
    max_age_days: int | None
    max_bytes: int | None


class SaidOut(TypedDict):
    """One label of a complete entry."""

    by: str
    verdict: str
    note: str


class SamplesOut(TypedDict):
    """Ids of the sample experiments."""

    finished: int
    failed: int


class SavedPreset(TypedDict):
    """One version of a preset that the team saved."""

    name: str
    version: int
    definition: RewardPreset
    alpha: float
    note: str
    created_at: str


class SavedViewOut(TypedDict):
    """A list page's filters, order and hidden columns under a name."""

    id: int
    page: Page
    name: str
    query: str
    is_team: bool


class ScanOut(TypedDict):
    """A scan: queued, scanning, watching, finished, cancelled or failed."""

    id: int
    scanner: str
    slice: str
    is_live: bool
    status: str
    message: str
    max_read: int
    num_expected: int
    num_read: int
    num_found: int
    num_unclear: int
    num_prompt_tokens: int
    num_completion_tokens: int
    cost: float
    created_at: str
    ended_at: str | None


class ScanPage(TypedDict):
    """Newest first; `next` is the `after` of the next page."""

    items: list[ScanOut]
    next: str | None


class ScannerOut(TypedDict):
    """A shipped scanner, or one version that the team saved."""

    id: int | None
    name: str
    title: str
    definition: dict[str, Any]
    verdicts: AgreedOut | None
    marks: NotRequired[AgreedOut | None]


class ScreenOut(TypedDict):
    """How a trajectory's screen and its control stand."""

    trajectory_id: int
    status: str
    source: str
    is_final: bool
    has_screen: bool
    no_screen: str
    control_id: int | None
    control_status: str
    controller: str
    is_mine: bool
    num_turns: int
    score: float | None
    error: str
    last_frame: str
    num_ahead: int


class ScriptedRunOut(TypedDict):
    """The newest try of one script on this version."""

    name: str
    result: str
    trajectory_id: int


class SearchSettings(TypedDict):
    """How to search, whatever is searched over."""

    search: NotRequired[Literal["grid", "random", "tpe"]]
    num_seeds: NotRequired[int]
    num_arms: NotRequired[int]
    arms_at_once: NotRequired[int]
    metric: NotRequired[str]
    direction: NotRequired[Literal["maximise", "minimise"]]
    stop_hopeless: NotRequired[bool]
    warmup_steps: NotRequired[int]
    seed: NotRequired[int]


class Series(TypedDict):
    """One metric: parallel lists; a value that is no finite number is None."""

    steps: list[int]
    values: list[float | None]


class SnapshotOut(TypedDict):
    """The buffer as it was; pinned by `replay.snapshot` in an experiment's config."""

    id: int
    name: str
    policy: str
    num_entries: int
    created_at: str


Source = Literal["policy", "oracle", "human", "scripted"]


class StageOut(TypedDict):
    """A part of an experiment and how far it is."""

    name: str
    status: str
    done: int
    total: int
    unit: str
    started_at: str | None
    ended_at: str | None


class StoredOut(TypedDict):
    """Of how many trajectories ratings were stored."""

    stored: int


class SuccessChangeOut(TypedDict):
    """From the evaluation before the first step to the newest one."""

    sampled: PairedChangeOut | None
    greedy: PairedChangeOut | None
    is_sharpened: bool
    rule: SuccessRule


SuccessRule = Literal["ended", "state"]


class SweepOut(TypedDict):
    """A sweep with its arms."""

    id: int
    name: str
    preset: str
    status: str
    message: str
    plan: SweepPlan
    num_experiments: int
    best_arm: int | None
    best_arms: list[int]
    arms: list[ArmOut]
    created_at: str
    ended_at: str | None


class SweepPlan(TypedDict):
    """A search over axes; without any it is one config with several seeds."""

    search: NotRequired[Literal["grid", "random", "tpe"]]
    num_seeds: NotRequired[int]
    num_arms: NotRequired[int]
    arms_at_once: NotRequired[int]
    metric: NotRequired[str]
    direction: NotRequired[Literal["maximise", "minimise"]]
    stop_hopeless: NotRequired[bool]
    warmup_steps: NotRequired[int]
    seed: NotRequired[int]
    axes: NotRequired[list[Axis]]


class Task(TypedDict):
    """One desktop problem in OSWorld's schema, plus what Deskhand adds."""

    task_id: str
    instruction: str
    family: NotRequired[str]
    level: NotRequired[int]
    split: NotRequired[Literal["train", "heldout"]]
    config: NotRequired[list[dict[str, Any]]]
    evaluator: NotRequired[dict[str, Any]]
    screen: NotRequired[list[Any]]
    oracle: NotRequired[dict[str, Any]]
    max_turns: NotRequired[int | None]
    milestones: NotRequired[list[Milestone]]
    timezone: NotRequired[str]
    locale: NotRequired[str]
    os: NotRequired[Literal["", "linux", "windows"]]
    published: NotRequired[dict[str, Any]]


class TaskDetail(TypedDict):
    """A task."""

    id: int
    task_id: str
    instruction: str
    family: str
    level: int
    split: str
    status: str
    reason: str
    version: int
    verified_at: str | None
    task_set: str
    spec: dict[str, Any]
    revision: int
    replaced_in: int | None
    note: str
    reasons: dict[str, str]


class TaskPage(TypedDict):
    """By id; `next` is the `after` of the next page."""

    items: list[TaskRow]
    next: str | None


class TaskRow(TypedDict):
    """A task in a list."""

    id: int
    task_id: str
    instruction: str
    family: str
    level: int
    split: str
    status: str
    reason: str
    version: int
    verified_at: str | None


class TaskSetOut(TypedDict):
    """Tasks that were imported or written together."""

    name: str
    title: str
    origin: str
    revision: int
    num_tasks: int
    num_heldout: int
    num_unsupported: int


class Trajectory(TypedDict):
    """The record of one episode."""

    trajectory_id: int
    group_id: int
    task: Task
    source: NotRequired[Source]
    status: TrajectoryStatus
    turns: NotRequired[list[Turn]]
    score: NotRequired[float | None]
    reward: NotRequired[float | None]
    limit: NotRequired[Limit | None]
    terms: NotRequired[list[RewardTerm]]
    milestones: NotRequired[list[ReachedMilestone]]
    error: NotRequired[str]
    replay_entry_id: NotRequired[int | None]
    replay_label: NotRequired[str]


class TrajectoryDetail(TypedDict):
    """One trajectory with all its turns; frames are at /frames/SHA256.png (.jpg, .thumb.jpg)."""

    row: TrajectoryRow
    trajectory: Trajectory


class TrajectoryPage(TypedDict):
    """Newest first; `next` is the `after` of the next page."""

    items: list[TrajectoryRow]
    next: str | None


class TrajectoryRow(TypedDict):
    """A trajectory in a list."""

    id: int
    experiment_id: int | None
    group_id: int
    task_id: str
    instruction: str
    family: str
    purpose: str
    source: str
    status: str
    step: int
    policy_version: int | None
    num_turns: int
    num_parse_errors: int
    score: float | None
    reward: float | None
    advantage: float | None
    error: str
    parent_id: NotRequired[int | None]
    branch_turn: NotRequired[int | None]
    created_at: str
    ended_at: str | None


TrajectoryStatus = Literal[
    "queued",
    "resetting",
    "parked",
    "running",
    "evaluating",
    "terminated",
    "truncated",
    "errored",
    "cancelled",
]


class TreeNode(TypedDict):
    """One trajectory of a tree; the root comes first, each branch below its parent."""

    trajectory_id: int
    parent_id: int | None
    branch_turn: int
    source: str
    status: str
    num_turns: int
    score: float | None
    reward: float | None


class Turn(TypedDict):
    """One observation, the completion to it, and the action that was executed."""

    index: int
    source: NotRequired[Source]
    observation: Observation
    completion: NotRequired[Completion | None]
    action: NotRequired[Action | None]
    parse_error: NotRequired[str | None]
    dialect: NotRequired[str]
    action_error: NotRequired[str | None]
    screen_changed: NotRequired[bool | None]
    unsettled: NotRequired[str]
    terms: NotRequired[list[RewardTerm]]
    is_context: NotRequired[bool]


class TurnLabelOut(TypedDict):
    """One person's, or program's, ratings."""

    by: str
    origin: str
    ratings: list[TurnRating]
    first_wrong: int | None


class TurnLabelsOut(TypedDict):
    """What was said of the turns of a trajectory; they count from 0."""

    labels: list[TurnLabelOut]
    bad_turns: list[int]


TurnPart = Literal[
    "report",
    "snapshot",
    "transfer",
    "prepare",
    "pause",
    "queue",
    "prefill",
    "decode",
    "generate",
    "act",
    "screenshot",
]


class TurnRating(TypedDict):
    """1 good, -1 bad."""

    turn: int
    rating: int


class UndoneOut(TypedDict):
    """Labels that were taken back."""

    undone: int


class UnsupportedOut(TypedDict):
    """A task that Deskhand's own desktops cannot run."""

    task_id: str
    reason: str


class UploadOut(TypedDict):
    """What became of a file of tasks."""

    task_set: str
    revision: int
    num_added: int
    num_changed: int
    num_unchanged: int
    unsupported: list[UnsupportedOut]
    left_out: list[str]


Verdict = Literal["inbox", "accepted", "gold", "rejected"]


class VersionOut(TypedDict):
    """A frozen version."""

    report: int
    number: int
    title: str
    text: str
    author: NotRequired[str | None]
    created_at: str
    content: dict[str, Any]


class WeightedTerm(TypedDict):
    """One term of a preset: one of Deskhand's own, or an expression."""

    term: str
    weight: float
    is_partial: NotRequired[bool]
    expression: NotRequired[str]
    count: NotRequired[Literal["once", "mean", "sum", "max"]]
    low: NotRequired[float | None]
    high: NotRequired[float | None]


class WorkerOut(TypedDict):
    """A process that takes jobs."""

    id: int
    name: str
    queue: str
    host: str
    status: str
    slots: int
    is_draining: bool
    num_desktops: int
    running: int
    heartbeat_at: str
