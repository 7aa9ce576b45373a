#!/usr/bin/env bash
# The default tests on builds of the compiled core with run-time checks:
#
#   bounds    every index of a memoryview or std::vector is checked;
#   sanitize  AddressSanitizer and UndefinedBehaviorSanitizer; every finding is fatal.
#
#   tools/check_native.sh [bounds|sanitize|all] [arguments of pytest]
#
# Each gets a fresh virtual environment and build folder, which are removed at the end
# (KEEP=folder keeps them there).  For Linux and GCC.
set -euo pipefail
cd "$(dirname "$0")/.."

which=${1:-all}
[ $# -gt 0 ] && shift
case $which in
    all) kinds="bounds sanitize" ;;
    bounds | sanitize) kinds=$which ;;
    *)
        echo "unknown check '$which'; expected bounds, sanitize or all" >&2
        exit 2
        ;;
esac

if [ -n "${KEEP:-}" ]; then
    mkdir -p "$KEEP"
    work=$(cd "$KEEP" && pwd)
else
    work=$(mktemp -d)
    trap 'rm -rf "$work"' EXIT
fi
# build KIND OPTION...: an environment with the package built in this way.
build() {
    local kind=$1 settings=() option
    shift
    for option in "$@"; do settings+=("--config-settings=setup-args=$option"); done
    rm -rf "${work:?}/$kind"
    python3 -m venv "$work/$kind/venv"
    # shellcheck disable=SC1091
    . "$work/$kind/venv/bin/activate"
    pip install -q "meson-python>=0.17" "meson>=1.4" ninja "cython>=3.3,<3.4" "numpy>=2.0"
    pip install -q --no-build-isolation --config-settings=build-dir="$work/$kind/build" "${settings[@]}" \
        ".[test]"
}

# run COMMAND...: in the environment of this build.
run() {
    env "${surroundings[@]}" "$@"
}

# check SIGN...: verify that the compiled modules call these checks, then run the tests.
check() {
    local sign
    cat "$work/$kind"/venv/lib/python3*/site-packages/skihmm/*/*.so >"$work/modules"
    for sign in "$@"; do
        if ! grep -q "$sign" "$work/modules"; then
            echo "this build does not check what it should: no $sign in it" >&2
            exit 1
        fi
    done
    # The output of a sanitizer before it ends the process must not be captured.
    run pytest -p no:cacheprovider --capture=sys "${arguments[@]}"
    deactivate
}

arguments=("$@")
for kind in $kinds; do
    echo "+ $kind: build"
    SECONDS=0
    surroundings=()
    if [ "$kind" = bounds ]; then
        build bounds -Dbounds_checks=true
        surroundings=("CXXFLAGS=-D_GLIBCXX_ASSERTIONS")
        signs="Out.of.bounds.on.buffer.access __glibcxx_assert_fail"
    else
        # Vectors annotate the used part of their memory.
        flags="-fno-sanitize-recover=all -fsanitize=float-cast-overflow"
        build sanitize -Db_sanitize=address,undefined -Db_lundef=false -Ddebug=true \
            -Doptimization=1 "-Dc_args=$flags" \
            "-Dcpp_args=$flags -D_GLIBCXX_SANITIZE_VECTOR=1"
        # Python itself is not instrumented: the runtime has to be loaded first, with
        # libstdc++, or exceptions cannot be caught.  Python's own allocator would hide the
        # ends of objects; leaks at its exit are not those of this package.
        surroundings=(
            "LD_PRELOAD=$(gcc -print-file-name=libasan.so) $(gcc -print-file-name=libstdc++.so)"
            "ASAN_OPTIONS=detect_leaks=0:detect_stack_use_after_return=1"
            "UBSAN_OPTIONS=print_stacktrace=1"
            "PYTHONMALLOC=malloc"
            "CXXFLAGS=-fsanitize=address,undefined $flags -D_GLIBCXX_SANITIZE_VECTOR=1"
        )
        signs="__asan_report_load8 __sanitizer_annotate_contiguous_container
            __ubsan_handle_add_overflow_abort __ubsan_handle_float_cast_overflow_abort"
    fi
    built=$SECONDS
    echo "+ $kind: tests"
    # shellcheck disable=SC2086
    check $signs
    echo "+ $kind: passed; $built s to build, $((SECONDS - built)) s to test"
done
