# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Cases of routes: nodes A and B of a lab are on a network each, and only gateways
(lnxrtd) are on both.  No kernel forwards between the two.

Usage: routed.py [--list] [--quick|CASE...]; in the directory of the build, or with
top_builddir.  --quick: the cases of QUICK, about a minute."""
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
LAB = os.path.join(HERE, "../../contrib/lab/lab")
BUILD = os.path.abspath(os.environ.get("top_builddir", "."))
DSO = os.environ.get("LNX_SO", os.path.join(BUILD, ".libs/liblnx-fi.so"))
# A hang guard, which no working run comes near.
GUARD = 600 * float(os.environ.get("FT_TIMEOUT_S", 30)) / 30
# What starts gateways: a command of words.
UNDER = os.environ.get("LNX_RTD_UNDER", "").split()
A, B, G1, G2, G3 = 1, 2, 241, 242, 243
NODES = {A: "1", B: "2", G1: "g1", G2: "g2", G3: "g3"}
NETS = "tcp1=10.77.0.0/24; tcp2=10.77.1.0/24; tcp3=10.77.2.0/24; tcp4=10.77.3.0/24"
LAB_NAME = "routed%d" % os.getpid()
work = tempfile.TemporaryDirectory(prefix="routed-")
children = []


class Failed(Exception):
    pass


def want(condition, what):
    if not condition:
        raise Failed(what)


def lab(*words, **more):
    return subprocess.run([LAB, "--name", LAB_NAME, *words], check=True, **more)


def start(node, command, env=None, **more):
    # pylint: disable-next=consider-using-with
    p = subprocess.Popen([LAB, "--name", LAB_NAME, "exec", NODES[node], "--", *command],
                         env=dict(os.environ, **(env or {})), text=True, **more)
    children.append(p)
    return p


def up():
    lab("up", "--nets", "0:1,g1,g2,g3 1:2,g1,g2 2:2,g1,g2 3:1,2", "--while", str(os.getpid()),
        stdout=subprocess.DEVNULL)


class Gateway:
    def __init__(self, node, rails=(0, 1), more="", routing="", subnet="10.77.%d.0/24",
                 kinds=("tcp",) * 3):
        """kinds: the provider of each net."""
        self.node = node
        self.state_file = os.path.join(work.name, "state-%d" % node)
        self.conf = os.path.join(work.name, "conf-%d" % node)
        with open(self.conf, "w", encoding="ascii") as f:
            f.write("nets: {%s}\nnet:\n%srouting: {state: %s%s}\n%s" % (
                ", ".join("%s%d: '%s'" % (kinds[r], r + 1, subnet % r) for r in range(3)),
                "".join("- {net type: %s%d, local NI(s): [{interfaces: {0: rail%d}}]}\n" %
                        (kinds[r], r + 1, r) for r in rails), self.state_file, routing, more))
        self.process = None
        self.start()

    def start(self):
        if os.path.exists(self.state_file):
            os.unlink(self.state_file)
        self.process = start(self.node, [*UNDER, os.path.join(BUILD, "lnxrtd"), "-c",
                                         self.conf])
        end = time.monotonic() + GUARD
        while not os.path.exists(self.state_file):
            want(self.process.poll() is None, "lnxrtd ended")
            want(time.monotonic() < end, "lnxrtd writes no state")
            time.sleep(0.01)

    def send(self, number):
        """The lab's command has become lnxrtd."""
        self.process.send_signal(number)

    def stop(self, number=signal.SIGTERM):
        self.send(number)
        self.process.wait(GUARD)

    def forward(self, on):
        """Switch routing off, or on again."""
        with open(self.conf, encoding="ascii") as f:
            text = f.read().replace("enable: false, ", "")
        with open(self.conf, "w", encoding="ascii") as f:
            f.write(text if on else text.replace("routing: {", "routing: {enable: false, "))
        self.send(signal.SIGHUP)

    def count(self, name):
        """A counter of its state as it is now."""
        before = os.stat(self.state_file).st_ino
        end = time.monotonic() + GUARD
        self.send(signal.SIGUSR1)
        while os.stat(self.state_file).st_ino == before:
            want(time.monotonic() < end, "lnxrtd does not answer SIGUSR1")
            time.sleep(0.005)
        with open(self.state_file, encoding="ascii") as f:
            found = re.search(r"^    %s:\s+(?:count: )?(\d+)" % name, f.read(), re.M)
        want(found, "the state has no " + name)
        return int(found[1])


def routes(*gateways):
    return "tcp2 via %s; tcp1 via %s" % (
        ",".join("10.77.0.%d@tcp1" % g for g in gateways),
        ",".join("10.77.1.%d@tcp2" % g for g in gateways))


def environment(rail, text):
    return {"FI_PROVIDER": "lnx", "FI_PROVIDER_PATH": "+" + DSO, "FI_LNX_HEALTH_BOARD": "0",
            "FI_LNX_PROV_LINKS": "tcp:" + rail, "FI_LNX_NETS": NETS, "FI_LNX_ROUTES": text,
            "FT_TIMEOUT_S": os.environ.get("FT_TIMEOUT_S", "120"),
            "FI_LOG_LEVEL": os.environ.get("FI_LOG_LEVEL", "warn")}


def begin(program, text, options, more=None, far="rail1", more_far=None, under=()):
    """The program on A and B: both processes, and the file that each writes.  under: a
    command that starts the one on B."""
    binary = os.path.join(BUILD, "fabtests", program)
    log = [os.path.join(work.name, "log-%d" % node) for node in (A, B)]
    with open(log[0], "w", encoding="utf-8") as out:
        a = start(A, [binary, "-p", "lnx", "-n", "2", *options],
                  dict(environment("rail0", text), **(more or {})), stdout=out, stderr=out)
    with open(log[1], "w", encoding="utf-8") as out:
        b = start(B, [*under, binary, "-p", "lnx", "-n", "2", "10.78.0.1"],
                  dict(environment(far, text), **(more_far or more or {})), stdout=out,
                  stderr=out)
    return a, b, log


def said_by(running):
    text = ""
    for name in running[2]:
        with open(name, encoding="utf-8", errors="replace") as f:
            text += f.read()
    return text


def end(running, least=1):
    status = running[0].wait(GUARD), running[1].wait(GUARD)
    text = said_by(running)
    bad = [line for line in text.splitlines()
           if line.startswith("not ok") and "# TODO" not in line]
    good = [line for line in text.splitlines()
            if line.startswith("ok") and "# SKIP" not in line]
    want(status == (0, 0) and not bad and len(good) >= least,
         "exit status %s, %d passed\n%s" % (status, len(good), text[-6000:]))


def run(program, text, *options, least=1, more=None, far="rail1"):
    end(begin(program, text, options, more, far), least)


def goes_at_once(text, gateways, far="rail1"):
    """A message of 64 KiB goes through each of these gateways in one frame, and some acknowledge
    several: where frames have 16 KiB it is announced, and pulled in four more."""
    binary = os.path.join(BUILD, "fabtests/bench/rate")
    before = [(g.count("recv_count"), g.count("recv_length")) for g in gateways]
    a = start(A, [binary, "-p", "lnx", "-s", "65536", "-r", "1", "-N", "500"],
              environment("rail0", text), stdout=subprocess.DEVNULL)
    b = start(B, [binary, "-p", "lnx", "10.78.0.1"], environment(far, text),
              stdout=subprocess.DEVNULL)
    want((a.wait(GUARD), b.wait(GUARD)) == (0, 0), "messages of 64 KiB fail")
    for g, (frames, length) in zip(gateways, before):
        frames = g.count("recv_count") - frames
        messages = (g.count("recv_length") - length) / 65536
        want(messages > 50 and frames / messages < 2.5,
             "%d frames for %d messages of 64 KiB" % (frames, messages))
        print("# %.2f frames for a message of 64 KiB" % (frames / messages))


# ---- cases ----

def end_well(a, b, gateways):
    """End the flow between a and b, in which nothing may have gone wrong, and all programs."""
    a.do("ebb")
    b.do("ebb")
    for t in a, b:
        s = t.show("stats", "show")["statistics"]
        want(s["errors"] == 0, "errors: %s" % s)
        t.quit()
    for g in gateways:
        g.stop()


def case_tagged():
    """Messages that fit into a frame, in all spellings, go over one gateway."""
    g = Gateway(G1)
    run("functional/sendrecv", routes(G1), "-c", "t*", "-s", "4096", "--quick", least=10)
    want(g.count("route_count") > 20, "the gateway forwarded %d frames" %
         g.count("route_count"))
    want(g.count("quota") == 0, "more was sent than the gateway grants")
    g.stop()


def case_small():
    """Messages of all lengths that travel in one frame."""
    g = Gateway(G1)
    for size in ("0", "1", "200", "2000", "16320"):
        run("functional/sendrecv", routes(G1), "-s", size, "--quick", least=10)
    g.stop()


def case_large():
    """Messages of all lengths, also those that the receiver pulls."""
    g = Gateway(G1)
    run("functional/sendrecv", routes(G1), least=30)
    goes_at_once(routes(G1), [g])
    g.stop()


def case_memory():
    """Remote memory, small and large, and atomics."""
    g = Gateway(G1)
    run("functional/rma", routes(G1), "--quick", least=10)
    run("functional/atomic", routes(G1), "--quick", least=10)
    g.stop()


def case_programs():
    """Other functional programs for two processes."""
    g = Gateway(G1)
    for program in ("peek", "multi_recv", "errors", "comp", "flags", "cntr"):
        run("functional/" + program, routes(G1), "--quick")
    g.stop()


def traffic(gateways, mode, size, hit, more=None, more_far=None, waits=True):
    """Verified traffic, while something happens to the gateway that carries more, or to the
    process on A, which receives.  waits: until the gateways forward something."""
    p = begin("faults/traffic", routes(*(g.node for g in gateways)),
              ["-m", mode, "-s", size, "--seconds", "8"], more, more_far=more_far)
    before = [g.count("route_count") for g in gateways]
    limit = time.monotonic() + GUARD
    while True:
        moved = [g.count("route_count") - b for g, b in zip(gateways, before)]
        if max(moved) > 500:
            break
        if not waits:
            time.sleep(3)
            break
        want(time.monotonic() < limit, "the gateways forward nothing")
        time.sleep(0.05)
    victim = gateways[moved.index(max(moved))]
    hit(victim, p[0])
    status = p[0].wait(GUARD), p[1].wait(GUARD)
    text = said_by(p)
    said = [json.loads(line) for line in text.splitlines() if line.startswith("{")]
    want(status == (0, 0) and len(said) == 2, "exit status %s\n%s" % (status, text[-4000:]))
    for s in said:
        want(not s["hung"], "it hangs: " + s["why"])
        for what in ("doubled", "reordered", "corrupt", "late", "failed", "refused"):
            want(not s[what], "%d %s: %s" % (s[what], what, s["why"]))
    source = max(said, key=lambda s: s["sent"])
    want(source["unique"] >= source["sent"], "%d of %d messages are lost" %
         (source["sent"] - source["unique"], source["sent"]))
    return victim


def two():
    return [Gateway(G1), Gateway(G2)]


def case_killed():
    """One of two gateways is killed: nothing is lost, and nothing comes twice."""
    for mode, size in (("stream", "64"), ("stream", "64k"), ("stream", "1m")):
        gateways = two()
        victim = traffic(gateways, mode, size, lambda g, _: g.stop(signal.SIGKILL))
        for g in gateways:
            if g is not victim:
                g.stop()


def case_unlike():
    """One of two gateways begins to take short frames only, and the other is killed: those that
    are long leave over the one that is left, as they are."""
    for size in "24k", "64k":
        gateways = two()

        def hit(victim, _, gateways=gateways):
            for g in gateways:
                if g is victim:
                    continue
                with open(g.conf, "a", encoding="ascii") as f:
                    f.write("limits: {frame_max: 16448}\n")
                g.send(signal.SIGHUP)
            victim.stop(signal.SIGKILL)

        victim = traffic(gateways, "stream", size, hit)
        for g in gateways:
            if g is not victim:
                g.count("route_count")
                with open(g.state_file, encoding="ascii") as f:
                    want(" frame_max: 16448\n" in f.read(), "frame_max is not what was set")
                g.stop()


def case_drained():
    """One of two gateways is asked to end: it forwards what it has, and the other goes on."""
    for mode, size in (("stream", "64"), ("stream", "1m")):
        gateways = two()
        victim = traffic(gateways, mode, size, lambda g, _: g.send(signal.SIGTERM))
        for g in gateways:
            if g is not victim:
                g.stop()


def case_four():
    """Four processes, two on each side, all with each other."""
    g = Gateway(G1)
    for program in ("match", "random", "pgas"):
        command = [os.path.join(BUILD, "fabtests/functional", program), "-p", "lnx",
                   "-n", "4"]
        log = os.path.join(work.name, "log")
        with open(log, "w", encoding="utf-8") as out:
            ranks = [start(A, [*command, "--quick"], environment("rail0", routes(G1)),
                           stdout=out, stderr=out)]
            for node, rail in ((B, "rail1"), (A, "rail0"), (B, "rail1")):
                ranks.append(start(node, [*command, "10.78.0.1"],
                                   environment(rail, routes(G1)), stdout=out, stderr=out))
        status = [r.wait(GUARD) for r in ranks]
        with open(log, encoding="utf-8", errors="replace") as f:
            want(not any(status), "%s: %s\n%s" % (program, status, f.read()[-4000:]))
    want(g.count("quota") == 0, "more was sent than the gateway grants")
    g.stop()


def case_stopped():
    """One of two gateways stops answering, and goes on later."""
    for mode, size in (("stream", "64"), ("stream", "64k")):
        gateways = two()
        victim = traffic(gateways, mode, size, lambda g, _: g.send(signal.SIGSTOP))
        victim.send(signal.SIGCONT)
        for g in gateways:
            g.stop()


def case_restarted():
    """The only gateway is killed, and another one takes its place."""
    def again(g, _):
        g.stop(signal.SIGKILL)
        g.start()

    g = [Gateway(G1)]
    traffic(g, "stream", "4k", again)
    g[0].stop()


def case_both():
    """Both gateways die, and one returns: the peers wait for it, and go on."""
    gateways = []

    def hit(victim, _):
        for g in gateways:
            g.stop(signal.SIGKILL)
        time.sleep(2)
        gateways[victim is gateways[0]].start()

    for size in ("64", "64k"):
        gateways[:] = two()
        traffic(gateways, "stream", size, hit)
        for g in gateways:
            if g.process.poll() is None:
                g.stop()


def case_both_for_good():
    """Both gateways die and none returns: each operation ends once, and nothing hangs."""
    gateways = two()
    p = begin("faults/traffic", routes(G1, G2), ["-m", "stream+acked", "-s", "64",
                                                 "--seconds", "8"],
              {"FI_LNX_TRANSACTION_TIMEOUT": "3000", "FI_LNX_CONNECT_TIMEOUT": "3000"})
    before = sum(g.count("route_count") for g in gateways)
    wait_for(lambda: sum(g.count("route_count") for g in gateways) > before + 500,
             "the gateways forward nothing")
    for g in gateways:
        g.stop(signal.SIGKILL)
    for q in p[:2]:
        q.wait(GUARD)
    text = said_by(p)
    said = [json.loads(line) for line in text.splitlines() if line.startswith("{")]
    want(len(said) == 2, text[-4000:])
    for s in said:
        want(not s["hung"], "it hangs: " + s["why"])
        for what in ("doubled", "reordered", "corrupt", "late"):
            want(not s[what], "%d %s: %s" % (s[what], what, s["why"]))
    source, target = sorted(said, key=lambda s: -s["sent"])
    want(source["failed"] + source["refused"] > 0, "no error: %s" % source)
    want(target["unique"] >= source["ok"], "%d of %d messages are lost" %
         (source["ok"] - target["unique"], source["ok"]))


def case_clocks():
    """The clocks of the nodes differ by a day."""
    under = ("unshare", "--time", "--monotonic", "100000", "--boottime", "100000", "--fork",
             "--kill-child", "--")
    if subprocess.run([*under, "true"], stderr=subprocess.DEVNULL, check=False).returncode:
        print("# skipped: no time namespaces")
        return
    g = Gateway(G1)
    end(begin("functional/sendrecv", routes(G1), ["--quick"], under=under), 10)
    g.stop()


def case_ipv6():
    """The networks have IPv6 only."""
    places = ((A, 0), (B, 1), (G1, 0), (G1, 1))

    def change_to(off, *address):
        for node, r in places:
            lab("exec", NODES[node], "--", "ip", "address", "flush", "dev", "rail%d" % r)
            lab("exec", NODES[node], "--", "sysctl", "-qw",
                "net.ipv6.conf.rail%d.disable_ipv6=%d" % (r, off))
            lab("exec", NODES[node], "--", "ip", "address", "add", address[0] % (r, node),
                *address[1:], "dev", "rail%d" % r)

    text = ("tcp2 via [fd77:0::%d]@tcp1; tcp1 via [fd77:1::%d]@tcp2" % (G1, G1))
    change_to(0, "fd77:%d::%d/64", "nodad")
    try:
        g = Gateway(G1, subnet="fd77:%d::/64")
        run("functional/sendrecv", text, "--quick", least=10,
            more={"FI_LNX_NETS": "tcp1=fd77:0::/64; tcp2=fd77:1::/64"})
        want(g.count("route_count") > 20, "the gateway forwarded %d frames" %
             g.count("route_count"))
        g.stop()
    finally:
        change_to(1, "10.77.%d.%d/24", "broadcast", "+")


def case_skewed():
    """Over two gateways, one of which is 50 ms farther away: the order is kept."""
    gateways = two()
    lab("fault", "g1", "0", "delay=50")
    try:
        for mode, size in (("stream", "64"), ("stream", "1m")):
            traffic(gateways, mode, size, lambda *_: None)
    finally:
        lab("fault", "g1", "0", "restore")
    for g in gateways:
        g.stop()


def case_ring():
    """Three gateways, each of which takes the next one for the way: the frame ends, and the
    sender learns of it."""
    ring = (G1, G2, G3)
    gateways = [Gateway(node, (0,), "route: [{net: tcp3, gateway: 10.77.0.%d@tcp1}]\n" %
                        ring[(i + 1) % 3]) for i, node in enumerate(ring)]
    text = "tcp3 hop=3 via 10.77.0.%d@tcp1; tcp1 via 10.77.2.%d@tcp3" % (G1, G2)
    p = begin("functional/sendrecv", text, ["-c", "tsend-recv-expected", "-s", "8"],
              {"FI_LNX_CONNECT_TIMEOUT": "3000", "FT_TIMEOUT_S": "15"}, far="rail2")
    p[0].wait(GUARD)
    p[1].wait(GUARD)
    want(re.search(r"^not ok", said_by(p), re.M), "a message passed a ring")
    want(sum(g.count("ttl") + g.count("loop") for g in gateways),
         "no gateway counted a loop")
    want(sum(g.count("notes_sent") for g in gateways), "no note was sent")
    # The first frame is enough for its sender to learn of it, however many gateways it passed.
    time.sleep(2)               # until nothing is known of the way any more
    end_a = Envelope(A, "rail0")
    end_a.peer("g", "10.77.0.%d" % G1, 7988, end_a)
    end_a.do("gateway g")
    end_a.do("hello")
    end_a.do("peer b " + Envelope(B, "rail2").address)
    end_a.do("send b 1 200")
    said = end_a.do("note %d" % (1000 * GUARD))
    want(said.startswith("ttl after"), "the note: " + said)
    print("# a note: " + said)
    for g in gateways:
        want(g.count("held") == 0, "a frame goes round and round")
        g.stop()


def case_late():
    """The gateway begins after the endpoints."""
    g = Gateway(G1)
    g.stop(signal.SIGKILL)
    p = begin("functional/sendrecv", routes(G1), ["--quick"])
    time.sleep(2)
    g.start()
    end(p, 10)
    g.stop()


def case_pools():
    """Pools shrink to almost nothing and grow again under load: nothing is lost."""
    g = Gateway(G1)

    def resize(*counts):
        with open(g.conf, encoding="ascii") as f:
            text = re.sub(r"^buffers:.*\n", "", f.read(), flags=re.M)
        with open(g.conf, "w", encoding="ascii") as f:
            f.write(text + "buffers: {tiny: %d, small: %d, large: %d}\n" % counts)
        g.send(signal.SIGHUP)
        time.sleep(1)

    def hit(*_):
        resize(16, 16, 136)
        resize(2048, 16384, 1024)
        resize(16, 16, 136)

    for size in ("64", "64k"):
        traffic([g], "stream", size, hit)
    g.stop()


def case_standby():
    """A net that both are on dies; what went over it goes over the gateway, in order, and
    comes back."""
    g = Gateway(G1)

    def hit(*_):
        lab("fault", "1", "3", "down")
        time.sleep(2.5)
        lab("fault", "1", "3", "restore")

    more = {"FI_LNX_PROV_LINKS": "tcp:rail0,rail3"}
    far = {"FI_LNX_PROV_LINKS": "tcp:rail1,rail3"}
    traffic([g], "stream", "64k", hit, more, far, waits=False)
    want(g.count("route_count") > 1000, "the gateway forwarded %d frames" %
         g.count("route_count"))
    # There, and back again.
    a, b = (Talk(node, rails, FI_LNX_ROUTES=routes(G1))
            for node, rails in ((A, "rail0,rail3"), (B, "rail1,rail3")))
    a.do("know " + b.do("name"))
    b.do("know " + a.do("name"))
    for t in a, b:
        t.do("spin")
    b.do("sink 2000")
    a.do("flow 0 2000")
    for _ in range(2):
        lab("fault", "1", "3", "down")
        began = time.monotonic()
        carries(g, "the gateway carries nothing")
        moved = time.monotonic() - began
        lab("fault", "1", "3", "restore")
        began = time.monotonic()
        all_elsewhere(g, "the direct path is back, and the gateway still carries something")
        print("# 50 frames over the gateway after %.0f ms, none after %.1f s" %
              (1000 * moved, time.monotonic() - began - STILL))
    end_well(a, b, [g])


def case_two_hops():
    """A gateway behind a gateway."""
    g1 = Gateway(G1, (0, 1), "route: [{net: tcp3, gateway: 10.77.1.%d@tcp2}]\n" % G2)
    g2 = Gateway(G2, (1, 2), "route: [{net: tcp1, gateway: 10.77.1.%d@tcp2}]\n" % G1)
    text = "tcp3 hop=2 via 10.77.0.%d@tcp1; tcp1 hop=2 via 10.77.2.%d@tcp3" % (G1, G2)
    run("functional/sendrecv", text, least=30, far="rail2")
    for g in (g1, g2):
        want(g.count("route_count") > 20, "a gateway forwarded nothing")
    run("functional/rma", text, "--quick", least=10, far="rail2")
    run("functional/atomic", text, "--quick", least=10, far="rail2")
    run("functional/peer_dead", text, "--quick", far="rail2")
    goes_at_once(text, [g1, g2], far="rail2")
    # What a frame says of its way, and what is known of a host at its end.
    a, b = Envelope(A, "rail0"), Envelope(B, "rail2")
    a.peer("g", "10.77.0.%d" % G1, 7988, a)
    a.do("gateway g")
    a.do("hello")
    a.do("peer b " + b.address)
    a.do("send b 5 200")
    said = b.do("receive 5 %d" % (1000 * GUARD))
    want(said.startswith("got 5 order ok hops 2 "), said)
    want(a.do("ask b") == "tell alive", "it does not answer that B is there")
    b.p.kill()
    b.p.wait()
    want(a.do("ask b") == "tell refused", "it does not answer that B is gone")
    for g in (g1, g2):
        g.stop()


def case_two_hops_peer_dies():
    """A peer that is killed behind two gateways: the second one is asked, and tells."""
    g1 = Gateway(G1, (0, 1), "route: [{net: tcp3, gateway: 10.77.1.%d@tcp2}]\n" % G2)
    g2 = Gateway(G2, (1, 2), "route: [{net: tcp1, gateway: 10.77.1.%d@tcp2}]\n" % G1)
    text = "tcp3 hop=2 via 10.77.0.%d@tcp1; tcp1 hop=2 via 10.77.2.%d@tcp3" % (G1, G2)
    more = {"FI_LNX_ROUTES": text, "FI_LNX_TRANSACTION_TIMEOUT": "2000"}
    a, b = Talk(A, "rail0", **more), Talk(B, "rail2", **more)
    a.do("know " + b.do("name"))
    b.do("know " + a.do("name"))
    hand_over(a, b, 3, 64)
    b.p.kill()
    b.p.wait()
    began = time.monotonic()
    a.tell("send 0 1 1000000")
    said = a.answer()
    print("# %.1f s: %s" % (time.monotonic() - began, said))
    want(said.startswith("error"), "a message to a dead peer: " + said)
    a.quit()
    for g in (g1, g2):
        want(g.count("asks") > 0, "gateway %d was not asked" % g.node)
        g.stop()


def case_asym():
    """B has a gateway, and no route back to A: it learns one; or drops what comes."""
    g = Gateway(G1, (0, 1, 2))
    other = {"FI_LNX_ROUTES": "tcp3 via 10.77.1.%d@tcp2" % G1,
             "FI_LNX_CHECK_ROUTERS_BEFORE_USE": "1"}
    end(begin("functional/sendrecv", routes(G1), ["--quick"],
              more_far=dict(other, FI_LNX_LEARN_ROUTES="1")), 10)
    p = begin("functional/sendrecv", routes(G1), ["-c", "tsend-recv-expected", "-s", "8"],
              {"FI_LNX_CONNECT_TIMEOUT": "2000", "FT_TIMEOUT_S": "10"},
              more_far=dict(other, FI_LNX_DROP_ASYM_ROUTE="1", FT_TIMEOUT_S="10",
                            FI_LNX_CONNECT_TIMEOUT="2000"),
              under=(os.path.join(BUILD, "lnxctl"), "check", "--"))
    p[0].wait(GUARD)
    p[1].wait(GUARD)
    want(re.search(r"^not ok", said_by(p), re.M), "a message came without a route back")
    want("from a network that no route over it leads to; dropped" in said_by(p),
         "B says nothing of it:\n" + said_by(p)[-2000:])
    want(re.search('tcp1 via 10.77.1.%d@tcp2.{0,2} is missing' % G1, said_by(p)),
         "lnxctl check does not name the route:\n" + said_by(p)[-2000:])
    g.stop()


def case_key():
    """Gateway and endpoints have a route key; without it nothing passes."""
    name = os.path.join(work.name, "key")
    with open(name, "w", encoding="ascii") as f:
        f.write("0123456789abcdef\n")
    os.chmod(name, 0o600)
    g = Gateway(G1, routing=", key: " + name)
    run("functional/sendrecv", routes(G1), "-c", "tsend-recv-expected", "-s", "8",
        more={"FI_LNX_ROUTE_KEY_FILE": name})
    before = g.count("route_count")
    p = begin("functional/sendrecv", routes(G1), ["-c", "tsend-recv-expected", "-s", "8"],
              {"FI_LNX_CONNECT_TIMEOUT": "2000", "FI_LNX_TRANSACTION_TIMEOUT": "3000",
               "FT_TIMEOUT_S": "10"})
    p[0].wait(GUARD)
    p[1].wait(GUARD)
    want(g.count("route_count") == before and g.count("not_allowed") > 0,
         "frames passed without the key")
    g.stop()


def case_shown():
    """lnxctl shows the routes that count; text with a mistake is refused."""
    g = Gateway(G1)
    text = routes(G1) + "; tcp9 via 10.55.0.1@tcp8"
    p = begin("faults/traffic", text, ["-m", "stream", "-s", "64", "--seconds", "6"])
    limit = time.monotonic() + GUARD
    while g.count("route_count") < 100:
        want(time.monotonic() < limit, "the gateway forwards nothing")
        time.sleep(0.05)
    said = start(A, [os.path.join(BUILD, "lnxctl"), "-p", str(p[0].pid), "info"],
                 stdout=subprocess.PIPE).communicate()[0]
    want(re.findall(r"\n    routes:\n((?: +- .*\n)*)", said) ==
         ["      - tcp2 via 10.77.0.241@tcp1\n"], "lnxctl info says:\n" + said)
    said = lnxctl(A, p[0].pid, "route", "show", "-v")[1]
    want("net: tcp2\n      gateway: 10.77.0.241@tcp1" in said and "state: up" in said and
         "gateway state: alive" in said and "type: single-hop" in said,
         "lnxctl route show says:\n" + said)
    # What went over the gateway is that of its leg, and of the rail that it begins with.
    said = json.loads(lnxctl(A, p[0].pid, "net", "show", "--net", "tcp1", "-v", "--json")[1])
    shown = said["net"][0]["local NI(s)"][0]["statistics"]
    want(shown["recv_count"] > 100 and shown["recv_length"] > 6400, "net show: %s" % shown)
    said = json.loads(lnxctl(B, p[1].pid, "net", "show", "--net", "tcp2", "-v", "--json")[1])
    shown = said["net"][0]["local NI(s)"][0]["statistics"]
    want(shown["send_count"] > 100 and shown["send_length"] > 6400, "net show: %s" % shown)
    said = json.loads(lnxctl(A, p[0].pid, "route", "show", "-v", "--json")[1])
    leg = said["route"][0]["legs"][0]
    shown = leg["statistics"]
    want(leg["health value"] == 1000 and shown["recv_frames"] > 100 and
         shown["recv_bytes"] > 6400 and shown["sent_frames"], "route show: %s" % leg)
    for q in p[:2]:
        q.wait(GUARD)
    for wrong, why in (("tcp2 10.77.0.3", "character"),
                       ("tcp2 via 10.77.1.3@tcp2", "is in the net"),
                       ("tcp2 hop=256 via 10.77.0.3@tcp1", "255")):
        q = start(A, [os.path.join(BUILD, "fabtests/functional/sendrecv"), "-p", "lnx",
                      "--fork", "-s", "8"], environment("rail0", wrong),
                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        said = q.communicate()[0]
        want(why in said and "FI_LNX_ROUTES" in said, "%s: %s" % (wrong, said))
    g.stop()


# ---- routes that change while a process runs --------------------------------


def lnxctl(node, pid, *words, text=None):
    """Exit status, and what it says."""
    p = start(node, [os.path.join(BUILD, "lnxctl"), "-p", str(pid), "--wait", "30000", *words],
              stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    said = p.communicate(text)[0]
    return p.returncode, said


def change(node, pid, *words):
    status, said = lnxctl(node, pid, "route", *words)
    want(status == 0, "lnxctl route %s: %d, %s" % (" ".join(words), status, said))


class Talk:
    """A process that does as it is told (talk.c)."""

    def __init__(self, node, rail, **env):
        more = environment(rail, "")
        del more["FI_LNX_ROUTES"]
        self.node = node
        self.p = start(node, [os.path.join(BUILD, "fabtests/functional/talk"), "-p", "lnx",
                              "-n", "1", "-S", "1"], dict(more, **env),
                       stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                       stderr=subprocess.DEVNULL)
        want(self.answer() == "ok open", "talk does not open")
        self.pid = int(self.do("pid"))

    def tell(self, line):
        self.p.stdin.write(line + "\n")
        self.p.stdin.flush()

    def answer(self):
        return self.p.stdout.readline().strip()

    def do(self, line):
        self.tell(line)
        said = self.answer()
        want(said.startswith("ok"), "%s: %s" % (line, said))
        return said[3:]

    def route(self, *words):
        change(self.node, self.pid, *words)

    def show(self, *words):
        status, said = lnxctl(self.node, self.pid, *words, "--json")
        want(status == 0, "lnxctl %s: %s" % (" ".join(words), said))
        return json.loads(said)

    def quit(self):
        self.do("quit")
        self.p.wait(GUARD)


def talks(**env):
    a, b = Talk(A, "rail0", **env), Talk(B, "rail1", **env)
    names = a.do("name"), b.do("name")
    a.do("know " + names[1])
    b.do("know " + names[0])
    return a, b


def over(g):
    """Options of a route over gateway g, for A and for B."""
    return (("--net", "tcp2", "--gateway", "10.77.0.%d@tcp1" % g),
            ("--net", "tcp1", "--gateway", "10.77.1.%d@tcp2" % g))


def hand_over(a, b, n, size):
    b.tell("recv %d %d" % (n, size))
    a.do("send 0 %d %d" % (n, size))
    want(b.answer() == "ok", "it does not come")


def routes_change(names, text, more, more_far):
    """lnxctl shows the routes of text, one each, takes one away and gives it back."""
    a = Talk(A, "rail0", FI_LNX_ROUTES=text, **more)
    b = Talk(B, "rail1", FI_LNX_ROUTES=text, **more_far)
    a.do("know " + b.do("name"))
    b.do("know " + a.do("name"))
    hand_over(a, b, 3, 1 << 20)
    gateway = "10.77.0.%d@%s" % (G1, names[0])
    own = "%s via %s" % (names[1], gateway)
    # It makes progress from now on.
    a.do("spin")
    for words in ("info",), ("export",), ("route", "show"):
        status, said = lnxctl(A, a.pid, *words)
        want(status == 0 and (own in said if words == ("info",) else
                              names[1] in said and gateway in said),
             "lnxctl %s: %s" % (" ".join(words), said))
    route = "--net", names[1], "--gateway", gateway
    a.route("del", *route)
    status, said = lnxctl(A, a.pid, "route", "show")
    want(status == 0 and names[1] not in said, "it is still there: " + said)
    a.route("add", *route)
    hand_over(a, b, 3, 1 << 20)
    for t in a, b:
        t.quit()


def fabrics(kinds):
    """A is on a net of the first provider, B on one of the second.  Messages, remote
    memory, atomics and counters, and routes that change."""
    names = tuple("%s%d" % (kind, n + 1) for n, kind in enumerate(kinds))
    text = "%s via 10.77.0.%d@%s; %s via 10.77.1.%d@%s" % (names[1], G1, names[0], names[0], G1,
                                                          names[1])
    # "lnx" alone would hide the provider that a rail needs.
    more, more_far = ({"FI_PROVIDER": "lnx," + kind, "FI_LNX_PROV_LINKS": "%s:%s" % (kind, rail),
                       "FI_LNX_NETS": "%s=10.77.0.0/24; %s=10.77.1.0/24" % names}
                      for kind, rail in zip(kinds, ("rail0", "rail1")))
    g = Gateway(G1, kinds=kinds + ("tcp",))
    routes_change(names, text, more, more_far)
    for program in "sendrecv", "rma", "atomic", "multi_recv", "cntr":
        before = g.count("route_count")
        end(begin("functional/" + program, text, ("--quick",), more, more_far=more_far))
        want(g.count("route_count") > before, program + " did not go over the gateway")
    want(g.count("quota") == 0, "more was sent than the gateway grants")
    g.stop()


def case_rxm():
    """Both networks are of tcp;ofi_rxm."""
    fabrics(("tcp;ofi_rxm", "tcp;ofi_rxm"))


def case_fabrics():
    """From a network of tcp to one of tcp;ofi_rxm, and back."""
    fabrics(("tcp", "tcp;ofi_rxm"))


def case_live():
    """Routes that are added, replaced and deleted while processes run."""
    gateways = two()
    a, b = talks(FI_LNX_CONNECT_TIMEOUT="60000")
    for t in a, b:
        t.do("spin")
    # Without routes a message waits for a way that does not exist; then there is one.
    b.tell("recv 1 64")
    a.tell("send 0 1 64")
    time.sleep(0.3)
    a.route("add", *over(G1)[0])
    b.route("add", *over(G1)[1])
    want(a.answer() == "ok" and b.answer() == "ok", "it does not come")
    for size in (64, 20000, 1000000):
        hand_over(a, b, 5, size)
        hand_over(b, a, 5, size)
    want(gateways[0].count("route_count") > 10, "it went another way")
    want(gateways[1].count("route_count") == 0, "gateway 2 has no routes")
    # All routes go: messages wait, and leave when there is one again.
    a.route("del", "--all")
    want(a.show("route", "show")["route"] == [], "routes are left")
    b.tell("recv 3 64")
    a.tell("send 0 3 64")
    time.sleep(0.3)
    a.route("add", *over(G1)[0])
    # B answers over its own route.
    want(a.answer() == "ok" and b.answer() == "ok", "it does not come")
    # The other one instead, while messages come.
    b.do("sink 2000")
    a.do("flow 0 2000")
    took = []
    for old, new in ((0, 1), (1, 0)) * 3:
        new_g, old_g = (G1, G2)[new], (G1, G2)[old]
        before = gateways[new].count("route_count")
        for t, side in ((a, 0), (b, 1)):
            t.route("add", *over(new_g)[side])
        for t, side in ((b, 1), (a, 0)):
            t.route("del", *over(old_g)[side])
        began = time.monotonic()
        while gateways[new].count("route_count") < before + 50:
            want(time.monotonic() < began + GUARD, "gateway %d carries nothing" % new)
            time.sleep(0.001)
        took.append(time.monotonic() - began)
        still = gateways[old].count("route_count")
        time.sleep(0.2)
        more = gateways[old].count("route_count") - still
        want(more < 20, "%d frames over the gateway whose routes are deleted" % more)
    print("# 50 frames over the other gateway after", ["%.0f ms" % (1e3 * t) for t in took])
    a.do("ebb")
    b.do("ebb")
    sent, got = a.do("counts").split(), b.do("counts").split()
    want(int(sent[0]) >= int(got[2]) > 1000, "sent %s, received %s" % (sent, got))
    for t in (a, b):
        s = t.show("stats", "show")["statistics"]
        want(s["errors"] == 0, "errors: %s" % s)
    for t in (a, b):
        t.quit()
    for g in gateways:
        g.stop()


def ways(talk):
    """What it knows of routes, by the NIDs of their gateways."""
    return {r["gateway"]: r for r in talk.show("route", "show", "-v")["route"]}


def wait_for(condition, what):
    end_s = time.monotonic() + GUARD
    while not condition():
        want(time.monotonic() < end_s, what)
        time.sleep(0.02)


def carries(g, what):
    before = g.count("route_count")
    wait_for(lambda: g.count("route_count") >= before + 50, what)


STILL = 0.2


def all_elsewhere(g, what):
    """Until next to nothing comes to g for some time."""
    end_s = time.monotonic() + GUARD
    while True:
        before = g.count("recv_count")
        time.sleep(STILL)
        if g.count("recv_count") - before < 20:
            return
        want(time.monotonic() < end_s, what)


def case_nids():
    """Two NIDs of one gateway: it is found out, and what the gateway says counts for both."""
    nids = ["10.77.1.241@tcp2", "10.77.2.241@tcp3", "10.77.1.242@tcp2"]
    gateways = [Gateway(G1, (0, 1, 2)), Gateway(G2, (0, 1, 2))]
    a, b = Talk(A, "rail0"), Talk(B, "rail1,rail2")
    a.do("know " + b.do("name"))
    b.do("know " + a.do("name"))
    for t in a, b:
        t.do("spin")
    for net in "tcp2", "tcp3":
        a.route("add", "--net", net, "--gateway", "10.77.0.[241-242]@tcp1")
    b.route("add", "--net", "tcp1", "--gateway", ",".join(nids))
    wait_for(lambda: all(w["gateway state"] == "alive" for w in ways(b).values()),
             "not all gateways answer")
    ids = [ways(b)[nid]["gateway id"] for nid in nids]
    want(ids[0] == ids[1] != ids[2], "ids: %s" % ids)
    a.do("sink 2000")
    b.do("flow 0 2000")
    for off, on in ((0, 1), (1, 0), (0, 1)):
        gateways[on].forward(True)
        wait_for(lambda: all(ways(b)[nid]["state"] == "up" for nid in nids
                             if (nid == nids[2]) == on), "it is not up")
        gateways[off].forward(False)
        wait_for(lambda: all(ways(b)[nid]["reason"] == "gateway does not forward"
                             for nid in nids if (nid == nids[2]) == off),
                 "routes of gateway %d: %s" % (off, ways(b)))
        carries(gateways[on], "gateway %d carries nothing" % on)
        still = gateways[off].count("routing_off")
        time.sleep(0.2)
        more = gateways[off].count("routing_off") - still
        want(more < 20, "%d frames to the gateway that does not forward" % more)
    a.do("ebb")
    b.do("ebb")
    for t in (a, b):
        s = t.show("stats", "show")["statistics"]
        want(s["errors"] == 0, "errors: %s" % s)
        t.quit()
    for g in gateways:
        g.stop()


def case_far_link():
    """The gateway's link to the far net goes down: it tells, and its routes are not used until
    it is back; with AVOID_ASYM_ROUTER_FAILURE 0 they are."""
    gateways = two()
    a, b = talks()
    other = Talk(A, "rail0", FI_LNX_AVOID_ASYM_ROUTER_FAILURE="0")
    for t in a, b, other:
        t.do("spin")
        for g in G1, G2:
            t.route("add", *over(g)[t.node == B])
    nids = {g: "10.77.0.%d@tcp1" % g for g in (G1, G2)}
    for t in a, other:
        wait_for(lambda t=t: all(w["gateway state"] == "alive" for w in ways(t).values()),
                 "not all gateways answer")
    a.do("flow 0 2000")
    b.do("sink 2000")
    took, asking = [], []
    for down, stays in ((0, 1), (1, 0)):
        g = gateways[down]
        carries(g, "gateway %d carries nothing" % down)
        infos = g.count("infos")
        lab("fault", NODES[g.node], "1", "down")
        began = time.monotonic()
        wait_for(lambda g=g: ways(a)[nids[g.node]]["reason"] ==
                 "no rail of the gateway is up there", "A does not know: %s" % ways(a))
        took.append(time.monotonic() - began)
        began = time.monotonic()
        ways(a)
        asking.append(time.monotonic() - began)
        # B is told of nothing over a link that is down.
        wait_for(lambda g=g, infos=infos: g.count("infos") >= infos + 2, "not all are told")
        time.sleep(0.2)
        want(ways(other)[nids[g.node]]["state"] == "up", "%s" % ways(other))
        want(ways(a)[nids[gateways[stays].node]]["state"] == "up", "%s" % ways(a))
        carries(gateways[stays], "gateway %d carries nothing" % stays)
        before = g.count("recv_count")
        time.sleep(0.2)
        more = g.count("recv_count") - before
        want(more < 20, "%d frames to the gateway whose link is down" % more)
        lab("fault", NODES[g.node], "1", "restore")
        wait_for(lambda g=g: ways(a)[nids[g.node]]["state"] == "up",
                 "it does not come back: %s" % ways(a))
        carries(g, "gateway %d carries nothing again" % down)
    print("# A knew after %s; to ask it takes %s" % tuple(
        ", ".join("%.0f ms" % (1e3 * t) for t in times) for times in (took, asking)))
    a.do("ebb")
    b.do("ebb")
    for t in (a, b, other):
        s = t.show("stats", "show")["statistics"]
        want(s["errors"] == 0, "errors: %s" % s)
        t.quit()
    for g in gateways:
        g.stop()


def healths(talk):
    """Of all its legs to gateways."""
    return [leg["health value"] for r in talk.show("route", "show", "-v")["route"]
            for leg in r["legs"]]


def computes(g, a, b, seconds):
    """b computes for so long while a sends to it over g: that goes on afterwards, and costs g no
    health meanwhile."""
    for t in a, b:
        t.do("spin")
        t.route("add", *over(G1)[t.node == B])
    a.do("flow 0 2000")
    b.do("sink 2000")
    carries(g, "it carries nothing")
    b.p.send_signal(signal.SIGSTOP)
    lowest = min(min(healths(a)) for _ in range(60) if not time.sleep(seconds / 60))
    b.p.send_signal(signal.SIGCONT)
    carries(g, "it does not go on")
    want(lowest == 1000, "while the peer computed the health was %d" % lowest)


def case_innocent():
    """A peer that computes for longer than the deadline, and then one that dies: neither costs
    the gateway health."""
    g = Gateway(G1)
    a, b = talks(FI_LNX_TRANSACTION_TIMEOUT="2000")
    computes(g, a, b, 6)
    want(g.count("asks") > 0, "the gateway was not asked")
    a.do("ebb")
    b.do("ebb")
    s = a.show("stats", "show")["statistics"]
    want(s["errors"] == 0, "errors: %s" % s)
    b.p.kill()
    b.p.wait()
    a.tell("send 0 1 1000000")
    said = a.answer()
    want(said.startswith("error"), "a message to a dead peer: " + said)
    want(healths(a) == [1000], "the peer died, and the health is %s" % healths(a))
    w = ways(a)["10.77.0.241@tcp1"]
    want(w["state"] == "up" and w["gateway state"] == "alive", "%s" % w)
    a.quit()
    g.stop()


def case_minute():
    """A peer that computes for a minute behind a gateway, with no setting changed: it is waited for,
    and the gateway keeps its health."""
    g = Gateway(G1)
    a, b = talks()
    computes(g, a, b, 60)
    end_well(a, b, [g])


def case_sender_computes():
    """The sender of a large message computes for a minute once it has announced it, with no setting
    changed: the receiver waits for it, and it comes."""
    g = Gateway(G1)
    a, b = talks(FI_LNX_ROUTES=routes(G1))
    hand_over(a, b, 3, 1 << 20)
    a.tell("send 0 1 4194304")
    time.sleep(1)
    a.p.send_signal(signal.SIGSTOP)
    b.tell("recv 1 4194304")
    time.sleep(60)
    a.p.send_signal(signal.SIGCONT)
    said = b.answer(), a.answer()
    want(said == ("ok", "ok"), "receive and send: %s, %s" % said)
    for t in a, b:
        t.quit()
    g.stop()


def case_preferred():
    """Priority, then hops, decide which of two gateways carries all; a rule before both; and
    what is not preferred stands in."""
    gateways = two()
    a, b = talks()
    for t in a, b:
        t.do("spin")
        for g in G1, G2:
            t.route("add", *over(g)[t.node == B])
    a.do("flow 0 2000")
    b.do("sink 2000")

    def put(g, *more):
        for t in a, b:
            t.route("del", *over(g)[t.node == B])
            t.route("add", *over(g)[t.node == B], *more)

    def udsp(*words):
        for t in a, b:
            status, said = lnxctl(t.node, t.pid, "udsp", *words)
            want(status == 0, "lnxctl udsp %s: %s" % (" ".join(words), said))

    def all_over(on, why):
        carries(gateways[on], why + ": it carries nothing")
        all_elsewhere(gateways[not on], why + ": the other one carries something")

    put(G1, "--priority", "1")
    all_over(1, "priority 1 and 0")
    put(G2, "--priority", "2")
    all_over(0, "priority 1 and 2")
    put(G1, "--hop", "2")
    put(G2, "--hop", "1")
    all_over(1, "2 hops and 1")
    for net, nid in (("tcp2", "10.77.0.241@tcp1"), ("tcp1", "10.77.1.241@tcp2")):
        udsp("add", "--dst", net, "--rte", nid)
    all_over(0, "a rule, and 2 hops")
    gateways[0].stop(signal.SIGKILL)
    carries(gateways[1], "the one that is left carries nothing")
    gateways[0].start()
    all_over(0, "back again")
    for net, nid in (("tcp2", "10.77.0.241@tcp1"), ("tcp1", "10.77.1.241@tcp2")):
        udsp("del", "--dst", net, "--rte", nid)
    all_over(1, "without the rule, 2 hops and 1")
    end_well(a, b, gateways)


def case_sensitivity():
    """With FI_LNX_ROUTER_SENSITIVITY=100 a gateway that was silent carries nothing before its
    health is full again; but the last one does."""
    gateways = two()
    a, b = talks(FI_LNX_ROUTER_SENSITIVITY="100")
    for t in a, b:
        t.do("spin")
        for g in G1, G2:
            t.route("add", *over(g)[t.node == B])
    a.do("flow 0 2000")
    b.do("sink 2000")
    nid = {g: "10.77.0.%d@tcp1" % g for g in (G1, G2)}
    sick, well = gateways
    carries(sick, "gateway 1 carries nothing")

    def silent():
        lab("fault", NODES[sick.node], "0", "blackhole")
        try:
            wait_for(lambda: ways(a)[nid[sick.node]]["legs"][0]["health value"] < 1000,
                     "it costs no health: %s" % ways(a))
        finally:
            lab("fault", NODES[sick.node], "0", "restore")

    def sent():
        return ways(a)[nid[sick.node]]["legs"][0]["statistics"]["sent_frames"]

    silent()
    seen, before = set(), sent()
    while True:
        w = ways(a)[nid[sick.node]]
        leg = w["legs"][0]
        if w["state"] == "up":
            want(leg["health value"] == 1000, "it is up with %s" % leg)
            break
        want(leg["statistics"]["sent_frames"] - before < 50, "it carries something")
        before = leg["statistics"]["sent_frames"]
        seen.add(w["reason"])
        time.sleep(0.1)
    want("below the sensitivity" in seen, "%s" % seen)
    want(ways(a)[nid[well.node]]["state"] == "up", "%s" % ways(a))
    carries(sick, "gateway 1 carries nothing again")
    # It becomes the only one while it is sick.
    silent()
    for t in a, b:
        t.route("del", *over(G2)[t.node == B])
    w = ways(a)[nid[sick.node]]
    want(w["state"] == "up", "the only one is not up: %s" % w)
    print("# the only one: %s, %d" % (w["reason"], w["legs"][0]["health value"]))
    carries(sick, "the last one carries nothing")
    end_well(a, b, gateways)


class Envelope:
    """An end without lnx, which sends what it is told (envelope.c)."""

    def __init__(self, node, rail):
        self.told = ""
        self.p = start(node, [os.path.join(BUILD, "fabtests/functional/envelope"), "tcp",
                              rail], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.address = self.do("address")
        self.prov, _, _, self.group = re.split("[:#]", self.address)

    def tell(self, line):
        want(self.p.poll() is None, "envelope has ended with %s: %s" % (
            self.p.returncode, self.p.stdout.read() if self.p.returncode else ""))
        self.told = line
        self.p.stdin.write(line + "\n")
        self.p.stdin.flush()

    def answer(self):
        said = self.p.stdout.readline().strip()
        want(said and not said.startswith("error"), "envelope: %s: %s" % (self.told, said))
        return said

    def do(self, line):
        self.tell(line)
        return self.answer()

    def peer(self, name, ip, port, like):
        """An address on the net of another end."""
        self.do("peer %s %s:%s:%d#%s" % (name, like.prov, ip, port, like.group))


def case_hostile():
    """What a hostile end asks for and must not get; and it keeps nothing from others,
    whatever it sends."""
    g = Gateway(G1, more="limits: {notes: 1000}\n")
    bad, b = Envelope(G3, "rail0"), Envelope(B, "rail1")
    bad.peer("g", "10.77.0.%d" % G1, 7988, bad)
    bad.do("gateway g")
    bad.do("hello")
    lab("exec", NODES[G1], "--", "ip", "address", "add", "10.77.1.250/24", "dev", "rail1")
    for ip, port, reason in (("10.77.1.2", 1023, "not_allowed"),
                             # Those of all nodes, in a net that no rail is in; said to be in B's.
                             ("10.78.0.1", 5000, "not_allowed"),
                             ("10.78.0.%d" % G1, 5000, "own_id"),
                             ("10.77.1.250", 5000, "own_id"),
                             ("127.0.0.1", 5000, "not_allowed"),
                             ("169.254.1.1", 5000, "not_allowed"),
                             ("10.77.1.%d" % G1, 5000, "own_id"),
                             ("10.77.0.%d" % G1, 5000, "own_id"),
                             ("10.77.1.%d" % G1, 7988, "own_id")):
        bad.peer("x", ip, port, b)
        before = g.count(reason)
        bad.do("send x 1 200")
        wait_for(lambda reason=reason, before=before: g.count(reason) == before + 1,
                 "%s:%d is not %s" % (ip, port, reason))
    bad.peer("x", "10.78.0.1", 5000, b)
    want(bad.do("ask x") == "tell unknown", "it asks hosts out of its nets")
    bad.do("peer x %s:10.99.0.1:5000#9" % b.prov)
    bad.do("send x 1 200")
    wait_for(lambda: g.count("no_route") == 1, "a net that it does not serve")
    want(g.count("route_count") == 0, "something was forwarded")
    lab("exec", NODES[G1], "--", "ip", "address", "del", "10.77.1.250/24", "dev", "rail1")
    bad.do("peer b " + b.address)
    for size in ("64", "64k"):
        bad.tell("attack b %d 600000" % time.time_ns())
        traffic([g], "stream", size, lambda *_: None)
        print("# " + bad.do("address"))
        bad.answer()
    with open("/proc/%d/status" % g.process.pid, encoding="ascii") as f:
        print("# gateway: " + re.search(r"VmRSS:.*", f.read())[0])
    for reason in ("bad_envelope", "refused", "quota"):
        want(g.count(reason) > 0, "no frame was dropped because of " + reason)
    g.stop()
    want(g.process.returncode == 0, "it ended with %s" % g.process.returncode)


def passes(a, b, hops):
    """Frames go from a to b over so many gateways; a's peer b is that."""
    a.tell("send b 20 200")
    said = b.do("receive 20 %d" % (1000 * GUARD))
    want(a.answer() == "sent 20 failed 0", "frames did not leave")
    want(said.startswith("got 20 order ok hops %d " % hops), said)


def case_forged_gateway():
    """What another says in the name of a gateway, whose id its peers know: to the gateway before
    it, and to an endpoint, nothing comes of it; and frames in its name keep it not alive."""
    g1 = Gateway(G1, (0, 1), "route: [{net: tcp3, gateway: 10.77.1.%d@tcp2}]\n" % G2)
    g2 = Gateway(G2, (1, 2), "route: [{net: tcp1, gateway: 10.77.1.%d@tcp2}]\n" % G1)
    a, b, bad, near = (Envelope(A, "rail0"), Envelope(B, "rail2"), Envelope(G3, "rail0"),
                       Envelope(B, "rail1"))
    for end, node in (a, G1), (bad, G1), (near, G2):
        end.peer("g", "10.77.%d.%d" % (end is near, node), 7988, end)
        end.do("gateway g")
        end.do("peer b " + b.address)
    ids = [re.search(r"id (\w+)", end.do("hello"))[1] for end in (a, near)]
    wait_for(lambda: a.do("send b 1 200") and b.do("receive 1 300").startswith("got 1 "),
             "nothing passes two gateways")
    b.do("receive 1000 500")
    before = g1.count("bad_control")
    for i in range(200):
        bad.do("news %s %d %d" % (ids[1], i * 7919 + 1, i % 4))
        bad.do("told %s %d b" % (ids[1], i * 7919 + 1))
        bad.do("noted %s %d b" % (ids[1], i * 3 + 1))
    wait_for(lambda: g1.count("bad_control") >= before + 599, "what is forged is not counted")
    passes(a, b, 2)
    more = {"FI_LNX_ROUTES": "tcp2 via 10.77.0.%d@tcp1; tcp1 via 10.77.1.%d@tcp2" % (G1, G1),
            "FI_LNX_ALIVE_ROUTER_CHECK_INTERVAL": "1", "FI_LNX_ROUTER_PING_TIMEOUT": "1"}
    x, y = Talk(A, "rail0", **more), Talk(B, "rail1", **more)
    name = x.do("name")
    x.do("know " + y.do("name"))
    y.do("know " + name)
    hand_over(x, y, 3, 64)
    hand_over(y, x, 3, 64)
    for t in x, y:
        t.do("spin")
    nid = "10.77.0.%d@tcp1" % G1
    bad.peer("x", "10.77.0.1", int.from_bytes(bytes.fromhex(
        re.search("0a4d0001(....)", name)[1]), "little"), bad)
    bad.do("gateway x")
    for i in range(200):
        bad.do("news %s %d 0" % (ids[0], i * 7919 + 1))
        bad.do("told %s %d b" % (ids[0], i * 7919 + 1))
        bad.do("noted %s %d b" % (ids[0], i * 3 + 1))
    want(ways(x)[nid]["reason"] == "up, the last one" or ways(x)[nid]["state"] == "up",
         "what is forged counts: %s" % ways(x)[nid])
    hand_over(x, y, 3, 64)
    g1.send(signal.SIGSTOP)
    state = ""
    end_s = time.monotonic() + GUARD
    while state != "dead":
        want(time.monotonic() < end_s, "frames in its name keep it alive: " + state)
        bad.do("lie x %s 200" % ids[0])
        state = ways(x)[nid]["gateway state"]
    for _ in range(20):
        bad.do("lie x %s 200" % ids[0])
        want(ways(x)[nid]["gateway state"] == "dead", "frames in its name bring it back")
    g1.send(signal.SIGCONT)
    wait_for(lambda: ways(x)[nid]["gateway state"] == "alive", "it is not asked again")
    hand_over(x, y, 3, 64)
    for t in x, y:
        t.quit()
    for g in g1, g2:
        g.stop()


def case_live_refused():
    """What is refused, and that nothing is changed then; file and export."""
    a = Talk(A, "rail0")
    a.do("spin")
    before = lnxctl(A, a.pid, "export")[1]
    want("route: []" in before, "no routes are exported:\n" + before)
    a.route("add", "--net", "tcp2", "--gateway", "10.77.0.[241-242]@tcp1", "--priority", "2")
    for net, gateway, more, err, why in (
            ("tcp2", "10.77.0.241@tcp1", (), -17, "already"),
            ("tcp1", "10.77.1.241@tcp2", (), -17, "is local"),
            ("tcp3", "10.77.1.241@tcp2", (), -113, "no local net"),
            ("tcp2", "10.77.1.241@tcp2", (), -22, "in the net tcp2 itself"),
            ("tcp2", "10.77.0.1@tcp1", (), -22, "this node itself"),
            ("tcp2", "127.0.0.1@tcp1", (), -22, "not the address"),
            ("*", "10.77.0.241@tcp1", (), -22, "one net"),
            ("lo", "10.77.0.241@tcp1", (), -22, "one net"),
            ("tcp2", "10.77.0.9@lo", (), -22, "another node"),
            ("tcp3", "10.77.0.243@tcp1,10.77.0.1@tcp1", (), -22, "this node itself")):
        status, said = lnxctl(A, a.pid, "route", "add", "--net", net, "--gateway", gateway,
                              *more, "--json")
        want(status == 1, "%s via %s: %d, %s" % (net, gateway, status, said))
        e = json.loads(said)["add"][0]["route"]
        want(e["errno"] == err and why in e["descr"], "%s via %s: %s" % (net, gateway, e))
    for words in (("add", "--net", "tcp2"), ("add", "--gateway", "10.77.0.241@tcp1"),
                  ("add", "--net", "tcp3", "--gateway", "10.77.0.241@tcp1", "--hop", "0"),
                  ("add", "--net", "tcp3", "--gateway", "10.77.0.241@tcp1", "--hop", "256"),
                  ("add", "--net", "tcp3", "--gateway", "10.77.0.241@tcp1", "--hop", "abc"),
                  ("add", "--net", "tcp3", "--gateway", "10.77.0.241@tcp1", "--priority",
                   "4294967295"),
                  ("add", "--net", "tcp3; tcp1", "--gateway", "10.77.0.241@tcp1"),
                  ("del",), ("del", "--net", "tcp2", "--all"), ("del", "--all", "--gateway", "x"),
                  ("show", "--nett", "tcp2"), ("list",)):
        status, said = lnxctl(A, a.pid, "route", *words)
        want(status == 2 and said.startswith("lnxctl: "), "%s: %d, %s" % (words, status, said))
    for words in (("--net", "tcp9"), ("--net", "tcp2", "--gateway", "10.77.0.9@tcp1"),
                  ("--net", "tcp2", "--gateway", "10.77.0.241@tcp1,10.77.0.9@tcp1")):
        status, said = lnxctl(A, a.pid, "route", "del", *words, "--json")
        want(status == 1 and json.loads(said)["del"][0]["route"]["errno"] == -2,
             "%s: %d, %s" % (words, status, said))
    shown = sorted(a.show("route", "show", "-v")["route"], key=lambda r: r["gateway"])
    want([(r["net"], r["gateway"], r["hop"], r["priority"]) for r in shown] ==
         [("tcp2", "10.77.0.%d@tcp1" % g, -1, 2) for g in (241, 242)], "%s" % shown)
    want(a.show("route", "show")["route"][0].keys() == {"net", "gateway"}, "less without -v")
    # Nothing answers at these addresses, and that shows.
    end = time.monotonic() + GUARD
    while any(r["state"] != "down" for r in a.show("route", "show", "-v")["route"]):
        want(time.monotonic() < end, "a gateway that is not there: %s" % shown)
        time.sleep(0.1)
    # Out, and in again.
    exported = lnxctl(A, a.pid, "export")[1]
    want(exported.count("gateway: ") == 2, exported)
    for text in (before, exported, exported):
        status, said = lnxctl(A, a.pid, "import", "-", text=text)
        want(status == 0, "import: %d, %s" % (status, said))
        want(lnxctl(A, a.pid, "export")[1] == text, "it is not as imported")
    status, said = lnxctl(A, a.pid, "import", "--diff", "--dry-run", "-", text=exported)
    want(status == 0 and "changes: []" in said, "there is nothing to change:\n" + said)
    # Another priority, one more, one less, and one that is for other nodes.
    text = ("route:\n- {net: tcp2, gateway: 10.77.0.241@tcp1, priority: 7, hop: 2}\n"
            "- {net: tcp3, gateway: 10.77.0.241@tcp1}\n"
            "- {net: tcp1, gateway: 10.77.1.241@tcp2}\n")
    status, said = lnxctl(A, a.pid, "import", "-", text=text)
    want(status == 0 and "routes passed over" in said and "tcp1 is local" in said,
         "import: %d, %s" % (status, said))
    shown = sorted((r["net"], r["gateway"], r["hop"], r["priority"])
                   for r in a.show("route", "show", "-v")["route"])
    want(shown == [("tcp2", "10.77.0.241@tcp1", 2, 7), ("tcp3", "10.77.0.241@tcp1", -1, 0)],
         "%s" % shown)
    # A setting that is refused takes the routes back.
    was = lnxctl(A, a.pid, "export")[1]
    status, said = lnxctl(A, a.pid, "import", "-", text="route: []\nglobal: {hold_down: 1}\n"
                          "udsp: [{src: tcp1, priority: x}]\n")
    want(status == 1 and lnxctl(A, a.pid, "export")[1] == was, "a wrong file: " + said)
    a.quit()


def case_computes():
    """A peer that does not answer for longer than the deadline, and whose host says that it
    is there, is waited for."""
    def stop(_, a):
        a.send_signal(signal.SIGSTOP)
        time.sleep(6)
        a.send_signal(signal.SIGCONT)

    g = [Gateway(G1)]
    traffic(g, "stream", "64", stop, {"FI_LNX_TRANSACTION_TIMEOUT": "2000"})
    want(g[0].count("asks") > 0, "the gateway was not asked")
    g[0].stop()


def case_peer_dies():
    """A peer that is killed behind a gateway: one error each, and no hang."""
    g = Gateway(G1)
    run("functional/peer_dead", routes(G1), "--quick")
    g.stop()


def case_no_gateway():
    """Without a gateway the operation fails, and nothing hangs."""
    p = begin("functional/sendrecv", routes(G1),
              ["-c", "tsend-recv-expected", "-s", "8"],
              {"FI_LNX_CONNECT_TIMEOUT": "2000", "FT_TIMEOUT_S": "10"})
    p[0].wait(GUARD)
    p[1].wait(GUARD)
    want(re.search(r"^not ok", said_by(p), re.M), "a message came without a gateway")


def cases():
    return [name[5:] for name in globals() if name.startswith("case_")]


# Each of these finds what another one does not.
QUICK = ("tagged", "memory", "key", "two_hops_peer_dies", "live", "far_link")


def main():
    names = sys.argv[1:]
    if names == ["--quick"]:
        names = list(QUICK)
    if names == ["--list"]:
        print("\n".join(cases()))
        return 0
    failed = 0
    up()
    try:
        for name in names or cases():
            began = time.monotonic()
            try:
                globals()["case_" + name]()
                print("ok - %s (%.1f s)" % (name, time.monotonic() - began), flush=True)
            except (Failed, subprocess.SubprocessError, OSError) as e:
                failed += 1
                print("not ok - %s: %s" % (name, e), flush=True)
            for p in children:
                if p.poll() is None:
                    p.kill()
                    p.wait()
            children.clear()
    finally:
        lab("down", stdout=subprocess.DEVNULL)
    return failed != 0


sys.exit(main())
