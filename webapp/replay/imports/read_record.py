"""One line of Slime-OSWorld's replay format -> a checked record. Every problem names its field."""

from typing import Any

from pydantic import ValidationError

from training.contracts.types import RewardTerm, Source, Turn
from training.untrusted.pictures import MAX_SIDE
from webapp.accounts.models import Team
from webapp.lib.columns.storable_text import storable
from webapp.lib.request_values import BadValue, row_id, shortened
from webapp.replay.formats.conversation import (
    ReadProblem,
    as_json,
    read_conversation,
    read_images,
    without_images,
)
from webapp.replay.formats.images import StoredImage, read_image
from webapp.replay.formats.messages import instruction_of, turns_of_messages
from webapp.replay.formats.observed_texts import keeper, with_known_texts
from webapp.replay.imports.known_tasks import KnownTasks
from webapp.replay.services.imported_records import Record
from webapp.replay.services.inbox import ADMISSION_SCORE
from webapp.replay.services.labels import check_label
from webapp.replay.turn_edits import TurnEdit

MAX_COLUMN = 2**31 - 1
MAX_REWARD = 1e6
MAX_TURNS = 10_000
MAX_DIALECT = 16
BESIDE = ("messages", "conversations", "images", "image")
"""Keys that are stored as messages and pictures."""


def read_record(data: dict[str, Any], team: Team, tasks: KnownTasks, *, keep_images: bool) -> Record:
    """Check one line; store its images with `keep_images`. Raises BadValue, ReadProblem or ImageProblem."""
    metadata = _mapping(as_json(data.get("metadata"), "metadata"))
    own = _mapping(metadata.get("deskhand"))
    messages = [] if own.get("turns") else read_conversation(data)
    texts = [image for message in messages for image in message.images] or read_images(data)
    task = tasks.find(data, metadata, instruction=instruction_of(messages))
    reward, is_assumed = read_reward(data)
    images = [
        read_image(team, text, f"images[{place}]", is_kept=keep_images) for place, text in enumerate(texts)
    ]
    keep = keeper(team, is_kept=keep_images)
    if own.get("turns"):
        turns = with_known_texts(own_turns(own["turns"], images), own, team, keep)
    else:
        turns = turns_of_messages(messages, images, keep)
    return Record(
        task=task,
        turns=turns,
        reward=reward,
        is_reward_assumed=is_assumed,
        score=read_score(metadata, reward),
        source=own["source"] if own.get("source") in tuple(Source) else Source.HUMAN.value,
        policy_version=read_version(metadata) if own.get("turns") else None,
        terms=read_terms(own),
        desktops=recorded_limit(own),
        label=read_label(own, turns),
        thoughts=read_thoughts(own),
        imported=None if is_ours(own) else line_of(data, metadata, images),
    )


def is_ours(own: dict[str, Any]) -> bool:
    """True when Deskhand wrote the messages, from turns that it recorded."""
    return bool(own.get("turns")) and not own.get("is_imported")


def line_of(data: dict[str, Any], metadata: dict[str, Any], images: list[StoredImage]) -> dict[str, Any]:
    """Columns of `ImportedLine`: everything of a line but its pictures."""
    others = {name: value for name, value in data.items() if name not in (*BESIDE, "metadata")}
    kept = {name: value for name, value in metadata.items() if name != "deskhand"}
    return {
        "messages": storable(without_images(data)),
        "fields": storable(others),
        "metadata": storable(kept),
        "images": [image.sha256 for image in images],
    }


def _mapping(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def read_reward(data: dict[str, Any]) -> tuple[float, bool]:
    """(reward, was it assumed)."""
    reward = data.get("reward")
    if reward is None:
        return 1.0, True
    if isinstance(reward, bool) or not isinstance(reward, int | float):
        raise ReadProblem("reward", f"not a number: {shortened(reward)}")
    if reward > MAX_REWARD:
        raise ReadProblem("reward", f"{shortened(reward)} is above {MAX_REWARD}; it is no reward")
    if reward < ADMISSION_SCORE:
        raise ReadProblem("reward", f"{reward} is below {ADMISSION_SCORE}; only successes enter the buffer")
    return float(reward), False


def read_version(metadata: dict[str, Any]) -> int | None:
    """The policy's version, where the record tells."""
    version = metadata.get("policy_version")
    if version is None:
        return None
    if isinstance(version, bool) or not isinstance(version, int) or not 0 <= version <= MAX_COLUMN:
        raise ReadProblem("metadata.policy_version", f"not a version: {shortened(version)}")
    return version


def read_terms(own: dict[str, Any]) -> list[dict[str, Any]]:
    """The reward's terms of one of our own exports, as pages and statistics read them."""
    found = own.get("terms")
    if found is None:
        return []
    if not isinstance(found, list):
        raise ReadProblem("metadata.deskhand.terms", "not a list")
    checked = []
    for place, item in enumerate(found):
        try:
            checked.append(RewardTerm.model_validate(item).model_dump(mode="json"))
        except ValidationError as error:
            raise bad_item(f"metadata.deskhand.terms[{place}]", error) from error
    return checked


def read_thoughts(own: dict[str, Any]) -> dict[int, str]:
    """By turn, of one of our own exports."""
    found = _mapping(own.get("thoughts"))
    if not all(isinstance(text, str) for text in found.values()):
        raise ReadProblem("metadata.deskhand.thoughts", "not texts by turn")
    return {turn: text for name, text in found.items() if (turn := row_id(name)) is not None}


def read_label(own: dict[str, Any], turns: list[Turn]) -> dict[str, Any]:
    """Verdict, tags, note and edit of one of our own exports."""
    label = {name: own[name] for name in ("verdict", "tags", "note") if own.get(name) is not None}
    try:
        check_label(label.get("verdict"), label.get("tags"), label.get("note"))
        edit = TurnEdit.read(_mapping(own.get("edit")))
        edit.check({turn.index for turn in turns})
        label["edit"] = edit.as_json()
        label["part"] = _part(own)
    except ValueError as error:
        raise ReadProblem("metadata.deskhand", str(error)) from error
    return label


def _part(own: dict[str, Any]) -> int:
    """Where the entry was split off. Raises BadValue."""
    part = own.get("part", 0)
    if isinstance(part, bool) or not isinstance(part, int) or not 0 <= part < MAX_TURNS:
        raise BadValue("part", "not the index of a turn")
    return part


def check_turn(turn: Turn, previous: int, where: str) -> None:
    """What the turn's type allows and its row does not. Raises ReadProblem."""
    if not previous < turn.index < MAX_TURNS:
        raise ReadProblem(
            f"{where}.index", f"{turn.index} must come after {previous} and be below {MAX_TURNS}"
        )
    seen = turn.observation
    if not (0 <= seen.width <= MAX_SIDE and 0 <= seen.height <= MAX_SIDE):
        raise ReadProblem(f"{where}.observation", f"width and height must be from 0 to {MAX_SIDE}")
    if len(turn.dialect) > MAX_DIALECT:
        raise ReadProblem(f"{where}.dialect", f"longer than {MAX_DIALECT} characters")


def bad_item(where: str, error: ValidationError) -> ReadProblem:
    """The first thing that is wrong with an item."""
    first = error.errors()[0]
    path = ".".join(str(part) for part in first["loc"])
    return ReadProblem(f"{where}.{path}" if path else where, first["msg"])


def read_score(metadata: dict[str, Any], reward: float) -> float:
    """The evaluator's score, in [0, 1]; the reward cut to it when there is none."""
    raw = metadata.get("raw_reward")
    if not isinstance(raw, int | float):
        return min(1.0, max(0.0, reward))
    if not 0.0 <= raw <= 1.0:
        raise ReadProblem("metadata.raw_reward", f"{raw} is no score; it must be from 0 to 1")
    return float(raw)


def recorded_limit(own: dict[str, Any]) -> dict[str, int]:
    """`max_turns` of one of our own exports, as the group's desktops hold it."""
    limit = own.get("max_turns")
    if limit is None:
        return {}
    if isinstance(limit, bool) or not isinstance(limit, int) or not 1 <= limit <= MAX_TURNS:
        raise ReadProblem("metadata.deskhand.max_turns", f"not a number of turns: {shortened(limit)}")
    return {"max_turns": limit}


def own_turns(raw: Any, images: list[StoredImage]) -> list[Turn]:
    """The exact turns of one of our own exports; their frames must be among its images."""
    known = {image.sha256 for image in images}
    turns: list[Turn] = []
    if not isinstance(raw, list) or len(raw) > MAX_TURNS:
        raise ReadProblem("metadata.deskhand.turns", f"not a list of at most {MAX_TURNS} turns")
    for place, item in enumerate(raw):
        try:
            turn = Turn.model_validate(item)
        except ValidationError as error:
            raise bad_item(f"metadata.deskhand.turns[{place}]", error) from error
        check_turn(turn, turns[-1].index if turns else -1, f"metadata.deskhand.turns[{place}]")
        sha = turn.observation.sha256
        if sha and sha not in known and turn.action is not None:
            raise ReadProblem(f"metadata.deskhand.turns[{place}].observation", "its image is not in `images`")
        if sha not in known:
            turn = turn.model_copy(update={"observation": turn.observation.model_copy(update={"sha256": ""})})
        turns.append(turn)
    return turns
