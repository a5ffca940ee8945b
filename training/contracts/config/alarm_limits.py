"""The section with the limits of the guards."""

from training.contracts.config.section import Section, knob


class AlarmConfig(Section):
    """Limits of the guards."""

    zero_variance_fraction: float = knob(0.8, "Groups with equal rewards in a step.", ge=0, le=1)
    steps_without_update: int = knob(
        5,
        "Steps in a row in which nothing was learned, since all groups failed or were alike.",
        unit="steps",
        ge=1,
    )
    settled_entropy: float = knob(
        0.02,
        "Entropy below which a policy has settled where settled_flat of the groups have equal rewards, three "
        "steps in a row, and are not solved; 0 = never.",
        unit="nats per token",
        ge=0,
    )
    settled_flat: float = knob(0.75, "That share of the groups.", ge=0, le=1)
    entropy_drop: float = knob(0.9, "Fall from the experiment's maximum entropy.", ge=0, le=1)
    grad_norm_factor: float = knob(10.0, "Times the running median.", gt=1)
    parse_error_rate: float = knob(0.3, "Turns without a parsable action.", ge=0, le=1)
    truncation_rate: float = knob(0.7, "Truncated trajectories in a step.", ge=0, le=1)
    errored_rate: float = knob(0.05, "Errored trajectories in a step.", ge=0, le=1)
    unscored_in_a_row: int = knob(
        50,
        "Errored trajectories in a row, at least three for each desktop, after which the experiment pauses; "
        "0 = never.",
        unit="trajectories",
        ge=0,
    )
    logprob_drift: float = knob(0.05, "Mean engine/trainer difference on the canary.", unit="nats", gt=0)
    logprob_gap: float = knob(
        0.05,
        "Mean engine/trainer difference on the tokens of a step, for each policy version that a sample may "
        "span: a sample of the version before may differ by twice this.",
        unit="nats",
        gt=0,
    )
