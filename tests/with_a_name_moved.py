"""A command with a release of Inspect that has moved some of the names that or-eval uses privately.

``with_a_name_moved.py NAME,NAME COMMAND ...`` where the command is ``inspect`` or ``or-eval``.
"""

import sys
from importlib.metadata import entry_points

for module in [module for module in sys.modules if module.partition(".")[0] == "or_eval"]:
    del sys.modules[module]

from or_eval import inspect_private  # noqa: E402

_, names, program, *arguments = sys.argv
inspect_private.WHERE |= dict.fromkeys(names.split(","), ("inspect_ai", "moved"))
sys.argv = [program, *arguments]
[found] = entry_points(group="console_scripts", name=program)
sys.exit(found.load()())
