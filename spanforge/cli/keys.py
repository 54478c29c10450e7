"""`spanforge keys add|list|revoke`: who may use a server."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from spanforge.cli._output import CliError, console, print_json, table
from spanforge.cli._params import JsonOption, folder, path
from spanforge.cli._settings import server_default, server_settings
from spanforge.reference import User
from spanforge.server.auth.keys import KEYS_FILE, KeyInfo, KeyStore
from spanforge.server.auth.permissions import ROLES

HomeOption = Annotated[
    Path | None,
    typer.Option(
        "--home",
        metavar="DIR",
        parser=path("--home"),
        show_default=server_default("home"),
        help="Folder of the server.",
    ),
]


def register(app: typer.Typer) -> None:
    """Add the verb."""
    keys = typer.Typer(help="Keys for the HTTP API: make one, list them, revoke one.", no_args_is_help=True)
    keys.command("add", help="Make a key and print it; it is shown this once.")(_add)
    keys.command("list", help="List keys, without their secrets.")(_list)
    keys.command("revoke", help="Revoke a key; the next request with it is refused.")(_revoke)
    app.add_typer(keys, name="keys")


def _add(  # noqa: PLR0917  typer makes the options from the signature
    org: Annotated[str, typer.Option(metavar="ORG", help="Organisation the key is for.")],
    user: Annotated[str, typer.Option(metavar="USER", help="User the key is for.")],
    role: Annotated[
        list[str] | None,
        typer.Option(
            metavar="ROLE",
            show_default="reader",
            help=f"A role ({', '.join(ROLES)}), or one of your own; may be repeated.",
        ),
    ] = None,
    team: Annotated[
        list[str] | None, typer.Option(metavar="TEAM", help="A team the user is in; may be repeated.")
    ] = None,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    roles = frozenset(role or ["reader"])
    if not org or not user or "" in roles:
        raise CliError("--org, --user and --role: none of them may be empty")
    store = _store(home, create=True)
    key = store.add(User(user_id=user, org_id=org, roles=roles, teams=frozenset(team or ())))
    store.close()
    if as_json:
        print_json({"key": key})
    else:
        console.print(key, soft_wrap=True)
        if roles.isdisjoint(ROLES):
            console.print(f"none of its roles is one of {', '.join(ROLES)}: it may do nothing yet", style="yellow")


def _list(home: HomeOption = None, as_json: JsonOption = False) -> None:
    store = _store(home, create=False)
    found = store.all()
    store.close()
    if as_json:
        print_json([_row(info) for info in found])
        return
    columns = ["key", "organisation", "user", "roles", "teams", "made", "revoked"]
    table(f"{len(found)} keys", columns, [list(_row(info).values()) for info in found])


def _revoke(
    key_id: Annotated[str, typer.Argument(metavar="KEY", help="Id of the key: what stands between its underscores.")],
    home: HomeOption = None,
) -> None:
    store = _store(home, create=False)
    # Whoever pastes the whole key means its id.
    done = store.revoke(key_id.removeprefix("sf_").partition("_")[0])
    store.close()
    if not done:
        raise CliError("KEY: no valid key has this id; `spanforge keys list` shows them")
    console.print("revoked")


def _store(home: Path | None, *, create: bool) -> KeyStore:
    kept_in = folder("--home", home or server_settings({}).home)
    if not create and not (kept_in / KEYS_FILE).is_file():
        raise CliError("--home: there are no keys in this folder; make one with `spanforge keys add`")
    return KeyStore(kept_in / KEYS_FILE)


def _row(info: KeyInfo) -> dict[str, str]:
    user = info.user
    return {
        "key": info.key_id,
        "organisation": user.org_id,
        "user": user.user_id,
        "roles": ", ".join(sorted(user.roles)),
        "teams": ", ".join(sorted(user.teams)),
        "made": f"{info.created:%Y-%m-%d %H:%M}",
        "revoked": "" if info.revoked is None else f"{info.revoked:%Y-%m-%d %H:%M}",
    }
