"""What is done when a run does not end well: the protocol's four recoveries.

A direct answer without documents (off unless asked for, never in strict mode, always marked); an earlier
good answer to the same question; a person; and a second attempt with lower temperature and wider retrieval.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Literal

from spanforge.reference.models import RagResult, RagStatus

DIRECT_ANSWER = "direct_answer"
CACHED_ANSWER = "cached_answer"
REGENERATED = "regenerated"
UNGROUNDED_WARNING = "UNGROUNDED_DIRECT_ANSWER"
_REMEMBERED = 256


@dataclass(frozen=True, slots=True)
class RecoverySettings:
    """Which recoveries are in use. A person is asked in any case, by an escalation event.

    Attributes:
        direct_answer: Where nothing was found, let the model answer by itself, marked as ungrounded.
        cached_answers: Give an earlier grounded answer when generation fails, always before trying, or never.
        regenerate: Try once more where grounding is under one half.
        regenerate_temperature: Temperature of the second attempt.
        widen: Factor on ``top_k`` of the second attempt.
    """

    direct_answer: bool = False
    cached_answers: Literal["on_failure", "always", "never"] = "on_failure"
    regenerate: bool = True
    regenerate_temperature: float = 0.0
    widen: int = 2


class AnswerCache:
    """Grounded answers of this process, the least recently used forgotten first; nothing is written to disk.

    The key holds the question, what shapes the answer, the sources the user may query, and the version of
    the index: no answer outlives a change of documents, or reaches someone who may not see what it was made
    from.
    """

    def __init__(self, size: int = _REMEMBERED) -> None:
        self._answers: OrderedDict[Hashable, RagResult] = OrderedDict()
        self._size = size
        self._lock = threading.Lock()

    def __repr__(self) -> str:
        return f"AnswerCache({len(self._answers)} answers)"

    def clear(self) -> None:
        """Forget all answers."""
        with self._lock:
            self._answers.clear()

    def put(self, key: Hashable, result: RagResult) -> None:
        """Remember a result if it is grounded and was not itself recovered."""
        if result.status is not RagStatus.GROUNDED or result.recovery is not None:
            return
        with self._lock:
            self._answers[key] = result
            self._answers.move_to_end(key)
            while len(self._answers) > self._size:
                self._answers.popitem(last=False)

    def get(self, key: Hashable) -> RagResult | None:
        """Return the remembered result, marked as a recovery, None where there is none."""
        with self._lock:
            result = self._answers.get(key)
            if result is None:
                return None
            self._answers.move_to_end(key)
        return result.model_copy(update={"recovery": CACHED_ANSWER, "latencies_ms": {}})
