"""The targets in Python, led by coverage with atheris (libFuzzer for Python): `PHALANX_FUZZ_TARGET` names one,
`PHALANX_FUZZ_STATISTICS` a file for counts. With a file as its argument it tries that input alone."""

import os
import sys
import time

import atheris

with atheris.instrument_imports(include=["phalanx"]):
    import environment
    import keywords

TARGETS = {"environment": environment.run, "keywords": keywords.run}
#: Seconds of the processor that an input may take.
LONGEST = 1.0
#: Inputs between two times that counts are written: libFuzzer ends a process without telling it.
EVERY = 10_000


def counted(target, file):
    """The same function, which counts inputs, those past the first check, those accepted, and the slowest in microseconds."""
    counts = [0, 0, 0, 0]

    def run(given):
        begin = time.process_time()
        reached = target(given)
        taken = time.process_time() - begin
        assert taken < LONGEST, f"took {taken:.1f} s"
        counts[0] += 1
        counts[1] += reached > 0
        counts[2] += reached > 1
        counts[3] = max(counts[3], int(1e6 * taken))
        if file and (counts[0] % EVERY == 0 or counts[0] & (counts[0] - 1) == 0):
            with open(file, "w") as out:
                out.write(" ".join(map(str, counts)))

    return run


if __name__ == "__main__":
    name = os.environ.get("PHALANX_FUZZ_TARGET", "")
    if name not in TARGETS:
        print(f"targets: {' '.join(TARGETS)}", file=sys.stderr)
        sys.exit(2)
    atheris.Setup(sys.argv, counted(TARGETS[name], os.environ.get("PHALANX_FUZZ_STATISTICS")))
    atheris.Fuzz()
