"""The episodes of an env server: desktops in the hands of clients, and clients that wait for one.

    opening -> open (start, step*, evaluate) -> closed by its holder, or after `ttl_s` of silence
Calls of one episode are ordered by its own lock; episodes do not wait for each other.
"""

import contextlib
import logging
import secrets
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

from training.contracts.types import Action, Task
from workers.desktops.contract import EnvError, ErrorKind
from workers.desktops.frame import Frame
from workers.env_server.rewarded_episode import RewardedEpisode
from workers.env_server.waiting_line import WaitingLine
from workers.environments.agent_hands import AgentHands, Done
from workers.environments.contract import AtCapacity, EnvironmentRequest
from workers.environments.local import LocalEnvironment

log = logging.getLogger("env server")

Opener = Callable[[EnvironmentRequest], LocalEnvironment]


class UnknownEpisode(Exception):
    """Raised when an episode was never there, was closed, or fell silent."""


class Episode:
    """One desktop in the hands of one client. Use it inside `Episodes.use`."""

    def __init__(self, episode_id: str, environment: LocalEnvironment, request: EnvironmentRequest) -> None:
        self.episode_id = episode_id
        self.environment = environment
        self.hands, self.done = AgentHands(environment), Done()
        self.screen, self.reads = request.screen, request.reads
        self.holder = request.holder
        self.key = request.key
        self.lock = threading.Lock()
        self.task: Task | None = None
        self.num_steps = 0
        self.started_at = self.used_at = time.monotonic()
        self.is_closed = False
        self.rewarded: RewardedEpisode | None = None
        self._is_used = False
        self._last_action: Action | None = None
        self._score: float | None = None
        self._reply: tuple[str, Any] | None = None

    def start(self, task: Task) -> Frame:
        """Set the task up on a clean desktop; the first observation."""
        if self._is_used:
            self.environment.reset()
        self._is_used = True
        self.task, self.num_steps, self._last_action, self._score = task, 0, None, None
        self.hands = AgentHands(self.environment)
        self.environment.prepare(task)
        return self.environment.observe()

    def step(self, program: list[Action]) -> Frame:
        """Do all actions of one step; a refused one ends it. Raises EnvError."""
        self._is_used = True
        self._score = None
        self.num_steps += 1
        self.done = self.hands.do(program, self.screen)
        self._last_action = self.done.last
        if self.done.error is not None:
            raise EnvError(self.done.error, kind=ErrorKind.TASK)
        return self.environment.observe()

    def evaluate(self) -> float:
        """The task's score; asked again, the same one, until something is done on the desktop."""
        if self.task is None:
            raise EnvError("the episode has no task; reset it with a task_config", kind=ErrorKind.TASK)
        if self._score is None:
            self.hands.let_go()
            self._score = self.environment.evaluate(self.task, self._last_action)
        return self._score

    def once(self, key: str, call: Callable[[], Any]) -> Any:
        """The answer of `call`; a repetition with the same key gets the same answer and does nothing."""
        if key and self._reply is not None and self._reply[0] == key:
            return self._reply[1]
        answer = call()
        self._reply = (key, answer)
        return answer


class Episodes:
    def __init__(self, opener: Opener, *, max_episodes: int, ttl_s: float) -> None:
        self.max_episodes = max_episodes
        self.ttl_s = ttl_s
        self._opener = opener
        self._lock = threading.Lock()
        self._episodes: dict[str, Episode] = {}
        self._opening: dict[str, threading.Event] = {}
        """Place that is being filled -> set when it is; keyed by the request's key or a random one."""
        self._line = WaitingLine()

    def __len__(self) -> int:
        return len(self._episodes)

    def held(self, holder: str | None = None) -> list[Episode]:
        """Open episodes, oldest first; of one holder only, when given."""
        with self._lock:
            return [each for each in self._episodes.values() if holder in (None, each.holder)]

    def open(self, request: EnvironmentRequest) -> Episode:
        """A new episode on a clean desktop; with a known key the one that it opened. Raises AtCapacity."""
        key = request.key or secrets.token_hex(8)
        while True:
            with self._lock:
                known = next((each for each in self._episodes.values() if each.key == key), None)
                if known is not None:
                    return known
                pending = self._opening.get(key)
                if pending is None:
                    self._take_place(key, can_wait=bool(request.key))
                    break
            pending.wait()  # the same client asks twice at once: its first request decides
        try:
            episode = Episode(secrets.token_hex(8), self._opener(request), request)
            with self._lock:
                self._episodes[episode.episode_id] = episode
                self._line.leave(key)
            log.info("episode %s opened for %s", episode.episode_id, request.holder)
            return episode
        except AtCapacity as error:  # the desk host serves others too
            with self._lock:
                raise self._refusal(key, str(error), can_wait=bool(request.key)) from error
        finally:
            with self._lock:
                self._opening.pop(key).set()

    def _take_place(self, key: str, *, can_wait: bool) -> None:
        """Reserve a place, or raise AtCapacity with the place in the line. Caller holds the lock."""
        free = self.max_episodes - len(self._episodes) - len(self._opening)
        if self._line.ahead_of(key) >= free:
            raise self._refusal(key, f"all {self.max_episodes} episodes are in use", can_wait=can_wait)
        self._opening[key] = threading.Event()

    def _refusal(self, key: str, message: str, *, can_wait: bool) -> AtCapacity:
        position = self._line.ask(key) if can_wait else len(self._line) + 1
        wait_s = self._line.expected_wait_s(position, self.max_episodes)
        return AtCapacity(message, retry_after_s=self._line.RETRY_AFTER_S, position=position, wait_s=wait_s)

    @contextlib.contextmanager
    def use(self, episode_id: str) -> Iterator[Episode]:
        """The episode, alone. Raises UnknownEpisode."""
        with self._lock:
            episode = self._episodes.get(episode_id)
        if episode is None:
            raise UnknownEpisode(episode_id)
        with episode.lock:
            if episode.is_closed:
                raise UnknownEpisode(episode_id)
            episode.used_at = time.monotonic()
            try:
                yield episode
            finally:
                episode.used_at = time.monotonic()

    def close(self, episode_id: str) -> bool:
        """Give its desktop back; False when there is no such episode (any more)."""
        with self._lock:
            episode = self._episodes.get(episode_id)
        if episode is None:
            return False
        with episode.lock:
            if episode.is_closed:
                return False
            episode.is_closed = True
            episode.environment.close()
        with self._lock:
            self._episodes.pop(episode_id, None)
            self._line.ended(time.monotonic() - episode.started_at)
        log.info("episode %s closed", episode_id)
        return True

    def close_silent(self) -> list[str]:
        """Close what was not used for `ttl_s`; their ids. What is at work is not silent."""
        limit = time.monotonic() - self.ttl_s
        silent = [each for each in self.held() if each.used_at < limit and not each.lock.locked()]
        for episode in silent:
            log.warning("episode %s of %s fell silent", episode.episode_id, episode.holder)
            self.close(episode.episode_id)
        return [episode.episode_id for episode in silent]

    def close_all(self) -> None:
        """At shutdown."""
        with self._lock:
            self._line.clear()
        for episode in self.held():
            self.close(episode.episode_id)
