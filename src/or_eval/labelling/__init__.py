"""People's labels of responses: what to ask, whom, with which words, and what came back."""
