"""How long does a report on many logs take, how large is its page, how much memory does it need?

    python benchmarks/report.py --logs /tmp/vote-logs --out /tmp/large-report

makes logs as benchmarks/votes.py does (once; the folder is used again): 8 models on 20,000 prompts.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

from votes import LogSet, make_logs, peak_mb

SIZE = LogSet(models=8, prompts=20_000, words=250)


def main() -> None:
    """Make the logs, write the report, print what it took."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--logs", type=Path, required=True, help="Folder for the made logs.")
    parser.add_argument("--out", type=Path, required=True, help="Folder for the report.")
    arguments = parser.parse_args()
    make_logs(SIZE.logs(arguments.logs), SIZE)

    from or_eval.analysis.report import write_report

    started = time.perf_counter()
    page = write_report(SIZE.logs(arguments.logs), arguments.out)
    print(f"seconds: {time.perf_counter() - started:.1f}")
    print(f"page: {page.stat().st_size / 1e6:.1f} MB")
    print(f"folder: {sum(f.stat().st_size for f in page.parent.rglob('*.*')) / 1e6:.1f} MB")
    print(f"peak memory: {peak_mb():.0f} MB")


if __name__ == "__main__":
    main()
