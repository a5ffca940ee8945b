"""A question to a language model."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import ClassVar, Literal

from pydantic import Field

from webapp.lib.chat.chat_server import ChatServer
from webapp.scanners.kinds.contract import Ask, Asked
from webapp.scanners.kinds.model.question import ask, num_prompt_tokens
from webapp.scanners.transcripts import Transcript


class ModelQuestion(Asked):
    """A question that a language model answers about each transcript."""

    title: ClassVar[str] = "A question to a language model"
    batch: ClassVar[int] = 8
    """Also the calls that run at once: what is asked when a process dies is asked again."""

    kind: Literal["model"] = "model"
    question: str = Field(min_length=1, max_length=4000)
    screens: int = Field(default=0, ge=0, le=8)
    """The last screenshots that go with the transcript."""
    max_tokens: int = Field(default=400, ge=16, le=32_000)
    price_in: float = Field(default=0.0, ge=0, le=10_000, allow_inf_nan=False)
    price_out: float = Field(default=0.0, ge=0, le=10_000, allow_inf_nan=False)
    """Per million tokens, in the currency of the team's choice."""

    @contextmanager
    def asking(self) -> Iterator[Ask]:
        server = ChatServer(self)
        with ThreadPoolExecutor(self.batch) as pool:
            yield lambda batch: list(pool.map(lambda paid: ask(server, self, paid.transcript), batch))

    def num_prompt_tokens(self, transcript: Transcript) -> int:
        return num_prompt_tokens(self, transcript)

    def most_tokens(self) -> int:
        return self.max_tokens

    def cost(self, prompt: int, completion: int) -> float:
        return (prompt * self.price_in + completion * self.price_out) / 1e6
