"""Everything derived from Inspect logs: votes, rates, tests, audits, agreement."""
