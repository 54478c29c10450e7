"""`python -m spanforge.run app.py …`: a program as it is, with `setup()` called before it."""

from __future__ import annotations

import runpy
import sys
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import ModuleType, TracebackType
from typing import Final, NoReturn

from spanforge import auto

__all__ = ["main"]

_USAGE: Final = "usage: python -m spanforge.run (app.py | -m module) [arguments]"


def main() -> None:
    """Trace the program named by the arguments, a file or `-m` and a module, as Python itself would run it."""
    arguments = sys.argv[1:]
    if arguments[:1] in (["-h"], ["--help"]):
        print(_USAGE)  # noqa: T201  asked for by the caller
        return
    if not arguments or arguments == ["-m"]:
        _refuse(_USAGE)
    auto.setup()
    sys.excepthook = _without_us
    sys.modules["__main__"] = program = ModuleType("__main__")
    if arguments[0] == "-m":
        sys.argv = arguments[1:]
        runpy._run_module_as_main(arguments[1])  # pyright: ignore[reportUnknownMemberType, reportAttributeAccessIssue]  # noqa: SLF001  as Python
        return
    sys.argv = arguments
    _run_file(program, Path(arguments[0]))


def _run_file(program: ModuleType, path: Path) -> None:
    if path.is_dir() or path.suffix in {".zip", ".pyz"}:
        runpy.run_path(str(path), run_name="__main__")
        return
    path = path.absolute()
    loader = SourceFileLoader("__main__", str(path))
    try:
        source = loader.get_data(str(path))
    except OSError as error:
        _refuse(f"{sys.executable}: can't open file {str(path)!r}: [Errno {error.errno}] {error.strerror}")
    sys.path[0] = str(path.resolve().parent)
    vars(program).update(__file__=str(path), __loader__=loader, __builtins__=sys.modules["builtins"])
    exec(compile(source, str(path), "exec", dont_inherit=True), vars(program))  # noqa: S102  the program asked for


def _refuse(message: str) -> NoReturn:
    print(message, file=sys.stderr)  # noqa: T201  as Python itself says it
    sys.exit(2)


def _without_us(kind: type[BaseException], error: BaseException, traceback: TracebackType | None) -> None:
    """Show an error as it would be shown had the program been run by itself."""
    step = traceback
    while step is not None:
        if step.tb_frame.f_code.co_filename == __file__:
            traceback = step.tb_next
        step = step.tb_next
    sys.__excepthook__(kind, error.with_traceback(traceback), traceback)


if __name__ == "__main__":
    main()
