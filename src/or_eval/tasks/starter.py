"""The bundled starter prompts: few enough for a laptop, with toxic twins of some."""

from or_eval.tasks.benchmark_task import benchmark_task

starter = benchmark_task(
    "starter", "Over-refusal and toxic rejection on or-eval's bundled starter prompts."
)
