"""Who may query, and who may change, a data source: the contract's access table as two pure functions."""

from __future__ import annotations

from collections.abc import Iterable

from spanforge.reference.models import DataSource, User, Visibility


def may_query(user: User, source: DataSource) -> bool:  # noqa: PLR0911 - one line a row of the contract's table
    """Tell whether the user may query the source.

    Nobody sees beyond their organisation; the owner always sees their own; the rest follows the visibility.
    """
    if user.org_id != source.org_id:
        return False
    if user.user_id == source.owner_id:
        return True
    match source.visibility:
        case Visibility.PUBLIC:
            return True
        case Visibility.ROLE:
            return not user.roles.isdisjoint(source.roles)
        case Visibility.TEAM:
            return not user.teams.isdisjoint(source.teams)
        case Visibility.PRIVATE:
            return user.user_id in source.user_ids
        case Visibility.PERSONAL:
            return False


def may_change(user: User, source: DataSource) -> bool:
    """Tell whether the user may ingest into the source, delete from it, or change who sees it."""
    return user.org_id == source.org_id and (user.user_id == source.owner_id or user.user_id in source.editors)


def accessible(user: User, sources: Iterable[DataSource], wanted: Iterable[str] | None = None) -> tuple[str, ...]:
    """Return the sorted ids of the sources the user may query, narrowed to the wanted ones where given.

    An id that is unknown and one that is forbidden are left out alike, so that asking tells nothing.
    """
    names = None if wanted is None else set(wanted)
    return tuple(
        sorted(
            source.data_source_id
            for source in sources
            if (names is None or source.data_source_id in names) and may_query(user, source)
        )
    )
