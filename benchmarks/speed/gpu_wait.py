"""How much of a core a process uses while it waits for a GPU: spinning, as CUDA does, and blocking, as our jobs do.

python benchmarks/speed/gpu_wait.py
"""

from __future__ import annotations

import json
import subprocess
import sys

from pyelmo.provenance import machine

MEASURE = """
import time, torch
matrix = torch.randn(8192, 8192, device="cuda")
torch.cuda.synchronize()
cpu, clock = time.process_time(), time.perf_counter()
for _ in range(5):
    for _ in range(20):
        product = matrix @ matrix
    torch.cuda.synchronize()
print((time.process_time() - cpu) / (time.perf_counter() - clock))
"""
BLOCK = "from pyelmo.experiments.jobs import sleep_in_gpu_waits; assert sleep_in_gpu_waits()\n"


def core_share(code: str) -> float:
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return round(float(run.stdout), 3)


if __name__ == "__main__":
    shares = {"spinning": core_share(MEASURE), "blocking": core_share(BLOCK + MEASURE)}
    print(json.dumps({"machine": machine(), "share_of_a_core": shares}, indent=1))
