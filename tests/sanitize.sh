#!/usr/bin/env bash
# Run the tests of the C functions under AddressSanitizer and UndefinedBehaviorSanitizer (make sanitize).
#
# The library is compiled into a temporary copy of the package, so that the installed one stays as it is. Python itself
# is not instrumented; the runtime of the sanitizers is loaded before it, and its leaks are not of interest here.
set -euo pipefail
cd "$(dirname "$0")/.."
python=${PYTHON:-.venv/bin/python}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

cp -r src "$work/src"
suffix=$("$python" -c "import importlib.machinery as m; print(m.EXTENSION_SUFFIXES[0])")
rm -f "$work"/src/pyelmo/kernels/cpu/_cpu*.so
${CC:-gcc} -shared -fPIC -g -O1 -fno-omit-frame-pointer -fsanitize=address,undefined -fno-sanitize-recover=undefined \
    -fno-math-errno -fno-trapping-math -Wall -Wextra -Wno-psabi -Wno-ignored-attributes \
    src/pyelmo/kernels/cpu/cpu.c -o "$work/src/pyelmo/kernels/cpu/_cpu$suffix" -lm

LD_PRELOAD="$(${CC:-gcc} -print-file-name=libasan.so) $(${CC:-gcc} -print-file-name=libubsan.so)" \
ASAN_OPTIONS=detect_leaks=0:abort_on_error=1 UBSAN_OPTIONS=print_stacktrace=1:halt_on_error=1 \
PYTHONPATH="$work/src" OMP_NUM_THREADS=1 PYTHONMALLOC=malloc \
    "$python" -m pytest -q --capture=sys -p no:cacheprovider -m "not emulated" "${@:-tests/kernels/test_cpu.py}"
