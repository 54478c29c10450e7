from __future__ import annotations

from support.golden import Recorder, query, retrieved

from spanforge.sinks._sessions import SessionMemory


def test_a_stage_apart_from_its_query_has_its_facts_while_they_are_remembered():
    memory = SessionMemory(limit=2)
    later = {}
    for name in "abc":
        run = Recorder(name)
        memory.sessions([run.add(1, query(name))])
        later[name] = run.add(2, retrieved(name))
    assert len(memory) == 2
    forgotten, *remembered = memory.sessions(list(later.values()))
    assert forgotten.facts.database == ""
    assert {session.facts.database for session in remembered} == {"pinecone"}
