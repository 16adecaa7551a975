# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Cases of the gateway lnxrtd with real endpoints on loopback: A speaks tcp, B speaks
tcp;ofi_rxm, and the gateway has a rail on both.  A and B are fabtests/functional/envelope.

Usage: lnxrtd.py [CASE...]; in the directory of the build, or with top_builddir."""
import os
import re
import resource
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

BUILD = os.environ.get("top_builddir", ".")
# Hang guards, which no working run comes near.
GUARD = 60 * float(os.environ.get("FT_TIMEOUT_S", 60)) / 60
STRANGERS = 200
# A frame of 16 KiB with its envelope, and what fits the buffers of ofi_rxm that lnx sets.
LONGEST = 16448, 32832
# What starts gateways: a command of words.
UNDER = os.environ.get("LNX_RTD_UNDER", "").split()
work = tempfile.TemporaryDirectory(prefix="lnxrtd-")
children = []


class Failed(Exception):
    pass


def want(condition, what):
    if not condition:
        raise Failed(what)


def free_ports():
    """Two free ports, one behind the other."""
    while True:
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            port = s.getsockname()[1]
        with socket.socket() as s:
            try:
                s.bind(("127.0.0.1", port + 1))
            except (OSError, OverflowError):
                continue
        if port > 1024:
            return port


class Gateway:
    def __init__(self, port=None, more="", routing="", where=None, program=None, user=None,
                 nets=("tcp", "tcp;ofi_rxm"), environment=None):
        """where: the directory of its files; user: that it runs as, another than the test."""
        self.port = port or free_ports()
        self.nets = nets
        where = where or work.name
        self.program = program or os.path.join(BUILD, "lnxrtd")
        self.more = {"user": user, "group": user, "extra_groups": []} if user else {}
        self.more["env"] = dict(os.environ, **(environment or {}))
        self.state_file = os.path.join(where, "state-%d" % self.port)
        self.conf = os.path.join(where, "conf-%d" % self.port)
        self.control = os.path.join(where, "control-%d" % self.port)
        self.write(more, routing)
        self.process = None
        self.start()

    def write(self, more="", routing=""):
        with open(self.conf, "w", encoding="ascii") as f:
            f.write("net:\n" + "".join(
                "- {net type: %s, local NI(s): [{interfaces: {0: lo}}]}\n" % net
                for net in self.nets) +
                    "routing: {port: %d, state: %s, control: %s%s}\n%s\n" %
                    (self.port, self.state_file, self.control, routing, more))

    def start(self):
        if os.path.exists(self.state_file):
            os.unlink(self.state_file)
        # pylint: disable-next=consider-using-with
        self.process = subprocess.Popen(
            [*UNDER, self.program, "--loopback", "-c", self.conf],
            stderr=subprocess.PIPE, text=True, **self.more)
        children.append(self.process)
        end = time.monotonic() + GUARD
        while not os.path.exists(self.state_file):
            want(self.process.poll() is None, "lnxrtd ended: " +
                 (self.process.stderr.read() if self.process.poll() is not None else ""))
            want(time.monotonic() < end, "lnxrtd writes no state")
            time.sleep(0.01)

    def kill(self, number):
        self.process.send_signal(number)
        return self.process.wait(GUARD)

    def version(self):
        """Another one each time: the new file exists before the old one goes."""
        s = os.stat(self.state_file)
        return s.st_ino, s.st_mtime_ns

    def state(self):
        """The state as it is now."""
        before = self.version()
        end = time.monotonic() + GUARD
        self.process.send_signal(signal.SIGUSR1)
        while self.version() == before:
            want(self.process.poll() is None, "lnxrtd has ended with %s" % self.process.poll())
            want(time.monotonic() < end, "lnxrtd does not answer SIGUSR1")
            time.sleep(0.005)
        with open(self.state_file, encoding="ascii") as f:
            return f.read()

    def lnxctl(self, *args, status=0):
        """What lnxctl prints, and says, of this gateway, however busy this machine is."""
        if "--wait" not in args:
            args += ("--wait", str(int(500 * GUARD)))
        p = subprocess.run([os.path.join(BUILD, "lnxctl"), "gateway", *args[:1],
                            "--socket", self.control, *args[1:]], capture_output=True,
                           text=True, timeout=GUARD, check=False)
        same(p.returncode, status, "lnxctl gateway %s: %s" % (" ".join(args), p.stderr))
        return p.stdout + p.stderr

    def count(self, name):
        """A counter, or the count of a reason to drop."""
        found = re.search(r"^    %s:\s+(?:count: )?(\d+)" % name, self.state(), re.M)
        want(found, "the state has no " + name)
        return int(found[1])

    def address(self, of):
        """Where an end reaches it: of is the end's own address."""
        prov, group = of.split(":")[0], of.split("#")[1]
        port = self.port + (prov == "3")
        return "%s:127.0.0.1:%d#%s" % (prov, port, group)


class End:
    def __init__(self, prov, gateway=None):
        # pylint: disable-next=consider-using-with
        self.process = subprocess.Popen(
            [os.path.join(BUILD, "fabtests/functional/envelope"), prov, "lo"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            # As endpoints of lnx.
            env=dict(os.environ, FI_OFI_RXM_BUFFER_SIZE=str(LONGEST[-1])))
        children.append(self.process)
        self.address = self.do("address")
        if gateway:
            self.peer("g", gateway.address(self.address))
            self.do("gateway g")

    def begin(self, command):
        self.process.stdin.write((command + "\n").encode())
        self.process.stdin.flush()

    def answer(self):
        line = b""
        end = time.monotonic() + GUARD
        while not line.endswith(b"\n"):
            left = end - time.monotonic()
            want(left > 0 and select.select([self.process.stdout], [], [], left)[0],
                 "envelope does not answer")
            more = os.read(self.process.stdout.fileno(), 4096)
            want(more, "envelope ended")
            line += more
        return line.decode().strip()

    def do(self, command):
        self.begin(command)
        line = self.answer()
        want(not line.startswith("error"), "%s: %s" % (command, line))
        return line

    def peer(self, name, address):
        self.do("peer %s %s" % (name, address))


def pair(gateway):
    a, b = End("tcp", gateway), End("tcp;ofi_rxm", gateway)
    a.peer("b", b.address)
    b.peer("a", a.address)
    return a, b


def same(got, wanted, what):
    want(got == wanted, "%s: got %r, not %r" % (what, got, wanted))


def received(end, n):
    line = end.do("receive %d %d" % (n, GUARD * 1000))
    found = re.match(r"got (\d+) order (\w+) hops (\d+) via (\w+) notes (\d+)", line)
    want(found, line)
    return found


# ---- cases ----

def case_forwards():
    """Frames of all lengths go both ways, whole and in order."""
    g = Gateway()
    a, b = pair(g)
    gw_id = re.search(r"id (\w+)", a.do("hello"))[1]
    b.do("hello")
    for one, other, name in ((a, b, "b"), (b, a, "a")):
        for n, length in ((30, 128), (30, 256), (30, 257), (30, 4096), (16, 4097),
                          (16, 16384)):
            one.begin("send %s %d %d" % (name, n, length))
            got = received(other, n)
            same(one.answer(), "sent %d failed 0" % n, "send")
            same((got[1], got[2], got[3], got[4]), (str(n), "ok", "1", gw_id),
                 "%d bytes to %s" % (length, name))
    same(g.count("route_count"), 2 * (4 * 30 + 2 * 16), "route_count")
    same(g.count("held"), 0, "held")
    same(g.kill(signal.SIGTERM), 0, "exit status")


def case_longest():
    """The longest frames of endpoints go both ways, whole; longer ones nowhere."""
    g = Gateway(more="limits: {notes: 1000}")
    a, b = pair(g)
    a.do("hello")
    b.do("hello")
    for one, other, name in ((a, b, "b"), (b, a, "a")):
        for length in LONGEST:
            one.begin("send %s 8 %d" % (name, length))
            got = received(other, 8)
            same(one.answer(), "sent 8 failed 0", "send")
            same((got[1], got[2]), ("8", "ok"), "%d bytes to %s" % (length, name))
    a.do("send b 1 %d" % (LONGEST[-1] + 1))
    same(a.do("notes 200"), "frames 1 too_big", "a longer one")
    # That endpoints send so long ones, and any at all.
    want("frame_max: %d}" % LONGEST[-1] in g.state(), "its rails do not take these")
    same(g.kill(signal.SIGTERM), 0, "exit status")
    # What the user sets counts more.
    g = Gateway(environment={"FI_OFI_RXM_BUFFER_SIZE": "20000"})
    want("frame_max: 20000}" in g.state(), "another length of buffers")


def case_state_file():
    """The state, with its accounts, is in a file that no other user may read, whatever was there
    before; and if it cannot be written, that is said."""
    g = Gateway()
    same(os.stat(g.state_file).st_mode & 0o777, 0o600, "mode of the state")
    new = g.state_file + ".new"
    for old in g.state_file, new:
        with open(old, "a", encoding="ascii"):
            pass
        os.chmod(old, 0o666)
    with open(new, encoding="ascii") as held:
        g.state()
        same(os.stat(g.state_file).st_mode & 0o777, 0o600, "mode of the next one")
        same(held.read(), "", "in a file that was open before")
    os.symlink(g.conf, new)
    with open(g.conf, encoding="ascii") as f:
        before = f.read()
    g.state()
    with open(g.conf, encoding="ascii") as f:
        same(f.read(), before, "the file behind a link")
    os.mkdir(new)
    g.process.send_signal(signal.SIGUSR1)
    want(select.select([g.process.stderr], [], [], GUARD)[0] and
         g.state_file in g.process.stderr.readline(), "it does not say that it cannot write")
    os.rmdir(new)
    g.state()
    same(g.kill(signal.SIGTERM), 0, "exit status")


def case_many():
    """Some thousand, as many at a time as the grant has."""
    g = Gateway()
    a, b = pair(g)
    a.do("hello")
    for _ in range(40):
        a.begin("send b 60 200")
        got = received(b, 60)
        same(a.answer(), "sent 60 failed 0", "send")
        same((got[1], got[2]), ("60", "ok"), "frames")
    same(g.count("route_count"), 2400, "route_count")


def case_reasons():
    """What is not forwarded has a reason, a counter, an example, and a note."""
    g = Gateway(more="limits: {notes: 1000}")
    a, b = pair(g)
    a.peer("none", b.address.rsplit("#", 1)[0] + "#77")
    a.peer("near", a.address)
    a.peer("low", re.sub(r":\d+#", ":80#", b.address))
    a.peer("self", g.address(b.address))
    a.do("hello")
    for command, reason, note in (
            ("send b 1 200 0", "ttl", "ttl"),
            ("send none 1 200", "no_route", "no_route"),
            ("send near 1 200", "arrival_net", "unknown_dst"),
            ("send self 1 200", "own_id", "unknown_dst"),
            ("send low 1 200", "not_allowed", "forbidden"),
            ("send b 1 40000", "too_big", "too_big")):
        same(g.count(reason), 0, reason)
        same(a.do(command), "sent 1 failed 0", command)
        same(a.do("notes 200"), "frames 1 " + note, command)
        same(g.count(reason), 1, reason)
        want(re.search(r"    %s:\n        count: 1\n        last: \{ms_ago" % reason,
                       g.state()), "no example of " + reason)
    # With another key there is no note.
    same(a.do("send b 1 200 8 1234"), "sent 1 failed 0", "send")
    same(a.do("notes 200"), "frames 0", "notes")
    same(g.count("not_allowed"), 2, "not_allowed")
    same(g.count("route_count"), 0, "route_count")


def case_peer_gone():
    """A destination that has gone: refused or unreachable, soon, and asked about."""
    g = Gateway(more="limits: {connect_timeout: 2}")
    a, b = pair(g)
    a.do("hello")
    a.do("send b 5 200")
    same(received(b, 5)[1], "5", "frames")
    same(a.do("ask b"), "tell alive", "ask")
    b.process.kill()
    b.process.wait()
    same(a.do("ask b"), "tell refused", "ask")
    end = time.monotonic() + GUARD
    while g.count("refused") + g.count("unreachable") < 3:
        want(time.monotonic() < end, "frames to a dead peer are not dropped")
        a.do("send b 1 200")
        time.sleep(0.1)
    want(re.match(r"frames \d+.*(refused|unreachable)", a.do("notes 300")), "no note")
    # Others notice nothing.
    c = End("tcp;ofi_rxm")
    a.peer("c", c.address)
    a.do("send c 10 200")
    same(received(c, 10)[1], "10", "frames to another peer")
    end = time.monotonic() + GUARD
    while g.count("held"):
        want(time.monotonic() < end, "frames to a dead peer are held for ever")
        time.sleep(0.1)


def case_restart():
    """A gateway that is killed and begun again forwards without being told anything."""
    g = Gateway()
    a, b = pair(g)
    a.do("hello")
    a.do("send b 20 200")
    same(received(b, 20)[1], "20", "frames")
    g.kill(signal.SIGKILL)
    g.start()
    end = time.monotonic() + GUARD
    got = 0
    # The connection is found broken by what is lost with it.
    while not got:
        want(time.monotonic() < end, "nothing passes a gateway that was begun again")
        a.do("send b 1 200")
        line = b.do("receive 1 300")
        want("order ok" in line, line)
        got = int(line.split()[1])
    # One that came too late for a round of this loop counts in the next one.
    want(g.count("route_count") >= 1, "route_count")


def case_drain():
    """SIGTERM ends it when all is delivered; SIGHUP switches routing off and on."""
    g = Gateway()
    a, b = pair(g)
    a.do("hello")
    a.do("send b 1 200")
    received(b, 1)
    g.write(routing=", enable: 0")
    g.process.send_signal(signal.SIGHUP)
    end = time.monotonic() + GUARD
    while "routing: {state: off" not in g.state():
        want(time.monotonic() < end, "SIGHUP does not switch routing off")
    a.do("send b 1 200")
    want("not_router" in a.do("notes 300"), "no note")
    same(g.count("routing_off"), 1, "routing_off")
    g.write()
    g.process.send_signal(signal.SIGHUP)
    while "routing: {state: on" not in g.state():
        want(time.monotonic() < end, "SIGHUP does not switch routing on")
    a.begin("send b 30 9000")
    same(received(b, 30)[1], "30", "frames")
    a.answer()
    same(g.kill(signal.SIGTERM), 0, "exit status")
    with open(g.state_file, encoding="ascii") as f:
        want(re.search(r"route_count: 31\n", f.read()), "the state at the end")


def listening(pid):
    """Where a process listens, as (address, port)."""
    inodes, out = set(), set()
    for fd in os.listdir("/proc/%d/fd" % pid):
        try:
            target = os.readlink("/proc/%d/fd/%s" % (pid, fd))
        except OSError:
            continue
        inodes.add(target[8:-1] if target.startswith("socket:[") else None)
    with open("/proc/%d/net/tcp" % pid, encoding="ascii") as f:
        lines = [line.split() for line in list(f)[1:]]
    with open("/proc/%d/net/tcp6" % pid, encoding="ascii") as f:
        lines += [line.split() for line in list(f)[1:]]
    for line in lines:
        if line[3] == "0A" and line[9] in inodes:
            address, port = line[1].rsplit(":", 1)
            out.add((address, int(port, 16)))
    return out


def cpu_share(g, seconds):
    """Of one processor, while that time passes."""
    def ticks():
        with open("/proc/%d/stat" % g.process.pid, encoding="ascii") as f:
            fields = f.read().rsplit(")", 1)[1].split()
        return int(fields[11]) + int(fields[12])
    before, begun = ticks(), time.monotonic()
    time.sleep(seconds)
    return (ticks() - before) / os.sysconf("SC_CLK_TCK") / (time.monotonic() - begun)


def case_strangers():
    """It listens on its rails only.  Connections that say nothing, or no word of the
    provider's protocol, keep nothing from others, and nothing stays of them."""
    g = Gateway()
    a, b = pair(g)
    a.do("hello")
    a.do("send b 1 200")
    received(b, 1)
    usual = len(descriptors(g.process.pid))
    same(listening(g.process.pid), {("0100007F", g.port), ("0100007F", g.port + 1)},
         "it listens at")
    strangers = []
    for i in range(STRANGERS):
        s = socket.socket()
        s.settimeout(GUARD)
        s.connect(("127.0.0.1", g.port + i % 2))
        if i // 2 % 2:
            s.sendall(os.urandom(1 + i * 37 % 4000))
        strangers.append(s)
        if i % 20 == 0:
            a.begin("send b 20 16384")
            got = received(b, 20)
            same(a.answer(), "sent 20 failed 0", "send")
            same((got[1], got[2]), ("20", "ok"), "frames beside %d strangers" % i)
    for s in strangers:
        s.close()
    b.do("hello")
    b.begin("send a 20 200")
    same(received(a, 20)[1], "20", "frames after the strangers")
    # B has a connection to it now, too.
    eventually(lambda: len(descriptors(g.process.pid)) <= usual + 1,
               "%d descriptors before the strangers, %d after" % (
                   usual, len(descriptors(g.process.pid))))
    # ofi_rxm takes some time to accept them all.
    eventually(lambda: cpu_share(g, 2) < 0.1, "it does not come to rest after the strangers")
    same(g.kill(signal.SIGTERM), 0, "exit status")


def case_silent():
    """Connections that say nothing are ended after some time, and others are not."""
    g = Gateway(more="limits: {connect_timeout: 1}")
    a, b = pair(g)
    a.do("hello")
    a.do("send b 5 200")
    same(received(b, 5)[1], "5", "frames")
    usual = len(descriptors(g.process.pid))
    silent = []
    for i in range(40):
        s = socket.create_connection(("127.0.0.1", g.port + i % 2), GUARD)
        s.settimeout(GUARD)
        silent.append(s)
    for s in silent:
        same(s.recv(1), b"", "from one that says nothing")
    eventually(lambda: len(descriptors(g.process.pid)) <= usual, "descriptors stay")
    a.begin("send b 5 200")
    same(received(b, 5)[1], "5", "frames")
    a.answer()


def case_idle():
    """It sleeps while there is nothing to do."""
    g = Gateway()
    a, b = pair(g)
    a.do("hello")
    a.do("send b 10 200")
    received(b, 10)
    time.sleep(1.5)
    share = cpu_share(g, 3)
    want(share < 0.1, "it uses %.0f %% of a CPU" % (100 * share))


def case_configuration():
    """What is wrong with a configuration is said, and nothing begins."""
    g = Gateway()
    lnxrtd = os.path.join(BUILD, "lnxrtd")
    key = os.path.join(work.name, "key")
    with open(key, "w", encoding="ascii") as f:
        f.write("0123456789abcdef\n")
    os.chmod(key, 0o644)
    for more, routing, says in (
            ("colour: 1", "", "colour"),
            ("limits: {speed: 1}", "", "speed"),
            ("limits: {frame_max: 16384}", "", "16448"),
            ("limits: {frame_max: 98369}", "", "98368"),
            ("limits: {connects: 0}", "", "limits.connects"),
            ("allow: [{from: nonet}]", "", "nonet"),
            ("route: [{net: cxi, gateway: '10.0.0.*@tcp'}]", "", "route[0]"),
            ("", ", key: key", "begins with '/'"),
            ("", ", key: " + key, "chmod 600"),
            ("", ", port: 80", "1024"),
            # What this node has no part in.
            ("net: [{net type: tcp, local NI(s): [{interfaces: {0: none7}}]}]", "", "none7"),
            ("", ", port: 65535", "the last would be 65536"),
            ("", ", state: /" + "a" * 256, "routing.state"),
            ("", ", control: /" + "a" * 108, "routing.control")):
        g.write(more, routing)
        with open(g.conf, encoding="ascii") as f:
            text = f.read()
        # Each key may be there once.
        for name in re.findall(r"^, (port|state|control):", routing):
            text = re.sub(r"\b%s: [^,}]*, " % name, "", text, count=1)
        if more.startswith("net:"):
            text = text[text.index("routing:"):]
        with open(g.conf, "w", encoding="ascii") as f:
            f.write(text)
        p = subprocess.run([lnxrtd, "-t", "-c", g.conf], capture_output=True, text=True,
                           timeout=GUARD, check=False)
        same(p.returncode, 1, says)
        want(says in p.stderr, "%r is not in %r" % (says, p.stderr))
    os.chmod(key, 0o600)
    g.write("allow: [{from: tcp, to: tcp;ofi_rxm, deny: true}]", ", key: " + key)
    p = subprocess.run([lnxrtd, "-t", "-c", g.conf], capture_output=True, text=True,
                       timeout=GUARD, check=False)
    same((p.returncode, p.stderr), (0, ""), "a good configuration")
    # Routes for other nodes are passed over; what is wrong for all is not.
    nodes = ("nets: {tcp7: 10.77.0.0/16}\n"
             "route: [{net: tcp7, gateway: 192.0.2.9@tcp;ofi_rxm},\n"
             " {net: tcp, gateway: 192.0.2.9@tcp;ofi_rxm},\n"
             " {net: cxi, gateway: 10.77.0.9@tcp7}]")
    g.write(nodes)
    p = subprocess.run([lnxrtd, "-t", "-c", g.conf], capture_output=True, text=True,
                       timeout=GUARD, check=False)
    same(p.returncode, 0, "a file for all nodes: " + p.stderr)
    said = p.stderr.splitlines()
    want(len(said) == 2 and "the net tcp is local" in said[0] and "is on no local net" in
         said[1], "routes that are passed over: %s" % said)
    same(Gateway(more=nodes).kill(signal.SIGTERM), 0, "exit status")
    # The same port twice.
    g.write()
    p = subprocess.run([lnxrtd, "--loopback", "-c", g.conf], capture_output=True,
                       text=True, timeout=GUARD, check=False)
    same(p.returncode, 1, "a port in use")
    want(str(g.port) in p.stderr, p.stderr)
    same(subprocess.run([lnxrtd, "--nothing"], capture_output=True, timeout=GUARD,
                        check=False).returncode, 2, "an unknown option")


def eventually(condition, what):
    end = time.monotonic() + GUARD
    while not condition():
        want(time.monotonic() < end, what)
        time.sleep(0.01)


def is_on(gateway):
    return 'state: "on"' in gateway.lnxctl("show")


def case_lnxctl():
    """lnxctl shows the gateway, drains it and begins again, and changes settings."""
    g = Gateway()
    a, b = pair(g)
    a.do("hello")
    a.do("send b 5 200")
    same(received(b, 5)[1], "5", "frames")
    a.do("send b 1 200 0")
    text = g.lnxctl("show")
    for wanted in (r"gateway:\n", r'state: "on"\n', r"pid: %d\n" % g.process.pid,
                   r"nid: \S*127\.0\.0\.1\S*@tcp\S*\n", r"route_count: 5\n",
                   r"drops:\n +ttl: 1\n", r"tiny:\n +total: 2048\n",
                   r"grant_large: 64\n", r"drain: 30\n"):
        want(re.search(wanted, text), "%r is not in %s" % (wanted, text))
    want("account" not in text, "sources are shown without -v")
    text = g.lnxctl("show", "-v")
    for wanted in (r"sources:\n", r"account: [1-9]", r"destinations:\n",
                   r"to: \S*127\.0\.0\.1", r"ttl:\n +count: 1\n +last:\n"):
        want(re.search(wanted, text), "%r is not in %s" % (wanted, text))
    # Drained: what comes is noted.
    same(g.lnxctl("set", "routing", "0"), "", "set routing 0")
    eventually(lambda: 'state: "off"' in g.lnxctl("show"), "routing is not switched off")
    a.do("send b 1 200")
    want("not_router" in a.do("notes 300"), "no note")
    same(g.count("routing_off"), 1, "routing_off")
    same(g.lnxctl("set", "routing", "1"), "", "set routing 1")
    a.begin("send b 30 9000")
    same(received(b, 30)[1], "30", "frames")
    a.answer()
    # Settings that can change, at once and in use.
    for name, value in (("tiny_buffers", 100), ("small_buffers", 200),
                        ("large_buffers", 300), ("grant_large", 7), ("grant_small", 9),
                        ("frame_max", 16448), ("frame_max", 98368), ("frame_max", 20000),
                        ("destinations", 50), ("sources", 60), ("connects", 70),
                        ("notes", 80), ("idle", 90), ("connect_timeout", 3),
                        ("drain", 0)):
        g.lnxctl("set", name, str(value))
        want(re.search(r" %s: %d\n" % (name, value), g.lnxctl("show")),
             "%s is not %d" % (name, value))
    want("tiny: {total: 100," in g.state(), "the buffers stay as they were")
    want("grant: [7, 9]" in g.state(), "the grants stay as they were")
    for name, value, says in (("routing", "2", "0 or 1"), ("colour", "1", "no such setting"),
                              ("drain", "x", "from 0 to 86400"), ("drain", "1s", "from 0"),
                              ("grant_large", "0", "from 1"),
                              ("frame_max", "16447", "from 16448 to 98368"),
                              ("frame_max", "98369", "from 16448 to 98368"),
                              ("idle", "99999999999999999999999", "from 1"),
                              ("connects", "4294967297", "from 1")):
        text = g.lnxctl("set", name, value, status=1)
        want(says in text, "%r is not in %r" % (says, text))
    want(" drain: 0\n" in g.lnxctl("show"), "a refused value counts")
    a.do("send b 5 200")
    same(received(b, 5)[1], "5", "frames at the end")
    # One that hangs, and a socket that was left.
    g.process.send_signal(signal.SIGSTOP)
    text = g.lnxctl("show", "--wait", "100", status=4)
    want("does not answer" in text, text)
    g.process.send_signal(signal.SIGCONT)
    g.kill(signal.SIGKILL)
    want("no gateway listens" in g.lnxctl("show", status=1), "a killed one answers")
    g.start()
    want(is_on(g), "one that was begun again does not answer")
    p = subprocess.run([os.path.join(BUILD, "lnxrtd"), "--loopback", "-c", g.conf],
                       capture_output=True, text=True, timeout=GUARD, check=False)
    same(p.returncode, 1, "a second one with the same socket")
    want(is_on(g), "a second one has taken the socket")
    same(g.kill(signal.SIGTERM), 0, "exit status")
    want(not os.path.exists(g.control), "the socket stays")


def case_ends_for_good():
    """One that ends does not begin again, whatever has been asked of it meanwhile."""
    g = Gateway()
    g.lnxctl("set", "routing", "0")
    eventually(lambda: 'state: "off"' in g.lnxctl("show"), "routing is not switched off")
    g.process.send_signal(signal.SIGSTOP)
    g.process.send_signal(signal.SIGTERM)
    with connected(g.control) as s:
        s.send(b"set routing 1")
        g.process.send_signal(signal.SIGCONT)
        same(g.process.wait(GUARD), 0, "exit status")


def connected(name):
    s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    s.settimeout(GUARD)
    end = time.monotonic() + GUARD
    # Only few wait to be taken.
    while True:
        try:
            s.connect(name)
            return s
        except BlockingIOError:
            want(time.monotonic() < end, "no connection is taken")
            time.sleep(0.001)


def asked_as_another(name):
    """Exit status of a process of another user that asks: 3 if the connection is closed."""
    pid = os.fork()
    if not pid:
        status = 1
        try:
            os.setgroups([])
            os.setgid(65534)
            os.setuid(65534)
            s = connected(name)
            try:
                s.send(b"show")
                status = 0 if s.recv(100) else 3
            except OSError:
                status = 3
        except PermissionError:
            status = 2
        finally:
            os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def case_control_hostile():
    """The socket is for its owner; nothing that comes over it, or does not, hinders others."""
    g = Gateway()
    a, b = pair(g)
    a.do("hello")
    same(os.stat(g.control).st_mode & 0o777, 0o600, "mode of the socket")
    for request in (b"x", b"show ", b"show\0", b"show\0more", b"set", b"set ", b"set routing",
                    b"set  1", b"set routing 0 1", b"set idle %n%s", b"set " + b"a" * 60000,
                    b"set " + b"a" * 123, b"set idle " + b"9" * 110, b"\xff" * 127,
                    b"\n" * 128):
        with connected(g.control) as s:
            s.send(request)
            reply = s.recv(1 << 20)
            want(re.match(rb"-\d+\n.", reply), "%r: %r" % (request[:40], reply[:40]))
            same(s.recv(100), b"", "after the reply")
    # Those that say nothing, leave at once, or do not read.
    silent = []
    for i in range(STRANGERS):
        s = connected(g.control)
        if i % 3:
            s.send(b"" if i % 3 == 1 else b"show")
        silent.append(s)
        if i % 10 == 0:
            s.close()
        if i % 50 == 0:
            a.begin("send b 20 9000")
            got = received(b, 20)
            same(a.answer(), "sent 20 failed 0", "send")
            same((got[1], got[2]), ("20", "ok"), "frames beside %d connections" % i)
            want(is_on(g), "no answer beside %d connections" % i)
    open_fds = len(os.listdir("/proc/%d/fd" % g.process.pid))
    for s in silent:
        s.close()
    eventually(lambda: len(os.listdir("/proc/%d/fd" % g.process.pid)) <= open_fds,
               "connections stay")
    if not os.getuid():
        os.chmod(work.name, 0o755)
        same(asked_as_another(g.control), 2, "another user, by the mode")
        os.chmod(g.control, 0o666)
        same(asked_as_another(g.control), 3, "another user, with another mode")
    want(is_on(g), "no answer at the end")
    same(g.kill(signal.SIGTERM), 0, "exit status")


def case_forged():
    """What another says in the name of a source, whose id it knows: notes, news and answers go on
    to where that is."""
    g = Gateway(more="limits: {notes: 1000}")
    a, b = pair(g)
    c = End("tcp", g)
    for one in a, c:
        one.peer("none", b.address.rsplit("#", 1)[0] + "#77")
    account = int(re.match(r"account (\d+)", a.do("hello"))[1])
    a.do("heard 0")
    gw_id = re.search(r"id (\w+)", a.do("hello"))[1]
    a.do("heard 0")
    c.do("as " + a.do("id"))
    c.peer("a", a.address)
    c.peer("b", b.address)
    for guess in (0, 1, account, account + 1, account - 1):
        c.do("say self %d 666" % (guess % 65536))
    for guess in (0, 1, account + 1, account - 1):
        c.do("say a %d 777" % (guess % 65536))
    mine = re.match(r"account (\d+) nonces.* 666", c.do("heard 1000"))
    want(mine and int(mine[1]) != account, "another place has the same account")
    # Hellos with its own address are answered there.
    want(re.match("account %d nonces.* 777" % account, a.do("heard 1000")), "no answer")
    a.do("send none 1 200")
    same(a.do("notes 500"), "frames 1 no_route", "the note")
    same(c.do("notes 100"), "frames 0", "notes to another")
    a.do("heard 0")
    c.do("heard 0")
    g.write(routing=", enable: 0")
    g.process.send_signal(signal.SIGHUP)
    eventually(lambda: "routing: {state: off" in g.state(), "SIGHUP does not switch it off")
    seen = a.do("heard 2000")
    want(re.match(r"account %d nonces.* 12345\b" % account, seen), "its news: " + seen)
    seen = c.do("heard 500")
    want(seen.startswith("account %s " % mine[1]) and "12345" not in seen,
         "news to another: " + seen)
    g.write()
    g.process.send_signal(signal.SIGHUP)
    eventually(lambda: "routing: {state: on" in g.state(), "SIGHUP does not switch it on")
    # What a gateway says to those that are behind it is nothing to this one.
    before = g.count("bad_control")
    c.do("news %s 1 1" % gw_id)
    c.do("noted %s %d b" % (gw_id, account))
    c.do("told %s 1 b" % gw_id)
    eventually(lambda: g.count("bad_control") == before + 3, "it counts what it did not ask")
    c.do("lie b %s 200" % gw_id)
    eventually(lambda: g.count("loop") == 1, "a frame that it has forwarded itself")
    a.begin("send b 20 200")
    same(received(b, 20)[1], "20", "frames")
    a.answer()
    same(g.kill(signal.SIGTERM), 0, "exit status")


def memory(pid, which="VmRSS"):
    """In KiB."""
    with open("/proc/%d/status" % pid, encoding="ascii") as f:
        return int(re.search(which + r":\s+(\d+)", f.read())[1])


def case_names():
    """Hellos in many names, and all that can be wrong about frames, from several at once: one that
    is known is answered, its frames pass, and memory is that of the pools."""
    g = Gateway()
    a, b = pair(g)
    a.do("hello")
    b.do("only " + a.do("id"))
    before = memory(g.process.pid)
    bad = [End("tcp", g) for _ in range(3)]
    for i, one in enumerate(bad):
        one.peer("b", b.address)
        one.begin("attack b %d 600000" % time.time_ns() if i else "names 600000")
    end = time.monotonic() + 8
    n = 0
    while time.monotonic() < end or not n:
        want(a.do("hello").startswith("account"), "one that is known has no answer")
        a.begin("send b 20 200")
        got = received(b, 20)
        same(a.answer(), "sent 20 failed 0", "send")
        same((got[1], got[2]), ("20", "ok"), "frames beside many names")
        n += 1
        time.sleep(0.1)
    grown = memory(g.process.pid) - before
    want(grown < 192 * 1024, "it has grown by %d KiB" % grown)
    for one in bad:
        one.process.kill()
    same(g.kill(signal.SIGTERM), 0, "exit status")


def case_slow_reader():
    """An end that has stopped reading holds up only what is for it; and later it gets that."""
    g = Gateway()
    a, b = pair(g)
    c, d = pair(g)
    a.do("hello")
    c.do("hello")
    a.do("send b 1 200")
    received(b, 1)
    before = memory(g.process.pid)
    b.process.send_signal(signal.SIGSTOP)
    a.begin("flood b 16384 8000")
    end = time.monotonic() + 6
    while time.monotonic() < end:
        c.begin("send b 20 16384")
        got = received(d, 20)
        same(c.answer(), "sent 20 failed 0", "send")
        same((got[1], got[2]), ("20", "ok"), "frames beside one that does not read")
    a.answer()
    want(g.count("quota") > 0 or g.count("dest_cap") > 0, "it stores without a limit")
    grown = memory(g.process.pid) - before
    want(grown < 192 * 1024, "it has grown by %d KiB" % grown)
    b.process.send_signal(signal.SIGCONT)
    eventually(lambda: not g.count("held"), "frames stay")
    same(g.kill(signal.SIGTERM), 0, "exit status")


def case_no_buffer():
    """More comes over tcp;ofi_rxm than there are buffers, while frames for new addresses come."""
    g = Gateway()
    a, b = pair(g)
    bad = [End("tcp;ofi_rxm", g), End("tcp", g)]
    for one, to in zip(bad, (a, b)):
        one.peer("x", to.address)
        one.begin("attack x %d 600000" % time.time_ns())
    time.sleep(5)
    for one in bad:
        one.process.kill()
    want(g.process.poll() is None, "it has ended with %s" % g.process.poll())
    eventually(lambda: not g.count("held"), "frames stay")
    c, d = pair(g)
    c.begin("send b 20 200")
    same(received(d, 20)[1], "20", "frames")
    c.answer()
    same(g.kill(signal.SIGTERM), 0, "exit status")


def descriptors(pid):
    return {int(fd) for fd in os.listdir("/proc/%d/fd" % pid)}


def case_no_descriptors():
    """With no descriptor left lnxctl is answered, and frames pass; then all is as before."""
    g = Gateway()
    a, b = pair(g)
    a.do("hello")
    a.do("send b 5 200")
    same(received(b, 5)[1], "5", "frames")
    silent = [connected(g.control) for _ in range(3)]
    want(is_on(g), "no answer beside connections that say nothing")
    usual = descriptors(g.process.pid)
    free = min(set(range(len(usual) + 1)) - usual)
    soft, hard = resource.prlimit(g.process.pid, resource.RLIMIT_NOFILE)
    resource.prlimit(g.process.pid, resource.RLIMIT_NOFILE, (free, hard))
    for _ in range(6):
        want(is_on(g), "no answer without descriptors")
    for s in silent:
        s.close()
    eventually(lambda: len(descriptors(g.process.pid)) == len(usual) - len(silent),
               "connections stay")
    # And with none to give up for it.
    usual = descriptors(g.process.pid)
    free = min(set(range(len(usual) + 1)) - usual)
    resource.prlimit(g.process.pid, resource.RLIMIT_NOFILE, (free, hard))
    for _ in range(6):
        want(is_on(g), "no answer without descriptors and connections")
    a.begin("send b 20 200")
    same(received(b, 20)[1], "20", "frames")
    a.answer()
    resource.prlimit(g.process.pid, resource.RLIMIT_NOFILE, (soft, hard))
    want(is_on(g), "no answer when there are descriptors again")
    same(g.count("route_count"), 25, "route_count")
    same(g.kill(signal.SIGTERM), 0, "exit status")


def case_key():
    """Frames with the key pass, others do not; denied nets do not."""
    key = os.path.join(work.name, "key2")
    with open(key, "w", encoding="ascii") as f:
        f.write("00000000000000ab\n")
    os.chmod(key, 0o600)
    g = Gateway(routing=", key: " + key,
                more="allow: [{from: tcp;ofi_rxm, deny: true}]")
    a, b = pair(g)
    a.do("key ab")
    b.do("key ab")
    a.do("hello")
    b.do("hello")
    a.do("send b 3 200")
    same(received(b, 3)[1], "3", "frames")
    a.do("send b 3 200 8 ac")
    b.do("send a 1 200")
    want("forbidden" in b.do("notes 300"), "no note of a denied net")
    same(g.count("not_allowed"), 4, "not_allowed")


def case_rules_change():
    """SIGHUP: other rules count for destinations that are in use, too, and if other buffers than
    there is memory for were asked for beside."""
    g = Gateway(more="limits: {notes: 1000}")
    a, b = pair(g)
    a.do("hello")
    a.do("send b 1 200")
    same(received(b, 1)[1], "1", "frames")
    for more in ("",) if UNDER else ("", "buffers: {large: 16777216}\n"):
        g.write(more + "allow: [{deny: true}]\nlimits: {notes: 1000, idle: 77}")
        if more:
            # What it has now, and not what these would take.
            size = memory(g.process.pid, "VmSize") * 1024 + (64 << 20)
            resource.prlimit(g.process.pid, resource.RLIMIT_AS, (size, size))
        g.process.send_signal(signal.SIGHUP)
        eventually(lambda: g.count("idle") == 77, "SIGHUP changes no setting")
        a.do("send b 1 200")
        same(a.do("notes 200"), "frames 1 forbidden", "a rule that came later")
        g.write("limits: {notes: 1000}")
        g.process.send_signal(signal.SIGHUP)
        eventually(lambda: g.count("idle") == 60, "SIGHUP changes no setting")
        a.do("send b 1 200")
        same(received(b, 1)[1], "1", "frames")


OTHER = 65534


def case_unprivileged():
    """A user of its own, without privileges, is enough; the key is for that user only."""
    if os.getuid():
        return                  # all other cases are without, too
    os.chmod(work.name, 0o755)
    own = os.path.join(work.name, "own")
    os.mkdir(own)
    os.chown(own, OTHER, OTHER)
    # The build may be where that user cannot go.
    program = shutil.copy(os.path.join(BUILD, "lnxrtd"), work.name)
    key = os.path.join(own, "key")
    with open(key, "w", encoding="ascii") as f:
        f.write("00000000000000ab\n")
    os.chmod(key, 0o600)
    os.chown(key, OTHER, OTHER)
    g = Gateway(routing=", key: " + key, where=own, program=program, user=OTHER)
    with open("/proc/%d/status" % g.process.pid, encoding="ascii") as f:
        status = f.read()
    want(re.search(r"^Uid:(\s+%d){4}$" % OTHER, status, re.M) and
         re.search(r"^CapEff:\s+0+$", status, re.M), "it has privileges: " + status)
    a, b = pair(g)
    for one in a, b:
        one.do("key ab")
        one.do("hello")
    a.begin("send b 30 9000")
    same(received(b, 30)[1], "30", "frames")
    a.answer()
    want(is_on(g), "root is not answered")
    st = os.stat(g.control)
    same((st.st_uid, st.st_mode & 0o777), (OTHER, 0o600), "owner and mode of the socket")
    same(g.kill(signal.SIGTERM), 0, "exit status")
    for owner, mode, says in ((0, 0o600, "cannot be read"), (OTHER, 0o640, "mode is 0640"),
                              (OTHER, 0o604, "mode is 0604")):
        os.chown(key, owner, owner)
        os.chmod(key, mode)
        p = subprocess.run([program, "-t", "-c", g.conf], capture_output=True, text=True,
                           timeout=GUARD, check=False, **g.more)
        want(p.returncode == 1 and says in p.stderr, "%d, %s" % (p.returncode, p.stderr))


def main():
    cases = {name[5:]: case for name, case in globals().items()
             if name.startswith("case_")}
    chosen = sys.argv[1:] or list(cases)
    failed = 0
    for name in chosen:
        try:
            cases[name]()
            print("ok   " + name, flush=True)
        except (Failed, subprocess.TimeoutExpired) as e:
            print("FAIL %s: %s" % (name, e), flush=True)
            failed += 1
        for child in children:
            if child.poll() is None:
                child.kill()
                child.wait()
        children.clear()
    print("%d cases, %d failed" % (len(chosen), failed))
    return failed > 0


sys.exit(main())
