"""What every kind of scanner is made of."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Any, ClassVar

from pydantic import BaseModel, ConfigDict

from webapp.accounts.models import Team
from webapp.lib.chat.chat_settings import ChatModel, chat_problems
from webapp.scanners.models import Outcome
from webapp.scanners.transcripts import Paid, Transcript


@dataclass(frozen=True, slots=True)
class Hit:
    """Something was found."""

    turn: int | None
    """Index of the turn that shows it."""
    note: str


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back for one transcript."""

    outcome: Outcome
    hit: Hit | None
    """With a note also for UNCLEAR."""
    num_prompt_tokens: int
    num_completion_tokens: int


Ask = Callable[[list[Paid]], list[Answer]]


class Kind(BaseModel):
    """What a scanner looks for, as JSON; `scanners/kinds/KIND.html` has the fields of its form."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    title: ClassVar[str]
    """In the list of kinds."""
    batch: ClassVar[int] = 100
    """Trajectories that are judged and stored together."""

    kind: str

    @classmethod
    def choices(cls) -> dict[str, Any]:
        """What its form offers to choose from."""
        return {}

    def problems(self, team: Team) -> Iterator[tuple[str, str]]:
        """(field, why this installation does not let the team use it)"""
        yield from ()

    def asking(self) -> AbstractContextManager[Ask]:
        """How a batch is judged. Raises ModelRefused."""
        raise NotImplementedError


class Pattern(Kind):
    """A pure function of a transcript."""

    def find(self, paid: Paid) -> Hit | None:
        """What it finds in one trajectory."""
        raise NotImplementedError

    @contextmanager
    def asking(self) -> Iterator[Ask]:
        yield lambda batch: [self._answer(paid) for paid in batch]

    def _answer(self, paid: Paid) -> Answer:
        hit = self.find(paid)
        return Answer(Outcome.CLEAR if hit is None else Outcome.FOUND, hit, 0, 0)


class Asked(ChatModel, Kind):
    """A kind that a language model judges; it never gets score or reward."""

    @property
    def lacks_model(self) -> bool:
        return not self.url or not self.model

    def problems(self, team: Team) -> Iterator[tuple[str, str]]:
        if self.lacks_model:
            yield "model", "needs an address and the name of a model; save it as a scanner of your team"
        else:
            yield from chat_problems(self, team.name)

    def num_prompt_tokens(self, transcript: Transcript) -> int:
        """About as many as one transcript will take."""
        raise NotImplementedError

    def most_tokens(self) -> int:
        """Of one answer."""
        raise NotImplementedError

    def cost(self, prompt: int, completion: int) -> float:
        """Of as many tokens, in the currency of the team's choice; 0 without prices."""
        raise NotImplementedError
