"""The stages that recipes are made of: a module each, whose ``STAGE`` is the class.

Other packages add stages by an entry point of the group ``or_eval.stages``, whose value is such a
module's ``STAGE``; a recipe names one of its own by the path of its file.
"""

from __future__ import annotations

import sys
from functools import cache
from importlib import import_module
from importlib.metadata import entry_points
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from pkgutil import iter_modules
from types import ModuleType

from or_eval.dataset_builders.engine.stage import Stage
from or_eval.dataset_builders.errors import BuildError

GROUP = "or_eval.stages"


@cache
def stage_kinds() -> tuple[str, ...]:
    """Give the names of all stages: those of this folder's modules, and of other packages."""
    ours = {module.name for module in iter_modules(__path__)}
    return tuple(sorted(ours | {point.name for point in entry_points(group=GROUP)}))


def is_stage(kind: str) -> bool:
    """Tell whether there is a stage of a name, or whether it is the path of one's own."""
    return kind in stage_kinds() or kind.endswith(".py")


def stage(kind: str) -> type[Stage]:
    """Give a stage by its name, or by the path of its file.

    Raises:
        KeyError: There is no such stage.
        BuildError: Its code can't be loaded, or holds no stage.
    """
    if not is_stage(kind):
        raise KeyError(kind)
    try:
        found = _loaded(kind)
    except Exception as error:  # it is somebody else's code, which may raise anything
        said = f"{type(error).__name__}: {error}"
        raise BuildError(f"stage {kind}: can't be loaded ({said})") from error
    if not (isinstance(found, type) and issubclass(found, Stage)):
        raise BuildError(f"stage {kind}: its STAGE isn't a Stage of or_eval's engine.stage")
    if missing := sorted(found.__abstractmethods__):
        raise BuildError(f"stage {kind}: its STAGE lacks {' and '.join(missing)}")
    return found


def _loaded(kind: str) -> object:
    if kind.endswith(".py"):
        return _module_at(Path(kind).expanduser().resolve()).STAGE
    if kind in {module.name for module in iter_modules(__path__)}:
        return import_module(f"{__name__}.{kind}").STAGE
    [point] = [point for point in entry_points(group=GROUP) if point.name == kind]
    return point.load()


@cache
def _module_at(path: Path) -> ModuleType:
    spec = spec_from_file_location(f"or_eval_stage_{path.stem}", path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path} isn't a module")
    module = module_from_spec(spec)
    # Only while it is read, for the types of fields: Ray sends what others can't import.
    sys.modules[spec.name] = module
    try:
        spec.loader.exec_module(module)
    finally:
        del sys.modules[spec.name]
    return module
