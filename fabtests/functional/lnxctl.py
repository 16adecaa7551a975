#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""For "make check": lnxctl and real processes.

Processes over loopback do as they are told and say what they counted (talk.c); lnxctl
has to say the same of them, live, silent and killed, and change what it is asked to.
Needs nothing but Python; python3-yaml, python3-prometheus-client, tmux and root make it check
more.  Random parts
print their seed and take LNX_SEED.

  lnxctl.py [NAME...]     only the cases of these names
"""

import errno
import fcntl
import json
import os
import random
import re
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import time

BUILD = os.environ.get("top_builddir", os.getcwd())
SO = os.environ.get("LNX_SO", os.path.join(BUILD, ".libs", "liblnx-fi.so"))
TALK = os.path.join(BUILD, "fabtests", "functional", "talk")
LNXCTL = os.path.join(BUILD, "lnxctl")
RULES_API = os.path.join(BUILD, "fabtests", "functional", "rules_api")
OK, REFUSED, USAGE, PARTLY, NO_ANSWER = range(5)
SHM = "/dev/shm/lnx-%d" % os.geteuid()
HANGS_S = 60            # no limit for anything that works

try:
    import yaml
except ImportError:
    yaml = None
try:
    from prometheus_client.openmetrics.parser import text_string_to_metric_families
except ImportError:
    text_string_to_metric_families = None


class Failed(Exception):
    pass


def need(cond, *why):
    if not cond:
        raise Failed(" ".join(str(w) for w in why))


def same(a, b, what):
    need(a == b, "%s: %r, not %r" % (what, a, b))


class Skipped(Exception):
    pass


# ---- processes -----------------------------------------------------------


def clean_env():
    return {k: v for k, v in os.environ.items()
            if not k.startswith(("FI_", "OMPI_MCA_"))}


class Talk:
    """A process with an endpoint."""

    def __init__(self, link, host, before=(), mode="", **env):
        self.env = dict(clean_env(), FI_PROVIDER_PATH="+" + SO,
                        FI_LNX_PROV_LINKS=link, FI_LNX_HOST_ID=host, **env)
        # What one case finds out about a rail is nothing for the next one.
        self.env.setdefault("FI_LNX_HEALTH_BOARD", "0")
        # It would also hide the provider that ofi_rxm needs.
        if "ofi_rxm" not in link:
            self.env["FI_PROVIDER"] = "lnx"
        self.p = subprocess.Popen(
            list(before) + [TALK, "-p", "lnx", "-n", "1", "-S", "1"] +
            (["-m", mode] if mode else []),
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=self.env)
        all_talks.append(self)
        self.asked = "open"
        self.more = False       # it has a second endpoint
        self.spins = False      # all make progress while nothing is asked of it
        line = self.answer(check=False)
        if self.p.poll() == 77:
            raise Skipped("no " + link + " here: " + line)
        need(line == "ok open", link, "does not open:", line)
        self.pid = int(self.do("pid"))

    def tell(self, line):
        self.asked = line
        word = line.split()[0]
        if word in ("more", "less"):
            self.more = word == "more"
        if word in ("spin", "still", "more"):
            self.spins = line == "spin more" or (word == "spin" and not self.more)
        self.p.stdin.write(line + "\n")
        self.p.stdin.flush()

    def answer(self, check=True):
        # Far longer than anything that works, and shorter than fabtests/watched waits: it says
        # which process hangs, and in what.
        signal.signal(signal.SIGALRM, self.hangs)
        signal.alarm(10 * HANGS_S)
        line = self.p.stdout.readline().strip()
        signal.alarm(0)
        if check:
            need(line.startswith("ok"), "process", self.p.pid, "says:", line)
            line = line[3:]
        return line

    def hangs(self, *_):
        raise Failed("process %d does not answer \"%s\"" % (self.p.pid, self.asked))

    def do(self, line):
        self.tell(line)
        return self.answer()

    def counts(self):
        """messages and bytes sent, messages and bytes received"""
        return [int(v) for v in self.do("counts").split()]

    def end(self):
        if self.p.poll() is None:
            self.p.kill()
        self.p.wait()
        all_talks.remove(self)
        self.p.stdout.close()
        try:
            self.p.stdin.close()
        except BrokenPipeError:     # it ended with a line on its way
            pass

    def quit(self):
        self.do("quit")
        self.p.wait(HANGS_S)
        self.end()


all_talks = []


def segment_of(t):
    """The name of its segment.  One that was killed before may have had its number, too, and
    have left an older one."""
    return max((n for n in os.listdir(SHM) if n.startswith("%d." % t.pid)),
               key=lambda n: int(n.split(".")[1]))


def pair(link="shm+tcp:lo", hosts=("a", "b"), **env):
    """Two that know each other.  With two host names they are on two nodes."""
    a, b = Talk(link, hosts[0], **env), Talk(link, hosts[1], **env)
    names = a.do("name"), b.do("name")
    a.do("know " + names[1])
    b.do("know " + names[0])
    return a, b


def send(a, b, n, size):
    b.tell("recv %d %d" % (n, size))
    a.do("send 0 %d %d" % (n, size))
    b.answer()


# ---- lnxctl --------------------------------------------------------------


THEN = "this is its state of then"


def all_spin(args):
    """Do all that lnxctl is asked about make progress?"""
    args = [str(a) for a in args]
    asked = [t for t in all_talks if str(t.pid) in args] or all_talks
    return all(t.spins for t in asked)


def run(*args, status=OK, env=None, prefix=(), wait=False, silent=False):
    """Standard output.  The status has to be that one.  wait: for processes that make
    progress, however busy this machine is; silent: for one that makes none."""
    for longer in ([], ["--wait", str(HANGS_S * 500)])[wait:]:
        p = subprocess.run(list(prefix) + [LNXCTL] + longer + [str(a) for a in args],
                           stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                           env=env or clean_env(), timeout=HANGS_S)
        if status != OK or (p.returncode != NO_ANSWER and (
                silent or THEN not in p.stdout or not all_spin(args))):
            break
    need(p.returncode == status, "lnxctl", *args, "ends with %d, not %d:" %
         (p.returncode, status), p.stderr or p.stdout)
    if status in (REFUSED, NO_ANSWER) and "check" not in args and (
            "--json" in args or "--yaml" in args):
        run.error = (json.loads if "--json" in args else yaml.safe_load)(p.stderr)
    elif status not in (OK, PARTLY) and "check" not in args:
        need(p.stderr.startswith("lnxctl: "), "lnxctl", *args, "does not say why")
    run.said = p.stderr
    return p.stdout


def show(t, *args, **kw):
    """What a command prints of a process, as JSON; as YAML, which is the same, and as tables,
    in which nothing is missing."""
    at = ["-p", t.pid] if isinstance(t, Talk) else []
    for last in [False] * 4 + [True]:
        doc = json.loads(run(*at, *args, "--json", **kw))
        text = run(*at, *args, **kw)
        need(text.strip(), args, "prints nothing")
        table = run(*at, *args, "--table", **kw)
        lost = [v for v in leaves(shape(ours(doc))) if str(v) not in table]
        if not lost and (not yaml or shape(ours(yaml.safe_load(text))) == shape(ours(doc))):
            break
        # An acknowledgement may have come in between.
        if last:
            same(lost, [], "not in the table of " + " ".join(map(str, args)))
            same(shape(ours(yaml.safe_load(text))), shape(ours(doc)), "YAML of " +
                 " ".join(map(str, args)))
    return doc


def leaves(doc):
    """All values in it."""
    if isinstance(doc, (dict, list)):
        for v in doc.values() if isinstance(doc, dict) else doc:
            yield from leaves(v)
    else:
        yield doc


def ours(doc):
    """Without processes that others start and end meanwhile."""
    if not isinstance(doc.get("process"), list):
        return doc
    pids = {t.pid for t in all_talks}
    return dict(doc, process=[p for p in doc["process"] if p["pid"] in pids])


VOLATILE = re.compile("_ms$|_us$|age|last|since|seen|port|^state$|in use|progress|receive buffers")


def shape(doc):
    """Without what changes from one moment to the next."""
    if isinstance(doc, dict):
        return {str(k): shape(v) for k, v in doc.items() if not VOLATILE.search(str(k))}
    if isinstance(doc, list):
        return [shape(v) for v in doc]
    return doc


def until(what, cond):
    """Something that a process does in one of its next passes; what cond found."""
    end = time.monotonic() + HANGS_S
    while not (found := cond()):
        need(time.monotonic() < end, what)
        time.sleep(0.02)
    return found


def rails(t, **kw):
    """The statistics of each rail, by its name."""
    nets = show(t, "net", "show", "-v", 4, **kw)["net"]
    return {r["lnx"]["rail"]: r for n in nets for r in n["local NI(s)"]}


def stat_of(r):
    s = r["statistics"]
    return [s["send_count"], s["send_length"], s["recv_count"], s["recv_length"]]


# ---- cases ---------------------------------------------------------------


def counted(link, hosts, rail):
    """lnxctl and the programs agree."""
    a, b = pair(link, hosts)
    for t in a, b:
        t.do("spin")
    for n, size in (100, 8), (7, 4096), (20, 16321), (3, 1000000):
        send(a, b, n, size)
        send(b, a, n + 1, size)
    for t in a, b:
        own = t.counts()
        all_rails = rails(t, wait=True)
        same(stat_of(all_rails[rail]), own, "statistics of " + rail)
        for name, r in all_rails.items():
            need(name == rail or stat_of(r) == [0, 0, 0, 0], name, "is used too")
        total = show(t, "stats", "show", wait=True)["statistics"]
        same([total[k] for k in ("send_count", "send_length", "recv_count",
                                 "recv_length")], own, "stats show")
        info = show(t, "info")
        same(info["info"]["pid"], t.pid, "pid")
        same(info["info"]["file"], os.path.realpath(SO), "the file that is loaded")
        params = info["endpoint info"]["parameters"]
        same(params["prov_links"], link + " (environment)", "a parameter that is set")
        need("window" not in params, "a parameter that is as by default")
        same(info["endpoint info"]["link"], link, "link")
        need(rail in info["endpoint info"]["rails"], "rails of info")
    peers = show(a, "peer", "show", "-v", 4)["peer"]
    same(len(peers), 1, "peers")
    own_id = show(b, "info")["endpoint info"]["id"]
    same(peers[0]["lnx"]["id"], own_id, "id of the peer")
    return a, b, peers[0]


def case_counts_network():
    a, b, peer = counted("shm+tcp:lo", ("a", "b"), "tcp:lo")
    same(peer["lnx"]["way"], "framed", "way")
    same(len(peer["peer ni"]), 1, "peer NIs")
    path, = show(a, "path", "show", "-v", 2)["path"]
    same(path["state"], "up", "state of the path")
    same(path["current"], True, "current")
    need(path["sent_bytes"] > a.counts()[0] * 64, "headers count in path show")
    same(path["sent_bytes"], path["delivered_bytes"], "delivered")
    before = path.get("latency of answers", {"samples": 0})["samples"]
    for _ in range(3):
        time.sleep(0.2)
        send(a, b, 5, 8)
    path, = show(a, "path", "show", "-v", 2)["path"]
    took = path.get("latency of answers", {"samples": 0})
    need(took["samples"] >= before + 2, "acknowledgements that are timed:", before, took)
    need(0 < took["min_us"] <= took["max_us"], "how long they take:", took)
    same(show(a, "debug", "recovery"), {
        "local NI recovery": [], "peer NI recovery": [], "path recovery": []},
        "nothing recovers")


def case_counts_shm():
    a, b, peer = counted("shm+tcp:lo", ("a", "a"), "shm:shm")
    same(peer["lnx"]["way"], "direct", "way")
    same(peer["lnx"]["pid"], b.pid, "process of the peer")


def case_counts_rxm():
    counted("tcp;ofi_rxm:lo", ("a", "b"), "tcp;ofi_rxm:lo")


def case_blocks():
    """Names and order as LNet's."""
    a, b = pair()
    send(a, b, 1, 8)
    a.do("spin")
    nets = show(a, "net", "show", "-v", 3, "--net", "tcp")["net"]
    same(list(nets[0]), ["net type", "local NI(s)"], "keys of a net")
    ni = nets[0]["local NI(s)"][0]
    want = ["nid", "status", "interfaces", "statistics", "sent_stats", "received_stats",
            "dropped_stats", "health stats", "tunables", "dev cpt", "tcp bonding", "CPT"]
    same([k for k in ni if k in want], want, "blocks and their order")
    kinds = ["put", "get", "reply", "ack", "hello"]
    counts = ["send_count", "recv_count", "drop_count", "send_length", "recv_length",
              "drop_length"]
    for block, keys in (("statistics", counts), ("sent_stats", kinds),
                        ("received_stats", kinds), ("dropped_stats", kinds),
                        ("health stats", ["fatal_error", "health value", "interrupts", "dropped",
                                          "aborted", "no route", "timeouts", "error",
                                          "network timeout", "ping_count"])):
        same(list(ni[block]), keys, block)
    want_tunables = ["peer_timeout", "peer_credits", "peer_buffer_credits", "credits"]
    same(list(ni["tunables"])[:4], want_tunables, "tunables")
    # A peer's have LNet's names as well.
    far = show(a, "peer", "show", "-v", 3)["peer"][0]
    same(list(far)[:4], ["primary nid", "Multi-Rail", "peer state", "peer ni"], "peer show")
    same(list(far["peer ni"][0]), ["nid", "state", "max_ni_tx_credits", "available_tx_credits",
         "min_tx_credits", "tx_q_num_of_buf", "statistics", "sent_stats", "received_stats",
         "dropped_stats", "health stats"], "blocks of a peer NI")
    for block, keys in (("statistics", counts), ("sent_stats", kinds), ("received_stats", kinds),
                        ("dropped_stats", kinds),
                        ("health stats", ["health value", "dropped", "timeout", "error",
                                          "network timeout", "ping_count"])):
        same(list(far["peer ni"][0][block]), keys, block + " of a peer NI")
    same(list(show(a, "net", "show", "--net", "tcp")["net"][0]["local NI(s)"][0]),
         ["nid", "status", "interfaces"], "blocks without -v")
    same(list(show(a, "global", "show")["global"]),
         ["numa_range", "max_intf", "discovery", "retry_count", "transaction_timeout",
          "health_sensitivity", "recovery_interval", "recovery_limit", "lnd_timeout"],
         "global show")
    lnet = ["msgs_alloc", "msgs_max", "rst_alloc", "errors", "send_count",
            "resend_count", "response_timeout_count", "local_interrupt_count",
            "local_dropped_count", "local_aborted_count", "local_no_route_count",
            "local_timeout_count", "local_error_count", "remote_dropped_count",
            "remote_error_count", "remote_timeout_count", "network_timeout_count",
            "recv_count", "route_count", "drop_count", "send_length", "recv_length",
            "route_length", "drop_length"]
    same(list(show(a, "stats", "show")["statistics"]), lnet, "stats show")


def case_kinds():
    """Frames by kind, drops and failures; a reset."""
    a, b = pair()
    for t in a, b:
        t.do("spin")
    send(a, b, 5, 8)
    show(b, "peer", "show")
    run("-p", b.pid, "fault", "add", "drop kind=tag count=3")
    send(a, b, 20, 8)
    send(a, b, 2, 1000000)
    ni, at = rails(a, wait=True)["tcp:lo"], rails(b, wait=True)["tcp:lo"]
    same((ni["sent_stats"]["put"], at["received_stats"]["put"]), (27, 27), "put")
    # Large messages are read by the receiver, and ended by a FIN.
    need(at["sent_stats"]["get"] >= 2, at)
    same(at["received_stats"]["reply"], at["sent_stats"]["get"], "reply")
    need(ni["received_stats"]["ack"] >= 2 and at["sent_stats"]["ack"] >= 2, ni, at)
    same((ni["sent_stats"]["hello"] >= 1, at["received_stats"]["hello"] >= 1),
         (True, True), "hello")
    peer, = show(b, "peer", "show", "-v", 2, wait=True)["peer"]
    far, = peer["peer ni"]
    same(far["statistics"]["recv_count"] >= 27, True, "frames of the peer")
    path, = show(b, "path", "show", "-v", 2, wait=True)["path"]
    reply = path["latency of replies"]
    same(reply["samples"], at["received_stats"]["reply"], "latency of replies")
    same(sum(reply["histogram_us"].values()), reply["samples"], "histogram")
    run("-p", b.pid, "ping", 0)
    path, = show(b, "path", "show", "-v", 2, wait=True)["path"]
    same(path["latency of answers"]["samples"], 1, "latency of a ping")
    run("-p", b.pid, "stats", "reset")
    at = rails(b, wait=True)["tcp:lo"]
    same((stat_of(at), set(at["received_stats"].values())), ([0] * 4, {0}), "reset")
    far, = show(b, "peer", "show", "-v", 2, wait=True)["peer"][0]["peer ni"]
    same(far["statistics"]["recv_count"], 0, "reset of a peer NI")


def case_list():
    a, b = pair(SLURM_JOB_ID="job-%d" % os.getpid(), PMI_RANK="7")
    a.do("spin")
    b.do("still")
    time.sleep(1.5)
    mine = {p["pid"]: p for p in show(None, "list")["process"]}
    same(mine[a.pid]["state"], "live", "state")
    same(mine[b.pid]["state"], "silent", "state of one that makes no progress")
    same(mine[a.pid]["program"], "talk", "program")
    same(mine[a.pid]["rank"], "7", "rank")
    job = "--job=job-%d" % os.getpid()
    found = show(None, job, "net", "show")["process"]
    same(sorted(p["pid"] for p in found), sorted([a.pid, b.pid]), "of the job")
    run("--job=none-such", "net", "show", status=REFUSED)
    same([p["pid"] for p in show(None, "--job", "list", env=dict(
        clean_env(), SLURM_JOB_ID="job-%d" % os.getpid()))["process"]],
        [a.pid, b.pid], "of its own job")
    # Those that have an endpoint.
    eid = show(a, "info")["endpoint info"]["id"]
    same([p["pid"] for p in show(None, "--ep", eid, "list")["process"]], [a.pid], "--ep")
    run("--ep", "0123456789abcdef", "list", status=REFUSED)
    run("--ep", "0123456789abcdef", "metrics", status=REFUSED)
    # Several, and none was chosen.
    run("net", "show", status=USAGE)
    need("choose one" in run.said, run.said)
    a.quit()
    b.quit()
    need(a.pid not in [p["pid"] for p in show(None, "list")["process"]],
         "a process that has ended well is listed")


def case_width():
    """A table does not leave the terminal, which COLUMNS stands for."""
    a, b = pair()
    send(a, b, 1, 1)
    for args in (["net", "show", "-v", 4], ["peer", "show", "-v"], ["path", "show", "-v"],
                 ["list", "-v"]):
        wide = run("-p", a.pid, "--table", *args)
        narrow = run("-p", a.pid, "--table", *args, env=dict(clean_env(), COLUMNS="70"))
        need(max(map(len, wide.splitlines())) > 70, args, "is narrow anyway")
        # Texts that are longer themselves are not cut.
        long = [l for l in narrow.splitlines() if len(l) > 70 and not re.match(
            r"(- |  |[^:]+: )", l)]
        need(not long, args, "has long lines:", long)
        need(len(narrow.splitlines()) > len(wide.splitlines()), args)
        same(run("-p", a.pid, "--table", *args, env=dict(clean_env(), COLUMNS="9999")).count(
            "\n"), wide.count("\n"), "lines of a wide terminal")


def case_damaged():
    """Another process writes into a segment what it likes: it spoils what lnxctl shows."""
    seed = int(os.environ.get("LNX_SEED", time.time()))
    print("# LNX_SEED=%d" % seed)
    r = random.Random(seed)
    a, b = pair()
    send(a, b, 1, 1)
    a.do("spin")
    b.do("spin")
    name = segment_of(a)
    with open(os.path.join(SHM, name), "r+b", buffering=0) as f:
        size = os.fstat(f.fileno()).st_size
        for i in range(60):
            for _ in range(300):
                f.seek(r.randrange((40000 if i % 2 else size) - 8))
                f.write(r.choice((r.randbytes(8), b"\xff" * 8, bytes(8))))
            time.sleep(0.01)
            if i % 20 == 19:
                send(a, b, 20, 1000)
                send(b, a, 3, 300000)
                need(subprocess.run([LNXCTL, "-p", str(a.pid), "net", "show", "-v", "4"],
                                    stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                    timeout=HANGS_S).returncode in range(5), "lnxctl")
    same(a.p.poll(), None, "the process")
    a.quit()
    need(not os.path.exists(os.path.join(SHM, name)), "its segment is left")


def case_hostile_metrics():
    """A user gives counters names that are none: the metrics of others are not lost."""
    a = Talk("tcp:lo", "a")
    a.do("spin")
    name = segment_of(a)
    with open(os.path.join(SHM, name), "rb") as f:
        there = f.read()
    for odd in (b'x y{" 5 #z', b"x\n# EOF\n", b"rail_up", b"endpoint", b"recv_count", b""):
        at = there.find(b"send_count\0")
        need(at > 0 and there.find(b"recv_count\0") > 0, "no names of counters")
        with tempfile.TemporaryDirectory() as root:
            mine = os.path.join(root, os.path.basename(SHM))
            os.mkdir(mine, 0o700)
            with open(os.path.join(mine, name), "wb") as f:
                f.write(there[:at] + odd.ljust(10, b"\0") + there[at + 10:])
            os.chmod(os.path.join(mine, name), 0o600)
            found = parse_metrics(run("--dir", root, "--all", "metrics"))
            need(len(found) > 40, odd, len(found))


def case_odd_files():
    """What is no segment is named, and keeps nothing else from being seen."""
    with tempfile.TemporaryDirectory() as root:
        mine = os.path.join(root, os.path.basename(SHM))
        os.mkdir(mine, 0o700)
        a = Talk("tcp:lo", "a")
        name = segment_of(a)
        shutil.copyfile(os.path.join(SHM, name), os.path.join(mine, name))
        os.chmod(os.path.join(mine, name), 0o600)
        at = ["--dir", root]
        run(*at, "list", "-v")
        os.symlink("/etc/passwd", os.path.join(mine, "777.1"))
        os.mkfifo(os.path.join(mine, "778.1"), 0o600)
        with open(os.path.join(mine, "779.1"), "w") as f:
            os.fchmod(f.fileno(), 0o600)
        doc = json.loads(run(*at, "list", "--json"))
        same([p["pid"] for p in doc["process"]], [a.pid], "readable ones")
        same(doc["unreadable files"], 3, "the others")
        doc = json.loads(run(*at, "list", "-v", "--json"))
        same({p["pid"]: p["state"] for p in doc["process"] if p["pid"] != a.pid},
             dict.fromkeys((777, 778, 779), "unreadable"), "listed")
        same(run.said, "", "standard error")
        need("talk" in run(*at, "metrics", "--dead"), "metrics without the process")
        said = run.said
        for pid in 777, 778, 779:
            need("process %d" % pid in said, "metrics do not name", pid, said)
            for verb in ["list"], ["info"]:
                run(*at, "-p", pid, *verb, status=REFUSED)


def case_killed():
    """What is left says what was counted."""
    a, b = pair()
    for t in a, b:
        t.do("spin")
    send(a, b, 50, 100)
    own = a.counts()
    until("counters are published", lambda: stat_of(rails(a)["tcp:lo"]) == own)
    a.p.send_signal(signal.SIGKILL)
    a.p.wait()
    state = {p["pid"]: p["state"] for p in show(None, "list", "-v")["process"]}
    same(state[a.pid], "dead", "state")
    there = show(None, "list")
    need(a.pid not in [p["pid"] for p in there["process"]], "a dead one among those that run")
    need(there["dead processes"] >= 1, "how many are dead")
    same([p["state"] for p in show(a, "list")["process"]], ["dead"], "a dead one by its number")
    same(stat_of(rails(a)["tcp:lo"]), own, "statistics of a dead process")
    same(len(show(a, "peer", "show")["peer"]), 1, "peers of a dead process")
    same(len(show(a, "path", "show")["path"]), 1, "paths of a dead process")
    run("-p", a.pid, "stats", "reset", status=NO_ANSWER)
    need("has ended" in run.said, run.said)
    # A collector would show it for ever.
    up = ("lnx_endpoint_up", str(a.pid), None)
    for args, want in ((), None), (("--dead",), 0), (("-p", a.pid), 0):
        m = parse_metrics(run("metrics", *args))
        same(m.get(up), want, "metrics %s of a dead process" % (args,))
        same(m.get(("lnx_rail_sent_messages_total", str(a.pid), "tcp:lo")),
             None if want is None else own[0], "its counters")
    same(parse_metrics(run("metrics")).get(("lnx_endpoint_up", str(b.pid), None)), 1,
         "of one that lives")


def case_same_number():
    """Numbers of processes are used again."""
    a, b = pair()
    send(a, b, 3, 10)
    a.do("spin")
    name = segment_of(a)
    until("counters are published", lambda: stat_of(rails(a)["tcp:lo"])[0] == 3)
    older = os.path.join(SHM, "%d.%d" % (a.pid, int(name.split(".")[1]) - 1))
    oldest = os.path.join(SHM, "%d.1" % a.pid)
    try:
        for copy in older, oldest:
            shutil.copy(os.path.join(SHM, name), copy)
        send(a, b, 1, 10)
        same(stat_of(rails(a, wait=True)["tcp:lo"])[0], 4, "of the live one")
        a.p.kill()
        a.p.wait()
        same(stat_of(rails(a)["tcp:lo"])[0], 4, "of the last dead one")
        os.remove(os.path.join(SHM, name))
        same(stat_of(rails(a)["tcp:lo"])[0], 3, "of the one before it")
    finally:
        for copy in older, oldest:
            os.remove(copy)


def case_silent():
    a, b = pair()
    send(a, b, 1, 1)
    a.do("still")
    b.do("spin")
    begin = time.monotonic()
    run("-p", a.pid, "stats", "reset", status=NO_ANSWER)
    need("makes no progress" in run.said, run.said)
    need(time.monotonic() - begin >= 1, "it did not wait")
    # What was withdrawn is not carried out later.
    run("-p", a.pid, "set", "spill", 901, status=NO_ANSWER)
    a.do("spin")
    time.sleep(0.3)
    same(params(a, "spill")["value"], "500", "a request that was withdrawn")
    a.do("still")
    job = run("--all", "stats", "reset", status=PARTLY)
    need(str(b.pid) in job, "--all")
    same(show(b, "stats", "show")["statistics"]["send_count"], 0, "reset")


def case_dies_meanwhile():
    """A process that is waited for and ends is not waited for any longer."""
    for args in ("set", "spill", "7"), ("net", "show"), ("explain", "0"):
        a = Talk("tcp:lo", "a")
        a.do("still")
        p = subprocess.Popen([LNXCTL, "-p", str(a.pid), "--wait", "600000", *args],
                             text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        time.sleep(0.5)
        a.p.kill()
        a.p.wait()
        said = "".join(p.communicate(timeout=HANGS_S))
        same(p.returncode, {"set": NO_ANSWER, "net": OK, "explain": REFUSED}[args[0]], said)
        a.end()


def params(t, name):
    return show(t, "params", name)["params"][0]


def case_asleep():
    """A process that sleeps in libfabric, or leaves progress to it, answers all the same."""
    for link in "tcp:lo", "shm+tcp:lo":
        for mode in "wait", "auto":
            a, b = pair(link, ("a", "b"), mode=mode)
            send(a, b, 3, 100)
            what = "%s, %s: " % (link, mode)
            for i in range(3):
                if mode == "wait":
                    a.tell("block 4000")
                begin = time.monotonic()
                run("-p", a.pid, "udsp", "add", "--src", "tcp", "--priority", i)
                took = time.monotonic() - begin
                print("# %sudsp add took %.0f ms" % (what, took * 1000))
                got = show(a, "udsp", "show", "-v")
                same([r["action"]["priority"] for r in got["udsp"]], [i], what + "rules")
                need("last seen" not in got, what, got)
                same(show(a, "stats", "show")["statistics"]["send_count"], 3, what)
                if mode == "wait":
                    a.answer()
            a.quit()
            b.quit()


def case_set():
    a, b = pair(FI_LNX_HOLD_DOWN="250")
    a.do("spin")
    b.do("spin")
    same(params(a, "hold_down"), {"name": "hold_down", "value": "250", "unit": "ms",
                                  "origin": "environment", "set": "any time"}, "params")
    run("-p", a.pid, "set", "hold_down", "1s")
    same(params(a, "hold_down")["value"], "1000", "set 1s")
    same(params(a, "hold_down")["origin"], "set", "origin")
    same(params(b, "hold_down")["value"], "250", "another process")
    run("-p", a.pid, "set", "recovery_interval", 2)
    same(params(a, "recovery_ping_interval")["value"], "2000", "LNet's name, in seconds")
    same(show(a, "global", "show")["global"]["recovery_interval"], 2, "global show")
    # Names are taken as variables have them, LNet's too.
    for name in "RECOVERY_INTERVAL", "FI_LNX_RECOVERY_INTERVAL", "fi_lnx_recovery_interval":
        run("-p", a.pid, "set", "recovery_ping_interval", 900)
        run("-p", a.pid, "set", name, 2)
        same(params(a, "recovery_ping_interval")["value"], "2000", name)
    run("-p", a.pid, "set", "MAX_INTF", 3)
    same(params(a, "max_rails")["value"], "3", "MAX_INTF")
    run("-p", a.pid, "set", "max_rails", 8)
    run("-p", a.pid, "set", "retry_count", 50)
    for args, why in ((("window", 16), "at start only"), (("spill", 0), "from 1 to"),
                      (("spil", 5), "nearest one is spill"),
                      (("rail_timeout_min", 999), "FI_LNX_RETRY_COUNT=50"),
                      (("hold_down", "soon"), "whole number")):
        run("-p", a.pid, "set", *args, status=REFUSED)
        need(why in run.said, args, "is refused with:", run.said)
    run("-p", a.pid, "set", "spill", status=USAGE)
    # Behind "--" there are only arguments.
    run("-p", a.pid, "set", "--", "spill", "--frob", status=REFUSED)
    need('spill="--frob": must be' in run.said, run.said)
    run("-p", a.pid, "set", "spill", "--", 650)
    same(params(a, "spill")["value"], "650", "set spill -- 650")
    for names in ("none_such",), ("spill", "spil"), ("spil*", "spil"):
        run("-p", a.pid, "params", *names, status=REFUSED)
        run("params", "--env", *names, status=REFUSED)
        need('"%s": there is no such parameter' % names[-1] in run.said, run.said)
    need("the nearest one is spill" in run.said, run.said)
    for word, name in (("RECOVERY_INTERVAL", "recovery_ping_interval"), ("max_intf", "max_rails"),
                       ("FI_LNX_SPILL", "spill"), ("fi_lnx_SPIL?", "spill")):
        same([x["name"] for x in show(a, "params", word)["params"]], [name], word)
        same([x["name"] for x in show(None, "params", "--env", word)["params"]], [name], word)
    # How long what is silent is pinged; 0: for ever.
    same(params(a, "recovery_limit")["set"], "any time", "recovery_limit")
    run("-p", a.pid, "set", "recovery_limit", "2s")
    same((params(a, "recovery_limit")["value"], show(a, "global", "show")["global"][
        "recovery_limit"]), ("2", 2), "set recovery_limit")
    run("-p", a.pid, "set", "recovery_limit", 604801, status=REFUSED)
    run("-p", a.pid, "set", "recovery_limit", 0)
    listed = show(a, "params", "-v")["params"]
    need(len(listed) > 40 and all(p["help"] for p in listed), "params -v")
    text = run("params", "--env", "spill", env=dict(clean_env(), FI_LNX_SPILL="77"))
    need("77" in text and "environment" in text, text)
    run("params", "--env", "spill", env=dict(clean_env(), FI_LNX_SPIL="77"),
        status=REFUSED)
    need("nearest one is FI_LNX_SPILL" in run.said, run.said)


def health_of(t):
    return rails(t)["tcp:lo"]["health stats"]["health value"]


def pinned(t):
    return rails(t)["tcp:lo"]["lnx"]["pinned"]


def case_health():
    a, b = pair()
    send(a, b, 1, 1)
    a.do("spin")
    b.do("spin")
    run("-p", a.pid, "net", "set", "--nid", "127.0.0.1@tcp", "--pin", 300)
    same((health_of(a), pinned(a)), (300, True), "--pin")
    run("-p", a.pid, "net", "set", "--nid", "tcp:l?", "--auto")
    same((health_of(a), pinned(a)), (1000, False), "--auto")
    run("-p", a.pid, "net", "set", "--nid", "tcp:lo", "--state", "down")
    same(rails(a)["tcp:lo"]["status"], "down", "--state down")
    run("-p", a.pid, "net", "set", "--nid", "tcp:lo", "--state=up")
    same(rails(a)["tcp:lo"]["status"], "up", "--state up")
    run("-p", a.pid, "net", "set", "--nid", "tcp:lo", "--health", 400)
    same((health_of(a), pinned(a)), (400, False), "--health")
    local = show(a, "debug", "recovery", "--local")["local NI recovery"]
    same([r["nid"] for r in local], ["127.0.0.1@tcp"], "debug recovery")
    # Traffic, with proofs of life, raises it.
    run("-p", a.pid, "peer", "set", "--nid", 0, "--pin", 200)
    same(show(a, "peer", "show", "-v", 2)["peer"][0]["peer ni"][0]["health stats"][
        "health value"], 200, "peer set")
    nid = show(a, "peer", "show")["peer"][0]["peer ni"][0]["nid"]
    same([r["nid"] for r in show(a, "debug", "recovery", "--peer")["peer NI recovery"]],
         [nid], "debug recovery --peer")
    run("-p", a.pid, "peer", "set", "--nid", nid, "--auto")
    for args in (("--nid", "tcp:lo"), ("--health", 5), ("--nid", "x", "--health", 1001),
                 ("--nid", "x", "--health", "5", "--auto"),
                 ("--nid", "x", "--state", "sideways")):
        run("-p", a.pid, "net", "set", *args, status=USAGE)
        run("-p", a.pid, "peer", "set", *args, status=USAGE)
    run("-p", a.pid, "net", "set", "--nid", "10.9.9.9@tcp", "--auto", status=REFUSED)
    run("-p", a.pid, "net", "set", "--nid", "shm:shm", "--auto", status=REFUSED)
    run("-p", a.pid, "peer", "set", "--nid", 77, "--auto", status=REFUSED)


def case_nets():
    """NIDs have the names of the user's nets, as rules have them."""
    a, b = pair("tcp:lo+tcp;ofi_rxm:lo", FI_LNX_NETS="left1=tcp;ofi_rxm")
    send(a, b, 1, 1)
    a.do("spin")
    b.do("spin")
    nets = {n["net type"]: n["local NI(s)"] for n in show(a, "net", "show")["net"]}
    same(sorted(nets), ["left1", "tcp"], "nets")
    same([n["nid"] for n in nets["left1"]], ["127.0.0.1@left1"], "NID of the rail")
    same([n["net type"] for n in show(a, "net", "show", "--net", "left1")["net"]],
         ["left1"], "--net")
    remote = [n["nid"] for n in show(a, "peer", "show")["peer"][0]["peer ni"]]
    same(sorted(n.split("@")[1] for n in remote), ["left1", "tcp"], "NIDs of the peer")
    far, = (n for n in remote if n.endswith("@left1"))
    same(show(a, "ping", far)["ping"]["peer"], show(b, "info")["endpoint info"]["id"],
         "ping")
    need(far in [p["nid"] for p in show(a, "explain", far)["explain"][0]["paths"]],
         "explain")
    run("-p", a.pid, "udsp", "add", "--src", "127.0.0.1@left1")
    same(rules(a)[0]["applies to"][:6], "1 rail", "the rule has that name, too")
    run("-p", a.pid, "udsp", "add", "--dst", "tcp", "--priority", 2)
    run("-p", a.pid, "udsp", "add", "--src", "127.0.0.1@left1", "--dst", far)
    send(a, b, 1, 1)
    a.do("spin")
    b.do("spin")
    same({n["net type"]: n["local NI(s)"][0]["udsp info"]
          for n in show(a, "net", "show", "-v", 4)["net"]},
         {"left1": {"net priority": -1, "nid priority": 0},
          "tcp": {"net priority": -1, "nid priority": -1}}, "udsp info of rails")
    same({n["nid"].split("@")[1]: n["udsp info"]
          for n in show(a, "peer", "show", "-v", 4)["peer"][0]["peer ni"]},
         {"left1": {"net priority": -1, "nid priority": -1,
                    "Preferred source NIDs": ["127.0.0.1@left1"]},
          "tcp": {"net priority": 2, "nid priority": -1}}, "udsp info of the peer's")
    run("-p", a.pid, "net", "set", "--nid", "*@left1", "--pin", 300)
    values = {n["net type"]: n["local NI(s)"][0]["health stats"]["health value"]
              for n in show(a, "net", "show", "-v", 3)["net"]}
    same(values, {"left1": 300, "tcp": 1000}, "net set")


def case_rules_first():
    """A rule for peers is there before the first one is met."""
    a, b = Talk(TWO_NETS, "a"), Talk(TWO_NETS, "b")
    a.do("spin")
    run("-p", a.pid, "udsp", "add", "--dst", "tcp;ofi_rxm", "--priority", 1)
    run("-p", a.pid, "udsp", "add", "--dst", "tcp7", "--priority", 0)
    need("waits for a rail of a peer" in rules(a)[0]["applies to"], rules(a))
    names = a.do("name"), b.do("name")
    a.do("know " + names[1])
    b.do("know " + names[0])
    send(a, b, 30, 200)
    b.do("spin")
    goes_by(a, b, RXM)
    same({n["nid"].split("@")[1]: n["udsp info"]
          for n in show(a, "peer", "show", "-v", 4, wait=True)["peer"][0]["peer ni"]},
         {"tcp;ofi_rxm": {"net priority": 1, "nid priority": -1},
          "tcp": {"net priority": -1, "nid priority": -1}}, "udsp info")
    need("1 rail of peers" in rules(a)[0]["applies to"] and
         "waits" in rules(a)[1]["applies to"], "a net that is not there does no harm", rules(a))


def case_errors():
    """Documents for programs, as lnetctl's."""
    a, b = pair()
    a.do("spin")
    run("-p", a.pid, "udsp", "add", "--src", "tcp", "--priority", 3)
    for form in ["--json"] + ["--yaml"] * bool(yaml):
        for args, action, item, number, why in (
                (("udsp", "add", "--src", "tcp", "--priority", 3), "add", "udsp",
                 errno.EALREADY, "already"),
                (("udsp", "del", "--idx", 9), "del", "udsp", errno.ENOENT, "9"),
                (("net", "set", "--nid", "nonsense", "--auto"), "set", "net",
                 errno.ENOENT, "\"nonsense\""),
                (("set", "window", 16), "set", "set", errno.EBUSY, "at start only"),
                (("import", "/nonexistent"), "import", "import", errno.ENOENT,
                 "/nonexistent")):
            run("-p", a.pid, form, *args, status=REFUSED)
            same(list(run.error), [action], run.error)
            one, = run.error[action]
            same((list(one), sorted(one[item])), ([item], ["descr", "errno"]), run.error)
            same(one[item]["errno"], -number, run.error)
            need(why in one[item]["descr"], run.error)
    a.do("still")
    run("-p", a.pid, "--json", "set", "spill", 50, status=NO_ANSWER)
    same(run.error["set"][0]["set"]["errno"], -errno.ETIMEDOUT, "no answer")


def case_several_errors():
    """Of several processes that refuse, one document; those that have ended are not asked."""
    name = "several-%d" % os.getpid()
    a, b = pair(SLURM_JOB_ID=name)
    dead = Talk("tcp:lo", "c", SLURM_JOB_ID=name)
    for t in a, b, dead:
        t.do("spin")
    job = "--job=" + name
    for form in ["--json"] + ["--yaml"] * bool(yaml):
        run(job, form, "set", "window", 16, status=REFUSED)
        same(list(run.error), ["set"], run.error)
        same([e["set"]["errno"] for e in run.error["set"]], 3 * [-errno.EBUSY], run.error)
        for t in a, b, dead:
            same(len([e for e in run.error["set"] if str(t.pid) in e["set"]["descr"]]), 1,
                 run.error)
    dead.p.kill()
    dead.p.wait()
    same(len(show(None, job, "net", "show")["process"]), 3, "a dead one is read")
    for args in (("set", "spill", 700), ("udsp", "add", "--src", "tcp"), ("udsp", "del", "--all"),
                 ("stats", "reset"), ("net", "set", "--nid", "tcp:lo", "--auto"),
                 ("fault", "show"), ("route", "show")):
        run(job, *args, wait=True)
        same(run.said, "", args)
    same([params(t, "spill")["value"] for t in (a, b)], 2 * ["700"], "set")
    # If none lives that is said.
    for t in a, b:
        t.p.kill()
        t.p.wait()
    run(job, "set", "spill", 701, status=NO_ANSWER)
    same(run.said.count("has ended"), 3, run.said)


def case_lnet_errors():
    """What lnetctl refuses, refused: with a status that is not 0, a number and a sentence."""
    a, b = pair("tcp:lo", FI_LNX_NETS="tcp1=127.0.0.0/8")
    send(a, b, 1, 1)
    a.do("spin")
    b.do("spin")
    gone = str(2 ** 22 - 3)
    route = ("route", "add", "--net", "tcp2", "--gateway")
    for args, action, item, number in (
            # any: nothing runs, or nothing that is named
            (("-p", gone, "net", "show"), "show", "net", errno.ESRCH),
            (("-p", gone, "global", "show"), "show", "global", errno.ESRCH),
            # net
            (("net", "show", "--net", "tcp9"), "show", "net", errno.ENOENT),
            (("net", "show", "--nid", "eth9"), "show", "net", errno.ENOENT),
            (("net", "set", "--nid", "10.9.9.9@tcp", "--health", 5), "set", "net",
             errno.ENOENT),
            # route
            (route + ("10.9.9.9@lo",), "add", "route", errno.EINVAL),
            (("route", "add", "--net", "*", "--gateway", "10.9.9.9@tcp1"), "add", "route",
             errno.EINVAL),
            (("route", "add", "--net", "tcp1", "--gateway", "10.9.9.9@tcp3"), "add", "route",
             errno.EEXIST),
            (route + ("10.9.9.9@tcp3",), "add", "route", errno.EHOSTUNREACH),
            (("route", "del", "--net", "tcp2"), "del", "route", errno.ENOENT),
            (("route", "show", "--net", "tcp2"), "show", "route", errno.ENOENT),
            # peer
            (("peer", "show", "--nid", "10.9.9.9@tcp"), "show", "peer", errno.ENOENT),
            (("peer", "set", "--nid", "10.9.9.9@tcp", "--health", 5), "set", "peer",
             errno.ENOENT),
            # ping, discover
            (("ping", "10.9.9.9@tcp"), "ping", "ping", errno.ENOENT),
            (("discover", "10.9.9.9@tcp"), "discover", "discover", errno.ENOENT),
            # set: values as at the start, and those of LNet's own checks
            (("set", "retry_count", "abc"), "set", "set", errno.EINVAL),
            (("set", "health_sensitivity", 1001), "set", "set", errno.EINVAL),
            (("set", "transaction_timeout", 0), "set", "set", errno.EINVAL),
            (("set", "retry_count", 65000), "set", "set", errno.EINVAL),
            (("set", "max_interfaces", 0), "set", "set", errno.EINVAL),
            (("set", "discovery", 2), "set", "set", errno.EINVAL),
            (("set", "tiny_buffers", 5), "set", "set", errno.EINVAL),
            # udsp
            (("udsp", "del", "--idx", 0), "del", "udsp", errno.ENOENT),
            (("udsp", "show", "--idx", 0), "show", "udsp", errno.ENOENT),
            (("udsp", "add", "--src", "foo"), "add", "udsp", errno.EINVAL)):
        at = () if args[0] == "-p" else ("-p", a.pid)
        run(*at, "--json", *args, status=REFUSED)
        same(list(run.error), [action], args)
        one, = run.error[action]
        same((list(one), one[item]["errno"]), ([item], -number), args)
        need(len(one[item]["descr"]) > 10, args, one)
    # What is missing or is no number is never silently left out.
    for args in (("route", "add", "--net", "tcp2"), ("route", "add"), ("ping",), ("discover",),
                 route + ("10.9.9.9@tcp1", "--hop", "abc"),
                 route + ("10.9.9.9@tcp1", "--hop", 256),
                 route + ("10.9.9.9@tcp1", "--priority", "x"),
                 ("net", "add", "--net", "tcp2"), ("net", "del", "--net", "tcp1"),
                 ("peer", "add"), ("peer", "del"), ("udsp", "del"),
                 ("udsp", "add", "--src", "tcp1", "--priority", "-1"),
                 ("net", "set", "--nid", "lo", "--health", 1001),
                 ("net", "set", "--health", 5), ("set", "retry_count"),
                 ("set", "retry_count", "-1"), ("debug", "recovery", "--frob"), ("ping", ","), ("net", "show", "-v", "x")):
        run("-p", a.pid, *args, status=USAGE)
    # An empty queue is no error.
    same(show(a, "debug", "recovery")["local NI recovery"], [], "an empty queue")
    # An entry for each target.
    nid = peer_nid = show(a, "peer", "show")["peer"][0]["primary nid"]
    for verb in "ping", "discover":
        for targets in (nid + ",10.9.9.9@tcp,0",), (nid, "10.9.9.9@tcp", "0"):
            out = run("-p", a.pid, "--json", "--wait", HANGS_S * 500, verb, *targets,
                      status=REFUSED)
            first, second, third = json.loads(out)[verb]
            same((first["peer"], first["peer ni"][0]["nid"]), (third["peer"], peer_nid), verb)
            same((second["nid"], second["errno"]), ("10.9.9.9@tcp", -errno.ENOENT), verb)
            need("no such peer" in second["descr"], second)
    both = show(a, "ping", "0,0", wait=True)["ping"]
    need(all(t["peer ni"][0]["rtt_us"] > 0 for t in both), both)


def case_fault():
    a, b = pair()
    send(a, b, 1, 1)
    a.do("spin")
    b.do("spin")
    added = json.loads(run("-p", b.pid, "--json", "fault", "add", "drop", "kind=tag",
                           "count=2"))["fault"]
    same(added[-1]["rule"], "drop kind=tag count=2", "rule")
    number = added[-1]["id"]
    run("-p", b.pid, "fault", "add", "delay=1ms kind=tag; drop kind=hello")
    same(len(show(b, "fault", "show")["fault"]), 3, "rules")
    for extra in 2, 3:
        run("-p", b.pid, "fault", "del", number - 1 + extra)
    b.do("still")
    b.tell("recv 20 8")
    a.do("send 0 20 8")
    b.answer()
    b.do("spin")
    rule = [r for r in show(b, "fault", "show")["fault"] if r["id"] == number][0]
    same(rule["hit"], 2, "hits")
    run("-p", b.pid, "fault", "reset")
    rule = [r for r in show(b, "fault", "show")["fault"] if r["id"] == number][0]
    same((rule["matched"], rule["hit"]), (0, 0), "fault reset")
    need(show(a, "stats", "show")["statistics"]["resend_count"] >= 2, "sent again")
    run("-p", b.pid, "fault", "del", "all")
    same(show(b, "fault", "show")["fault"], [], "del all")
    run("-p", b.pid, "fault", "del", 99, status=REFUSED)
    run("-p", b.pid, "fault", "del", "x", status=USAGE)
    # Positions are those in what the user wrote.
    for words, at in ((["dorp"], 1), (["drop;", "dorp"], 7), (["drop rate=x"], 11),
                      (["  dorp"], 3)):
        run("-p", b.pid, "fault", "add", *words, status=REFUSED)
        need("character %d of the rules: " % at in run.said, words, run.said)


def case_ask():
    a, b = pair()
    a.do("spin")
    b.do("spin")
    # Not met yet: by its number in the address vector.
    ping = show(a, "ping", 0)["ping"]
    need(ping["peer ni"][0]["rtt_us"] > 0, ping)
    own_id = show(b, "info")["endpoint info"]["id"]
    for name in own_id, "127.0.0.1@tcp", ping["peer ni"][0]["nid"]:
        same(show(a, "ping", name)["ping"]["peer"], own_id, "ping " + name)
    same(show(a, "discover", 0)["discover"]["peer"], own_id, "discover")
    same(show(a, "discover", "--force", 0)["discover"]["peer ni"][0]["nid"],
         ping["peer ni"][0]["nid"], "discover --force")
    # Frames that leave on and on need not be acknowledged for that.
    flowing(a, b)
    flown_one(a)
    run("-p", a.pid, "discover", "--force", 0, wait=True)
    a.do("ebb")
    b.do("ebb")
    b.do("still")
    run("-p", a.pid, "ping", "--timeout", 50, 0, status=NO_ANSWER)
    need("no answer in time" in run.said, run.said)
    run("-p", a.pid, "ping", 7, status=REFUSED)
    # A sentence names commands that lnxctl has.
    for verb in "ping", "discover", "explain":
        run("-p", a.pid, verb, "eth0", status=REFUSED)
        need("peer show -v 3" in run.said, run.said)
    need(own_id == show(a, "peer", "show", "-v", 3)["peer"][0]["lnx"]["id"], "id of the peer")
    run("-p", a.pid, "ping", "10.1.1.1@tcp", status=REFUSED)
    run("-p", a.pid, "ping", "--timeout", 0, 0, status=USAGE)
    run("-p", a.pid, "ping", status=USAGE)
    # One that was killed has not heard of anything, though the HELLO could not even leave.
    c, d = pair("tcp:lo")
    send(c, d, 1, 1)
    c.do("spin")
    d.p.kill()
    d.p.wait()
    run("-p", c.pid, "ping", "--timeout", 300, 0, status=NO_ANSWER)
    p = subprocess.run([LNXCTL, "-p", str(c.pid), "discover", "--force", "0"], text=True,
                       stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=HANGS_S)
    need(p.returncode in (REFUSED, NO_ANSWER) and not p.stdout, "discover --force of one that "
         "was killed:", p.returncode, p.stdout, p.stderr)
    shm_a, shm_b = pair(hosts=("c", "c"))
    send(shm_a, shm_b, 1, 1)
    shm_a.do("spin")
    need(str(shm_b.pid) in show(shm_a, "ping", 0)["ping"]["answer"], "ping over shm")


def case_explain():
    a, b = pair()
    send(a, b, 1, 1)
    a.do("spin")
    small, = show(a, "explain", 0, 100)["explain"]
    same(small["way"], "framed", "way")
    need("another host" in small["because"], small)
    need("one frame" in small["form"], small)
    path, = small["paths"]
    same((path["use"], path["because"]), ("frames", "the only path"), "path")
    large, = show(a, "explain", "127.0.0.1@tcp", "1m")["explain"]
    need("announced" in large["form"], large)
    run("-p", a.pid, "net", "set", "--nid", "tcp:lo", "--pin", 300)
    same(show(a, "explain", 0)["explain"][0]["paths"][0]["rail_health"], 300, "health")
    run("-p", a.pid, "net", "set", "--nid", "tcp:lo", "--state", "down")
    path, = explained(a)
    need(path["use"] == "frames" and "only path, though" in path["because"] and
         "by hand" in path["because"], path)
    for size in "much", "", "k", "-1", "1.5k", "9223372036854775808", "8589934592g":
        run("-p", a.pid, "explain", 0, size, status=USAGE)
    for size, said in (0, 0), ("0k", 0), (5000000000, 5000000000), ("16383g", 16383 << 30), \
            ("9223372036854775807", 2 ** 63 - 1):
        one, = show(a, "explain", 0, size)["explain"]
        same(one["size"], said, "size")
        need(("one frame" if not said else "announced") in one["form"], size, one)
    need("size" not in show(a, "explain", 0)["explain"][0], "no size was given")
    run("-p", a.pid, "explain", 9, status=REFUSED)
    c, d = pair(hosts=("c", "c"))
    send(c, d, 1, 1)
    c.do("spin")
    same(show(c, "explain", 0, 64)["explain"][0]["way"], "direct", "way on one host")


def not_said(a, b, what):
    """Paths that carry messages although explain says that they do not."""
    use = {p["rail"]: p["use"] for p in explained(a)}
    before = sent_by(a)
    send(a, b, 40, 8000)
    moved = [x - y for x, y in zip(sent_by(a), before)]
    for rail, n in zip((TCP, RXM), moved):
        need(not n or use[rail] != "no", what, rail, "is not used, and", n, "went over it:",
             use)


def case_explain_counts():
    """Where messages go, explain says before: also the first ones, and with weights set by
    hand that make another path the current one than rules do."""
    for mode in "SPREAD", "PER_MSG", "LNET", "PER_PEER":
        a, b = pair(TWO_NETS, FI_LNX_MULTI_RAIL_SELECTION=mode,
                    FI_LNX_UDSP="dst: tcp;ofi_rxm")
        a.do("spin")
        b.do("spin")
        not_said(a, b, mode + ", first messages:")
        run("-p", a.pid, "net", "set", "--nid", TCP, "--pin", 500, wait=True)
        run("-p", a.pid, "net", "set", "--nid", RXM, "--pin", 100, wait=True)
        for _ in range(3):
            not_said(a, b, mode + ", pinned:")
        a.end()
        b.end()


def case_explain_large():
    """A peer reads what is large, by an order of its own: explain does not say otherwise."""
    for mine, its in ("tcp;ofi_rxm", "tcp"), ("tcp", "tcp;ofi_rxm"):
        a, b = pair(TWO_NETS, FI_LNX_MULTI_RAIL_SELECTION="PER_PEER")
        a.do("spin")
        b.do("spin")
        for t, net in (a, mine), (b, its):
            run("-p", t.pid, "udsp", "add", "--src", net, wait=True)
        send(a, b, 20, 200)
        said = show(a, "explain", 0, "1m", wait=True)["explain"][0]
        can = {p["rail"] for p in said["paths"] if p["use"] != "no"} | {
            p["rail"] for p in said.get("rejected", ()) if "peer reads" in p["because"]}
        before = of_both(b, "recv_length")
        send(a, b, 10, 1000000)
        moved = [x - y for x, y in zip(of_both(b, "recv_length"), before)]
        need(sum(moved) >= 10 * 1000000, moved)
        for rail, n in zip((TCP, RXM), moved):
            need(n < 500000 or rail in can, rail, "is not used, and", n, "bytes went over it:",
                 said)
        small = show(a, "explain", 0, 64, wait=True)["explain"][0]
        need(not any("peer reads" in p["because"] for p in small.get("rejected", ())), small)
        a.end()
        b.end()


def shares(a, b, n=60):
    """Of small messages, one after the other, by each rail, in percent."""
    before = sent_by(a)
    for _ in range(n):
        send(a, b, 1, 2000)
    moved = [x - y for x, y in zip(sent_by(a), before)]
    return [m * 100 // sum(moved) for m in moved]


def sick_shares(a, b, health):
    """The same while rails have these numbers, which are set again and again: frames that
    arrive, acknowledgements too, make a rail well."""
    found = []
    for _ in range(6):
        for rail, number in zip((TCP, RXM), health):
            run("-p", a.pid, "net", "set", "--nid", rail, "--health", number, wait=True)
        found.append(shares(a, b, 5))
    return [sum(f[i] for f in found) // len(found) for i in (0, 1)]


def measured(take, is_right):
    """What is measured beside other programs, which make messages wait and so go by another
    rail, is measured again when it is wrong: ten times, and the last one counts.  A rail that was
    slow once is tried again after a second."""
    found = take()
    for _ in range(9):
        if is_right(found):
            break
        time.sleep(0.5)
        found = take()
    return found


def case_health_first():
    """Which comes first, rules or health: by counters.  Without FI_LNX_HEALTH_FIRST a sick rail
    that rules prefer keeps the traffic; with it a healthy one takes it, and gives it back."""
    # What is lost is not found again by pings: the next one is in an hour.
    hour = {"FI_LNX_RECOVERY_PING_INTERVAL": "3600000",
            "FI_LNX_MAX_RECOVERY_PING_INTERVAL": "86400"}
    for first in "0", "1":
        a, b = pair(TWO_NETS, FI_LNX_UDSP="src: tcp", FI_LNX_HEALTH_FIRST=first, **hour)
        a.do("spin")
        b.do("spin")
        send(a, b, 20, 200)
        until("healthy: the rule counts", lambda: shares(a, b)[0] > 90)

        def as_set(moved):
            return moved[0] > 90 if first == "0" else moved[1] > 60

        moved = measured(lambda: sick_shares(a, b, (400, 1000)), as_set)
        print("# FI_LNX_HEALTH_FIRST=%s, by each rail: %s" % (first, moved))
        need(as_set(moved), "a sick rail with FI_LNX_HEALTH_FIRST=" + first, moved,
             explained(a))
        run("-p", a.pid, "net", "set", "--nid", TCP, "--health", 1000, wait=True)
        until("the rule counts again", lambda: shares(a, b, 20)[0] > 90)

        # A real failure: at least what failed goes by the other rail then.  With the rule first
        # only what waits beside other programs does.
        def with_failure():
            run("-p", a.pid, "fault", "add", "fail=local_error kind=tag count=1", wait=True)
            return shares(a, b)

        def as_failed(moved):
            return moved[0] > 60 if first == "0" else moved[1] > 0

        moved = measured(with_failure, as_failed)
        print("# and after a failure: %s" % moved)
        need(as_failed(moved), moved, explained(a))
        a.end()
        b.end()
    # Among equals health is a weight all the same: the better one has the small messages.
    a, b = pair(TWO_NETS, **hour)
    a.do("spin")
    b.do("spin")
    send(a, b, 20, 200)
    for health in (300, 1000), (1000, 300), (300, 1000):
        well = health.index(1000)
        moved = measured(lambda: sick_shares(a, b, health), lambda m: m[well] > 40)
        print("# among equals, %s: %s" % (health, moved))
        need(moved[well] > 40, health, moved, explained(a))
    a.end()
    b.end()


# Two rails on one interface, each in a net of its own.
TWO_NETS = "tcp:lo+tcp;ofi_rxm:lo"
TCP, RXM = "tcp:lo", "tcp;ofi_rxm:lo"


def read_shares(a, b, n=40, size=1000000):
    """Of large messages, by each rail, in thousandths."""
    before = received_by(b)
    send(a, b, n, size)
    moved = [x - y for x, y in zip(received_by(b), before)]
    need(sum(moved) >= n * size, "read:", moved)
    return [m * 1000 // sum(moved) for m in moved]


def until_share(t, rail, share):
    until("%s has %d of 1000" % (rail, share), lambda: share in [
        p["share"] for p in json.loads(run("-p", t.pid, "path", "show", "-v", 1, "--json",
                                           wait=True))["path"] if p["rail"] == rail])


def case_sick_rail():
    """Health is a weight: a rail has as much less of what goes over both as it is sicker, by
    counters; at whichever end it was set."""
    # Numbers that are set once stay about as they are.
    a, b = pair(TWO_NETS, FI_LNX_HEALTH_SENSITIVITY="1")
    a.do("spin")
    b.do("spin")
    read_shares(a, b)
    # Both are on one interface, so that this is not always the same.
    usual = [max(found) for found in zip(*(read_shares(a, b) for _ in range(5)))]
    print("# well, by each rail, in thousandths, at most: %s%s" % (
        usual, "" if min(usual) >= 250 else "; pieces are not judged"))
    for at, how in (b, "--pin"), (b, "--health"), (a, "--pin"):
        for i, rail in enumerate((TCP, RXM)):
            for health in 600, 200, 20:
                # What a rail would have that is that much slower.
                part = health * usual[i] // 1000
                most = 1000 * part // (part + 1000 - usual[i]) * 2 + 50
                run("-p", at.pid, "net", "set", "--nid", rail, how, health, wait=True)
                if how == "--pin":
                    until_share(b, rail, health)
                found = measured(lambda: read_shares(a, b)[i], lambda got: got <= most)
                print("# %s %s %d of %s: %d thousandths" % (
                    "receiver" if at is b else "sender", how, health, rail, found))
                # Beside much other work one rail has nearly all, and what it had says little
                # of what it would have; unit tests of rel/sched.c tell the rest.
                need(found <= most or min(usual) < 250, rail, "has", found, "thousandths,",
                     "and not", most, "at most; well it had", usual[i])
            run("-p", at.pid, "net", "set", "--nid", rail, "--health", 1000, wait=True)
            run("-p", at.pid, "net", "set", "--nid", rail, "--auto", wait=True)
            until_share(b, rail, 1000)
            until("it is used as before", lambda: read_shares(a, b)[i] >
                  min(150, usual[i] // 4))
    a.end()
    b.end()
    # Of messages that alternate, a sick rail takes so many of its turns.
    a, b = pair(TWO_NETS, FI_LNX_HEALTH_SENSITIVITY="1",
                FI_LNX_MULTI_RAIL_SELECTION="PER_MSG")
    a.do("spin")
    b.do("spin")
    send(a, b, 20, 200)
    for how in "--pin", "--health":
        for rail, i in (TCP, 0), (RXM, 1):
            run("-p", a.pid, "net", "set", "--nid", rail, how, 250, wait=True)
            moved = measured(lambda: shares(a, b, 100), lambda m: 15 <= m[i] <= 25)
            print("# PER_MSG, %s of %s with 250 of 1000: %s percent" % (how, rail, moved))
            # One turn of four, beside all of the other's.
            need(15 <= moved[i] <= 25, how, rail, moved, explained(a))
            why, = [p["because"] for p in explained(a) if p["rail"] == rail]
            need("of 1000 of its turns" in why, why)
            run("-p", a.pid, "net", "set", "--nid", rail, "--health", 1000, wait=True)
            run("-p", a.pid, "net", "set", "--nid", rail, "--auto", wait=True)
            # Beside other programs it may just be one that is not used because it is slow.
            until("well again", lambda: 40 <= shares(a, b, 40)[i] <= 60)


def case_explain_speed():
    """What was measured of a path: of frames, and of what was read over it.  Nothing is said
    of what was not measured."""
    a, b = pair(TWO_NETS)
    a.do("spin")
    b.do("spin")
    first = explained(a)
    need(not any("rate" in key and not value for p in first for key, value in p.items()),
         "a speed that is not known:", first)
    moved = [0, 0]
    while min(moved) < 3000000:
        before = received_by(b)
        send(a, b, 20, 1000000)
        moved = [m + x - y for m, x, y in zip(moved, received_by(b), before)]
    at_b = explained(b)
    need(all(p.get("read_rate_mbps", 0) > 0 for p in at_b), moved, "bytes were read:", at_b)
    need(not any("rate" in key and not value for p in explained(a) + at_b
                 for key, value in p.items()), at_b)
    paths = json.loads(run("-p", b.pid, "path", "show", "-v", 1, "--json", wait=True))["path"]
    need(all(p["read_rate_mbps"] > 0 for p in paths), paths)
    # Frames that are under way, on and on.
    flowing(a, b, 4000)
    flown(a, 2000)
    until("frames are timed", lambda: any(p.get("send_rate_mbps") for p in explained(a)))
    a.do("ebb")
    # What it said last, once it is killed.
    b.p.send_signal(signal.SIGKILL)
    b.p.wait()
    one, = json.loads(run("-p", b.pid, "explain", 0, "--json", silent=True))["explain"]
    need(all(p.get("read_rate_mbps", 0) > 0 for p in one["paths"]), one)


def in_room(*what):
    """A mount and a network name space, so that other processes of this host hear of
    nothing that is on the board there."""
    return ["unshare", "-m", "-n", "sh", "-c", "mount -t tmpfs none /dev/shm && "
            "ip link set lo up && exec \"$@\"", "sh"] + list(what)


def case_board():
    """A new process need not find out again that a rail is dead.  A board that is wrong, or
    hostile, costs a probe."""
    if os.geteuid():
        raise Skipped("name spaces need root")
    if subprocess.run(in_room("true"), stderr=subprocess.DEVNULL).returncode:
        raise Skipped("no name spaces here")
    # Over one rail nothing comes to it.
    deaf = Talk(TWO_NETS, "b", before=in_room(), FI_LNX_FAULT="drop rail=" + TCP)
    inside = ["nsenter", "-t", str(deaf.p.pid), "-m", "-n", "-r", "-w"]
    name = deaf.do("name")
    deaf.do("spin")

    def new(board, name=name):
        t = Talk(TWO_NETS, "a", before=inside, FI_LNX_HEALTH_BOARD=board)
        t.do("know " + name)
        # What is lost is sent again.
        t.do("spin")
        return t

    def asks(t, *args):
        return json.loads(run("-p", t.pid, *args, "--json", prefix=inside, wait=True))

    def rail(t):
        return {r["lnx"]["rail"]: r for n in asks(t, "net", "show", "-v", 4)["net"]
                for r in n["local NI(s)"]}[TCP]

    def board(t):
        return rail(t)["lnx"].get("health board", {})

    def over_it(t):
        return sum(p["sent_bytes"] for p in asks(t, "path", "show", "-v", 1)["path"]
                   if p["rail"] == TCP)

    first = new("1")
    until("one finds it out, and says so", lambda: send(first, deaf, 5, 8) or
          board(first).get("told") == 0)
    learned, n = 0, 0
    while n < 3 or (not learned and n < 40):
        knows, other = new("1"), new("0")
        for t in knows, other:
            send(t, deaf, 3, 100)
        heard = board(knows)
        same((heard["heard"], heard["from process"]), (0, first.pid), "what it has heard")
        same(over_it(knows), 0, "bytes of frames of a process that knows, over the dead rail")
        learned += over_it(other) > 0
        knows.end()
        other.end()
        n += 1
    need(learned, "no process without a board began with that rail")
    print("# %d of %d processes without a board sent over the dead rail first" % (learned, n))
    # It is not dead for another peer.
    first.end()
    well = Talk(TWO_NETS, "b", before=inside)
    well.do("spin")
    misled = new("1", well.do("name"))
    until("an answer overrules the board", lambda: send(misled, well, 1, 8) or
          rail(misled)["health stats"]["health value"] == 1000)
    until("it says so", lambda: send(misled, well, 1, 8) or
          board(misled).get("told") == 1000)
    same(asks(misled, "stats", "show")["statistics"]["errors"], 0, "errors")
    seed = int(os.environ.get("LNX_SEED", time.time()))
    print("# LNX_SEED=%d" % seed)
    file = SHM + "/health"
    for how in ("cat > " + file, "mkfifo " + file, "mkdir " + file):
        subprocess.run(inside + ["sh", "-c", "rm -rf %s; umask 077; %s" % (file, how)],
                       input=random.Random(seed).randbytes(11000), check=True)
        t = new("1", well.do("name"))
        send(t, well, 20, 2000)
        send(t, well, 2, 3000000)
        same(rail(t)["health stats"]["health value"], 1000, "health with: " + how)
        same(asks(t, "stats", "show")["statistics"]["errors"], 0, "errors with: " + how)
        t.quit()


def rules(t, *args):
    return show(t, "udsp", "show", *args)["udsp"]


def in_short(t):
    """The rules of a process, each as its patterns and its priority."""
    return ["%s>%s>%s:%s" % (r.get("src", ""), r.get("dst", ""), r.get("rte", ""),
                             r.get("action", {}).get("priority", "")) for r in rules(t)]


def case_udsp():
    a, b = pair(SLURM_JOB_ID="udsp-%d" % os.getpid())
    job = "--job=udsp-%d" % os.getpid()
    send(a, b, 1, 1)
    a.do("spin")
    b.do("spin")
    same(rules(a), [], "no rules")

    def add(*args, **kw):
        text = run("-p", a.pid, "--json", "udsp", "add", *args, **kw)
        return json.loads(text)["udsp"][0] if text else None

    same(add("--src", "tcp"), {"idx": 0, "id": 1}, "add")
    same(add("--src", "127.0.0.*@tcp", "--priority", 7), {"idx": 1, "id": 2}, "NIDs")
    same(add("--dst", "tcp9", "--priority=4294967294"), {"idx": 2, "id": 3}, "net of peers")
    same(add("--dst", "10.0.0.1@tcp", "--idx", 0), {"idx": 0, "id": 4}, "--idx")
    same(add("--src", "*.*.*.*@tcp", "--dst", "tcp", "--idx", 99), {"idx": 4, "id": 5},
         "a pair, and an index that is too high")
    same(add("--dst", "tcp*", "--rte", "10.0.0.9@tcp"), {"idx": 5, "id": 6}, "gateway")
    same(add("--src", "tcp", "--priority", 3), {"idx": 1, "id": 1}, "another priority")
    want = [">10.0.0.1@tcp>:0", "tcp>>:3", "127.0.0.*@tcp>>:7", ">tcp9>:4294967294",
            "*.*.*.*@tcp>tcp>:", ">tcp*>10.0.0.9@tcp:"]
    same(in_short(a), want, "in order")
    same([r["idx"] for r in rules(a)], list(range(6)), "idx")
    same([r["kind"] for r in rules(a)], ["remote rail", "net", "rail", "net", "pair",
                                         "gateway"], "kinds")
    applies = [r["applies to"] for r in rules(a)]
    for k, what in (0, "waits for a rail of a peer"), (1, "1 rail of ours"), \
            (2, "1 rail of ours"), (4, "1 rail of ours, to 1 rail of peers"), \
            (5, "until routing is used"):
        need(what in applies[k], "rule", k, "applies to", applies[k])
    more = rules(a, "-v")[4]
    same([more[k] for k in ("rails", "rails of peers", "matched", "decides")], [1] * 4,
         "numbers of a pair")
    same(rules(b), [], "of another process")

    # Filters.
    same([r["idx"] for r in rules(a, "--src", "tcp")], [1], "--src of show")
    same([r["id"] for r in rules(a, "--src", "127.0.0.1@tcp")], [1, 2, 5], "one NID")
    same([r["id"] for r in rules(a, "--dst", "tcp*")], [6], "an equal pattern")
    same([r["id"] for r in rules(a, "--idx", 3)], [3], "--idx of show")
    same([r["id"] for r in rules(a, "--id", 5)], [5], "--id of show")
    for args in ("--idx", 6), ("--id", 77):
        run("-p", a.pid, "udsp", "show", *args, status=REFUSED)
        need("there is no rule" in run.said, run.said)

    # What is refused changes nothing.
    for args, why in ((("--src", "tcp", "--priority", 3), "there already"),
                      (("--src", "tcp", "--rte", "1.1.1.1@tcp"), "cannot be combined"),
                      (("--src", "tcp", "--dst", "tcp", "--rte", "1.1.1.1@tcp"),
                       "cannot be combined"),
                      (("--src", "tcp", "--dst", "tcp", "--priority", 1), "priority"),
                      (("--rte", "1.1.1.1@tcp"), "dst"),
                      (("--src", "10.0.0.300@tcp"), "255"),
                      (("--src", "tcp[1-9/0]"), "stride"),
                      (("--src", "tpc"), "tpc"), (("--src", "shm"), "shared memory")):
        add(*args, status=REFUSED)
        need(why in run.said, args, "is refused with:", run.said)
    for args in ((), ("--priority", 1), ("--src",), ("--src", ""), ("--src", "a" * 256),
                 ("--src", "tcp", "--priority", "best"), ("--src", "tcp", "--idx", -1),
                 ("--src", "tcp", "--priority", "4294967295"), ("--id", 1),
                 ("--src", "tcp", "--src", "tcp1"), ("--src", "tcp", "--all=1"),
                 ("--src", "tcp", "more")):
        add(*args, status=USAGE)
    same(in_short(a), want, "after all that was refused")

    # Deleting.
    def del_(*args, **kw):
        run("-p", a.pid, "udsp", "del", *args, **kw)

    for args in ((), ("--idx", 0, "--all"), ("--idx", 0, "--id", 1), ("--priority", 1),
                 ("--id", 0), ("--idx", "first"), ("--all", "--src", "tcp")):
        del_(*args, status=USAGE)
    for args in (("--idx", 6), ("--id", 99), ("--src", "tcp1"),
                 ("--src", "tcp", "--priority", 9)):
        del_(*args, status=REFUSED)
        need("no " in run.said, run.said)
    same(in_short(a), want, "nothing was deleted")
    del_("--idx", 2)
    del_("--id", 3)
    del_("--src", "tcp", "--priority", 3)
    del_("--dst", "tcp*", "--rte", "10.0.0.9@tcp")
    same(in_short(a), [want[0], want[4]], "deleted")
    same(add("--src", "tcp")["id"], 7, "no id comes twice")
    del_("--all")
    same(rules(a), [], "--all")
    del_("--all")

    # --all of "del" is all rules, and chooses no process.
    add("--src", "tcp")
    run("udsp", "del", "--all", status=USAGE)
    need("choose one" in run.said, run.said)
    text = run(job, "udsp", "add", "--src", "tcp", "--priority", 5, "--json", wait=True)
    same([p["pid"] for p in json.loads(text)["process"]], [a.pid, b.pid], "of the job")
    same((in_short(a), in_short(b)), (["tcp>>:5"], ["tcp>>:5"]), "in all processes")
    run(job, "udsp", "del", "--all", wait=True)
    same((rules(a), rules(b)), ([], []), "none in any process")

    # More than one reply has room for.
    for i in range(70):
        add("--dst", "10.1.%d.*@tcp" % i)
    same([r["idx"] for r in rules(a)], list(range(70)), "many rules")


def case_udsp_text():
    """A ';' behind the last rule costs nothing, a rule of which a part has a net is no mistake,
    and one that is wrong is said to leave lnx out, whatever may be taken instead."""
    def said(**env):
        p = subprocess.run([TALK, "-p", "lnx", "-n", "1", "-S", "1"], text=True, input="quit\n",
                           capture_output=True, timeout=HANGS_S, env=dict(
                               clean_env(), FI_PROVIDER_PATH="+" + SO, FI_PROVIDER="lnx",
                               FI_LNX_PROV_LINKS="tcp:lo", FI_LNX_HEALTH_BOARD="0", **env))
        return p.returncode, [l for l in p.stderr.split("\n") if l.startswith("lnx: ")]

    for text in "src: tcp;", ";", "; src: tcp ;; dst: tcp;\n", "src: tcp,tcp1":
        same(said(FI_LNX_UDSP=text), (0, []), text)
    status, lines = said(FI_LNX_UDSP="src: tcp2,tcp1")
    same((status, len(lines)), (0, 1), lines)
    need('no rail can be of "tcp2,tcp1"' in lines[0], lines)
    status, lines = said(FI_LNX_UDSP="src: tcp; scr: tcp")
    need(status and len(lines) == 1 and "another provider may be taken" in lines[0], lines)
    a = Talk("tcp:lo", "a", FI_LNX_UDSP="src: tcp;")
    a.do("spin")
    same([r["src"] for r in rules(a)], ["tcp"], "rules")
    # The same set is the same rule, however it is written.
    first = json.loads(run("-p", a.pid, "udsp", "add", "--dst", "10.0.0.[1,3,5,7,9]@tcp", "--json",
                           wait=True))["udsp"][0]["id"]
    again = json.loads(run("-p", a.pid, "udsp", "add", "--dst", "10.0.0.[1-9/2]@tcp",
                           "--priority", 3, "--json", wait=True))["udsp"][0]["id"]
    same(again, first, "id")
    same([r["dst"] for r in rules(a) if "dst" in r], ["10.0.0.[1-9/2]@tcp"], "rules")
    run("-p", a.pid, "udsp", "del", "--dst", "10.0.0.[1,3,9,5,7]@tcp", wait=True)
    same([r for r in rules(a) if "dst" in r], [], "deleted")


def case_c_interface():
    """What lnx_policy.h offers to programs."""
    def api(*args):
        p = subprocess.run([RULES_API] + [str(x) for x in args], stdout=subprocess.PIPE,
                           text=True, timeout=10 * HANGS_S)
        return p.returncode, p.stdout.strip()

    a = Talk("tcp:lo", "a")
    a.do("spin")
    eid = json.loads(run("-p", a.pid, "info", "--json"))["endpoint info"]["id"]
    for args in [a.pid], [a.pid, eid]:
        same(api(*args), (0, ""), "rules_api")
        same(rules_now(a), [], "rules that are left")
    same(api(a.pid, "4711"), (3, os.strerror(errno.ENOENT)), "another endpoint")
    same(api(os.getpid()), (3, os.strerror(errno.ESRCH)), "a process without one")
    same(api(0), (3, os.strerror(errno.EINVAL)), "no process")
    a.p.kill()
    a.p.wait()
    same(api(a.pid), (3, os.strerror(errno.ESRCH)), "a process that has ended")


def case_udsp_silent():
    a, b = pair(SLURM_JOB_ID="silent-%d" % os.getpid())
    send(a, b, 1, 1)
    a.do("still")
    b.do("spin")
    for args in ("add", "--src", "tcp"), ("del", "--all"):
        run("-p", a.pid, "udsp", *args, status=NO_ANSWER)
        need("makes no progress" in run.said, run.said)
    same(show(a, "udsp", "show", silent=True)["udsp"], [], "of one that makes no progress")
    text = run("--job=silent-%d" % os.getpid(), "udsp", "add", "--src", "tcp", status=PARTLY)
    need(str(b.pid) in text, "one of the two")
    a.do("spin")
    time.sleep(0.3)
    same(rules(a), [], "requests that were withdrawn")
    same(in_short(b), ["tcp>>:0"], "of the one that answers")
    with tempfile.TemporaryDirectory() as where:
        copy = os.path.join(where, "copy")
        run("-p", a.pid, "dump", copy)
        same(show(None, "-f", copy, "udsp", "show", silent=True)["udsp"], [], "of a copy")
        run("-f", copy, "udsp", "add", "--src", "tcp", status=REFUSED)
        need("copy" in run.said, run.said)
    a.p.send_signal(signal.SIGKILL)
    a.p.wait()
    run("-p", a.pid, "udsp", "add", "--src", "tcp", status=NO_ANSWER)
    need("has ended" in run.said, run.said)
    need("has ended" in show(a, "udsp", "show", silent=True)["last seen"], "how old it is")
    c, d = pair(hosts=("c", "d"), FI_LNX_USE_SRQ="0")
    c.do("spin")
    run("-p", c.pid, "udsp", "add", "--src", "tcp")
    need("no effect" in run.said, "with operations of the core:", run.said)


def case_published():
    """What rules there were, and which way messages took, without the process: it makes no
    progress, was killed, or there is only a copy."""
    a, b = pair(TWO_NETS, FI_LNX_NETS="left1=tcp/127.0.0.0/8")
    a.do("spin")
    b.do("spin")
    send(a, b, 1, 1)
    for args in (("--src", "left1"), ("--dst", "127.0.0.*@left1", "--priority", 7),
                 ("--dst", "10.0.0.1@tcp;ofi_rxm"), ("--src", "left1", "--dst", "left1")):
        run("-p", a.pid, "udsp", "add", *args, wait=True)
    run("-p", a.pid, "udsp", "del", "--idx", 2, wait=True)
    want = show(a, "udsp", "show", "-v", wait=True)
    same([r["id"] for r in want["udsp"]], [1, 2, 4], "rules of one that lives")
    for what in "net", "peer", "path", "stats", "global":
        need("last seen" not in show(a, what, "show", wait=True), what)
    paths = until("the peer is published with its rules", lambda: [
        p for p in explained(a) if p["use"] == "frames" and p["rail"] == TCP])
    until("so is the path", lambda: json.loads(run(
        "-p", a.pid, "path", "show", "--json", wait=True))["path"][0]["current"])
    with tempfile.TemporaryDirectory() as where:
        copy = os.path.join(where, "copy")
        run("-p", a.pid, "dump", copy, wait=True)
        a.do("still")
        a.do("counts")
        ways = [(a, ()), (None, ("-f", copy))]
        why = "makes no progress", "is a copy"
        for (t, at), because in zip(ways, why):
            without(t, at, want, because)
        a.p.send_signal(signal.SIGKILL)
        a.p.wait()
        without(a, (), want, "has ended")
    need(paths, "a path")


def without(t, at, want, because):
    """What is shown of a process that is not asked."""
    got = show(t, *at, "udsp", "show", "-v", silent=True)
    same(got["udsp"], want["udsp"], "rules: " + because)
    need(THEN in got["last seen"] and because in got["last seen"], got["last seen"])
    for args, ids in ((("--idx", 1), [2]), (("--id", 4), [4]), (("--src", "left1"), [1, 4]),
                      (("--dst", "127.0.0.1@left1"), [2, 4]),
                      (("--src", "left1", "--dst", "left1"), [4])):
        same([r["id"] for r in show(t, *at, "udsp", "show", *args, silent=True)["udsp"]], ids,
             "filter %s: %s" % (args, because))
    pid = ["-p", t.pid] if t else []
    run(*pid, *at, "udsp", "show", "--id", 3, status=REFUSED)
    need("there is no rule with id 3" in run.said, run.said)
    got = show(t, *at, "explain", 0, silent=True)
    need(THEN in got["last seen"] and because in got["last seen"], got["last seen"])
    one, = got["explain"]
    same(one["way"], "framed", "way: " + because)
    for what in "net", "peer", "path", "stats", "global":
        got = show(t, *at, what, "show", silent=True)
        need(THEN in got.get("last seen", "") and because in got["last seen"], what, got)
    by = {p["rail"]: p for p in one["paths"]}
    same((by[TCP]["use"], by[TCP]["rank"]), ("frames", 0), "the path in use: " + because)
    same((by[RXM]["use"], by[RXM]["rank"] > 0), ("no", True), "the other one: " + because)
    need("rule for" in by[RXM]["because"], by[RXM])
    run(*pid, *at, "explain", 9, status=REFUSED)
    need("met no such peer" in run.said, run.said)


def of_both(t, what):
    """A number of each of the two rails.  They may do something meanwhile."""
    text = run("-p", t.pid, "net", "show", "-v", 4, "--json", wait=True)
    ni = {r["lnx"]["rail"]: r for n in json.loads(text)["net"] for r in n["local NI(s)"]}
    return [ni[r]["statistics"][what] for r in (TCP, RXM)]


def sent_by(t):
    return of_both(t, "send_count")


def received_by(t):
    return of_both(t, "recv_length")


def goes_by(a, b, rail):
    """Messages go over that rail alone.  ms until they did."""
    begin = time.monotonic()
    while True:
        before = sent_by(a)
        took = time.monotonic() - begin
        send(a, b, 50, 200)
        moved = [x - y for x, y in zip(sent_by(a), before)]
        if moved == ([50, 0] if rail == TCP else [0, 50]):
            return 1000 * took
        need(time.monotonic() - begin < HANGS_S, "messages do not go by", rail, moved)


def used(t):
    return [p["rail"] for p in explained(t) if p["use"] == "frames"]


def explained(t):
    return json.loads(run("-p", t.pid, "explain", 0, "--json",
                          wait=True))["explain"][0]["paths"]


def read_by(a, b, rail):
    """Large messages from a to b go by that rail."""
    before = received_by(b)
    send(a, b, 20, 1000000)
    moved = [x - y for x, y in zip(received_by(b), before)]
    same(sum(moved), 20000000, "read")
    if rail == TCP:
        moved.reverse()
    need(moved[0] * 20 < moved[1], "read by the other rail than", rail, "and by it:", moved)


def case_udsp_effect():
    """Rules move the traffic of processes that run."""
    a, b = pair(TWO_NETS)
    send(a, b, 20, 200)
    a.do("spin")
    b.do("spin")
    took = []
    for i in range(5):
        for rail in RXM, TCP:
            # Names of nets are those of providers here.
            run("-p", a.pid, "udsp", "add", "--src", rail.rsplit(":", 1)[0], wait=True)
            took.append(goes_by(a, b, rail))
            same(used(a), [rail], "explain with the rule")
            # A rail where frames were late, as on a busy machine, says that first.
            other, = until("the rule is why the other rail is not used", lambda: [
                p for p in explained(a)
                if p["rail"] != rail and p["rank"] > 0 and "rule" in p["because"]])
            decides, = [p.get("rules") for p in explained(a) if p["rail"] == rail]
            same(decides, rules_now(a)[0]["id"], "the rule that explain names")
            need("rules" not in other, other)
            run("-p", a.pid, "udsp", "del", "--all", wait=True)
    print("# a rule moved the traffic after %.0f to %.0f ms" % (min(took), max(took)))
    # A pair, from the other end; and what hid it is deleted.
    run("-p", a.pid, "udsp", "add", "--dst", "tcp", wait=True)
    goes_by(a, b, TCP)
    run("-p", a.pid, "udsp", "add", "--src", "tcp;ofi_rxm", "--dst", "tcp;ofi_rxm",
        wait=True)
    goes_by(a, b, TCP)
    same([p.get("rules") for p in explained(a)], [11, 12], "rules of each path")
    run("-p", a.pid, "udsp", "add", "--src", "tcp", "--priority", 9, wait=True)
    same([p.get("rules") for p in explained(a)], ["13,11", 12], "two of one path")
    run("-p", a.pid, "udsp", "del", "--id", 13, wait=True)
    run("-p", a.pid, "udsp", "del", "--idx", 0, wait=True)
    goes_by(a, b, RXM)
    # Large messages are read by the receiver, but the sender's rules come first.
    read_by(a, b, RXM)
    run("-p", b.pid, "udsp", "add", "--src", "tcp", wait=True)
    goes_by(b, a, TCP)
    read_by(a, b, RXM)
    read_by(b, a, TCP)
    # It has no rule any more.
    run("-p", a.pid, "udsp", "del", "--all", wait=True)
    read_by(a, b, TCP)


def case_one_path():
    """Large messages arrive whichever single path each end has."""
    for env in ({"FI_LNX_MULTI_RAIL_SELECTION": "PER_PEER"}, {"FI_LNX_MAX_RAILS": "1"}):
        for net in "tcp", "tcp;ofi_rxm":
            a = Talk(TWO_NETS, "a", FI_LNX_UDSP="src: " + net, **env)
            b = Talk(TWO_NETS, "b", **env)
            c = Talk(TWO_NETS, "c", **env)
            # Also after an error, so that the other one is told of it.
            for t in a, b, c:
                t.do("spin")
            names = a.do("name"), b.do("name")
            a.do("know " + names[1])
            b.do("know " + names[0])
            for n, size in (3, 200), (3, 1000000):
                send(a, b, n, size)
                send(b, a, n, size)
            # One that knows two others uses another rail for each of them.
            c.do("know " + names[0])
            b.do("know " + c.do("name"))
            c.do("know " + names[1])
            c.tell("recv 3 1000000")
            b.do("send 1 3 1000000")
            c.answer()
            b.tell("recv 3 1000000")
            c.do("send 1 3 1000000")
            b.answer()
            for t in a, b, c:
                t.quit()


def flowing(a, b, size=200):
    """Messages go from a to b, on and on."""
    b.do("sink %d" % size)
    a.do("flow 0 %d" % size)
    a.do("spin")
    b.do("spin")


def flown(a, n):
    """What both rails send while that many messages leave."""
    first = sent_by(a)
    while True:
        moved = [x - y for x, y in zip(sent_by(a), first)]
        if sum(moved) >= n:
            return moved


def case_live():
    """A change is in effect for the next message: while messages flow, those that leave
    after lnxctl has ended are counted, so that it does not matter how fast anything is."""
    a, b = pair(TWO_NETS)
    send(a, b, 20, 200)
    flowing(a, b)
    run("-p", a.pid, "udsp", "add", "--src", "tcp", "--priority", 5, wait=True)
    until("messages flow by " + TCP, lambda: flown(a, 500)[1] == 0)
    took, before, only_lnxctl = [], [], []
    for i in range(5):
        for new, priority in (1, 0), (0, 9):
            begin = time.monotonic()
            run("-p", a.pid, "params", "spill", wait=True)
            only_lnxctl.append(1000 * (time.monotonic() - begin))
            first, begin = sent_by(a), time.monotonic()
            run("-p", a.pid, "udsp", "add", "--src", "tcp;ofi_rxm", "--priority", priority,
                wait=True)
            took.append(1000 * (time.monotonic() - begin))
            at = sent_by(a)
            before.append(at[not new] - first[not new])
            moved = flown(a, 2000)
            # What a core refuses for a moment may take the other rail.
            need(moved[not new] * 100 <= moved[new], "by the new and the old rail, after the "
                 "command:", moved[new], moved[not new])
    print("# udsp add: %.0f to %.0f ms with the start of lnxctl, %d to %d messages by the old "
          "rail meanwhile, %d of %d after it" % (min(took), max(took), min(before), max(before),
                                                 moved[0], sum(moved)))
    # What was changed counts before lnxctl has ended, and that takes about as long as when it
    # only reads what is published.
    took, only_lnxctl = (sorted(t)[len(t) // 2] for t in (took, only_lnxctl))
    print("# median %.0f ms, and %.0f ms of an lnxctl that changes nothing" % (
        took, only_lnxctl))
    if os.environ.get("LNX_TEST_TIMES") == "1":
        need(took < 4 * only_lnxctl, "a change takes", took, "ms, lnxctl alone", only_lnxctl)
    # Rules that go, and weights.
    run("-p", a.pid, "udsp", "add", "--src", "tcp;ofi_rxm", "--priority", 0, wait=True)
    need(flown(a, 2000)[0] * 100 <= 2000, "by tcp;ofi_rxm")
    run("-p", a.pid, "udsp", "del", "--src", "tcp;ofi_rxm", "--priority", 0, wait=True)
    moved = flown(a, 2000)
    need(moved[1] * 100 <= moved[0], "after udsp del:", moved)
    a.do("ebb")


def case_preferred():
    """A preferred net keeps its traffic although frames are lost and sends fail."""
    a, b = pair(TWO_NETS, FI_LNX_UDSP="src: tcp;ofi_rxm")
    send(a, b, 20, 200)
    flowing(a, b, 2000)
    until("messages flow by " + RXM, lambda: flown(a, 500)[0] == 0)
    for what in "drop kind=tag count=1", "fail=local_error kind=tag count=1":
        first = of_both(a, "send_length")
        run("-p", (b if "drop" in what else a).pid, "fault", "add", what, wait=True)
        begin = time.monotonic()
        # The backoff after a failure is the same however much goes by.
        while time.monotonic() - begin < 4:
            flown(a, 5000)
        moved = [x - y for x, y in zip(of_both(a, "send_length"), first)]
        print("# %s: %d of %d bytes by the preferred net" % (what, moved[1], sum(moved)))
        need(moved[1] * 100 >= sum(moved) * 99, what, "and then by each rail:", moved)
        hit = [r for t in (a, b) for r in rules_of_faults(t)]
        same(sum(hit), 1, "faults that happened")
        for t in a, b:
            run("-p", t.pid, "fault", "del", "all", wait=True)
    a.do("ebb")


def rules_of_faults(t):
    text = run("-p", t.pid, "--json", "fault", "show", wait=True)
    return [r["hit"] for r in json.loads(text)["fault"]]


def case_udsp_soak():
    """Rules change while frames are lost, repeated and late: all arrives, once."""
    seed = int(os.environ.get("LNX_SEED", time.time()))
    print("# LNX_SEED=%d" % seed)
    r = random.Random(seed)
    a, b = pair(TWO_NETS)
    send(a, b, 20, 200)
    for t in a, b:
        t.do("spin")
        for rule in ("drop kind=tag rate=200", "delay=2ms kind=tag rate=100",
                     "drop kind=ack rate=50"):
            run("-p", t.pid, "fault", "add", rule, wait=True)
    flowing(a, b)
    for i in range(25):
        t, net = r.choice((a, b)), r.choice(("tcp", "tcp;ofi_rxm"))
        what = r.choice(("src", "dst", "pair", "del"))
        if what == "del":
            run("-p", t.pid, "udsp", "del", "--all", wait=True)
        elif what == "pair":
            try_add(t, "--src", net, "--dst", net, "--idx", 0)
        else:
            try_add(t, "--" + what, net, "--priority", r.randrange(5))
        flown_one(a)
    for t in a, b:
        run("-p", t.pid, "fault", "del", "all", wait=True)
    a.do("ebb")
    sent = a.counts()[0]
    until("all arrives", lambda: b.counts()[2] >= sent)
    time.sleep(0.3)
    same(b.counts()[2:], a.counts()[:2], "messages and bytes that arrive")
    need(show(a, "stats", "show", wait=True)["statistics"]["resend_count"] > 0, "sent again")


def try_add(t, *args):
    """Perhaps it is there already."""
    p = subprocess.run([LNXCTL, "-p", str(t.pid), "--wait", str(HANGS_S * 500), "udsp",
                        "add", *map(str, args)], text=True, stdout=subprocess.PIPE,
                       stderr=subprocess.PIPE, timeout=HANGS_S)
    need(p.returncode == OK or "there already" in p.stderr, args, p.stderr)


def tx_credits(t):
    """Of the rail and of the peer's rail: max, available, min, queued."""
    text = run("-p", t.pid, "net", "show", "-v", "--net", "tcp", "--json", wait=True)
    r = json.loads(text)["net"][0]["local NI(s)"][0]
    text = run("-p", t.pid, "peer", "show", "-v", "--json", wait=True)
    p = json.loads(text)["peer"][0]["peer ni"][0]
    return [[d[k] for k in (most, "available_tx_credits", "min_tx_credits",
                            "tx_q_num_of_buf")]
            for d, most in ((r, "max_tx_credits"), (p, "max_ni_tx_credits"))]


def in_use(c):
    return c[0] - c[1] - c[3]


def explained(t):
    """The paths to the first peer."""
    return json.loads(run("-p", t.pid, "explain", 0, "--json", wait=True))["explain"][0][
        "paths"]


def case_credits():
    """FI_LNX_CREDITS and FI_LNX_PEER_CREDITS: shown, kept to, changed at any time."""
    a, b = pair("tcp:lo", FI_LNX_CREDITS="7", FI_LNX_PEER_CREDITS="3")
    send(a, b, 500, 8)
    send(b, a, 500, 5000)
    a.do("spin")
    b.do("spin")
    for t in a, b:
        until("all is acknowledged", lambda: not any(in_use(c) for c in tx_credits(t)))
        rail, peer = tx_credits(t)
        same((rail[0], peer[0]), (7, 3), "limits")
        same((rail[1], rail[3], peer[1], peer[3]), (7, 0, 3, 0), "nothing is under way")
        need(4 <= rail[2] < 7, "rail: 3 of 7 were in use at most, not", rail[2])
        need(peer[2] < 0, "peer: some waited:", peer[2])
    tunables = show(a, "net", "show", "-v", "--net", "tcp")["net"][0]["local NI(s)"][0][
        "tunables"]
    same((tunables["credits"], tunables["peer_credits"]), (7, 3), "tunables")
    same(params(a, "credits"), {"name": "credits", "value": "7", "unit": "frames",
                                "origin": "environment", "set": "any time"}, "params")
    for name in "credits", "peer_credits":
        for value in "3.5", 65536, "many":
            run("-p", a.pid, "set", name, value, status=REFUSED)
            need('%s="%s": must be a whole number from 0 to 65535' % (name, value) in
                 run.said, run.said)
    path = explained(a)[0]
    same([path[k] for k in ("credits_used", "credits_max", "rail_credits_used",
                            "rail_credits_max")], [0, 3, 0, 7], "credits in explain")
    m = parse_metrics(run("metrics"))
    same([m["lnx_rail_" + k, str(a.pid), "tcp:lo"] for k in (
        "tx_credits_limit", "peer_tx_credits_limit", "tx_credits_used", "tx_credits_queued",
        "tx_credits_used_highest")], [7, 3, 0, 0, 7 - tx_credits(a)[0][2]], "metrics")
    # While messages flow.
    flowing(a, b)
    for name, which in ("peer_credits", 1), ("credits", 0):
        # Frames wait, and explain says for what.
        run("-p", a.pid, "set", name, 1, wait=True)
        until("explain says that FI_LNX_%s is why" % name.upper(), lambda: all(
            w in explained(a)[0]["because"] for w in ("no credit is left",
                                                      "FI_LNX_" + name.upper())))
        for value in 1, 2, 50, 4, 1:
            run("-p", a.pid, "set", name, value, wait=True)
            # Those that were under way.
            until("%s %d" % (name, value), lambda: in_use(tx_credits(a)[which]) <= value)
            for i in range(5):
                c = tx_credits(a)[which]
                need(c[0] == value and in_use(c) <= value, name, value, "but", c)
            flown_one(a)
        run("-p", a.pid, "set", name, 0, wait=True)
    a.do("ebb")
    until("all is acknowledged", lambda: not any(in_use(c) for c in tx_credits(a)))
    need(tx_credits(a)[0][2] < 0, "without a limit min_tx_credits tells the most")
    same(tx_credits(a)[1][0], 512, "the window")
    m = parse_metrics(run("metrics"))
    need(not any(k[0].endswith("credits_limit") and k[1] == str(a.pid) for k in m),
         "without a limit there is no sample")
    need(m["lnx_rail_tx_credits_used_highest", str(a.pid), "tcp:lo"] > 7, "the most")


def case_credits_choice():
    """Of two paths one is not taken because it has no credits, or fewer."""
    a, b = pair(TWO_NETS, FI_LNX_PEER_CREDITS="1")
    flowing(a, b)
    until("the other path has no credits left", lambda: any(
        p["use"] == "no" and "no credit is left" in p["because"] for p in explained(a)))
    a.do("ebb")
    b.do("ebb")
    a, b = pair(TWO_NETS, FI_LNX_PEER_CREDITS="20", FI_LNX_CREDITS="40",
                FI_LNX_MULTI_RAIL_SELECTION="LNET")
    flowing(a, b)
    until("LNet's tables take the path with more credits", lambda: any(
        re.search("fewer credits are left .*: -?[0-9]+, of path [01] -?[0-9]+$", p["because"])
        for p in explained(a)))
    a.do("ebb")


def case_credits_file():
    """Tunables of an interface count more than parameters; what is exported has both."""
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as f:
        f.write("""net:
    - net type: tcp
      local NI(s):
        - interfaces: {0: eth77, 1: lo}
          tunables: {peer_credits: 5, credits: 40}
    - net type: verbs
      local NI(s):
        - interfaces: [lo]
          tunables: {credits: 3}
global: {credits: 9}
""")
        f.flush()
        a, b = pair(TWO_NETS, FI_LNX_CONFIG=f.name)
    a.do("spin")
    b.do("spin")
    if not yaml:
        raise Skipped("there is no python3-yaml")

    def limits(t):
        nets = json.loads(run("-p", t.pid, "net", "show", "-v", "--json", wait=True))["net"]
        return {n["net type"]: [n["local NI(s)"][0]["tunables"][k]
                                for k in ("credits", "peer_credits")] for n in nets}

    same([params(a, n)["origin"] for n in ("credits", "prov_links", "spill")],
         ["configuration file", "environment", "default"], "origin")
    want = {"tcp": [40, 5], "tcp;ofi_rxm": [9, 512]}
    same(limits(a), want, "limits of each rail")
    text = exported(a)
    found = yaml.safe_load(text)
    same(found["net"], [{"net type": "tcp", "local NI(s)": [
        {"interfaces": {0: "lo"}, "tunables": {"peer_credits": 5, "credits": 40}}]}], "export")
    same(int(found["global"]["credits"]), 9, "export")
    feed(a, text, wait=True)
    same(json.loads(feed(a, text, "--diff", "--json", wait=True)), {"changes": []},
         "nothing to change")
    # Tunables of interfaces change at any time, too.
    feed(a, text.replace("credits: 40", "credits: 41"), wait=True)
    same(limits(a), dict(want, tcp=[41, 5]), "an interface's credits")
    same(exported(a), text.replace("credits: 40", "credits: 41"), "its export")
    run("-p", a.pid, "net", "set", "--nid", RXM, "--credits", 12, "--peer-credits", 0,
        wait=True)
    same(limits(a), {"tcp": [41, 5], "tcp;ofi_rxm": [12, 512]}, "net set")
    run("-p", a.pid, "net", "set", "--nid", "tcp*", "--peer-credits", "default", wait=True)
    same(limits(a), {"tcp": [41, 512], "tcp;ofi_rxm": [12, 512]}, "net set ... default")
    feed(a, text, wait=True)
    same((limits(a), exported(a)), (want, text), "import")
    # Of a process without such tunables too.
    d = Talk(TWO_NETS, "d")
    d.do("spin")
    before = exported(d)
    run("-p", d.pid, "net", "set", "--nid", "tcp:lo", "--credits", 12, wait=True)
    feed(d, before, wait=True)
    same(exported(d), before, "import of what had no tunables")
    for args in (("--credits", 65536), ("--credits", "x"), ("--peer-credits", -1),
                 ("--credits", 3, "--health", 5)):
        run("-p", a.pid, "net", "set", "--nid", "tcp:lo", *args, status=USAGE)
    run("-p", a.pid, "net", "set", "--nid", "eth9", "--credits", 3, status=REFUSED)
    run("-p", a.pid, "net", "set", "--credits", 3, status=USAGE)
    same((limits(a), exported(a)), (want, text), "nothing is changed")
    feed(a, "global: {credits: 11, peer_credits: 2}\n", wait=True)
    same(limits(a), {"tcp": [40, 5], "tcp;ofi_rxm": [11, 2]}, "import")
    feed(a, text, wait=True)
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as f:
        f.write(text)
        f.flush()
        c = Talk(TWO_NETS, "a", FI_LNX_CONFIG=f.name)
        c.do("spin")
        same(limits(c), want, "of a process that starts with it")
        same(exported(c), text, "its export")


def flown_one(a):
    """It goes on."""
    n = int(a.do("counts").split()[0])
    until("messages flow", lambda: int(a.do("counts").split()[0]) > n + 100)


def feed(t, text, *args, **kw):
    """Import that text."""
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as f:
        f.write(text)
        f.flush()
        return run("-p", t.pid, "import", *args, f.name, **kw)


def with_yaml():
    """A pair with nets of their own, and the rail names of those."""
    a, b = pair(TWO_NETS, FI_LNX_NETS="left1=tcp;ofi_rxm", FI_LNX_HOLD_DOWN="123")
    send(a, b, 1, 1)
    a.do("spin")
    b.do("spin")
    need_yaml(a)
    return a, b


def need_yaml(t):
    """Is lnxctl built with libyaml?"""
    p = subprocess.run([LNXCTL, "-p", str(t.pid), "--wait", str(HANGS_S * 500), "import",
                        "--dry-run", "/dev/null"], stderr=subprocess.PIPE, text=True,
                       timeout=HANGS_S)
    if "libyaml" in p.stderr:
        raise Skipped(p.stderr.strip())
    same(p.returncode, OK, "an empty file: " + p.stderr)


def random_rule(r):
    nets = ["tcp", "left1", "left*", "tcp[0-3]", "*.*.*.*@tcp", "127.0.0.1@left1",
            "10.0.%d.*@tcp" % r.randrange(40), "127.0.0.[1,4-%d]@tcp" % r.randrange(5, 250)]
    kind = r.randrange(4)
    out = ["--dst" if kind else "--src", r.choice(nets)]
    if kind == 3:
        return out + ["--src", r.choice(nets)]
    if kind == 2 and r.random() < 0.3:
        return out + ["--rte", "10.9.0.%d@left1" % r.randrange(256)]
    return out + ["--priority", r.choice((0, 1, r.randrange(2 ** 32 - 1)))]


def random_route(t, r):
    """Add or delete one; nothing is at these addresses."""
    args = ["--net", r.choice(("verbs", "tcp3", "tcp4", "cxi2")),
            "--gateway", "10.9.0.%d@%s" % (r.randrange(1, 9), r.choice(("tcp", "left1")))]
    if r.random() < 0.6:
        args += ["--hop", r.randrange(1, 256)] if r.random() < 0.5 else []
        args += ["--priority", r.randrange(9)] if r.random() < 0.5 else []
        args.insert(0, "add")
    else:
        args = ["del"] + args[:2 if r.random() < 0.3 else 4]
    p = subprocess.run([LNXCTL, "-p", str(t.pid), "--wait", str(HANGS_S * 500), "route",
                        *map(str, args)], text=True, stdout=subprocess.PIPE,
                       stderr=subprocess.PIPE, timeout=HANGS_S)
    need(p.returncode == OK or "already" in p.stderr or "there is no route" in p.stderr,
         args, p.stderr)


def change(t, r):
    """A few random changes of rules and settings."""
    for _ in range(r.randrange(1, 12)):
        what = r.random()
        if what < 0.55:
            args = random_rule(r) + (["--idx", r.randrange(9)] if r.random() < 0.5 else [])
            p = subprocess.run([LNXCTL, "-p", str(t.pid), "--wait", str(HANGS_S * 500),
                                "udsp", "add", *map(str, args)], text=True,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                               timeout=HANGS_S)
            need(p.returncode == OK or "there already" in p.stderr, args, p.stderr)
        elif what < 0.65:
            random_route(t, r)
        elif what < 0.8:
            there = len(rules_now(t))
            if there:
                run("-p", t.pid, "udsp", "del", "--idx", r.randrange(there), wait=True)
        else:
            run("-p", t.pid, "set", *r.choice((
                ("spill", r.randrange(1, 5000)), ("hold_down", r.randrange(1000)),
                ("numa_range", r.randrange(50)), ("retry_count", r.randrange(1, 9)),
                ("credits", r.randrange(50)), ("peer_credits", r.randrange(50)),
                ("health_sensitivity_classes", "remote_timeout=%d" % r.randrange(900)))),
                wait=True)


def rules_now(t):
    return json.loads(run("-p", t.pid, "udsp", "show", "--json", wait=True))["udsp"]


def without_numbers(found):
    return [{k: v for k, v in rule.items() if k not in ("id", "applies to")}
            for rule in found]


def exported(t, *args):
    return run("-p", t.pid, "export", *args, wait=True)


def case_export_mended():
    """Values that do not fit are exported as they are used."""
    a, b = with_yaml()
    run("-p", a.pid, "set", "hold_down", 3000, wait=True)
    feed(a, exported(a, "-v"), wait=True)
    feed(a, exported(a), wait=True)
    run("-p", a.pid, "set", "hold_down_max", 0, wait=True)
    at = {p["name"]: str(p["value"]) for p in show(a, "params")["params"]}
    same((at["hold_down"], at["hold_down_max"]), ("3000", "3000"), "what is used")
    for env in (dict(FI_LNX_HOLD_DOWN="2000"), dict(FI_LNX_RECOVERY_PING_INTERVAL="3600000"),
                dict(FI_LNX_PROTOCOL="direct"), dict(FI_LNX_USE_SRQ="0")):
        c = Talk("tcp:lo", "a", **env)
        c.do("spin")
        with tempfile.NamedTemporaryFile("w", suffix=".yaml") as f:
            f.write(exported(c, "-v"))
            f.flush()
            d = Talk("tcp:lo", "a", FI_LNX_CONFIG=f.name)
            d.do("spin")
            same(exported(d, "-v"), exported(c, "-v"), str(env))


def case_export_import():
    """To import what was exported restores just that."""
    a, b = with_yaml()
    seed = int(os.environ.get("LNX_SEED", time.time()))
    print("# LNX_SEED=%d" % seed)
    r = random.Random(seed)
    before = exported(a)
    run("-p", a.pid, "set", "health_sensitivity_classes", "remote_timeout=50")
    feed(a, before, wait=True)
    same(exported(a), before, "a parameter that had no value")
    # It does not keep health from being switched off.
    feed(a, "global: {health_sensitivity: 0, retry_count: 0}\n", wait=True)
    feed(a, before, wait=True)
    same(exported(a), before, "and again")
    for i in range(8):
        change(a, r)
        text, there, all_params = exported(a), rules_now(a), exported(a, "-v")
        feed(a, text, wait=True)
        same((exported(a), rules_now(a)), (text, there), "import of what there is")
        change(a, r)
        feed(a, text, wait=True)
        same(exported(a), text, "seed %d, round %d: restored" % (seed, i))
        same(exported(a, "-v"), all_params, "all parameters")
        same(without_numbers(rules_now(a)), without_numbers(there), "rules")
        same(json.loads(feed(a, text, "--diff", "--json", wait=True)), {"changes": []},
             "nothing to change")
        change(b, r)
        feed(b, text, "--live", wait=True)
        same(without_numbers(rules_now(b)), without_numbers(there), "of another process")
    # A process that starts with it has it all.
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as f:
        f.write(text)
        f.flush()
        c = Talk(TWO_NETS, "a", FI_LNX_CONFIG=f.name)
        c.do("spin")
        same(exported(c), text, "at the start of a process")
        same(without_numbers(rules_now(c)), without_numbers(there), "rules from the start")


def case_import():
    a, b = with_yaml()
    run("-p", a.pid, "udsp", "add", "--src", "left1")
    run("-p", a.pid, "udsp", "add", "--dst", "tcp", "--priority", 4)
    run("-p", a.pid, "set", "retry_count", 50)
    before, rules_before = exported(a), rules_now(a)
    # What has no key changes nothing.
    for text in "", "# all is as it was\n", "---\n", "---\n...\n", "--- # none\n":
        same(feed(a, text, "--diff", wait=True), "changes: []\n", repr(text))
        feed(a, text, wait=True)
    same((exported(a), rules_now(a)), (before, rules_before), "after nothing")
    for text in "--- ''\n", "---\n---\n":
        feed(a, text, status=REFUSED)
    for line in "left1: tcp", "hold_down: 123", "spill: 500", "src: left1", "priority: 4":
        need(line in before, line, "in", before)
    need(" window: " not in before and " window: 512" in exported(a, "-v"), "defaults")
    for text, why in (
            ("udsp:\n  - src: foo\n", ":2:10: udsp[0].src"),
            ("udsp:\n  - prio: 3\n", "idx, src, dst, rte, priority, action"),
            ("globl: {spill: 3}\n", "there is no such key"),
            ("global: {spill: 3, window: 4}\n", "global.window"),
            ("global: {spill: 3, hold_down: soon}\n", "hold_down"),
            ("global: {spill: 3}\nnets: {left1: tcp}\n", "nets"),
            ("global: {spill: 3, retry_count: 50, rail_timeout_min: 999}\n",
             "FI_LNX_RAIL_TIMEOUT_MIN=999"),
            # It fits to the defaults, but not to what the process has.
            ("global: {spill: 3, rail_timeout_min: 900}\nudsp: []\n", "must be at most 98"),
            ("udsp: [\n", "line"), ("- 3\n", ":1:1")):
        feed(a, text, status=REFUSED)
        need(why in run.said or why == "line", repr(text), "is refused with:", run.said)
        same((exported(a), rules_now(a)), (before, rules_before), "after a refusal")
    text = feed(a, "global: {window: 4, spill: 33}\n", "--live", "--json", wait=True)
    same(json.loads(text), {"at start only": "global.window"}, "--live")
    same(params(a, "spill")["value"], "33", "--live")
    same(rules_now(a), rules_before, "without the key udsp")
    # What lnetctl exports and no endpoint uses is named.
    text = feed(a, """net:
    - net type: tcp
      local NI(s):
        - interfaces: {0: eth77}
          tunables: {peer_timeout: 180, peer_credits: 8, peer_buffer_credits: 0, credits: 256}
          CPT: "[0,1]"
peer: [{primary nid: 10.0.0.7@tcp1}]
routing: {enable: 1}
buffers: {tiny: 2048, small: 16384, large: 1024}
limits: {}
allow: []
global: {spill: 34, recovery_interval: 3}
""", "--json", wait=True)
    same(json.loads(text), {"not used": "peer, routing, buffers, limits, allow, "
         "net.peer_timeout, net.peer_buffer_credits, net.CPT"}, "what no endpoint uses")
    same([params(a, n)["value"] for n in ("spill", "recovery_ping_interval")],
         ["34", "3000"], "and all else counts; seconds are seconds")
    need("not used" not in feed(a, "global: {spill: 33}\n", "--live", wait=True), "nothing")
    # Two that fit only together, in either order.
    both = "global: {retry_count: %d, rail_timeout_min: %d}\n"
    for values in (9, 400), (1, 1000), (9, 400):
        feed(a, both % values, wait=True)
        same([params(a, n)["value"] for n in ("retry_count", "rail_timeout_min")],
             [str(v) for v in values], "together")
    feed(a, before, wait=True)
    same(exported(a), before, "as before")
    # --dry-run and --diff.
    new = "global: {spill: 1k}\nudsp:\n  - dst: tcp\n    priority: 5\n  - src: tcp\n"
    want = ["- global.spill: 500", "+ global.spill: 1024", "- udsp: src: left1, priority: 0",
            "+ udsp: src: tcp, priority: 0", "~ udsp: dst: tcp: priority 4 -> 5"]
    text = feed(a, new, "--dry-run", "--diff", "--json")
    same(sorted(json.loads(text)["changes"]), sorted(want), "--diff")
    same(exported(a), before, "--dry-run")
    same(feed(a, new, "--dry-run"), "", "--dry-run prints nothing")
    feed(a, new, wait=True)
    same([(r["id"], r["idx"]) for r in rules_now(a)], [(2, 0), (3, 1)], "ids")
    same(params(a, "spill")["value"], "1024", "a unit")
    feed(a, "udsp: []\n", wait=True)
    same(rules_now(a), [], "an empty list")
    # More rules than one request has room for, upside down.
    many = ["  - dst: 10.%d.0.*@tcp\n    priority: %d\n" % (i, i) for i in range(60)]
    feed(a, "udsp:\n" + "".join(many), wait=True)
    ids = [r["id"] for r in rules_now(a)]
    feed(a, "udsp:\n" + "".join(many[5:] + many[:5]), wait=True)
    same([r["id"] for r in rules_now(a)][:55], ids[5:], "those in order keep their ids")
    same([r["action"]["priority"] for r in rules_now(a)], [*range(5, 60), *range(5)], "order")
    feed(a, "udsp:\n" + "".join(many * 5), status=REFUSED)

    for args in (), ("a", "b"), ("--frob", "x"), ("--diff=1", "x"):
        run("-p", a.pid, "import", *args, status=USAGE)
    for name in "/nonexistent", "/dev/zero", "/":
        run("-p", a.pid, "import", name, status=REFUSED)
    for args in ("--json",), ("--table",), ("x",):
        run("-p", a.pid, "export", *args, status=USAGE)
    run("--all", "export", status=USAGE)
    a.do("still")
    run("-p", a.pid, "export", status=NO_ANSWER)
    feed(a, "udsp: []\n", status=NO_ANSWER)
    need("makes no progress" in run.said, run.said)


def udsp_info(t):
    """What rules give to the nets and rails of both ends, by net."""
    ours = {n["net type"]: n["local NI(s)"][0]["udsp info"]
            for n in show(t, "net", "show", "-v", 4, wait=True)["net"]}
    theirs = {n["nid"].split("@")[1]: n["udsp info"]
              for n in show(t, "peer", "show", "-v", 4, wait=True)["peer"][0]["peer ni"]}
    return ours, theirs


def case_lnet_selection():
    """What LNet's tests 108, 219, 304 and 404 are about; and documents that it exports."""
    a, b = Talk(TWO_NETS, "a"), Talk(TWO_NETS, "b")
    b.do("know " + a.do("name"))
    send(b, a, 3, 100)
    a.do("spin")
    b.do("spin")
    first, = show(a, "peer", "show", "-v", 4, wait=True)["peer"]
    same((first["lnx"]["addr"], len(first["peer ni"])), ("none", 2),
         "a peer that is in no address vector, and its rails")
    a.do("know " + b.do("name"))
    send(a, b, 3, 100)
    a.do("spin")
    b.do("spin")
    then, = show(a, "peer", "show", "-v", 4, wait=True)["peer"]
    same(then["lnx"]["addr"], 0, "its number")
    for key in (lambda p: p["primary nid"], lambda p: p["lnx"]["id"],
                lambda p: sorted(n["nid"] for n in p["peer ni"])):
        same(key(then), key(first), "the same peer as before")
    # Another process learns it in the other order.
    c = Talk(TWO_NETS, "c")
    c.do("know " + b.do("name"))
    send(c, b, 3, 100)
    c.do("spin")
    b.do("spin")
    same(len(show(b, "peer", "show", wait=True)["peer"]), 2, "peers of b")
    seen, = show(c, "peer", "show", "-v", 4, wait=True)["peer"]
    same((seen["primary nid"], seen["lnx"]["id"]), (then["primary nid"], then["lnx"]["id"]),
         "the same for all")

    need_yaml(a)
    for rule in (("--src", "tcp", "--priority", 3), ("--dst", "tcp;ofi_rxm", "--priority", 4),
                 ("--src", "127.0.0.1@tcp", "--priority", 5),
                 ("--dst", "127.0.0.*@tcp;ofi_rxm", "--priority", 6), ("--dst", "tcp"),
                 ("--src", "127.0.0.[1,3]@tcp;ofi_rxm", "--dst", "127.0.0.1@tcp;ofi_rxm")):
        run("-p", a.pid, "udsp", "add", *rule, wait=True)
    want = ({"tcp": {"net priority": 3, "nid priority": 5},
             "tcp;ofi_rxm": {"net priority": -1, "nid priority": -1}},
            {"tcp": {"net priority": 0, "nid priority": -1},
             "tcp;ofi_rxm": {"net priority": 4, "nid priority": 6,
                             "Preferred source NIDs": ["127.0.0.1@tcp;ofi_rxm"]}})
    until("rules are seen at both ends", lambda: udsp_info(a) == want)
    text = exported(a)
    feed(c, text, "--live", wait=True)
    until("a process that imports them has them", lambda: udsp_info(c) == want)
    same(exported(c).split("udsp:")[1], text.split("udsp:")[1], "and exports the same")
    run("-p", a.pid, "udsp", "del", "--all", wait=True)
    none = {"net priority": -1, "nid priority": -1}
    until("no trace is left", lambda: udsp_info(a) == ({n: none for n in want[0]},) * 2)
    feed(a, text, wait=True)
    until("they are back", lambda: udsp_info(a) == want)
    # As lnetctl prints them.
    feed(a, """udsp:
    - idx: 0
      src: tcp
      action:
          priority: 0
    - idx: 1
      dst: 127.0.0.1@tcp
      src: 127.0.0.[1-2]@tcp
    - idx: 2
      dst: tcp1
      rte: 10.0.0.9@tcp
""", wait=True)
    same(in_short(a), ["tcp>>:0", "127.0.0.[1-2]@tcp>127.0.0.1@tcp>:",
                       ">tcp1>10.0.0.9@tcp:"], "rules")


def case_rows():
    """The tests that fabtests/RULES.md and CHANNEL.md name are there, for each row one that
    make check runs; a row of which only make check-slow runs them says so."""
    top = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

    def there(where, pattern):
        with open(os.path.join(top, where), encoding="utf-8") as f:
            return re.search(pattern, f.read(), re.M)

    def is_there(name):
        file, _, test = name.partition("/")
        if file.startswith("check-") and not test:
            return os.path.exists(os.path.join(top, file)) or os.path.exists(
                os.path.join(top, "bench", file))
        if file.endswith(".c"):
            return there("functional/" + file, r'(\.name = |CASES\()"%s"' % test)
        if file.endswith(".py") or file.startswith("check-"):
            return there(("functional/" if file.endswith(".py") else "") + file,
                         r"^def case_%s\(|CASES\[\"%s" % (test, test))
        return there("unit/test_%s.c" % file, r"^Test\(%s\w*, %s\b|^BOTH\(%s\)" % (
            file, test, test))

    def is_slow(name):
        file, _, test = name.partition("/")
        return file.endswith(".c") and there(
            "functional/" + file,
            r'\{ \.name = "%s"[^{}]*\.slow = true|CASES\("%s", \w+, true\)' % (test, test))

    # As many rows as there are; and of them, those that say that they are for check-slow.
    slow_only = "(make check-slow)"
    for document, least, slow in ("RULES.md", 66, 0), ("CHANNEL.md", 29, 1):
        with open(os.path.join(top, document), encoding="utf-8") as f:
            rows = [line.rstrip(" |\n").rsplit("|", 1) for line in f
                    if line.startswith("| ") and not line.rstrip().endswith("tests |")]
        tests = [(promise, [n.strip() for n in row.split(",")]) for promise, row in rows]
        names = sorted({name for _, row in tests for name in row})
        need(len(rows) >= least and len(names) >= least, document, len(rows), "rows and",
             len(names), "tests, not", least)
        for name in names:
            need(is_there(name), "fabtests/%s names" % document, name)
        for promise, row in tests:
            if slow_only in promise:
                slow -= 1
                for name in row:
                    need(there("functional/check-slow", r"^slow %s " % name.partition("/")[2]),
                         "check-slow does not run", name)
            else:
                need(not all(is_slow(name) for name in row), "fabtests/%s:" % document,
                     "only make check-slow runs the tests of", promise.strip("| "))
        need(slow >= 0, "fabtests/%s: more rows are %s" % (document, slow_only))


def case_endpoints():
    a, b = pair()
    send(a, b, 3, 10)
    a.do("spin")
    a.do("more")
    until("it is published", lambda: "endpoint" in show(a, "net", "show"))
    eps = show(a, "stats", "show")["endpoint"]
    same(sorted(e["statistics"]["send_count"] for e in eps), [0, 3], "of each")
    first = show(a, "--ep", 1, "info")["endpoint info"]["id"]
    same(show(a, "--ep", first, "stats", "show")["statistics"]["send_count"], 3, "--ep")
    run("-p", a.pid, "--ep", 99, "net", "show", status=REFUSED)
    a.do("spin more")
    text = exported(a)
    need("endpoint" not in text, text)
    feed(a, text, wait=True)
    run("-p", a.pid, "--ep", 1, "set", "spill", 7, wait=True)
    run("-p", a.pid, "--wait", HANGS_S * 500, "export", status=PARTLY)
    need("in different ways" in run.said, run.said)
    a.do("spin")
    run("-p", a.pid, "--wait", 4000, "udsp", "add", "--src", "tcp", status=PARTLY)
    need(re.search("process %d, endpoint [0-9a-f]{16}: " % a.pid, run.said), "which one:", run.said)
    a.do("less")
    until("it is gone", lambda: "endpoint" not in show(a, "net", "show"))


def case_forks():
    a, b = pair()
    send(a, b, 3, 10)
    same(a.do("fork"), "0", "status of a child that closes")
    a.do("spin")
    same(stat_of(rails(a, wait=True)["tcp:lo"])[0], 3, "after a fork")
    a.do("still")
    a.tell("child")
    mine = []
    until("the child has its own", lambda: len(mine_of(a, mine)) == 2)
    child = [p for p in mine if p != a.pid][0]
    same(json.loads(run("-p", child, "stats", "show", "--json"))["statistics"][
        "send_count"], 0, "of the child")
    same(int(a.do("pid")), child, "the child reads lines")
    a.do("quit")
    same(a.answer(), "0", "status of the child")
    same(int(a.do("pid")), a.pid, "the parent again")
    same(mine_of(a, mine), [a.pid], "the child's segment")


def mine_of(a, out):
    """a and its children."""
    out[:] = []
    for p in json.loads(run("list", "--json"))["process"]:
        try:
            with open("/proc/%d/stat" % p["pid"]) as f:
                parent = int(f.read().rsplit(")", 1)[1].split()[1])
        except OSError:
            continue
        if a.pid in (p["pid"], parent):
            out.append(p["pid"])
    return out


def case_users():
    """Another user gets nothing."""
    if os.geteuid():
        raise Skipped("needs root, to become another user")
    a, b = pair()
    a.do("spin")
    path = show(a, "info")["info"]["segment"]
    same(os.stat(path).st_mode & 0o777, 0o600, "mode of the file")
    same(os.stat(os.path.dirname(path)).st_mode & 0o777, 0o700, "of the directory")
    other = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"]
    # The build tree need not be readable for it.
    if subprocess.run(other + ["test", "-x", LNXCTL]).returncode:
        raise Skipped("another user cannot execute " + LNXCTL)
    for args in ("net", "show"), ("stats", "reset"), ("info",), ("dump", "/tmp/x"), \
            ("udsp", "show"), ("udsp", "add", "--src", "tcp"), ("udsp", "del", "--all"), \
            ("export",), ("import", "/dev/null"):
        text = run("-p", a.pid, *args, status=REFUSED, prefix=other)
        same(text, "", "what another user is told")
    need(not {a.pid, b.pid} & {p["pid"] for p in json.loads(
        run("list", "--json", prefix=other))["process"]}, "list")
    need(subprocess.run(other + ["cat", path], stdout=subprocess.DEVNULL,
                        stderr=subprocess.DEVNULL).returncode, "it reads the file")
    # One of the other user is seen by root only when asked for.
    c = Talk("tcp:lo", "c", before=other)
    c.do("spin")
    need(c.pid in [p["pid"] for p in json.loads(run("--all", "list", "--json"))["process"]],
         "root sees all with --all")
    same(show(c, "info")["info"]["uid"], 65534, "uid")
    need(c.pid in [p["pid"] for p in json.loads(
        run("list", "--json", prefix=other))["process"]], "its own")


def case_dump():
    a, b = pair()
    send(a, b, 5, 10)
    a.do("spin")
    for rule in ("--src", "tcp"), ("--src", "tcp", "--dst", "tcp"):
        run("-p", a.pid, "udsp", "add", *rule)
    with tempfile.TemporaryDirectory() as where:
        copy = os.path.join(where, "copy")
        run("-p", a.pid, "dump", copy)
        for args in ("explain", "*@tcp"), ("udsp", "show", "--src", "tcp", "--idx", 0):
            need(THEN in run("-f", copy, *args, silent=True), args, "of a copy")
        same(os.stat(copy).st_mode & 0o777, 0o600, "mode of the copy")
        run("-p", a.pid, "dump", copy, status=REFUSED)
        need("exists" in run.said, run.said)
        a.end()
        same(show(None, "-f", copy, "stats", "show")["statistics"]["send_count"], 5,
             "of the copy")
        same(len(show(None, "-f", copy, "peer", "show", "-v", 4)["peer"]), 1, "peers")
        run("-f", copy, "ping", 0, status=REFUSED)
        run("-f", "/dev/null", "info", status=REFUSED)
        run("-f", where, "info", status=REFUSED)
        run("-f", LNXCTL, "info", status=REFUSED)
        hostile(copy, os.path.join(where, "broken"))


def hostile(good, broken):
    """Whatever is in a segment, lnxctl ends with a status of its own."""
    seed = int(os.environ.get("LNX_SEED", time.time()))
    print("# LNX_SEED=%d" % seed)
    r = random.Random(seed)
    with open(good, "rb") as f:
        whole = f.read()
    verbs = [c for c in run("--list-commands").split("\n")
             if c in ("list", "info", "net show", "peer show", "path show", "stats show",
                      "global show", "params", "debug recovery", "metrics", "udsp show")]
    need(len(verbs) == 11, verbs)
    verbs += ["explain 0", "explain *@tcp", "udsp show --src tcp --idx 0"]
    for i in range(200):
        data = bytearray(whole)
        for _ in range(r.choice((1, 5, 50, 500))):
            # Most of it is in front: the header and the directory.
            top = r.choice((800, 45000, len(data)))
            data[r.randrange(min(top, len(data)))] = r.choice(
                (0, 1, 0x7f, 0x80, 0xff, r.randrange(256)))
        if r.random() < 0.2:
            del data[r.randrange(len(data)):]
        with open(broken, "wb") as f:
            f.write(data)
        verb = r.choice(verbs).split()
        p = subprocess.run([LNXCTL, "-f", broken, *verb, "-v", "4"],
                           stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                           timeout=HANGS_S)
        need(0 <= p.returncode <= 4, "lnxctl -f", *verb, "ends with", p.returncode,
             "seed", seed, "round", i, p.stderr)


SAMPLE = re.compile(r'^([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{((?:[a-z_]+="(?:[^"\\]|\\.)*",?)*)\})? '
                    r'([0-9]+)$')


def by_client(text):
    """Its parser is the one of the format's authors."""
    if not text_string_to_metric_families:
        return
    try:
        families = list(text_string_to_metric_families(text))
    except ValueError as e:
        raise Failed("python3-prometheus-client refuses the metrics: %s" % e)
    need(len(families) > 40 and all(f.documentation for f in families), "families")


def parse_metrics(text):
    """By name and labels.  Each family is in one piece, and the end is there."""
    need(text.endswith("# EOF\n"), "no end of metrics")
    by_client(text)
    out, seen, keys, family, kind = {}, set(), set(), None, None
    for line in text.split("\n")[:-2]:
        if line.startswith("# TYPE "):
            family, kind = line.split()[2:]
            need(family not in seen, family, "is there twice")
            need(kind in ("counter", "gauge"), line)
            seen.add(family)
        elif line.startswith("# HELP "):
            need(line.split()[2] == family and len(line.split()) > 3, line)
        else:
            m = SAMPLE.match(line)
            need(m, "not a sample:", line)
            same(m[1], family + ("_total" if kind == "counter" else ""), "name")
            labels = dict(re.findall(r'([a-z_]+)="((?:[^"\\]|\\.)*)"', m[2] or ""))
            need((m[1], m[2]) not in keys, "twice:", line)
            keys.add((m[1], m[2]))
            key = (m[1], labels["pid"], labels.get("rail"))
            out[key] = out.get(key, 0) + int(m[3])
    return out


def case_metrics():
    with tempfile.TemporaryDirectory() as where:
        a, b = pair(FI_LNX_STATS_FILE=where + "/%p.prom")
        a.do("spin")
        b.do("spin")
        send(a, b, 9, 1000)
        run("-p", a.pid, "stats", "reset")
        until("published", lambda: rails(b)["tcp:lo"]["statistics"]["recv_count"] == 9)
        m = parse_metrics(run("metrics"))
        own = a.counts()
        same(m["lnx_rail_sent_messages_total", str(a.pid), "tcp:lo"], own[0], "messages")
        same(m["lnx_rail_sent_bytes_total", str(a.pid), "tcp:lo"], own[1], "bytes")
        same(m["lnx_send_count_total", str(a.pid), None], own[0],
             "a counter, whatever was reset")
        same(m["lnx_rail_health", str(a.pid), "tcp:lo"], 1000, "health")
        same(m["lnx_peers", str(a.pid), None], 1, "peers")
        same(m["lnx_endpoint_up", str(a.pid), None], 1, "of a process that lives")
        with open(os.path.join(os.path.dirname(os.path.abspath(__file__)),
                               "../../man/lnxctl.8"), encoding="utf-8") as f:
            man = f.read()
        for name in {k[0].removesuffix("_total") for k in m if k[2]}:
            need(re.search("^%s " % name, man, re.M), name, "is not in lnxctl(8)")
        # And the other way round.
        families = set(re.findall("^# TYPE ([a-z0-9_]+) ", run("metrics"), re.M))
        named = set(re.findall("^(lnx_[a-z0-9_]+) ", man, re.M))
        need(len(named) >= 15, named)
        same(named - families, set(), "in lnxctl(8), and no metric")
        with open(os.path.join(os.path.dirname(os.path.abspath(__file__)),
                               "../../man/fi_lnx.7"), encoding="utf-8") as f:
            man = f.read()
        man = man[man.index(".SH COUNTERS"):]
        for name in families - named:
            need(re.search(r"\b%s\b" % name.removeprefix("lnx_"), man), name,
                 "is in no manual page")
        a_pid, b_pid = a.pid, b.pid
        own = b.counts()
        a.quit()
        b.quit()
        with open("%s/%d.prom" % (where, b_pid)) as f:
            m = parse_metrics(f.read())
        same(m["lnx_rail_received_messages_total", str(b_pid), "tcp:lo"], own[2],
             "FI_LNX_STATS_FILE")
        same(m["lnx_rail_received_bytes_total", str(b_pid), "tcp:lo"], own[3],
             "FI_LNX_STATS_FILE")
        same(sorted(os.listdir(where)),
             sorted("%d.prom" % p for p in (a_pid, b_pid)), "files")
        a = Talk("tcp:lo", "a", FI_LNX_STATS_FILE=where + "/%h-%p%%.prom")
        a_pid = a.pid
        a.quit()
        with open("%s/%s-%d%%.prom" % (where, os.uname().nodename, a_pid)) as f:
            need(parse_metrics(f.read()), "%h is the host")


def case_metrics_file():
    """The script for node_exporter: its file is complete whenever it is read, and nothing
    else stays."""
    from_tree = os.path.join(os.path.dirname(os.path.abspath(__file__)),
                             "../../contrib/prometheus/lnx-metrics")
    a, b = pair()
    send(a, b, 9, 1000)
    a.do("spin")
    b.do("spin")
    with tempfile.TemporaryDirectory() as where:
        def write(status=0, **env):
            p = subprocess.run([from_tree, where], stderr=subprocess.PIPE, text=True,
                               env={**clean_env(), "LNXCTL": LNXCTL, **env},
                               timeout=HANGS_S)
            same(p.returncode, status, p.stderr)
            return p.stderr

        def read():
            with open(where + "/lnx.prom", encoding="utf-8") as f:
                return parse_metrics(f.read())

        write()
        same(os.stat(where + "/lnx.prom").st_mode & 0o777, 0o644, "for the collector")
        need(read()["lnx_send_count_total", str(a.pid), None] >= 9, "what was sent")
        several = [subprocess.Popen([from_tree, where],
                                    env=dict(clean_env(), LNXCTL=LNXCTL))
                   for _ in range(5)]
        while any(p.poll() is None for p in several):
            read()
        same([p.returncode for p in several], 5 * [0], "several at a time")
        # What cannot be written leaves the one before.
        need("no-lnxctl" in write(127, LNXCTL="no-lnxctl"), "why")
        read()
        same(os.listdir(where), ["lnx.prom"], "files")


def case_file_of_the_host():
    """/etc/lnx.conf is read, unless FI_LNX_CONFIG names another file."""
    if os.geteuid():
        raise Skipped("a mount name space needs root")
    with tempfile.TemporaryDirectory() as where:
        etc = os.path.join(where, "etc")
        shutil.copytree("/etc", etc, symlinks=True, ignore_dangling_symlinks=True)
        with open(etc + "/lnx.conf", "w") as f:
            f.write("global: {hold_down: 7}\nudsp: [{src: tcp, priority: 3}]\n")
        other = os.path.join(where, "other.yaml")
        with open(other, "w") as f:
            f.write("global: {hold_down: 8}\n")
        inside = ["unshare", "-m", "sh", "-c",
                  'mount --bind "$0" /etc && exec "$@"', etc]
        if subprocess.run(inside + ["true"], stderr=subprocess.DEVNULL).returncode:
            raise Skipped("no mount name space here")
        for env, value, origin, rules in (
                ({}, "7", "configuration file", [3]),
                ({"FI_LNX_CONFIG": other}, "8", "configuration file", []),
                ({"FI_LNX_HOLD_DOWN": "9"}, "9", "environment", [3])):
            a = Talk("tcp:lo", "a", before=inside, **env)
            a.do("spin")
            found = params(a, "hold_down")
            same((found["value"], found["origin"]), (value, origin), env)
            same([r["action"]["priority"] for r in show(a, "udsp", "show", wait=True)["udsp"]], rules,
                 "rules of the file")
            a.quit()


def check_open_mpi(good, problems):
    """What Open MPI is told to leave out, each way to tell it."""
    with tempfile.TemporaryDirectory() as home:
        file = os.path.join(home, ".openmpi", "mca-params.conf")
        os.mkdir(os.path.dirname(file))

        def write(text):
            with open(file, "w") as f:
                f.write(text)

        write("# pml = ucx\n  mtl_base_verbose=3\nmtl = ^psm2 # and no more\nbtl=^ofi\n")
        good = dict(good, HOME=home, OMPI_MCA_pml="^ucx")
        use = dict(good, OMPI_MCA_pml="cm", OMPI_MCA_mtl="psm2,ofi",
                   OMPI_MCA_mtl_ofi_provider_include="psm2,LNX",
                   OMPI_MCA_mtl_ofi_provider_exclude="lnx")
        for env in good, use:
            run("check", env=env)
        doc = json.loads(run("check", "--json", env=good))["check"]["environment"]
        same((doc["OMPI_MCA_pml"], doc[file + ": mtl"]), ("^ucx", "^psm2"), "settings")
        for more, *why in (
                (dict(OMPI_MCA_pml="ob1"), 'OMPI_MCA_pml="ob1"', "OMPI_MCA_pml=cm"),
                (dict(OMPI_MCA_pml="^ucx,cm"), "OMPI_MCA_pml=cm"),
                (dict(OMPI_MCA_mtl="psm2"), "set OMPI_MCA_mtl=ofi"),
                (dict(OMPI_MCA_mtl="^ofi"), "set OMPI_MCA_mtl=ofi"),
                (dict(OMPI_MCA_mtl_ofi_provider_include="tcp"),
                 "leaves out lnx", "set OMPI_MCA_mtl_ofi_provider_include=lnx"),
                (dict(OMPI_MCA_mtl_ofi_provider_include="shm+cxi:lnx"), "fits no provider",
                 "_include=lnx and FI_LNX_PROV_LINKS=shm+cxi"),
                (dict(OMPI_MCA_btl_ofi_provider_include="tcp"),
                 "set OMPI_MCA_btl_ofi_provider_include=lnx"),
                (dict(OMPI_MCA_opal_common_ofi_provider_include="verbs"),
                 "set OMPI_MCA_opal_common_ofi_provider_include=lnx"),
                (dict(OMPI_MCA_mtl_ofi_provider_exclude="shm,lnx"), "take it out")):
            said = problems(dict(good, **more))
            for w in why:
                need(w in said, more, "is answered with:", said)
        run("check", env=dict(good, OMPI_MCA_pml="ob1", OMPI_MCA_btl="self,ofi"))
        # Its files; but they say nothing to programs that do without Open MPI.
        write("mtl=^ofi\nopal_common_ofi_provider_exclude = tcp,lnx\n")
        said = problems(good)
        need(file + ': mtl="^ofi"' in said and "OMPI_MCA_mtl=ofi" in said and
             "_exclude=" in said, said)
        run("check", env=dict(good, OMPI_MCA_mtl="ofi",
                              OMPI_MCA_mtl_ofi_provider_exclude="tcp"))
        run("check", env={k: v for k, v in good.items() if "MCA" not in k})
        other = os.path.join(home, "other.conf")
        os.rename(file, other)
        need(other in problems(dict(good, OMPI_MCA_mca_base_param_files="/none:" + other)),
             "a file that a variable names")
        # What is given to mpirun comes first.
        mpirun = os.path.join(home, "mpirun")
        with open(mpirun, "w") as f:
            f.write("#!/bin/sh\n")
        os.chmod(mpirun, 0o700)
        said = problems(use, "--", mpirun, "-np", "2", "--mca", "pml", "ob1", "./program")
        need('--mca pml="ob1"' in said and "set --mca pml cm" in said, said)
        said = problems(use, "--", "env", "X=1", mpirun, "--mca", "pml", "ob1", "./program")
        need('--mca pml="ob1"' in said, said)
        need("MCA" not in problems(use, "--", mpirun, "./program"), "all is well")


def case_check():
    with open(SO, "rb") as f:
        if b"__asan_init" in f.read():
            raise Skipped("fi_info, without the address sanitizer, cannot load such a module")
    lnx = dict(clean_env(), FI_PROVIDER_PATH="+" + SO, FI_PROVIDER="lnx")
    good = dict(lnx, FI_LNX_PROV_LINKS="shm+tcp:lo")
    doc = json.loads(run("check", "--json", env=good))["check"]
    same(doc["verdict"], "as asked", "verdict")
    same(doc["problems"], [], "problems")
    need("shm+tcp:lo" in doc["links offered"], doc)

    def problems(env, *args):
        text = run("check", "--json", *args, env=env, status=REFUSED)
        return " ".join(json.loads(text[text.index("{\n"):])["check"]["problems"])

    for env, why in (
            (dict(lnx, FI_LNX_PROV_LINKS="shm+tcp:nowhere0"), "no interface nowhere0"),
            (dict(lnx, FI_LNX_PROV_LINKS="shm+"), "character 5"),
            (dict(good, FI_PROVIDER="tcp"), "hides lnx"),
            (dict(good, FI_PROVIDER="^lnx"), "hides lnx"),
            (dict(good, FI_LNX_WINDOWS="5"), "nearest one is FI_LNX_WINDOW"),
            (dict(good, FI_PROVIDER_PATH="+/nonexistent/liblnx-fi.so"),
             "cannot be read"),
            (dict(good, FI_PROVIDER_PATH="/usr/lib"), "no liblnx-fi.so"),
            (dict(good, FI_PROVIDER_PATH=os.path.abspath(SO)), "set it to +/"),
            (dict(good, FI_PROVIDER_PATH="@" + os.path.abspath(SO)), "set it to +/"),
            # libfabric separates them with ':' only.
            (dict(good, FI_PROVIDER_PATH="+%s,+%s" % (SO, SO)), "cannot be read"),
            # It would be found out when all is over.
            (dict(good, FI_LNX_STATS_FILE="/nonexistent/x.%p"), "No such file or directory"),
            (dict(good, FI_LNX_STATS_FILE="/tmp/x.%q"), "behind % there must be"),
            (dict(good, FI_LNX_STATS_FILE="/dev/null"), "no regular file"),
            # What lnx itself says, also if it is to be quiet.
            (dict(good, FI_LNX_UDSP="src: nonsense"), "is no known net"),
            (dict(good, FI_LNX_CONFIG="/nonexistent"), "it cannot be read"),
            (dict(lnx, FI_LNX_PROV_LINKS="tcp;ofi_rxm:lo", FI_LNX_QUIET="1"),
             'set FI_PROVIDER="lnx,tcp;ofi_rxm"')):
        said = problems(env)
        need(why in said, env, "is answered with:", said)
        same(said.count(why), 1, "in " + said)
    # What the configuration file says is asked for, too.
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as f:
        f.write("global: {prov_links: 'shm+tcp:lo', spill: 77, hold_down: 5}\n")
        f.flush()
        env = dict(lnx, FI_LNX_CONFIG=f.name, FI_LNX_HOLD_DOWN="6")
        found = {p["name"]: (p["value"], p["origin"]) for p in json.loads(
            run("params", "--env", "--json", env=env))["params"]}
        same([found[n] for n in ("spill", "hold_down", "credits")],
             [("77", "configuration file"), ("6", "environment"), ("0", "default")],
             "params --env")
        live = {p["name"] for p in json.loads(run("params", "--live", "--env", "--json",
                                                  env=env))["params"]}
        need("spill" in live and "window" not in live, live)
        run("check", env=env)
        need('"shm+tcp:lo" is not offered' in problems(dict(env, FI_LNX_DISABLE_SHM="1")),
             "a link of the file")
        # Rules that are left over from the nets of the file.
        f.seek(0)
        f.truncate()
        f.write("nets: {tcp1: 127.0.0.0/8}\nudsp: [{src: tcp1, priority: 3}]\n")
        f.flush()
        run("check", env=dict(good, FI_LNX_CONFIG=f.name))
        said = problems(dict(good, FI_LNX_CONFIG=f.name, FI_LNX_NETS="tcp2=127.0.0.0/8"))
        need('"src: tcp1, priority: 3" has no effect' in said and
             "do not count beside FI_LNX_NETS" in said, said)
        same(said.count("has no effect"), 1, said)
        # What such a process exports, it and another one can import.
        a = Talk("tcp:lo", "a", FI_LNX_CONFIG=f.name, FI_LNX_NETS="tcp2=127.0.0.0/8",
                 FI_LNX_QUIET="1")
        a.do("spin")
        text = run("-p", a.pid, "export", wait=True)
        need("tcp2" in text and "tcp1" in text, text)
        feed(a, text)
        same(run("-p", a.pid, "export", wait=True), text, "export, import, export")
        f.seek(0)
        f.truncate()
        f.write(text)
        f.flush()
        b = Talk("tcp:lo", "a", FI_LNX_CONFIG=f.name, FI_LNX_QUIET="1")
        b.do("spin")
        same(run("-p", b.pid, "export", wait=True), text, "export as the file of another")
    # Modules that are none.
    for n, why in ((20, "no shared library"), (5000, "its end is missing")):
        with tempfile.TemporaryDirectory() as d:
            bad = os.path.join(d, "liblnx-fi.so")
            with open(os.path.realpath(SO), "rb") as f, open(bad, "wb") as out:
                out.write(f.read(n))
            for path in d, "+" + bad:
                need(why in problems(dict(good, FI_PROVIDER_PATH=path)), path, n)
    # A library that it needs.
    with tempfile.TemporaryDirectory() as d:
        bad = os.path.join(d, "liblnx-fi.so")
        with open(os.path.realpath(SO), "rb") as f, open(bad, "wb") as out:
            out.write(f.read().replace(b"\0libfabric.so.1\0", b"\0libfabrix.so.1\0"))
        for path in d, "+" + bad:
            said = problems(dict(good, FI_PROVIDER_PATH=path))
            need("libfabrix.so.1: cannot open shared object file" in said, said)
    for args in (["-f", "/nonexistent"], ["-p", 1], ["--ep", 1], ["--all"]):
        run("check", *args, env=good, status=USAGE)
    run("params", "--env", env=dict(lnx, FI_LNX_CONFIG="/nonexistent"), status=REFUSED)
    need("cannot be read" in run.said, run.said)
    check_open_mpi(good, problems)
    send_recv = [os.path.join(BUILD, "fabtests", "functional", "sendrecv"), "-p", "lnx",
                 "--quick", "--fork", "-c", "tsend-*"]
    # The command's own output comes first.
    text = run("check", "--json", "--", *send_recv, env=dict(
        good, FI_LNX_DISABLE_SHM="1", FI_LNX_PROV_LINKS="tcp:lo"))
    doc = json.loads(text[text.index("{\n"):])["check"]
    same(doc["links used"], ["tcp:lo"], "links used")
    need(any(r["rail"] == "tcp:lo" and r["messages sent"] for r in doc["rails"]), doc)
    need("no process of the command" in problems(good, "--", "true"), "a program without")
    need("status 3" in problems(good, "--", "sh", "-c", "exit 3"), "a status")
    need("status 127" in problems(good, "--", "/nonexistent/x"), "no program")
    run("check", "--", status=USAGE, env=good)
    same([f for f in os.listdir("/tmp") if f.startswith("lnxctl-check-")], [],
         "left in /tmp")


def case_check_processes():
    """Each process that a command starts is judged, also one that closes no endpoint."""
    with open(SO, "rb") as f:
        if b"__asan_init" in f.read():
            raise Skipped("the command's processes do not preload the address sanitizer")
    good = dict(clean_env(), FI_PROVIDER_PATH="+" + SO, FI_PROVIDER="lnx",
                FI_LNX_PROV_LINKS="tcp:lo", FI_LNX_HEALTH_BOARD="0")

    def talk(before="", prov="lnx"):
        # What lives for an instant may be missed.
        return "(sleep 0.3; echo quit) | %s %s -p %s -n 1 -S 1 >/dev/null; " % (
            before, TALK, prov)

    well = talk()

    def check(script, status):
        text = run("check", "--json", "--", "sh", "-c", script, env=good, status=status)
        return json.loads(text[text.index("{\n"):])["check"]["problems"]

    # Helpers that use no network are no matter; a rank's script neither.
    same(check(well + "true; sleep 0.1; " + well, OK), [], "two that are as asked")
    same(check("PMI_RANK=4 sh -c \"sleep 0.1; %s true\"" % well, OK), [], "a script of a rank")
    for script, why in (
            (talk("env -u FI_PROVIDER FI_LNX_PROV_LINKS='tcp;ofi_rxm:lo'"),
             'used the link "tcp;ofi_rxm:lo", and not "tcp:lo"'),
            (talk("FI_PROVIDER=tcp", "tcp"), "hides lnx"),
            (talk("env -u FI_PROVIDER_PATH -u FI_PROVIDER", "tcp"), "another FI_PROVIDER_PATH"),
            (talk("env -u FI_PROVIDER", "tcp"), "closed no endpoint"),
            (talk("FI_LNX_STATS_FILE="), "what it used is not known"),
            ("(sleep 1; echo quit) | %s -p lnx -n 1 -S 1 >/dev/null & sleep 0.5; kill -9 $!; wait; " %
             TALK, "was killed"),
            ("(sleep 2; echo quit) | %s -p lnx -n 1 -S 1 >/dev/null & sleep 0.5; " % TALK,
             "goes on"),
            ("PMI_RANK=3 sleep 0.2; ", "rank 3, did not load lnx")):
        for text in script + well, well + script + "true":
            said = check(text, REFUSED)
            same([why in s for s in said], [True], "problems of: %s: %s" % (text, said))
    # Many are not listed one by one.
    said = check("".join("PMI_RANK=%d sleep 1 & " % i for i in range(20)) + "wait; " + well,
                 REFUSED)
    same((len(said), said[-1]), (9, "the same, or the like, of 12 more"), "many")
    need("PMI_RANK" not in os.environ, "this test is a rank itself")


def case_check_mpi():
    """A job of Open MPI: as asked; and ranks that use something else."""
    mpirun = shutil.which("mpirun.openmpi") or shutil.which("mpirun")
    program = os.path.join(BUILD, "fabtests", "mpi", "hello_check")
    with open(SO, "rb") as f:
        if b"__asan_init" in f.read():
            raise Skipped("Open MPI does not preload the address sanitizer")
    if not mpirun or not os.access(program, os.X_OK):
        raise Skipped("no Open MPI")
    # It refuses what cannot reach other nodes, and a test does not use the real networks.
    node = ["unshare", "-n", "sh", "-c", "ip link set lo up && "
            "ip link add rail0 type veth peer name rail1 && ip link set rail1 up && "
            "ip addr add 10.77.0.1/24 dev rail0 && ip link set rail0 up && exec \"$@\"", "sh"]
    if os.geteuid() or subprocess.run(node + ["true"], stderr=subprocess.DEVNULL).returncode:
        raise Skipped("a simulated node needs root")
    good = dict(clean_env(), FI_PROVIDER_PATH="+" + os.path.abspath(SO), FI_PROVIDER="lnx",
                FI_LNX_PROV_LINKS="shm+tcp", FI_LNX_HEALTH_BOARD="0")
    only_lnx = ["--mca", "pml", "cm", "--mca", "mtl", "ofi",
                "--mca", "mtl_ofi_provider_include", "lnx"]

    def check(status, mca, *program, **env):
        text = run("check", "--json", "--", mpirun, "--allow-run-as-root", "--oversubscribe",
                   "--bind-to", "none", *mca, "-np", "2", *program,
                   env=dict(good, **env), status=status, prefix=node)
        return json.loads(text[text.index("{\n"):])["check"]

    doc = check(OK, only_lnx, program)
    same((doc["verdict"], doc["problems"], doc["links used"]),
         ("as asked", [], ["shm+tcp:rail0"]), "a job")
    same(len(doc["endpoints"]), 2, "of two ranks")
    need(any(r["messages sent"] for r in doc["rails"]), doc)
    # One rank takes something else, as when its shell sets that.
    said = check(REFUSED, [], "sh", "-c", "[ $OMPI_COMM_WORLD_RANK = 0 ] || "
                 "export OMPI_MCA_pml=ob1; exec \"$0\"", program,
                 OMPI_MCA_mtl="ofi", OMPI_MCA_pml="cm")["problems"]
    need([s for s in said if ", rank 1," in s and "mtl_ofi_provider_include lnx" in s], said)
    need(not [s for s in said if ", rank 0," in s and "did not load" in s], said)
    # All do, without a word: a name that was right once, and a filter.
    said = check(REFUSED, ["--mca", "mtl_ofi_provider_include", "shm+cxi:lnx"],
                 program)["problems"]
    need([s for s in said if "set --mca mtl_ofi_provider_include lnx" in s], said)
    said = check(REFUSED, [], program, FI_PROVIDER="tcp")["problems"]
    need([s for s in said if 'FI_PROVIDER="tcp" hides lnx: add it to the list' in s], said)


def case_check_interrupted():
    """Nothing is left behind, and what the command did is told."""
    good = dict(clean_env(), FI_PROVIDER_PATH="+" + SO, FI_LNX_PROV_LINKS="tcp:lo")

    def left():
        return {f for f in os.listdir("/tmp") if f.startswith("lnxctl-check-")}

    before = left()
    for sig, group in ((signal.SIGINT, True), (signal.SIGTERM, False), (signal.SIGHUP, False),
                       (signal.SIGINT, False)):
        p = subprocess.Popen([LNXCTL, "check", "--json", "--", "sh", "-c",
                              "echo begun; exec sleep %d" % HANGS_S], env=good, text=True,
                             stdout=subprocess.PIPE, start_new_session=True)
        same(p.stdout.readline(), "begun\n", "the command")
        need(left() - before, "there is no directory for the command")
        (os.killpg if group else os.kill)(p.pid, sig)
        said = p.stdout.read()
        same(p.wait(HANGS_S), REFUSED, "status after " + sig.name)
        need("ended with status %d" % (128 + sig) in said, said)
        same(left() - before, set(), "left in /tmp after " + sig.name)


def on_terminal(rows, columns, *args, term="xterm"):
    """Status of lnxctl on a terminal of that size, and what it writes there."""
    master, slave = os.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
    p = subprocess.Popen([LNXCTL] + [str(a) for a in args], stdin=slave, stdout=slave,
                         stderr=subprocess.PIPE, env=dict(clean_env(), TERM=term))
    os.close(slave)
    said = b""
    while True:
        try:
            more = os.read(master, 65536)
        except OSError:             # it has ended
            break
        if not more:
            break
        said += more
    os.close(master)
    return p.wait(HANGS_S), (said + p.stderr.read()).decode(errors="replace")


def case_small_terminals():
    a, b = pair()
    send(a, b, 1, 1)
    for size in (5, 20), (1, 1), (2, 3), (40, 200), (100, 9):
        status, said = on_terminal(*size, "top", "-n", 1)
        same(status, OK, "top on a terminal of %d lines and %d columns" % size)
        need("lnxctl top:"[:size[1]] in said, said)
    status, said = on_terminal(24, 80, "top", "-n", 1, term="none-such")
    need(status == REFUSED and "TERM=none-such" in said, "a terminal that is not known:", said)
    status, said = on_terminal(24, 60, "-p", a.pid, "--table", "net", "show", "-v", 4)
    need(not status and re.search("^- nid +", said, re.M), "a narrow terminal:", said)


def case_terminal_gone():
    """A "top" ends with its terminal, also if no signal says so."""
    a, b = pair()
    master, slave = os.openpty()
    p = subprocess.Popen([LNXCTL, "top"], stdin=slave, stdout=slave, stderr=subprocess.DEVNULL,
                         env=dict(clean_env(), TERM="xterm"), start_new_session=True)
    os.close(slave)
    try:
        need(os.read(master, 1000), "top shows nothing")
        os.close(master)
        same(p.wait(HANGS_S), OK, "status")
    finally:
        p.kill()
        p.wait()


def case_many():
    """More segments than a process may have descriptors."""
    with tempfile.TemporaryDirectory() as root:
        mine = os.path.join(root, os.path.basename(SHM))
        os.mkdir(mine, 0o700)
        a = Talk("tcp:lo", "a")
        name = segment_of(a)
        first = os.path.join(mine, name)
        shutil.copyfile(os.path.join(SHM, name), first)
        os.chmod(first, 0o600)
        for i in range(200):
            shutil.copyfile(first, os.path.join(mine, "%d.7" % (2000000000 + i)))
            os.chmod(os.path.join(mine, "%d.7" % (2000000000 + i)), 0o600)
        few = ["sh", "-c", 'ulimit -n 64 && exec "$@"', "sh"]
        doc = json.loads(run("--dir", root, "list", "--json", prefix=few))
        same([p["pid"] for p in doc["process"]], [a.pid], "live")
        same((doc["dead processes"], doc.get("unreadable files")), (200, None), "counted")
        same(len(json.loads(run("--dir", root, "list", "-v", "--json",
                                prefix=few))["process"]), 201, "listed")
        for args, n in ((), 1), (("--dead",), 201), (("-p", 2000000007), 1):
            same(run("--dir", root, "metrics", *args, prefix=few).count("\nlnx_endpoint{"), n,
                 "in metrics " + str(args))
        copy = os.path.join(root, "copy")
        run("--dir", root, "-p", 2000000007, "dump", copy)
        run("-f", copy, "info")


def case_top():
    run("top", status=REFUSED)          # no terminal
    run("top", "-d", 0, status=USAGE)
    if subprocess.run(["tmux", "-V"], stdout=subprocess.DEVNULL,
                      stderr=subprocess.DEVNULL).returncode if which("tmux") else True:
        raise Skipped("there is no tmux")
    a, b = pair()
    a.do("spin")
    b.do("spin")
    name = "lnxctl-%d" % os.getpid()
    tmux = ["tmux", "-L", name]

    def screen():
        return subprocess.run(tmux + ["capture-pane", "-p", "-t", name], text=True,
                              stdout=subprocess.PIPE).stdout

    subprocess.run(tmux + ["-f", "/dev/null", "new-session", "-d", "-s", name, "-x",
                           "140", "-y", "40", LNXCTL + " top; echo ended=$?; sleep 60"],
                   check=True, env=dict(clean_env(), TERM="screen"))
    try:
        until("top shows rails", lambda: re.search(
            r"^ *%d +talk .* tcp:lo +up +1000" % a.pid, screen(), re.M))
        before = time.monotonic()
        while time.monotonic() - before < 2.5:
            send(a, b, 100, 1000)
        until("top shows traffic", lambda: any(
            float(m) > 0 for m in re.findall(
                r"^ *%d +talk .* tcp:lo +up +1000 +([0-9.]+)" % a.pid, screen(), re.M)))
        subprocess.run(tmux + ["send-keys", "-t", name, "q"], check=True)
        until("q ends it", lambda: "ended=0" in screen())
    finally:
        subprocess.run(tmux + ["kill-session", "-t", name])


def which(name):
    return any(os.access(os.path.join(d, name), os.X_OK)
               for d in os.environ.get("PATH", "").split(":"))


def case_native():
    """Where operations are the cores' own, rules and routes have no effect, and it is said."""
    env = dict(clean_env(), FI_PROVIDER_PATH="+" + SO, FI_LNX_PROV_LINKS="tcp:lo",
               FI_PROVIDER="lnx", FI_LNX_USE_SRQ="0", FI_LNX_UDSP="src: tcp",
               FI_LNX_ROUTES="tcp2 via 10.9.9.9@tcp")
    p = subprocess.run([TALK, "-p", "lnx", "-n", "1", "-S", "1"], env=env, text=True,
                       input="name\nmore\nquit\n", capture_output=True, timeout=HANGS_S)
    for what in "rules", "routes":
        lines = [line for line in p.stderr.split("\n")
                 if what in line and "have no effect" in line]
        same(len(lines), 1, "warnings about %s: %s" % (what, p.stderr))
    a = Talk("tcp:lo", "a", FI_LNX_USE_SRQ="0")
    a.do("spin")
    run("-p", a.pid, "udsp", "add", "--src", "tcp", wait=True)
    need("have no effect" in run.said, run.said)
    run("-p", a.pid, "--json", "--wait", HANGS_S * 500, "route", "add", "--net", "tcp2",
        "--gateway", "10.9.9.9@tcp", status=REFUSED)
    same(run.error["add"][0]["route"]["errno"], -errno.EOPNOTSUPP, "route add")
    run("-p", a.pid, "net", "set", "--nid", "tcp:lo", "--credits", 5, status=REFUSED)
    a.end()
    # No failure of a path is ever known there, so none recovers.
    a, b = pair("tcp:lo", FI_LNX_USE_SRQ="0")
    a.do("spin")
    b.do("spin")
    send(a, b, 3, 3)
    until("the peer is published", lambda: show(a, "peer", "show")["peer"])
    far, = show(a, "peer", "show", "-v", 2, wait=True)["peer"][0]["peer ni"]
    same(far["health stats"]["health value"], 1000, "health of a native peer")
    path, = show(a, "path", "show", "-v", 2)["path"]
    same([k for k in path if "recover" in k], [], "a native path")
    need("recovering" not in run("-p", a.pid, "peer", "show", "-v", 2), "a native peer recovers")
    same(parse_metrics(run("metrics"))["lnx_recovering", str(a.pid), None], 0, "in metrics")


def case_usage():
    """What is not known never ends with 0."""
    verbs = [v for v in run("--list-commands").split("\n") if v]
    need(len(verbs) >= 20, verbs)
    for v in verbs:
        run(*v.split(), "--frobnicate", status=USAGE)
        run(*v.split(), "-z", status=USAGE)
        need("usage: lnxctl " + v in run(*v.split(), "--help"), v, "--help")
        # They take any number of peers.
        if v not in ("ping", "discover"):
            run(*v.split(), *(["x"] * 300), status=USAGE)
    for args in ((), ("frob",), ("net",), ("net", "frob"), ("--frob", "list"), ("-p",),
                 ("-p", "x", "list"), ("-p", 0, "list"), ("-p", 1, "--all", "list"),
                 ("--json", "--table", "list"), ("-v", 5, "list"), ("list", "-v5"),
                 ("--all=3", "list"), ("-", "list"), ("--", "list"), ("--p", 5, "list"),
                 ("-all", "list"), ("net", "show", "--nid"),
                 ("net", "show", "--nid", "a", "--nid", "b")):
        run(*args, status=USAGE)
    # Nothing that is given is left out without a word.
    for option, one, other in (("-p", 1, 2), ("--ep", 1, 2), ("--wait", 5, 5), ("-v", 1, 2),
                               ("--dir", "/", "/dev/shm"), ("--job=a", None, None),
                               ("-f", "/dev/null", "/dev/null")):
        twice = [w for v in (one, other) for w in (option, v) if w is not None]
        run(*twice, "list", status=USAGE)
        need("is there twice" in run.said, run.said)
        run("list", *twice, status=USAGE)
    for args in (("list", "--", "x"), ("list", "--", "--json"), ("net", "show", "--", "x"),
                 ("set", "spill", 5, "--", "x"), ("explain", 0, 1, "--", 2),
                 ("list", "--help", "--frob"), ("list", "--frob", "--help"),
                 ("--help", "list", "--frob"), ("--help", "frob")):
        run(*args, status=USAGE)
    for args in ("--help", "--json"), ("--json", "-h"), ("-h",), ("--table", "--help"):
        same(run(*args), run("--help"), args)
    for args in ("--help", "net", "show"), ("net", "show", "-h"), ("-h", "net", "show", "--json"):
        same(run(*args), run("net", "show", "--help"), args)
    run("-p", 1, "net", "show", status=REFUSED)
    for args in ("net", "show"), ("list",), ("metrics",):
        run("--dir", "/nonexistent", *args, status=REFUSED)
    need("/nonexistent" in run.said, run.said)
    # They have one format.
    for verb in "metrics", "export":
        for fmt in "--json", "--table":
            run(verb, fmt, status=USAGE)
    same(run("help"), run("--help"), "help")
    for noun in sorted({v.split()[0] for v in verbs if " " in v}):
        text = run(noun, "--help")
        same([v for v in verbs if re.search("^  %s " % v, text, re.M)],
             [v for v in verbs if v.startswith(noun + " ")], noun + " --help")
    run("nett", "--help", status=USAGE)
    run("list", "-v", "2")
    run("list", "-v2", "--json")
    need("lnxctl (lnx) " in run("--version"), "--version")
    need(all(v in run("--help") for v in verbs), "--help")


def case_output():
    """What cannot be printed is an error, and goes nowhere else."""
    a, b = pair()
    a.do("spin")
    with open("/dev/full", "w") as full:
        for args in (("--help",), ("help",), ("--version",), ("--list-commands",),
                     ("net", "--help"), ("net", "show", "--help"), ("list",), ("metrics",),
                     ("-p", a.pid, "net", "show"), ("-p", a.pid, "export"),
                     ("-p", a.pid, "params", "-v"), ("params", "--env", "-v")):
            p = subprocess.run([LNXCTL, *map(str, args)], stdout=full, stderr=subprocess.PIPE,
                               text=True, env=clean_env(), timeout=HANGS_S)
            same(p.returncode, REFUSED, "status of %s on a full disk" % " ".join(map(str, args)))
            need("writing the output failed: " in p.stderr, args, "says:", p.stderr)
            need(os.strerror(errno.ENOSPC) in p.stderr, args, p.stderr)
    # Standard output and error of a daemon may be closed.
    run("-p", a.pid, "udsp", "add", "--src", "tcp", wait=True)
    for args in ("udsp", "add", "--src", "tcp"), ("explain", "0"), ("set", "nosuch", "3"):
        for closed in ">&-", ">&- 2>&-", "<&- >&- 2>&-":
            p = subprocess.run(["sh", "-c", 'exec "$@" ' + closed, "sh", LNXCTL, "-p",
                                str(a.pid), *args], env=clean_env(), timeout=HANGS_S,
                               stderr=subprocess.DEVNULL)
            same(p.returncode, REFUSED, "status of %s %s" % (" ".join(args), closed))
            same(show(a, "info")["info"]["pid"], a.pid, "the segment afterwards")


def case_together():
    """Many readers of one process at the same time."""
    a, b = pair()
    a.do("spin")
    jobs = [subprocess.Popen([LNXCTL, "-p", str(a.pid), "set", "spill", str(600 + i)],
                             stderr=subprocess.PIPE, env=clean_env())
            for i in range(12)]
    for j in jobs:
        text = j.communicate(timeout=HANGS_S)[1]
        same(j.returncode, OK, "one of many: %s" % text)
    need(600 <= int(params(a, "spill")["value"]) < 612, "the last one")


def case_no_room():
    """Without a segment an endpoint works as usual."""
    if os.geteuid():
        raise Skipped("needs root, to mount another /dev/shm")
    full = ["unshare", "-m", "sh", "-c", "mount -t tmpfs -o size=8k none /dev/shm && "
            "exec \"$0\" \"$@\""]
    if subprocess.run(full + ["true"], stderr=subprocess.DEVNULL).returncode:
        raise Skipped("cannot mount another /dev/shm")
    a = Talk("tcp:lo", "a", before=full)
    b = Talk("tcp:lo", "b")
    names = a.do("name"), b.do("name")
    a.do("know " + names[1])
    b.do("know " + names[0])
    send(a, b, 5, 100)
    send(b, a, 5, 100)
    # And with FI_LNX_STATE=0 there is none.
    c = Talk("tcp:lo", "c", FI_LNX_STATE="0")
    listed = [p["pid"] for p in show(None, "list")["process"]]
    need(a.pid not in listed and c.pid not in listed and b.pid in listed, listed)
    # Of another name space for files, as a container has one.
    d = Talk("tcp:lo", "d", before=full[:-1] + [full[-1].replace("8k", "8m")])
    d.do("spin")
    need(d.pid not in [p["pid"] for p in show(None, "list")["process"]], "a container")
    there = json.loads(run("--dir", "/proc/%d/root/dev/shm" % d.pid, "info", "--json"))
    same(there["info"]["pid"], d.pid, "--dir")


def main():
    if not os.access(TALK, os.X_OK) or not os.access(LNXCTL, os.X_OK):
        print("no %s or %s: run make there" % (TALK, LNXCTL))
        return 77
    cases = {n[5:]: f for n, f in globals().items() if n.startswith("case_")}
    names = sys.argv[1:] or list(cases)
    failed = 0
    if not yaml:
        print("# YAML is not read again: there is no python3-yaml")
    if not text_string_to_metric_families:
        print("# metrics are not read again: there is no python3-prometheus-client")
    for n in names:
        begin = time.monotonic()
        try:
            cases[n]()
            print("ok - %s, %.1f s" % (n, time.monotonic() - begin))
        except Skipped as e:
            print("ok - %s: skipped: %s" % (n, e))
        except (Failed, subprocess.TimeoutExpired, BrokenPipeError) as e:
            print("FAILED: %s: %s" % (n, e))
            for t in all_talks:
                if t.p.poll() is not None:
                    print("# process %d has ended: %d" % (t.p.pid, t.p.poll()))
            failed += 1
        finally:
            for t in list(all_talks):
                t.end()
        sys.stdout.flush()
    return failed != 0


if __name__ == "__main__":
    sys.exit(main())
