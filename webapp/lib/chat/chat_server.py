"""The call of a language model: bounded tries, no redirects, no proxies, only addresses that are allowed."""

import json
from dataclasses import dataclass
from typing import Any

import httpx
from django.conf import settings
from tenacity import Retrying, retry_if_exception_type, stop_after_attempt, wait_exponential

from training.outgoing.allowed_connections import AnswerTooLarge, Posted, post_guarded
from training.outgoing.remote_addresses import RefusedAddress
from training.outgoing.secret_store import SecretError, read_secret
from webapp.lib.chat.chat_settings import ChatModel

TIMEOUT_S = 120.0
MAX_ANSWER_BYTES = 4 << 20
ATTEMPTS = 4


class ModelRefused(Exception):
    """Raised when the server cannot be asked; the message says what to do."""


class _TryAgain(Exception):
    """Raised for an answer after which the request is repeated."""


@dataclass(frozen=True, slots=True)
class Said:
    """What came back; "" and 0 for what the server left out."""

    text: str
    num_prompt_tokens: int
    num_completion_tokens: int


class ChatServer:
    """The server of one model. Its calls may come from several threads."""

    def __init__(self, chat: ChatModel) -> None:
        """Raises ModelRefused without its secret."""
        self.chat = chat
        self._headers = {}
        try:
            if chat.secret:
                key = read_secret(chat.secret, settings.SECRETS_DIR)
                self._headers["Authorization"] = f"Bearer {key}"
        except SecretError as error:
            raise ModelRefused(str(error)) from error
        self._tls = httpx.create_ssl_context()

    def complete(self, messages: list[dict[str, Any]], *, max_tokens: int, temperature: float = 0.0) -> Said:
        """One call, and up to three more while the server is busy. Raises ModelRefused."""
        body = {
            "model": self.chat.model,
            "messages": messages,
            "max_tokens": max_tokens,
            "temperature": temperature,
        }
        retrying = Retrying(
            stop=stop_after_attempt(ATTEMPTS),
            retry=retry_if_exception_type(_TryAgain),
            wait=wait_exponential(multiplier=0.5, max=20),
            reraise=True,
        )
        try:
            return _said(retrying(self._post, body))
        except _TryAgain as error:
            raise ModelRefused(f"{error}; start it again later, it goes on where it stopped") from error

    def _post(self, body: dict[str, Any]) -> dict[str, Any]:
        url = f"{self.chat.url}/chat/completions"
        try:
            # No proxy of the surroundings and no redirect: the key goes to the address that was granted.
            answer = post_guarded(
                url, networks=settings.REMOTE_NETWORKS, within_s=TIMEOUT_S, most=MAX_ANSWER_BYTES,
                tls=self._tls, headers=self._headers, json=body,
            )  # fmt: skip
        except (RefusedAddress, AnswerTooLarge, httpx.InvalidURL) as refused:
            raise ModelRefused(f"{url}: {refused}") from refused
        except httpx.HTTPError as error:
            raise _TryAgain(f"{url} did not answer: {error!r}") from error
        if answer.status == 429 or answer.status >= 500:
            raise _TryAgain(f"{url} answered {answer.status}")
        if answer.status != 200:
            said = " ".join(answer.body.decode(errors="replace").split())[:200]
            raise ModelRefused(f"{url} answered {answer.status}: {said}")
        return _object(answer, url)


def _object(answer: Posted, url: str) -> dict[str, Any]:
    try:
        value = json.loads(answer.body)
    except (ValueError, RecursionError) as error:
        raise ModelRefused(f"{url} answered no JSON; does its address end with /v1?") from error
    return value if isinstance(value, dict) else {}


def _said(value: dict[str, Any]) -> Said:
    usage = value.get("usage")
    usage = usage if isinstance(usage, dict) else {}
    return Said(_content(value), _count(usage.get("prompt_tokens")), _count(usage.get("completion_tokens")))


def _content(value: dict[str, Any]) -> str:
    try:
        return str(value["choices"][0]["message"]["content"] or "")
    except (KeyError, IndexError, TypeError):
        return ""


def _count(value: Any) -> int:
    return value if type(value) is int and 0 <= value < 10**9 else 0
