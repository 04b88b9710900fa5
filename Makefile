# Targets only call tools. scripts/setup installs missing tools; if none is missing, it needs no network.
JOBS ?= $(shell nproc)
PREFIX ?= $(HOME)/.local
BUILD = cmake/progress cmake --build --preset release --parallel $(JOBS)
CPP = git ls-files '*.h' '*.cuh' '*.cpp'

.PHONY: help demo test install uninstall wheel python python-test parity bundle gpu-tests gate format lint check-format check-tree check-device check-trace tidy
.PHONY: configure program clean

help:
	@echo "make demo     build, then tell a story with the shipped model"
	@echo "make test     build, then run all tests"
	@echo "make install  the program, its manual pages and completion into PREFIX (default: ~/.local); make uninstall"
	@echo "make wheel    dist/heddle_tiles-*.whl: the Python package, for other machines, too"
	@echo "make python-test  build the module of the Python package (makes .venv), then run its tests"
	@echo "make parity   compare live with transformers and tokenizers (makes .venv)"
	@echo "make bundle   dist/heddle-bundle: runs on a Linux with only a C library"
	@echo "make gpu-tests the bundle with its tests for a GPU, to be carried to one"
	@echo "make check-trace  read traces with Perfetto's schema and in a browser"
	@echo "make gate     measure what is asked in seconds and compare it with bench/results"
	@echo "make format   write every source as the formatters want it"
	@echo "make lint     formatters, checks of tools/, device compiler, clang-tidy"

configure:
	scripts/setup build
	cmake --preset release $(CMAKE_ARGS)

program: configure
	$(BUILD) --target heddle

demo: program
	build/release/heddle generate models/storyteller --prompt "Once upon a time" --echo --max-tokens 600

install: program
	cmake --install build/release --component program --prefix $(PREFIX)
	@case ":$$PATH:" in *:$(PREFIX)/bin:*) ;; *) echo 'heddle is in $(PREFIX)/bin, which is not in PATH: export PATH="$(PREFIX)/bin:$$PATH"' ;; esac

# CMake writes down what it has installed. Folders stay: others may use them.
uninstall:
	@test -e build/release/install_manifest_program.txt || { echo "make uninstall: nothing was installed from here" >&2; exit 1; }
	xargs -d '\n' rm -fv < build/release/install_manifest_program.txt
	rm build/release/install_manifest_program.txt

wheel: program
	scripts/setup python
	scripts/wheel

# The module of Python comes last: .ci/run makes .venv while the rest is built.
test: configure
	$(BUILD)
	$(MAKE) --no-print-directory python
	$(BUILD)
	ctest --preset release --no-tests=error --parallel $(JOBS)

# The module of the Python package lies in build/release/python, beside links to the other files of the package.
python: configure
	scripts/setup python
	cmake --preset release -DHEDDLE_PYTHON=ON -DPython_EXECUTABLE=$(CURDIR)/.venv/bin/python $(CMAKE_ARGS)

python-test: python
	$(BUILD) --target _heddle
	ctest --preset release --no-tests=error -R '^python$$'

parity: program
	scripts/setup python
	$(BUILD) --target test_text layout_values
	scripts/parity $(PARITY)

bundle: program
	rm -rf dist/heddle-bundle
	cmake --install build/release --component bundle --prefix dist/heddle-bundle
	scripts/test_bundle dist/heddle-bundle

# The bundle with the tests that need a GPU, for a machine that has one. scripts/gpu_tests.py runs them on
# that machine.
gpu-tests: program
	$(BUILD) --target gpu_tests
	rm -rf dist/heddle-bundle
	cmake --install build/release --component bundle --prefix dist/heddle-bundle
	cmake --install build/release --strip --component gpu_tests --prefix dist/heddle-bundle

# Timings, which are not part of `make test`. bench/run.py writes the baseline of a kind of machine.
gate: configure
	$(BUILD) --target gate_rows
	python3 bench/run.py --compare

format:
	scripts/setup dev python
	$(CPP) | xargs clang-format-16 -i
	.venv/bin/ruff format
	.venv/bin/ruff check --fix

lint: check-format check-tree check-device check-trace tidy

check-format:
	scripts/setup dev python
	$(CPP) | xargs clang-format-16 --dry-run --Werror
	.venv/bin/ruff format --check
	.venv/bin/ruff check

check-tree:
	python3 tools/checks_test.py
	python3 bench/compare_test.py
	python3 tools/check_layers.py
	python3 tools/check_sizes.py
	python3 tools/check_clones.py
	python3 tools/check_cycles.py
	python3 tools/check_prose.py
	python3 tools/check_figures.py
	python3 tools/check_fields.py

check-device: program
	scripts/setup python
	scripts/check_device $(DEVICE)

# Checks traces with independent readers: Perfetto's schema, a browser.
check-trace: program
	scripts/setup python browser
	.venv/bin/python scripts/check_trace.py

tidy:
	scripts/setup build dev python
	scripts/tidy $(JOBS) $(TIDY)

clean:
	rm -rf build dist
