"""Transcripts as scanners read them, made by hand."""

from webapp.scanners.transcripts import Paid, Transcript, TranscriptTurn

CLICK = {"kind": "click", "x": 100, "y": 100}
OTHER = {"kind": "click", "x": 400, "y": 300}
WAIT = {"kind": "wait", "seconds": 1}
FAILURE = {"kind": "terminate", "status": "failure"}
SUCCESS = {"kind": "terminate", "status": "success"}


def typed(text):
    return {"kind": "type", "text": text}


def run(*actions, said=(), frames=(), changed=None, paid=(), reward=0.0, max_turns=20, instruction="Do it"):
    turns = tuple(
        TranscriptTurn(
            index=index,
            frame=frames[index] if frames else f"frame {index}",
            screen_text="",
            said=said[index] if said else "",
            action=action,
            errors="",
            screen_changed=changed,
        )
        for index, action in enumerate(actions)
    )
    transcript = Transcript(1, instruction, turns, frames[-1] if frames else "last", max_turns, True)
    return Paid(transcript, reward, tuple(paid) or (0.0,) * len(turns))
