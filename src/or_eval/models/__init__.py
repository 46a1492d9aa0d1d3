"""Inspect model providers: a GGUF file in this process, and stored responses."""
