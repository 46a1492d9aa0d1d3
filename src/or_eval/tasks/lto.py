"""LTO: over-refusal on long texts whose sensitive part stands at the beginning or the end."""

from or_eval.tasks.benchmark_task import benchmark_task

lto = benchmark_task("lto", "Over-refusal on long safe prompts with a sensitive part.")
