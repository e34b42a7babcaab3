"""Kills a random process of a job again and again, goes on, and holds the result against that of one process.

  kill.py --program build/normscope [--rounds 50] [--only paper,lm] [--seed 1] [--mpirun mpirun]

A round begins a job of one to four processes, kills one of them at a random time with SIGKILL, which ends the others, perhaps
damages a file of finished pieces, and goes on with another number of processes, which may be killed again, until one
gets to the end. Then every file of the run is what the plain program has written, but for what a clock says.
"""
import argparse
import os
import pathlib
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

RUNS = {  # name: (command, file that says that there is something to go on with)
    "paper": ("paper --only fig2,wu9 --seeds 2 --steps 20 --samples 1", "config.json"),
    # Three runs: with two processes one of them is shared out.
    "lm": ("train lm --corpus grammar --tokenizer bytes --context 64 --batch 8 --layers 2 --dimension 16 --steps 30 "
           "--evaluate-every 3 --checkpoint-every 3 --norm layernorm,center,none", "config.json"),
    "heatmap": ("heatmap --n 3:40:4 --d 3:10:2 --draws 800", "pieces/plan.json"),
}
ENVIRONMENT = {**os.environ, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
               "OMPI_MCA_rmaps_base_oversubscribe": "1", "OMPI_MCA_pml": "ob1", "OMPI_MCA_btl": "self,vader",
               # Otherwise mpirun may wait for ever for a lock that a process held which was killed while it started.
               "PMIX_MCA_gds": "hash"}
# What a clock says. Of a rate null: the run was killed after its last step, and who goes on has none to do.
CLOCK = re.compile(r'("seconds": ?)[-+.e0-9]+|("(?:ms_per_step|tokens_per_second)": ?)(?:[-+.e0-9]+|null)')


def files_of(directory):
    files = {}
    for path in sorted(directory.rglob("*")):
        if path.is_file():  # pages show times in words
            text = "" if path.suffix == ".html" else path.read_bytes().decode("latin-1")
            files[str(path.relative_to(directory))] = CLOCK.sub(r"\1\2", text)
    return files


def first_difference(found, expected):
    at = next((i for i, (a, b) in enumerate(zip(found, expected)) if a != b), min(len(found), len(expected)))
    return f"at {at}: {found[max(0, at - 60):at + 60]!r} in the place of {expected[max(0, at - 60):at + 60]!r}"


def processes_of(launcher, program):
    """Those of the job: below the launcher, and running the program."""
    parents = {}
    for entry in pathlib.Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            parents[int(entry.name)] = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
        except OSError:
            continue  # it has ended
    found = []
    for pid in parents:
        above = pid
        while above in parents and above != launcher:
            above = parents[above]
        try:
            if above == launcher and os.path.samefile(f"/proc/{pid}/exe", program):
                found.append(pid)
        except OSError:
            continue
    return sorted(found)


class Rounds:
    def __init__(self, arguments, folder):
        self.program, self.mpirun, self.folder = os.path.abspath(arguments.program), arguments.mpirun, folder
        self.random = random.Random(arguments.seed)
        self.kills = self.damaged = self.launchers = 0

    def start(self, processes, words, log):
        launch = [self.mpirun, "-n", str(processes), self.program] if processes > 1 else [self.program]
        return subprocess.Popen([*launch, *words, "--threads", "1", "--quiet"], env=ENVIRONMENT, cwd=self.folder,
                                stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def damage(self, run):
        """A bit of a random file of pieces is flipped, or the file is cut off."""
        files = sorted(run.glob("pieces/*.pieces"))
        if not files or self.random.random() < 0.5:
            return
        file = self.random.choice(files)
        content = bytearray(file.read_bytes())
        at = self.random.randrange(len(content))
        if self.random.random() < 0.5:
            content[at] ^= 1 << self.random.randrange(8)
        else:
            del content[at:]
        file.write_bytes(content)
        self.damaged += 1

    def end_of(self, job, name):
        """A launcher that does not end by itself is ended and counted."""
        seen = begin = time.monotonic()
        while job.poll() is None:
            time.sleep(0.05)
            now = time.monotonic()
            seen = now if processes_of(job.pid, self.program) else seen
            if now - seen > 20:
                job.kill()
                self.launchers += 1
            if now - begin > 600:
                job.kill()
                raise SystemExit(f"{name}: the others went on without the process that was killed")
        return job.returncode

    def one(self, name, command, kept, expected, seconds):
        run = self.folder / "run"
        shutil.rmtree(run, ignore_errors=True)
        for attempt in range(20):
            resumes = (run / kept).exists()
            words = [*command.split()[:2 if command.startswith("train") else 1], "--resume", str(run)] if resumes \
                else [*command.split(), "--out", str(run)]
            with open(self.folder / "log", "w+") as log:
                job = self.start(self.random.randint(1, 4), words, log)
                killed = False
                if attempt < 3:  # then it may get to its end
                    # First soon after there is something to go on with, then at any time.
                    wait = self.random.uniform(0, 0.3 if attempt == 0 else 1) * seconds
                    end = None if attempt == 0 else time.monotonic() + wait
                    while job.poll() is None and (end is None or time.monotonic() < end):
                        time.sleep(0.01)
                        if end is None and (run / kept).exists():
                            end = time.monotonic() + wait
                    processes = processes_of(job.pid, self.program)
                    if job.poll() is None and processes:
                        os.kill(self.random.choice(processes), signal.SIGKILL)
                        killed = True
                        self.kills += 1
                code = self.end_of(job, name)
                log.seek(0)
                if code == 0:
                    break
                if not killed:
                    raise SystemExit(f"{name}, {words}: ended with {code}\n{log.read()}")
            self.damage(run)
        found = files_of(run)
        if found != expected:
            different = sorted(set(found) ^ set(expected)) + [
                f"{x} ({first_difference(found[x], expected[x])})" for x in found if found[x] != expected.get(x, found[x])]
            raise SystemExit(f"{name}: other files than those of one process: {', '.join(different)}")

    def run(self, name, rounds):
        command, kept = RUNS[name]
        begin = time.monotonic()
        with open(self.folder / "log", "w+") as log:
            if self.start(1, [*command.split(), "--out", str(self.folder / "expected")], log).wait() != 0:
                log.seek(0)
                raise SystemExit(log.read())
        seconds = time.monotonic() - begin
        expected = files_of(self.folder / "expected")
        shutil.rmtree(self.folder / "expected")
        self.kills = self.damaged = self.launchers = 0
        for _ in range(rounds):
            self.one(name, command, kept, expected, seconds)
        print(f"{name}: {rounds} rounds, {self.kills} processes killed, {self.damaged} files damaged, "
              f"{self.launchers} launchers that did not end, "
              f"{len(expected)} files the same each time", flush=True)
        return self.kills


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--program", required=True)
    parser.add_argument("--mpirun", default="mpirun")
    parser.add_argument("--rounds", type=int, default=50)
    parser.add_argument("--only", default="paper,lm,heatmap")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        rounds = Rounds(arguments, pathlib.Path(place).resolve())
        kills = sum(rounds.run(name, arguments.rounds) for name in arguments.only.split(","))
    if kills == 0:
        sys.exit("Nothing was killed: every run had ended before.")


if __name__ == "__main__":
    main()
