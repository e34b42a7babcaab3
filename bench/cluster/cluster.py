"""Processes against one process, and what many would do.

  cluster.py [--program build/normscope] [--small] [--only NAME,…]   times, after checking that all print the same
  cluster.py --memory MODEL [--program …]                            peak memory of 1, 2 and 4 processes
  cluster.py --simulate [--program …]                                10, 100 and 1000 machines, from measured pieces

"2 x 1" is two processes of one thread each. Gain: time of the plain program over theirs, on a machine that does nothing else; "but
start" leaves out what mpirun takes to start two processes that have nothing to do. "By CPU" is what the gain
would be if both had a core of their own all the time: it can be told on a machine in use, too. Four minutes on two idle cores.

Simulated: pieces as measured on one thread, as many times as make 1000 hours, are handed out the largest first, as the program
does, to machines of 16 such threads; what is not in pieces (reading, putting together, writing) is done once, by all; and the
first process takes for each piece what it was measured to take in a job of two.
"""
import argparse
import array
import heapq
import json
import os
import pathlib
import random
import re
import subprocess
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
LM = "train lm --corpus grammar --tokenizer bytes"
TASKS = {  # name: (as measured, small)
    "heatmap": ("heatmap --n 3:60:2 --draws 200", "heatmap --n 3:30:3 --d 3:8 --draws 40"),
    "scan": ("scan {model} --text {text} --window 128 --samples 600", "scan {model} --text {text} --window 32 --samples 4"),
    "paper's collapse parts": ("paper --only wu5,wu7 --samples 1", "paper --only wu7 --samples 1 --seeds 1"),
    "train lm (4 runs)": (f"{LM} --context 128 --steps 300 --norm layernorm,center --seeds 2",
                         f"{LM} --context 64 --batch 4 --steps 40 --norm layernorm,center --seeds 2"),
    "train lm (1 run)": (f"{LM} --context 128 --dimension 64 --steps 120",
                        f"{LM} --context 64 --batch 8 --dimension 32 --steps 20"),
    "vocab": ("vocab {head}", "vocab {head}"),
}
ENVIRONMENT = {**os.environ, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
               "OMPI_MCA_rmaps_base_oversubscribe": "1", "OMPI_MCA_pml": "ob1", "OMPI_MCA_btl": "self,vader"}
HOURS, THREADS = 1000, 16  # of the simulation: on one thread, and of a machine


def timeless(text):
    return re.sub(r'"(seconds|ms_per_step|tokens_per_second)": ?[-+.e0-9]+', "", text)


def run(words, extra=None):
    """Seconds of the clock, of the processor, what was printed, and the largest process in MB."""
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        begin = time.monotonic()
        process = subprocess.Popen(words, env={**ENVIRONMENT, **(extra or {})}, stdout=out, stderr=err)
        _, status, usage = os.wait4(process.pid, 0)
        seconds = time.monotonic() - begin
        out.seek(0), err.seek(0)
        if status != 0:
            raise SystemExit(f"{' '.join(words)}\n{err.read()}")
        text = timeless(out.read())
    if not text.strip() and "--json" in words:
        raise SystemExit(f"{' '.join(words)}\nprinted nothing")  # nothing equals nothing, and says nothing
    return seconds, usage.ru_utime + usage.ru_stime, text, usage.ru_maxrss / 1024


def prepare(program, folder):
    """A model, a text and a vocabulary of this size, made here."""
    run([program, *LM.split(), "--steps", "4", "--context", "128", "--out", f"{folder}/lm", "--quiet"])
    (folder / "text.txt").write_text("The small dog looked at the cat that sat on the mat, and ran away. " * 1600)
    words, width = 20000, 26
    header = f"{{'descr': '<f4', 'fortran_order': False, 'shape': ({words}, {width}), }}".ljust(117) + "\n"
    drawn = random.Random(1)
    (folder / "head.npy").write_bytes(b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header.encode()
                                      + array.array("f", (drawn.gauss(0, 1) for _ in range(words * width))).tobytes())
    model = next((folder / "lm/models").iterdir())
    return {"model": str(model), "text": str(folder / "text.txt"), "head": str(folder / "head.npy")}


def launched(processes):
    return [] if processes == 0 else ["mpirun", "-n", str(processes)]


def measure(program, folder, places, small, only):
    nothing = [program, "heatmap", "--n", "3", "--d", "3", "--draws", "1", "--threads", "1", "--quiet"]
    start = min(run([*launched(2), *nothing])[0] for _ in range(3))
    print(f"{'':24} {'1':>8} {'mpirun 1':>9} {'2 x 1':>8} {'gain':>6} {'but start':>9} {'by CPU':>7}"
          f"   (two processes start in {start:.2f} s)")
    for name, versions in TASKS.items():
        if only and name not in only:
            continue
        words = versions[small].format(**places).split() + ["--threads", "1", "--json", "--quiet"]

        def timed(processes):
            times = folder / "times.json"
            times.unlink(missing_ok=True)
            out = ["--out", f"{folder}/{abs(hash((name, processes)))}"] if words[0] == "paper" else []
            watched = {"NORMSCOPE_PIECE_TIMES": str(times)} if processes > 1 else None
            seconds, cpu, text, _ = run([*launched(processes), program, *words, *out], watched)
            return seconds, cpu, text, json.loads(times.read_text())["bytes_sent"] if times.exists() else 0
        alone, one, two = timed(0), timed(1), timed(2)
        if not alone[2] == one[2] == two[2]:
            raise SystemExit(f"{name}: processes print otherwise")
        print(f"{name:24} {alone[0]:7.2f}s {one[0]:8.2f}s {two[0]:7.2f}s {alone[0] / two[0]:5.2f}x "
              f"{alone[0] / (two[0] - start):8.2f}x {2 * alone[1] / two[1]:6.2f}x   the first sent "
              f"{two[3] / 1e6:.1f} MB", flush=True)


def memory(program, folder, places, model):
    """Of each process, and of all together: proportional size, in which what they share counts once."""
    print(f"{'':12} {'processes':>9}  largest resident size of each, MB; largest proportional size of all together, MB")
    for name, words in {"scan": ["scan", model, "--text", places["text"], "--window", "48", "--samples", "2"],
                        "vocab": ["vocab", model, "--embeddings"]}.items():
        for processes in (1, 2, 4):
            with open(os.devnull, "w") as nowhere:
                job = subprocess.Popen([*launched(processes), program, *words, "--threads", "1", "--quiet"],
                                       env=ENVIRONMENT, stdout=nowhere)
                peaks, together = {}, 0
                while job.poll() is None:
                    now = 0
                    for entry in pathlib.Path("/proc").iterdir():
                        try:
                            if entry.name.isdigit() and os.path.samefile(entry / "exe", program):
                                status = (entry / "status").read_text()
                                peaks[entry.name] = int(re.search(r"VmHWM:\s+(\d+)", status)[1]) / 1024
                                rollup = (entry / "smaps_rollup").read_text()
                                now += int(re.search(r"\nPss:\s+(\d+)", rollup)[1]) / 1024
                        except (OSError, TypeError):
                            continue  # it has ended
                    together = max(together, now)
                    time.sleep(0.05)
                if job.returncode != 0:
                    raise SystemExit(f"{' '.join(words)} failed")
            print(f"{name:12} {processes:9}  {', '.join(f'{x:.0f}' for x in sorted(peaks.values()))}; {together:.0f}",
                  flush=True)


def handling(program, words, folder):
    """Seconds of the processor that the first process takes for a piece that another does: handed out, taken back and kept."""
    times = folder / "handling.json"
    run([*launched(2), program, *words, "--threads", "1", "--json", "--quiet", "--out", str(folder / f"job{abs(hash(tuple(words)))}")],
        {"NORMSCOPE_PIECE_TIMES": str(times)})
    carried = json.loads(times.read_text())["carried"]
    return carried["seconds"] / max(1, carried["pieces"])


def simulate(program, folder, places, small, only):
    print(f"{'':24} {'pieces':>7} {'longest':>8} {'not in pieces':>13} {'memory':>8} {'handling':>9}   {HOURS} hours of it on "
          f"10, 100, 1000 machines of {THREADS} threads: efficiency (time)")
    for name, versions in TASKS.items():
        if name.endswith("(1 run)") or only and name not in only:
            continue
        times = folder / "times.json"
        words = versions[small].format(**places).split()
        out = folder / f"sim{abs(hash(name))}"
        trained = words[0] == "train"  # whole runs are the pieces, in a job only
        seconds, _, _, megabytes = run([*launched(2 if trained else 0), program, *words, "--threads", "1", "--json", "--quiet",
                             "--out", str(out)], {"NORMSCOPE_PIECE_TIMES": str(times)})
        works = [work["seconds"] for work in json.loads(times.read_text())["works"] if work["seconds"]]
        pieces = sum(map(sum, works))
        each = handling(program, words, folder)
        serial = max(0.0, seconds - pieces / (2 if trained else 1))
        copies = round(HOURS * 3600 / pieces)
        shares = []
        for machines in (10, 100, 1000):
            total = serial
            for work in works:  # one after the other
                # So many copies of each piece, the largest first: whole rounds of all workers need no queue.
                free = [0.0] * (machines * THREADS)
                for piece in sorted(work, reverse=True):
                    rounds, rest = divmod(copies, len(free))
                    if rounds:
                        free = [time_ + rounds * piece for time_ in free]
                    for _ in range(rest):
                        heapq.heappush(free, heapq.heappop(free) + piece)
                total += max(max(free), each * copies * len(work))
            shares.append((copies * pieces / (machines * THREADS * total), total))
        print(f"{name:24} {sum(map(len, works)) * copies:7.0g} {max(map(max, works)):7.3f}s {serial:12.2f}s "
              f"{megabytes:5.0f} MB {1e6 * each:6.0f} µs   " + "  ".join(f"{100 * share:5.1f} % ({total / 60:.1f} min)" for share, total in shares),
              flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--program", default=str(ROOT / "build/normscope"))
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--simulate", action="store_true")
    parser.add_argument("--memory", metavar="MODEL")
    parser.add_argument("--only", default="")
    arguments = parser.parse_args()
    only = [name for name in arguments.only.split(",") if name]
    with tempfile.TemporaryDirectory() as place:
        folder = pathlib.Path(place)
        places = prepare(arguments.program, folder)
        if arguments.memory:
            memory(arguments.program, folder, places, arguments.memory)
        elif arguments.simulate:
            simulate(arguments.program, folder, places, arguments.small, only)
        else:
            measure(arguments.program, folder, places, arguments.small, only)


if __name__ == "__main__":
    main()
