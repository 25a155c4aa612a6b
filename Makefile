# make demo    everything from nothing: environment, pictures, features, captioner, captions, scores, figures
# make test    the tests
# make test-network   push and pull of stores against servers of S3, GCS and SFTP on this machine
# make test-browser   the explorer, the first page and the page of vitcapr serve in a headless Chromium, which must be installed (with chromedriver)
# make test-gpu   a GPU against the CPU, and loops that must not wait for it; skipped where there is none
# make test-slurm    the tests on a Slurm of their own; as root, installs it if it is missing
# make torture   kills, faults and hostile inputs, for up to 40 minutes and the time of the runs that they start from:
#                make torture MINUTES=5 SEED=1
# make pages   docs/stages.md, config/README.md and the schema, which are written from the code; measured figures in pages
# make docs    the documentation site, in site/; a warning is an error
# make lint    what must be clean before a commit
# make gallery   the pictures of the documentation, from the demo; needs Chromium and chromedriver
# make bench   speed, as ratios measured in one run: writes benchmarks/results.json, and says what became slower
# make bench-scale   what grows with the data, from tars to a head and the DAG: SIZES="1000000x1 1000000x5"
# make bench-peers   the same tasks with other programs, which are fetched into .peers
# make rehearsal   rendered scenes as all of MS COCO, and coco-rehearsal.yaml on them: hours on two cores, 12 GB
# make bench-gpu   extraction, training and decoding on a GPU; a line where there is none
# make bench-gpu-bundle   one archive that runs test-gpu and bench-gpu on a machine without a network
#
# Another Python: make demo PYTHON=python3.12.   Fewer cores: make demo CORES=1.

PYTHON ?= python3
CORES ?= $(shell getconf _NPROCESSORS_ONLN)
MINUTES ?= 40
SEED ?= 0
SIZES ?= 1000000x1
VENV := .venv
BIN := $(VENV)/bin
NEEDED_GB := 6
# The demo's models are small: side by side, a thread each, they are done sooner than one by one with all cores.
SMALL := extract feature_statistics train_captioner train_retriever embed decode decode_attentively tune_reranking rerank score_retrieval
REPORT := results/demo/report.html

.DEFAULT_GOAL := demo
.PHONY: demo test test-network test-browser test-gpu test-slurm torture pages docs lint gallery bench bench-scale bench-peers rehearsal bench-gpu bench-gpu-bundle venv venv-test venv-docs check-python check-disk clean-venv

demo: venv
	$(BIN)/snakemake --cores $(CORES) --set-threads $(SMALL:%=%=1)
	$(BIN)/snakemake --report $(REPORT) --quiet all
	@echo "Report: $(REPORT)"

# One thread a worker: workers that each take all cores wait for one another.
test: venv-test
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -q -rs -n $(CORES) --durations=15 --durations-min=2

test-network: venv-test
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -q -rs -m network

test-browser: venv-test
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable ".[browser]"
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -q -rs -m browser tests/extensions/explorer tests/extensions/audit tests/extensions/first_page tests/extensions/applications

test-gpu: venv-test
	$(BIN)/python -m pytest -q -rs -m gpu tests/gpu

test-slurm: venv-test
	@command -v slurmctld slurmd munged >/dev/null || { \
	  [ "$$(id -u)" = 0 ] || { echo "error: no Slurm here, and only root can install one: sudo make test-slurm" >&2; exit 2; }; \
	  apt-get update --quiet && apt-get install --yes --quiet --no-install-recommends slurm-wlm munge; }
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -q -s -m slurm tests/slurm

torture: venv-test
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -q -s -m torture tests/end_to_end/test_torture.py --minutes $(MINUTES) --seed $(SEED)

pages: venv
	$(BIN)/vitcapr stage --markdown > docs/stages.md.new && mv docs/stages.md.new docs/stages.md
	$(BIN)/vitcapr config parameters > config/README.md.new && mv config/README.md.new config/README.md
	$(BIN)/vitcapr config schema > schema.new && mv schema.new workflow/schemas/config.schema.yaml
	$(BIN)/python -m benchmarks.results

docs: venv-docs
	$(BIN)/sphinx-build -q -W --keep-going -c docs . site
	@echo "Site: site/index.html"

lint: venv-test
	$(BIN)/snakemake --lint
	$(BIN)/snakefmt --check Snakefile rules workflow vitcapr
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports

# The studies of atlas, foils and the language model draw their own pictures: their pages have the commands.
gallery: demo venv-test
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable ".[browser]"
	$(BIN)/vitcapr explore results/demo
	MACHINE_PATH="$$PATH" $(BIN)/python -m benchmarks.gallery

bench: venv-test
	OMP_NUM_THREADS=1 $(BIN)/python -m benchmarks

bench-scale: venv-test
	OMP_NUM_THREADS=1 $(BIN)/python -m benchmarks.scale --record --sizes $(SIZES)

bench-peers: venv-test
	$(BIN)/python -m pip install --quiet --no-deps --upgrade --target .peers \
	  clip-benchmark==1.6.2 webdataset==1.0.2 braceexpand==0.1.7 clip-retrieval==2.45.0 pylance==14.0.2 \
	  lance-namespace==0.13.0 lance-namespace-urllib3-client==0.13.0 litdata==0.2.76 lightning-utilities==0.15.3 \
	  boto3==1.44.8 botocore==1.44.8 s3transfer==0.19.3 jmespath==1.1.0 obstore==0.12.1 tifffile==2026.3.3
	PYTHONPATH=.peers $(BIN)/python -m benchmarks.peers
	PYTHONPATH=.peers $(BIN)/python -m benchmarks.scale_peers

rehearsal: venv-test
	OMP_NUM_THREADS=1 $(BIN)/python -m benchmarks.rehearsal write rehearsal/coco
	VITCAPR_DATA=rehearsal $(BIN)/snakemake --cores $(CORES) --configfile experiments/coco-rehearsal.yaml
	$(BIN)/python -m benchmarks.rehearsal report results/coco-rehearsal

bench-gpu: venv-test
	$(BIN)/python -m benchmarks.gpu

bench-gpu-bundle: venv-test
	$(BIN)/python -m benchmarks.bundle

venv: $(VENV)/.installed
venv-test: $(VENV)/.installed-test
venv-docs: $(VENV)/.installed-docs

# The stamps are written last: an interrupted installation is taken up again.
$(VENV)/.installed: constraints.txt pyproject.toml
	@$(MAKE) --no-print-directory check-python check-disk
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt torch
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable .
	@touch $@

$(VENV)/.installed-test: $(VENV)/.installed
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable ".[test]"
	@touch $@

$(VENV)/.installed-docs: $(VENV)/.installed
	@$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable ".[docs]"
	@touch $@

check-python:
	@command -v $(PYTHON) >/dev/null || { \
	  echo "error: there is no $(PYTHON); install Python 3.11 or newer, or name one: make demo PYTHON=/path/to/python3" >&2; \
	  exit 2; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "error: $$($(PYTHON) --version) is too old; vitcapr needs 3.11 or newer: make demo PYTHON=/path/to/python3.11" >&2; \
	  exit 2; }

check-disk:
	@free=$$(df -Pk . | awk 'NR == 2 { print int($$4 / 1048576) }'); \
	if [ "$$free" -lt $(NEEDED_GB) ]; then \
	  echo "error: $$free GB are free on the disk of $(CURDIR) and $(NEEDED_GB) GB are needed; free some, or use a checkout on another disk" >&2; \
	  exit 2; \
	fi

clean-venv:
	rm -rf $(VENV)
