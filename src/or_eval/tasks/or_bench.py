"""OR-Bench: English prompts written to look harmful, and toxic ones to compare with."""

from or_eval.tasks.benchmark_task import benchmark_task

or_bench_80k = benchmark_task(
    "or_bench_80k", "Over-refusal on the 80,000 safe prompts of OR-Bench that look harmful."
)
or_bench_hard_1k = benchmark_task(
    "or_bench_hard_1k", "Over-refusal on the hardest thousand safe prompts of OR-Bench."
)
or_bench_toxic = benchmark_task(
    "or_bench_toxic", "Toxic rejection on the toxic prompts of OR-Bench."
)
