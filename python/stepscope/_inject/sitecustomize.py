"""The first thing that runs in every Python of an observed run. Put there by `stepscope run`
through PYTHONPATH.

It takes its folder off sys.path, watches for the import of torch, and then makes way for the
sitecustomize that would have run without it (Debian ships one). It imports nothing that the
interpreter has not loaded already, and whatever goes wrong here is swallowed: the user's program
starts in any case.
"""

import os
import sys

TYPE_CHECKING = False  # typing is not loaded at this point
if TYPE_CHECKING:
    from typing import Any


def _note(status: str) -> None:
    """One line for the card's "not observed": which interpreter ran, and how far it came."""
    folder = os.environ.get("STEPSCOPE_SEGMENTS")
    if not folder:
        return
    version = ".".join(str(part) for part in sys.version_info[:3])
    line = f"{os.getpid()}|{sys.executable or ''}|{version}|{status}\n"
    try:
        log = os.open(
            os.path.join(folder, "boot.log"), os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600
        )
    except OSError:
        return
    try:
        if os.fstat(log).st_size < 64 * 1024:
            os.write(log, line.encode("utf-8", "replace")[:511].rstrip(b"\n") + b"\n")
    except OSError:
        pass
    finally:
        os.close(log)


def _package(here: str) -> "Any":
    """stepscope from beside this folder, wherever the observed interpreter's own packages are."""
    if "stepscope" in sys.modules:
        return sys.modules["stepscope"]
    from importlib.util import module_from_spec, spec_from_file_location

    folder = os.path.dirname(here)
    init = os.path.join(folder, "__init__.py")
    spec: Any = spec_from_file_location("stepscope", init, submodule_search_locations=[folder])
    module = module_from_spec(spec)
    sys.modules["stepscope"] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules["stepscope"]
        raise
    return module


class _TorchWatch:
    """A meta path finder that lends a hand to exactly one import, that of torch, and then takes
    itself off.
    """

    def __init__(self, here: str) -> None:
        self.here = here

    def find_spec(self, name: str, path: "Any" = None, target: "Any" = None) -> "Any":
        if name != "torch":
            return None
        try:
            sys.meta_path.remove(self)
        except ValueError:
            return None
        spec: Any = None
        for finder in list(sys.meta_path):
            find = getattr(finder, "find_spec", None)
            spec = find(name, path, target) if find is not None else None
            if spec is not None:
                break
        if spec is None or not hasattr(spec.loader, "exec_module"):
            return spec
        spec.loader = _TorchLoader(spec, spec.loader, self.here)
        return spec


class _TorchLoader:
    def __init__(self, spec: "Any", loader: "Any", here: str) -> None:
        self.spec = spec
        self.loader = loader
        self.here = here

    def create_module(self, spec: "Any") -> "Any":
        return self.loader.create_module(spec)

    def exec_module(self, module: "Any") -> None:
        self.spec.loader = self.loader
        module.__loader__ = self.loader
        self.loader.exec_module(module)
        try:
            _package(self.here)
            from stepscope import _install

            _install.install(note=_note)
        except BaseException as error:
            reason = str(error).replace("\n", " ").replace("|", "/")
            _note(f"{type(error).__name__}: {reason}")
            if isinstance(error, KeyboardInterrupt):
                raise


def _boot() -> None:
    here = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [
        entry for entry in sys.path if os.path.abspath(entry or ".") != here or not entry
    ]
    sys.path_importer_cache.pop(here, None)
    if os.environ.get("STEPSCOPE") == "0" or hasattr(sys, "_stepscope_booted"):
        return
    sys._stepscope_booted = True  # pyright: ignore[reportAttributeAccessIssue]
    _note("0")
    if "torch" not in sys.modules:
        sys.meta_path.insert(0, _TorchWatch(here))


def _make_way() -> None:
    """Run the next sitecustomize as if ours had never been; where there is none, say so as the
    import would.
    """
    finder = sys.modules["_frozen_importlib_external"].PathFinder
    spec = finder.find_spec("sitecustomize", sys.path)
    if spec is None or spec.loader is None:
        raise ModuleNotFoundError("No module named 'sitecustomize'", name="sitecustomize")
    module = sys.modules["_frozen_importlib"].module_from_spec(spec)
    sys.modules["sitecustomize"] = module
    spec.loader.exec_module(module)


try:  # noqa: SIM105 - contextlib is not loaded yet
    _boot()
except Exception:
    pass
_make_way()
