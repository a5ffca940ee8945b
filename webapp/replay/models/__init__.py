"""The replay buffer's tables."""

from webapp.replay.models.acceptance import AcceptanceRule, RuleSample
from webapp.replay.models.entries import (
    USABLE_VERDICTS,
    ImportedLine,
    LabelEvent,
    ReplayEntry,
    ReplaySkipRecord,
    ReplayUseRecord,
    Verdict,
)
from webapp.replay.models.imports import ImportStatus, ReplayImport
from webapp.replay.models.policies import AdmissionPolicy, BufferSnapshot, SnapshotEntry
from webapp.replay.models.process import ProcessLabel
from webapp.replay.models.reviews import LabelGuide, ReviewItem, ReviewLabel, ReviewRound
