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
    forgotten, *remembered = memory.sessions(list(later.values())).values()
    assert forgotten.facts.retriever_name == ""
    assert {session.facts.retriever_name for session in remembered} == {"pinecone"}


def test_sessions_come_in_order_of_first_appearance():
    first, second = Recorder("b").add(1, query("b")), Recorder("a").add(1, query("a"))
    found = SessionMemory().sessions([first, second, first])
    assert list(found) == [("acme", "b"), ("acme", "a")]


def test_organisations_that_use_the_same_id_have_sessions_of_their_own():
    memory = SessionMemory()
    ours, theirs = Recorder("support"), Recorder("support", 1)
    asked = [
        ours.add(1, query("support", retriever_name="ours"), org_id="acme"),
        theirs.add(2, query("support", retriever_name="theirs"), org_id="globex"),
    ]
    found = [ours.add(3, retrieved("support"), org_id="acme"), theirs.add(4, retrieved("support"), org_id="globex")]
    assert [len(session.stages) for session in memory.sessions(asked).values()] == [1, 1]
    assert [session.facts.retriever_name for session in memory.sessions(found).values()] == ["ours", "theirs"]
