"""What the server of processes of ``commands.py`` has in memory when it forks a command."""

from contextlib import suppress
from functools import cache

import fastapi
import inspect_ai._cli.main
import inspect_ai.model._providers.anthropic
import inspect_ai.model._providers.openai_compatible
import uvicorn
from inspect_ai._util import package

from or_eval.languages import detect_language

with suppress(ImportError):  # of the extra [scout]
    import inspect_scout._cli.main
    import inspect_swe.acp

__all__ = ["fastapi", "inspect_ai", "inspect_scout", "inspect_swe", "uvicorn"]

# Inspect looks through all installed packages in each eval, where the task's isn't a copy.
package.packages_distributions = cache(package.packages_distributions)
package.packages_distributions()
# Reads its model.
detect_language("What is this?")
