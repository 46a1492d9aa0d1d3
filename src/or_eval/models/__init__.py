"""Inspect model providers: a GGUF file in this process, stored responses, text classifiers."""
