"""Data-source access: the contract's table, and a machine that looks for any way to see what one may not."""

from __future__ import annotations

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from spanforge.reference import DataSource, Document, Pipeline, User, Visibility
from spanforge.reference.access import accessible, may_change, may_query
from spanforge.reference.failures import NoAccessibleSources, NoResults, PermissionDenied
from spanforge.reference.index.lance import LanceIndex

OWNER = User(user_id="owner", org_id="org")
ROLE, TEAM, ASSIGNED, PLAIN = (
    User(user_id="r", org_id="org", roles=frozenset({"auditor"})),
    User(user_id="t", org_id="org", teams=frozenset({"tides"})),
    User(user_id="a", org_id="org"),
    User(user_id="p", org_id="org"),
)
STRANGER = User(user_id="owner", org_id="else", roles=frozenset({"auditor"}), teams=frozenset({"tides"}))


def source(visibility: Visibility) -> DataSource:
    return DataSource(
        data_source_id="s", org_id="org", owner_id="owner", visibility=visibility, roles=frozenset({"auditor"}),
        teams=frozenset({"tides"}), user_ids=frozenset({"a"}), editors=frozenset({"p"}),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("visibility", "allowed"),
    [
        (Visibility.PUBLIC, {"owner", "r", "t", "a", "p"}),
        (Visibility.ROLE, {"owner", "r"}),
        (Visibility.TEAM, {"owner", "t"}),
        (Visibility.PRIVATE, {"owner", "a"}),
        (Visibility.PERSONAL, {"owner"}),
    ],
)
def test_access_table(visibility: Visibility, allowed: set[str]) -> None:
    made = source(visibility)
    assert {user.user_id for user in (OWNER, ROLE, TEAM, ASSIGNED, PLAIN) if may_query(user, made)} == allowed
    assert not may_query(STRANGER, made)
    assert {user.user_id for user in (OWNER, ROLE, TEAM, ASSIGNED, PLAIN) if may_change(user, made)} == {"owner", "p"}
    assert not may_change(STRANGER, made)


def test_unknown_and_forbidden_sources_look_alike() -> None:
    sources = [source(Visibility.PERSONAL)]
    assert accessible(PLAIN, sources, ["s"]) == accessible(PLAIN, sources, ["nowhere"]) == ()


# --- the machine ---

ORGS = st.sampled_from(["north", "south"])
NAMES = st.sampled_from(["s1", "s2", "s3"])
PEOPLE = st.builds(
    lambda **fields: User(**fields),  # noqa: PLW0108 - builds() would fill in the aliases as well
    user_id=st.sampled_from(["ann", "bob", "cid"]),
    org_id=ORGS,
    roles=st.frozensets(st.sampled_from(["auditor", "clerk"])),
    teams=st.frozensets(st.sampled_from(["tides", "locks"])),
)
SOURCES = st.builds(
    lambda **fields: DataSource(**fields),  # noqa: PLW0108 - as above
    data_source_id=NAMES,
    org_id=ORGS,
    owner_id=st.sampled_from(["ann", "bob", "cid"]),
    visibility=st.sampled_from(Visibility),
    roles=st.frozensets(st.sampled_from(["auditor", "clerk"])),
    teams=st.frozensets(st.sampled_from(["tides", "locks"])),
    user_ids=st.frozensets(st.sampled_from(["ann", "bob", "cid"])),
)


def visible_by_the_table(user: User, made: DataSource) -> bool:
    """The access table once more, written apart from the code under test."""
    rules = {
        "public": True,
        "role": bool(user.roles & made.roles),
        "team": bool(user.teams & made.teams),
        "private": user.user_id in made.user_ids,
        "personal": False,
    }
    return user.org_id == made.org_id and (user.user_id == made.owner_id or rules[made.visibility.value])


class AccessMachine(RuleBasedStateMachine):
    """A model of who owns what beside a pipeline; after every step each reader sees exactly what the table allows."""

    def make(self) -> Pipeline:
        return Pipeline(embedder=None)

    @initialize()
    def begin(self) -> None:
        self.pipeline = self.make()
        self.sources: dict[tuple[str, str], DataSource] = {}
        self.documents: dict[tuple[str, str], set[str]] = {}
        self.reader = User(user_id="ann", org_id="north")

    def teardown(self) -> None:
        if hasattr(self, "pipeline"):
            self.pipeline.close()

    @rule(made=SOURCES, user=PEOPLE)
    def put_source(self, made: DataSource, user: User) -> None:
        key = (made.org_id, made.data_source_id)
        known = self.sources.get(key)
        allowed = made.org_id == user.org_id and (known is None or known.owner_id == user.user_id)
        try:
            self.pipeline.put_source(made, user)
        except PermissionDenied:
            assert not allowed
            return
        assert allowed
        self.sources[key] = made
        self.documents.setdefault(key, set())

    @rule(name=NAMES, user=PEOPLE, document=st.sampled_from(["d1", "d2"]))
    def ingest(self, name: str, user: User, document: str) -> None:
        key = (user.org_id, name)
        known = self.sources.get(key)
        text = f"The ledger of {user.org_id} {name} {document} lists barges."
        try:
            self.pipeline.ingest(Document(document_id=document, text=text), name, user=user)
        except PermissionDenied:
            assert known is not None
            assert known.owner_id != user.user_id
            return
        assert known is None or known.owner_id == user.user_id
        if known is None:
            self.sources[key] = DataSource(data_source_id=name, org_id=user.org_id, owner_id=user.user_id)
        self.documents.setdefault(key, set()).add(document)

    @rule(name=NAMES, user=PEOPLE, whole=st.booleans(), document=st.sampled_from(["d1", "d2"]))
    def delete(self, name: str, user: User, whole: bool, document: str) -> None:
        key = (user.org_id, name)
        known = self.sources.get(key)
        try:
            self.pipeline.delete(name, None if whole else [document], user=user)
        except PermissionDenied:
            assert known is None or known.owner_id != user.user_id
            return
        assert known is not None
        if whole:
            del self.sources[key], self.documents[key]
        else:
            self.documents[key].discard(document)

    @rule(user=PEOPLE)
    def become(self, user: User) -> None:
        self.reader = user

    @invariant()
    def the_reader_sees_exactly_what_the_table_allows(self) -> None:
        if not hasattr(self, "pipeline"):
            return
        open_keys = {key for key, made in self.sources.items() if visible_by_the_table(self.reader, made)}
        expected = {(name, document) for org, name in open_keys for document in self.documents[(org, name)]}
        assert {made.data_source_id for made in self.pipeline.sources(self.reader)} == {name for _, name in open_keys}
        seen: set[tuple[str, str]] = set()
        total = 0
        try:
            out = self.pipeline.retrieve("which barges does the ledger list", user=self.reader, top_k=100)
            seen = {(found.data_source_id, found.document_id) for found in out.documents}
            assert all(f"of {self.reader.org_id} " in found.text for found in out.documents)
            assert set(out.data_sources) == {name for _, name in open_keys}
            total = out.total_found
        except NoAccessibleSources:
            assert not open_keys
        except NoResults:
            assert not expected
        assert seen == expected
        assert total == len(expected)


class LanceAccessMachine(AccessMachine):
    """The same over the embedded engine, where the selection is a filter expression."""

    def make(self) -> Pipeline:
        import tempfile

        self.folder = tempfile.TemporaryDirectory()
        return Pipeline(embedder=None, index=LanceIndex(self.folder.name, 0))

    def teardown(self) -> None:
        super().teardown()
        if hasattr(self, "folder"):
            self.folder.cleanup()


TestAccess = AccessMachine.TestCase
TestAccess.settings = settings(max_examples=40, stateful_step_count=20, deadline=None)
TestLanceAccess = LanceAccessMachine.TestCase
TestLanceAccess.settings = settings(max_examples=5, stateful_step_count=10, deadline=None)
