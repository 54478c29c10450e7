"""Stored events as sessions: the same fold as the live table, over whatever was written."""

from spanforge.analysis.alarms import Alarm
from spanforge.analysis.filters import SessionFilter
from spanforge.analysis.gate import Finding, Gate, GateVerdict, check
from spanforge.analysis.policy import Policy, Rule
from spanforge.analysis.pruning import PrunedFile, prune
from spanforge.analysis.selection import PruneSelection
from spanforge.analysis.streaming import FoldedSession, SessionFolder
from spanforge.analysis.watching import Match, Watch, Watcher
from spanforge.sdk import StoredSession, StoredTotals, is_sound, stored_sessions

__all__ = [
    "Alarm",
    "Finding",
    "FoldedSession",
    "Gate",
    "GateVerdict",
    "Match",
    "Policy",
    "PruneSelection",
    "PrunedFile",
    "Rule",
    "SessionFilter",
    "SessionFolder",
    "StoredSession",
    "StoredTotals",
    "Watch",
    "Watcher",
    "check",
    "is_sound",
    "prune",
    "stored_sessions",
]
