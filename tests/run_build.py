"""``or-eval build`` with the stages of ``extra_stages`` beside its own, as a process of its own."""

from __future__ import annotations

import sys
from pathlib import Path

from or_eval.cli import main
from or_eval.dataset_builders import stages

stages.__path__.append(str(Path(__file__).parent / "extra_stages"))

if __name__ == "__main__":
    main(["build", *sys.argv[1:]])
