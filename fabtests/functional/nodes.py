# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Programs that do as they are told on simulated nodes, and lnxctl beside them: what
check-stats and check-live share."""

import json
import os
import subprocess
import sys

import lnxctl as base

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
LAB = [os.path.join(TOP, "contrib", "lab", "lab"), "--name", "cs%d" % os.getpid()]


def lab(*args):
    subprocess.run(LAB + [str(a) for a in args], check=True, stdout=subprocess.DEVNULL)


def beside(pid):
    """What comes before a command, so that it runs where this process does: "lab exec" takes
    longer than lnxctl."""
    return ["nsenter", "-t", str(pid), "-n", "-u", "-m", "-r", "-w"]


class Node(base.Talk):
    """A program on a node of the lab."""

    def __init__(self, number, link, **env):
        self.number = number
        self.on = LAB + ["exec", str(number), "--"]
        super().__init__(link, "", before=self.on, **env)
        self.on = beside(self.p.pid)

    def show(self, *args):
        """What lnxctl says of it, as JSON."""
        out = base.run("-p", self.pid, *args, "--json", prefix=self.on, wait=True)
        return json.loads(out) if out.strip() else {}

    def ask(self, *args):
        base.run("-p", self.pid, *args, prefix=self.on, wait=True)

    def rails(self):
        nets = self.show("net", "show", "-v", 4)["net"]
        return {r["lnx"]["rail"]: r for n in nets for r in n["local NI(s)"]}

    def interfaces(self):
        """Bytes that each rail of the node has received and sent, as its kernel counts."""
        out = {}
        with open("/proc/%d/net/dev" % self.p.pid, encoding="ascii") as f:
            for line in f:
                name, _, rest = line.strip().partition(":")
                if name.startswith("rail"):
                    v = rest.split()
                    out[name] = (int(v[0]), int(v[8]))
        return out


def main(name, program, cases, up):
    """Run the cases of these names, all without a name, in a lab of their own."""
    if os.geteuid():
        print(name + ": skipped: network namespaces need root")
        return 77
    if not os.access(program, os.X_OK):
        print(name + ": skipped: built without libfabric")
        return 77
    failed = 0
    if subprocess.run(LAB + ["up", *up, "--while", str(os.getpid())],
                      stdout=subprocess.DEVNULL).returncode:
        print(name + ": skipped: no lab can be made here")
        return 77
    try:
        for case in sys.argv[1:] or list(cases):
            try:
                cases[case]()
                print("ok - " + case)
            except base.Skipped as e:
                print("ok - %s: skipped: %s" % (case, e))
            except (base.Failed, subprocess.TimeoutExpired, BrokenPipeError) as e:
                print("FAILED: %s: %s" % (case, e))
                failed += 1
            finally:
                for t in list(base.all_talks):
                    t.end()
            sys.stdout.flush()
    finally:
        subprocess.run(LAB + ["down"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return failed != 0
