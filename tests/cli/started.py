"""Commands and scripts in processes of their own, forked from a server that has loaded netdp once.

Starting Python and loading numpy, scipy and grpc costs more than the whole life of a peer. What is asked of such a process
is what `subprocess.Popen` answers: its output, its status, signals by its id.
"""

import multiprocessing
import os
import subprocess
import sys
import threading

from netdp.peers.launch import PRELOADED


def enter(words, folder, out, err, script):
    """The life of such a process."""
    for end, number in ((out, 1), (err, 2)):
        os.dup2(end.fileno(), number)
        end.close()
    sys.stdout = open(1, "w", encoding="utf-8", buffering=1, closefd=False)  # noqa: SIM115  until the end
    sys.stderr = open(2, "w", encoding="utf-8", buffering=1, closefd=False)  # noqa: SIM115
    os.chdir(folder)
    sys.argv = ["netdp", *words]
    if script is not None:
        exec(script, {"__name__": "script"})
        return
    from netdp.cli import main

    main()


class Started:
    """As much of `subprocess.Popen` as tests use; with a script instead of a command of netdp, that is run."""

    def __init__(self, words, folder=".", script=None):
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload([*PRELOADED, "netdp.cli"])
        (out, out_end), (err, err_end) = context.Pipe(duplex=False), context.Pipe(duplex=False)
        given = list(map(str, words)), str(folder), out_end, err_end, script
        self._process = context.Process(target=enter, args=given, daemon=True)
        self._process.start()
        for end in (out_end, err_end):
            end.close()
        self.stdout, self.stderr = (os.fdopen(os.dup(end.fileno()), encoding="utf-8") for end in (out, err))
        for end in (out, err):
            end.close()
        self.pid = self._process.pid

    @property
    def returncode(self):
        return self._process.exitcode

    def poll(self):
        return self._process.exitcode

    def send_signal(self, number):
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self):
        self._process.kill()

    def communicate(self, timeout=None):
        """What it still says, when it has ended."""
        said = {}
        readers = [
            threading.Thread(target=lambda name=name: said.update({name: getattr(self, name).read()}), daemon=True)
            for name in ("stdout", "stderr")
            if not getattr(self, name).closed
        ]
        for reader in readers:
            reader.start()
        self._process.join(timeout)
        if self._process.exitcode is None:
            raise subprocess.TimeoutExpired("netdp", timeout)
        for reader in readers:
            reader.join()
        self.stdout.close()
        self.stderr.close()
        return said.get("stdout", ""), said.get("stderr", "")
