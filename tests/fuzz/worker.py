"""The process that tries mutated files. It reads one request (JSON) a line from stdin, and answers on its old stdout.

A trial copies a variant of a format's sample, changes one of its files, reads the copy by the library and by the
command, and says how each ended: accepted, refused, foreign (another exception than pyelmo's), traceback (from the
command), memory. A crash or a hang ends the process, which the parent sees. An audit hook records programs that are
started, files that are written outside the folder of the campaign, and connections.
"""

from __future__ import annotations

import faulthandler
import functools
import json
import os
import platform
import resource
import shutil
import sys
import traceback
import warnings
from pathlib import Path
from random import Random
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from fuzz.formats import Format, formats, make_shared
from fuzz.mutations import mutate

MEMORY = 2 << 30
STARTS = ("os.system", "os.exec", "os.posix_spawn", "os.fork", "os.forkpty", "os.spawn", "pty.spawn", "subprocess.Popen",
          "socket.connect", "socket.bind", "urllib.Request")  # fmt: skip
CHANGES = ("os.remove", "os.rename", "os.rmdir", "os.mkdir", "os.link", "os.symlink", "os.truncate", "shutil.rmtree")


class Guard:
    """An audit hook; `events` are those that a reader of files must not cause."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.events, self.active = str(folder), [], False
        sys.addaudithook(self._see)

    def _see(self, event: str, arguments: tuple[Any, ...]) -> None:
        if not self.active:
            return
        if event == "open":
            path, mode, flags = arguments
            writes = flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT) if isinstance(flags, int) else False
            if writes and not self._inside(path):
                self.events.append(f"open {path} {mode}")
        elif event in CHANGES:
            if not self._inside(arguments[0]):
                self.events.append(f"{event} {arguments[0]}")
        elif event == "ctypes.dlopen":  # a name without a folder is looked for among the system's libraries
            if "/" in str(arguments[0]) and self._inside(arguments[0], True):
                self.events.append(f"{event} {arguments[0]}")
        elif event in STARTS:
            self.events.append(f"{event} {str(arguments)[:200]}")

    def _inside(self, path: Any, only: bool = False) -> bool:
        if isinstance(path, bytes):
            path = os.fsdecode(path)
        if isinstance(path, int) or path is None:
            return not only
        path = os.path.abspath(os.fspath(path))
        return path.startswith(self.folder) or (not only and path in ("/dev/null", "/proc/self/clear_refs"))


def _peak() -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM"):
            return int(line.split()[1]) << 10
    return 0


def _reset_peak() -> None:
    Path("/proc/self/clear_refs").write_text("5")


class Worker:
    """Samples and trials below one folder."""

    def __init__(self, root: Path) -> None:
        self.root, self.formats, self.guard = root, formats(), Guard(root)
        self.out, self.err = root / "stdout", root / "stderr"
        for number, path in ((1, self.out), (2, self.err)):
            os.dup2(os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND), number)
        faulthandler.enable(open(root / "fault", "w"))  # noqa: SIM115
        if not (root / "shared").exists():
            make_shared(root / "shared")

    def sample(self, format: Format) -> Path:
        folder = self.root / "samples" / format.name
        if not folder.exists():
            folder.parent.mkdir(exist_ok=True)
            for name in format.needs:
                self.sample(self.formats[name])
            try:
                format.make(folder, self.root / "shared")
            except BaseException:
                shutil.rmtree(folder, ignore_errors=True)
                raise
        return folder

    def trial(self, name: str, index: int, seed: int) -> dict[str, Any]:
        format = self.formats[name]
        random = Random(f"{seed} {name} {index}")
        variant = random.choice(sorted(self.sample(format).iterdir()))
        trial = self.root / "trial"
        shutil.rmtree(trial, ignore_errors=True)
        folder = trial / variant.name
        files = [path.relative_to(variant) for path in sorted(variant.glob(format.files)) if path.is_file()]
        chosen = random.choice(files)
        self._copy(variant, folder, chosen, format)
        result: dict[str, Any] = {"file": f"{variant.name}/{chosen}", "mutation": mutate(folder / chosen, random)}
        if format.forge and (folder / chosen).is_file() and random.random() < 0.6:
            try:
                format.forge(folder)
                result["mutation"] += ", checksums written again"
            except Exception:
                pass  # the file with the checksums is itself damaged
        if format.writes:
            shutil.copytree(folder, trial / "copy", symlinks=True, copy_function=_copy_any)
        command = random.choice(format.commands(folder, self.root / "shared"))
        result["command"] = command
        result["library"] = self._watch(result, self._library, format, folder)
        if format.writes:
            shutil.rmtree(folder)
            (trial / "copy").rename(folder)
        result["line"] = self._watch(result, self._command, command, result)
        return result

    def check(self, name: str) -> dict[str, Any]:
        """Read every unchanged variant by the library and by every command, and return what was not accepted."""
        format, trial, failed = self.formats[name], self.root / "trial", {}
        for variant in sorted(self.sample(format).iterdir()):
            folder = trial / variant.name
            shutil.rmtree(trial, ignore_errors=True)
            shutil.copytree(variant, folder)
            for number, command in enumerate([[], *format.commands(folder, self.root / "shared")]):
                shutil.rmtree(trial, ignore_errors=True)
                shutil.copytree(variant, folder)
                result: dict[str, Any] = {}
                call = (self._command, command, result) if command else (self._library, format, folder)
                outcome = self._watch(result, *call)
                if outcome != "accepted":
                    failed[f"{variant.name} {number}"] = [
                        outcome,
                        " ".join(command),
                        *result.get("events", []),
                        self.err.read_text("utf-8", "replace")[-300:],
                        *FOREIGN,
                    ]
                    FOREIGN.clear()
        return {"failed": failed}

    def _copy(self, variant: Path, folder: Path, chosen: Path, format: Format) -> None:
        copy = shutil.copy2 if format.writes or format.forge else os.link
        shutil.copytree(variant, folder, copy_function=copy)
        if copy is os.link:
            (folder / chosen).unlink()
            shutil.copy2(variant / chosen, folder / chosen)

    def _watch(self, result: dict[str, Any], call: Any, *arguments: Any) -> str:
        """Run a call, and look at memory and at what the audit hook saw."""
        _reset_peak()
        self.guard.events.clear()
        self.guard.active = True
        try:
            outcome = call(*arguments)
        finally:
            self.guard.active = False
        result["peak"] = max(result.get("peak", 0), _peak())
        if self.guard.events:
            result["events"] = self.guard.events[:5]
            return "executed"
        return "memory" if _peak() > MEMORY else outcome

    def _library(self, format: Format, folder: Path) -> str:
        from pyelmo.errors import PyelmoError

        try:
            format.read(folder)
        except PyelmoError as error:
            return "refused" if len(str(error)) < 100_000 else "foreign"
        except BaseException as error:
            return _foreign(error)
        return "accepted"

    def _command(self, command: list[str], result: dict[str, Any]) -> str:
        from pyelmo import cli

        for number in (1, 2):
            os.ftruncate(number, 0)
        try:
            status = cli.main(command)
        except SystemExit as stop:
            status = stop.code
        except BaseException as error:
            return _foreign(error, "traceback")
        sys.stdout.flush()
        sys.stderr.flush()
        text = self.err.read_text("utf-8", "replace")
        if "Traceback (most recent" in text or "a bug in pyelmo" in text or status not in (0, 1):
            result["traceback"] = f"status {status}: {text[-2000:]}"
            return "traceback"
        if "elmo: out of memory" in text:
            return "memory"
        return "accepted" if status == 0 else "refused"


FOREIGN: list[str] = []


def _foreign(error: BaseException, kind: str = "foreign") -> str:
    FOREIGN.append("".join(traceback.format_exception(error))[-3000:])
    if isinstance(error, MemoryError) or "can't allocate memory" in str(error):
        return "memory"
    return kind


def _copy_any(source: str, target: str) -> None:
    """Copy what is no ordinary file either."""
    if Path(source).is_fifo() and not Path(source).is_symlink():
        os.mkfifo(target)
    else:
        shutil.copy2(source, target, follow_symlinks=False)


def main() -> None:
    root = Path(sys.argv[1])
    answers = os.fdopen(os.dup(1), "w")
    requests = os.fdopen(os.dup(0), "r")
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    warnings.simplefilter("ignore")
    platform.processor()  # starts `uname` once, which the audit hook would take for the reader's doing
    import torch

    from pyelmo import cli

    torch.set_num_threads(1)
    cli.build_parser = functools.cache(cli.build_parser)
    worker = Worker(root)
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    limit = pages * resource.getpagesize() + 3 * MEMORY  # so that no reader fills the machine's memory
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    for line in requests:
        request = json.loads(line)
        FOREIGN.clear()
        if "index" in request:
            result = worker.trial(**request)
        else:
            result = (
                worker.check(request["name"])
                if request.get("check")
                else {"made": str(worker.sample(worker.formats[request["name"]]))}
            )
        if FOREIGN:
            result["foreign"] = FOREIGN[0]
        answers.write(json.dumps(result) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()
