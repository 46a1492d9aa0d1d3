"""The linguistic structure of prompts, and what it has to do with refusal."""
