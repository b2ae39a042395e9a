# `make demo` and `make test` do all the set-up they need; run again, they do not repeat it.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
D3RLPY := .venv-d3rlpy
PIP := -m pip install --quiet --disable-pip-version-check --constraint
INSTALL := $(BIN)/python $(PIP) constraints.txt

.PHONY: demo test suite d3rlpy lint types docs tables bench reproduce embedded release-check clean

demo: $(VENV)/paper.done
	$(BIN)/rewardshift reproduce figure1 --preset paper --out out

# Style fails at once. The other checks run beside the suite.
test: lint
	$(MAKE) --jobs 2 suite types docs d3rlpy

suite: $(VENV)/dev.done
	$(BIN)/pytest --numprocesses auto --dist loadfile --quiet

# Apart from the others: d3rlpy pins a Gymnasium that Gymnasium-Robotics is too new for.
d3rlpy: $(D3RLPY)/done
	$(D3RLPY)/bin/pytest --noconftest --override-ini addopts= --quiet tests/with_d3rlpy*.py

lint: $(VENV)/dev.done
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/dev.done
	$(BIN)/mypy

docs: $(VENV)/dev.done
	$(BIN)/sphinx-build --fresh-env --fail-on-warning --keep-going --quiet docs docs/_build/html

# docs/results.md and the tables of the README and of docs/experiments.md, from results/. A test fails if they are stale.
tables: $(VENV)/paper.done
	$(BIN)/python docs/results.py

bench: $(VENV)/dev.done
	$(BIN)/python benchmarks/imports.py
	$(BIN)/python benchmarks/wrappers.py
	$(BIN)/python benchmarks/members.py
	$(BIN)/python benchmarks/maze.py
	$(BIN)/python benchmarks/online.py
	$(BIN)/python benchmarks/sweep.py
	$(BIN)/python benchmarks/control.py
	$(BIN)/python benchmarks/offline.py
	$(BIN)/python benchmarks/fetch.py
	$(BIN)/python benchmarks/scaling.py

# The results that are kept with the source, and those that come next. Runs resume, so this can be stopped at any time.
reproduce: $(VENV)/paper.done
	$(BIN)/rewardshift reproduce figure1 --preset paper --out results
	$(BIN)/rewardshift reproduce maze-sizes --preset paper --out results
	$(BIN)/rewardshift reproduce figure1 --preset paper --terminal absorbing --out results/absorbing
	$(BIN)/rewardshift reproduce maze-sizes --preset paper --terminal absorbing --out results/absorbing
	$(BIN)/rewardshift reproduce terminal-treatment --preset quick --out results
	$(BIN)/rewardshift reproduce lifetime --preset quick --out results
	$(BIN)/rewardshift reproduce initial-values --preset quick --out results
	$(BIN)/rewardshift reproduce auto --preset quick --out results
	$(BIN)/rewardshift reproduce auto-control --preset quick --out results
	$(BIN)/rewardshift reproduce auto-test --preset quick --out results
	$(BIN)/rewardshift reproduce auto-offline --preset quick --out results
	$(BIN)/rewardshift reproduce fetch --preset quick --out results
	$(BIN)/rewardshift reproduce curiosity --preset quick --out results
	$(BIN)/rewardshift reproduce curiosity-stored --preset quick --out results
	$(BIN)/rewardshift reproduce curiosity-explained --preset quick --out results
	$(BIN)/rewardshift reproduce curiosity-ablation --preset quick --out results
	$(BIN)/rewardshift reproduce sparse-cheetah --preset quick --out results
	$(BIN)/rewardshift reproduce offline-mechanism --preset quick --out results
	$(BIN)/rewardshift reproduce offline --preset quick --out results

# The data sets in src/rewardshift/data/embedded, made anew in out/embedded: about an hour. Training
# is chaotic, so another machine comes to other policies.
POLICY := --capacity 400000 --batch-size 100 --learning-rate 0.001 --warm-up 5000 --evaluate-every 10000
COLLECT := --transitions 10000 --folder out/embedded
embedded: $(VENV)/paper.done
	$(BIN)/rewardshift train td3 --env Hopper-v5 --steps 350000 $(POLICY) --out out/policies/hopper-expert
	$(BIN)/rewardshift train td3 --env Hopper-v5 --steps 100000 $(POLICY) --out out/policies/hopper-medium
	$(BIN)/rewardshift train td3 --env Walker2d-v5 --steps 130000 $(POLICY) --out out/policies/walker2d-medium
	$(BIN)/rewardshift collect out/policies/hopper-expert --id rewardshift/hopper-imitate-v0 $(COLLECT)/hopper-imitate
	$(BIN)/rewardshift collect out/policies/hopper-expert --id rewardshift/hopper-expert-v0 --noise 0.1 --seed 1 $(COLLECT)/hopper-expert
	$(BIN)/rewardshift collect out/policies/hopper-medium --id rewardshift/hopper-medium-v0 --noise 0.1 $(COLLECT)/hopper-medium
	$(BIN)/rewardshift collect out/policies/walker2d-medium --id rewardshift/walker2d-medium-v0 --noise 0.1 $(COLLECT)/walker2d-medium

# The wheel and the sdist of a release, in dist/: built, checked by twine, installed into empty
# environments (the plug-in; agents; all) and used there, with every Python on the path that we support.
release-check: $(VENV)/dev.done
	rm -rf dist
	$(BIN)/python -m build --outdir dist
	$(BIN)/twine check --strict dist/*
	$(BIN)/pytest --noconftest --override-ini addopts= --quiet tests/with_release.py

# Keeps out/, where runs of hours may lie.
clean:
	rm -rf $(VENV) $(D3RLPY) dist docs/_build

$(VENV)/paper.done: pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "rewardshift needs Python 3.11 or newer; name one with: make PYTHON=python3.11 ..."; exit 2; }
	@echo "Installing into $(VENV) (once)"
	@$(PYTHON) -m venv $(VENV)
	@$(INSTALL) --editable '.[paper]'
	@touch $@

# Torch first and alone: tests compare with it, and our agents do without.
$(VENV)/dev.done: $(VENV)/paper.done
	@echo "Installing what tests and docs need (once)"
	@$(INSTALL) torch==2.13.0
	@$(INSTALL) --editable '.[dev,docs]'
	@touch $@

$(D3RLPY)/done: pyproject.toml constraints-d3rlpy.txt
	@echo "Installing into $(D3RLPY) what the tests with d3rlpy need (once)"
	@$(PYTHON) -m venv $(D3RLPY)
	@$(D3RLPY)/bin/python $(PIP) constraints-d3rlpy.txt torch==2.13.0
	@$(D3RLPY)/bin/python $(PIP) constraints-d3rlpy.txt --editable '.[d3rlpy]' pytest
	@touch $@
