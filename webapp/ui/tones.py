"""Colours of status words."""

_WORDS = {
    "neutral": "queued, cancelled, finished, terminated, stopped, kept warm, gone, drained, pending, removed",
    "info": "starting, resetting, claimed, creating, booting, agent_up, logged_in, asked, checked, "
    "approved, waiting, watching, inbox",
    "warning": "parked, pausing, paused, cancelling, truncated, incomplete, quarantined, draining, removing, "
    "unsupported, dropped, warning",
    "active": "running, evaluating, leased, checking, sending, storing, scanning",
    "bad": "failed, errored, crashed, lost, dead, expired, rejected, critical",
    "good": "online, ready, done, supported, delivered, accepted",
    "gold": "gold",
}
TONES = {word: tone for tone, words in _WORDS.items() for word in words.split(", ")}
"""Status word -> colour family; the same word has the same colour on every page."""
