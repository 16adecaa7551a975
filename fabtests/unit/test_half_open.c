/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Which connections must be ended before a rail closes: real ones, over loopback. */
#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/interval.h"
#include "core/half_open.h"
#include "obj/ep.h"
#include "view.h"
#include "wire/addr.h"

#define WAIT_MS		10000

static int listener;
static struct lnx_rail rail;

static void start(void)
{
	struct sockaddr_in sin = {
		.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	socklen_t len = sizeof(sin);

	listener = socket(AF_INET, SOCK_STREAM, 0);
	cr_assert_geq(listener, 0);
	cr_assert_eq(bind(listener, (void *)&sin, sizeof(sin)), 0);
	cr_assert_eq(listen(listener, 8), 0);
	cr_assert_eq(getsockname(listener, (void *)&sin, &len), 0);
	memset(&rail, 0, sizeof(rail));
	rail.prov = LNX_PROV_TCP;
	memcpy(rail.addr, &sin, sizeof(sin));
	rail.addrlen = sizeof(sin);
}

static void try_connect(int *client, int *server)
{
	struct sockaddr_in sin;

	memcpy(&sin, rail.addr, sizeof(sin));
	*client = socket(AF_INET, SOCK_STREAM, 0);
	cr_assert_geq(*client, 0);
	cr_assert_eq(connect(*client, (void *)&sin, sizeof(sin)), 0);
	*server = accept(listener, NULL, NULL);
	cr_assert_geq(*server, 0);
}

static void say(int client, int server, size_t n)
{
	struct pollfd p = { .fd = server, .events = POLLIN };
	char some[64] = "";

	cr_assert_eq(send(client, some, n, 0), (ssize_t)n);
	cr_assert_eq(poll(&p, 1, WAIT_MS), 1);
}

static void hear(int server, size_t n)
{
	char some[64];

	cr_assert_eq(recv(server, some, n, MSG_WAITALL), (ssize_t)n);
}

static void end(int client, int server)
{
	struct pollfd p = { .fd = server, .events = POLLIN };

	cr_assert_eq(shutdown(client, SHUT_WR), 0);
	cr_assert_eq(poll(&p, 1, WAIT_MS), 1);
}

/* The connection was ended, and its other end sees that. */
static void was_ended(int client)
{
	struct pollfd p = { .fd = client, .events = POLLIN };
	char c;

	cr_assert_eq(poll(&p, 1, WAIT_MS), 1);
	cr_assert_leq(recv(client, &c, 1, 0), 0);
}

static void still_works(int client, int server)
{
	say(client, server, 3);
	hear(server, 3);
	say(server, client, 3);
	hear(client, 3);
}

Test(half_open, has_said_nothing)
{
	int client, server;

	start();
	cr_assert_eq(lnx_half_open_end(&rail), 0);
	try_connect(&client, &server);
	cr_assert_eq(lnx_half_open_end(&rail), 1);
	was_ended(client);
}

/* The core has not read from it yet. */
Test(half_open, is_not_read_yet)
{
	int client, server;

	start();
	try_connect(&client, &server);
	say(client, server, 16);
	cr_assert_eq(lnx_half_open_end(&rail), 1);
	was_ended(client);
}

Test(half_open, is_heard)
{
	int client, server;

	start();
	try_connect(&client, &server);
	say(client, server, 16);
	hear(server, 16);
	cr_assert_eq(lnx_half_open_end(&rail), 0);
	still_works(client, server);
}

Test(half_open, has_more_to_say)
{
	int client, server;

	start();
	try_connect(&client, &server);
	say(client, server, 16);
	hear(server, 15);
	cr_assert_eq(lnx_half_open_end(&rail), 0);
	hear(server, 1);
	still_works(client, server);
}

Test(half_open, went_without_a_word)
{
	int client, server;

	start();
	try_connect(&client, &server);
	end(client, server);
	cr_assert_eq(lnx_half_open_end(&rail), 1);
}

Test(half_open, went_before_it_was_heard)
{
	int client, server;

	start();
	try_connect(&client, &server);
	say(client, server, 16);
	end(client, server);
	cr_assert_eq(lnx_half_open_end(&rail), 1);
}

Test(half_open, went_after_it_was_heard)
{
	int client, server;

	start();
	try_connect(&client, &server);
	say(client, server, 16);
	hear(server, 16);
	end(client, server);
	cr_assert_eq(lnx_half_open_end(&rail), 0);
}

/* ---- those that the core has forgotten ---- */

static struct lnx_ep lone;

static void remember(void)
{
	make_no_peers(&lone);
	rail.ep = &lone;
	lnx_half_open_cloexec(&rail);
}

/* Is it a descriptor still? */
static bool is_open(int fd)
{
	return fcntl(fd, F_GETFD) >= 0;
}

Test(half_open, ended_and_forgotten)
{
	int client, server, other, to_other;

	start();
	try_connect(&client, &server);
	try_connect(&other, &to_other);
	remember();
	cr_assert_eq(lnx_half_open_ended(&rail), 0, "it is only silent");
	end(client, server);
	/* The core is given time to find out. */
	cr_assert_eq(lnx_half_open_ended(&rail), 1);
	cr_assert_eq(lnx_half_open_close_ended(&rail), 0);
	cr_assert_eq(lnx_half_open_ended(&rail), 1);
	cr_assert_eq(lnx_half_open_close_ended(&rail), 1);
	cr_assert_not(is_open(server));
	cr_assert_eq(lnx_half_open_ended(&rail), 0);
	/* The other one says something, and then ends. */
	still_works(other, to_other);
	end(other, to_other);
	cr_assert_eq(lnx_half_open_ended(&rail), 0);
	cr_assert(is_open(to_other));
	free(rail.half_open.at);
}

/* The core has had no time for it yet. */
Test(half_open, ended_and_still_polled)
{
	struct epoll_event event = { .events = EPOLLIN };
	int client, server, poll, i;

	start();
	try_connect(&client, &server);
	remember();
	poll = epoll_create1(0);
	cr_assert(!epoll_ctl(poll, EPOLL_CTL_ADD, server, &event));
	end(client, server);
	for (i = 0; i < 3; i++)
		cr_assert_eq(lnx_half_open_ended(&rail), 1);
	cr_assert_eq(lnx_half_open_close_ended(&rail), 0);
	cr_assert(is_open(server));
	cr_assert(!epoll_ctl(poll, EPOLL_CTL_DEL, server, NULL));
	cr_assert_eq(lnx_half_open_close_ended(&rail), 1);
	cr_assert_not(is_open(server));
	close(poll);
	free(rail.half_open.at);
}

/* It was closed meanwhile, and its number is another connection's. */
Test(half_open, ended_and_closed)
{
	int client, server, again, to_again, i;

	start();
	try_connect(&client, &server);
	remember();
	end(client, server);
	cr_assert_eq(lnx_half_open_ended(&rail), 1);
	close(server);
	try_connect(&again, &to_again);
	dup2(to_again, server);
	end(again, server);
	for (i = 0; i < 3; i++)
		cr_assert_eq(lnx_half_open_ended(&rail), 0);
	cr_assert_eq(lnx_half_open_close_ended(&rail), 0);
	cr_assert(is_open(server));
	free(rail.half_open.at);
}

/* ---- reset ---- */

static struct lnx_ep ep;
static struct lnx_peer peer;
static struct fid_av av;
static struct sockaddr_in at;		/* of the peer */

static unsigned looked_up;

#define OTHER_HOST	0x10000u	/* core addresses from here on, and */
#define THIRD_HOST	0x20000u

/* Another core address is another port, and perhaps another host. */
static int look_up(struct fid_av *in, fi_addr_t addr, void *out, size_t *len)
{
	struct sockaddr_in to = at;

	cr_assert(in == &av && addr >= 7);
	looked_up++;
	to.sin_port ^= (in_port_t)((addr & 0xffff) - 7);
	to.sin_addr.s_addr = htonl(ntohl(to.sin_addr.s_addr) + (uint32_t)(addr / OTHER_HOST));
	memcpy(out, &to, LNX_MIN(*len, sizeof(to)));
	*len = sizeof(at);
	return 0;
}

/* Sets up the rail, and a peer that it has a path to. */
static void meet(const struct lnx_rail *other)
{
	static struct fi_ops_av ops = {
		.size = sizeof(ops), .lookup = look_up,
	};

	av.ops = &ops;
	make_no_peers(&ep);
	make_peer(&peer, &ep);
	make_path(&peer, &rail, 7);
	rail.av = &av;
	rail.ep = &ep;
	memcpy(&at, other->addr, sizeof(at));
}

/* The connection ended with a reset, whatever data was under way. */
static void is_reset(int closed, int other)
{
	struct pollfd p = { .fd = other, .events = POLLIN };
	char c;

	close(closed);
	cr_assert_eq(poll(&p, 1, WAIT_MS), 1);
	cr_assert_eq(recv(other, &c, 1, 0), -1);
	cr_assert_eq(errno, ECONNRESET);
}

Test(half_open, reset_of_those_accepted)
{
	struct lnx_rail no_peer = { .addrlen = 0 };
	int client, server;

	start();
	meet(&no_peer);
	try_connect(&client, &server);
	say(server, client, 3);
	hear(client, 3);
	cr_assert_eq(lnx_half_open_reset(&rail), 1);
	still_works(client, server);
	is_reset(server, client);
	/* The listening socket still works. */
	cr_assert_eq(lnx_half_open_reset(&rail), 0);
	try_connect(&client, &server);
	still_works(client, server);
}

Test(half_open, reset_of_those_made)
{
	struct lnx_rail there;
	int client, server;

	start();
	there = rail;
	try_connect(&client, &server);
	/* Our rail has another port. */
	((struct sockaddr_in *)(void *)rail.addr)->sin_port ^= 1;
	meet(&there);
	cr_assert_eq(lnx_half_open_reset(&rail), 1);
	still_works(client, server);
	is_reset(client, server);
}

Test(half_open, reset_of_others)
{
	struct lnx_rail no_peer = { .addrlen = 0 };
	int client, server;
	char c;

	start();
	try_connect(&client, &server);
	((struct sockaddr_in *)(void *)rail.addr)->sin_port ^= 1;
	meet(&no_peer);
	cr_assert_eq(lnx_half_open_reset(&rail), 0);
	rail.prov = LNX_PROV_SHM;
	cr_assert_eq(lnx_half_open_reset(&rail), 0);
	close(server);
	cr_assert_eq(recv(client, &c, 1, 0), 0);
}

/* Connections of other processes, and ours to other addresses, are not touched. */
Test(half_open, of_others)
{
	int client, server;

	start();
	try_connect(&client, &server);
	((struct sockaddr_in *)(void *)rail.addr)->sin_port ^= 1;
	cr_assert_eq(lnx_half_open_end(&rail), 0);
	still_works(client, server);
}

/* ---- cut ---- */

static struct fid_ep core;

/* Only what our core has begun, to a peer, and has had no answer for long enough. */
Test(half_open, unanswered)
{
	struct lnx_rail there, elsewhere;
	int client, server;

	start();
	there = elsewhere = rail;
	try_connect(&client, &server);
	((struct sockaddr_in *)(void *)rail.addr)->sin_port ^= 1;
	((struct sockaddr_in *)(void *)elsewhere.addr)->sin_port ^= 2;
	rail.core_ep = &core;
	meet(&elsewhere);
	cr_assert_eq(send(client, "hello", 5, 0), 5);
	cr_assert_eq(lnx_half_open_unanswered(&rail, 0, true), 0, "of another program");
	meet(&there);
	cr_assert_eq(lnx_half_open_unanswered(&rail, 3600 * LNX_NS_PER_S, true), 0, "it may come");
	there.ep = &ep;
	cr_assert_eq(lnx_half_open_unanswered(&there, 0, true), 0, "it was not begun by this one");
	cr_assert_eq(lnx_half_open_unanswered(&rail, 0, false), 1);
	cr_assert_eq(recv(client, (char [1]){ 0 }, 1, 0), 0, "the core finds its end");
	close(client);
	close(server);
	((struct sockaddr_in *)(void *)rail.addr)->sin_port ^= 1;
	try_connect(&client, &server);
	((struct sockaddr_in *)(void *)rail.addr)->sin_port ^= 1;
	cr_assert_eq(send(client, "hello", 5, 0), 5);
	cr_assert_eq(send(server, "welcome", 7, 0), 7);
	cr_assert_eq(recv(client, (char [7]){ 0 }, 7, MSG_WAITALL), 7);
	cr_assert_eq(lnx_half_open_unanswered(&rail, 0, true), 0, "it was answered");
	still_works(client, server);
}

/* Each path is looked up once, however many connections hang. */
Test(half_open, many_unanswered)
{
	static struct lnx_peer others[40];
	int client[20], server[20];
	struct lnx_rail there;
	unsigned i;

	start();
	there = rail;
	for (i = 0; i < LNX_ARRAY_SIZE(client); i++) {
		try_connect(&client[i], &server[i]);
		cr_assert_eq(send(client[i], "hello", 5, 0), 5);
	}
	((struct sockaddr_in *)(void *)rail.addr)->sin_port ^= 1;
	rail.core_ep = &core;
	meet(&there);
	for (i = 0; i < LNX_ARRAY_SIZE(others); i++) {
		make_peer(&others[i], &ep);
		make_path(&others[i], &rail, 8 + i);
	}
	looked_up = 0;
	cr_assert_eq(lnx_half_open_unanswered(&rail, 0, true), LNX_ARRAY_SIZE(client));
	cr_assert_eq(looked_up, 1 + LNX_ARRAY_SIZE(others));
	for (i = 0; i < LNX_ARRAY_SIZE(client); i++)
		cr_assert_eq(recv(client[i], (char [1]){ 0 }, 1, 0), 0, "%u", i);
	/* Nothing hangs any more: nothing is looked up. */
	looked_up = 0;
	cr_assert_eq(lnx_half_open_unanswered(&rail, 0, true), 0);
	cr_assert_eq(looked_up, 0);
}

/* When the kernel tries the next time, in us. */
static unsigned rto_of(int fd)
{
	struct tcp_info info;
	socklen_t len = sizeof(info);

	cr_assert_eq(getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &len), 0);
	return info.tcpi_rto;
}

/* A kernel that asks for a connection again after 2, 4, 8 s: a new one is asked for sooner. */
Test(half_open, unanswered_by_the_kernel)
{
	struct sockaddr_in sin = {
		.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	const uint64_t long_ns = 3600 * LNX_NS_PER_S;
	int client, full, filler[8], error;
	socklen_t len = sizeof(sin);
	struct lnx_rail there;
	unsigned i;

	start();
	there = rail;
	full = socket(AF_INET, SOCK_STREAM, 0);
	cr_assert_eq(bind(full, (void *)&sin, sizeof(sin)), 0);
	cr_assert_eq(listen(full, 0), 0);
	cr_assert_eq(getsockname(full, (void *)&sin, &len), 0);
	/* Nothing is accepted, so that the kernel drops what is too much. */
	for (i = 0; i < LNX_ARRAY_SIZE(filler); i++) {
		filler[i] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
		cr_assert(!connect(filler[i], (void *)&sin, len) || errno == EINPROGRESS);
	}
	client = filler[i - 1];
	memcpy(there.addr, &sin, sizeof(sin));
	rail.core_ep = &core;
	meet(&there);
	cr_assert_eq(lnx_half_open_unanswered(&rail, long_ns, true), 0, "it has just begun");
	do
		usleep(50000);
	while (rto_of(client) < 2000000);
	cr_assert_eq(lnx_half_open_unanswered(&rail, long_ns, false), 0, "it has not begun");
	cr_assert_geq(lnx_half_open_unanswered(&rail, long_ns, true), 1);
	len = sizeof(error);
	cr_assert_eq(getsockopt(client, SOL_SOCKET, SO_ERROR, &error, &len), 0);
	cr_expect_eq(error, ECONNRESET, "the core finds its end: %s", strerror(error));
	cr_expect_eq(lnx_half_open_unanswered(&rail, long_ns, true), 0, "once");
	while (i)
		close(filler[--i]);
	close(full);
}

/* One connection is cut: our core finds its end, and what the network has not taken is
 * dropped: it would keep the other end waiting. */
static void is_cut(int ours, int other)
{
	static char some[65536];
	ssize_t n;

	rail.core_ep = &core;
	while (send(ours, some, sizeof(some), MSG_DONTWAIT) > 0)
		;
	cr_assert_eq(lnx_half_open_cut(&rail, 7), 1);
	cr_assert_eq(recv(ours, some, sizeof(some), 0), 0);
	close(ours);
	while ((n = recv(other, some, sizeof(some), 0)) > 0)
		;
	cr_assert_eq(n, -1);
	cr_assert_eq(errno, ECONNRESET);
}

Test(half_open, cut_of_those_made)
{
	struct lnx_rail there;
	int client, server, another, its_server;

	start();
	there = rail;
	try_connect(&client, &server);
	((struct sockaddr_in *)(void *)rail.addr)->sin_port ^= 1;
	meet(&there);
	is_cut(client, server);
	/* To the same host, but no path leads there. */
	rail = there;
	start();
	try_connect(&another, &its_server);
	((struct sockaddr_in *)(void *)rail.addr)->sin_port ^= 1;
	meet(&there);
	rail.core_ep = &core;
	cr_assert_eq(lnx_half_open_cut(&rail, 7), 0);
	still_works(another, its_server);
}

Test(half_open, cut_of_those_accepted)
{
	struct sockaddr_in sin = {
		.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK + 1),
	};
	struct lnx_rail there;
	int client, server, far, its_server;

	start();
	there = rail;
	/* The peer listens at another port of that host. */
	((struct sockaddr_in *)(void *)there.addr)->sin_port ^= 1;
	meet(&there);
	try_connect(&client, &server);
	/* One from another host. */
	far = socket(AF_INET, SOCK_STREAM, 0);
	cr_assert_eq(bind(far, (void *)&sin, sizeof(sin)), 0);
	memcpy(&sin, rail.addr, sizeof(sin));
	cr_assert_eq(connect(far, (void *)&sin, sizeof(sin)), 0);
	its_server = accept(listener, NULL, NULL);
	is_cut(server, client);
	still_works(far, its_server);
	/* The listening socket still works. */
	try_connect(&client, &server);
	still_works(client, server);
}

/* Our rail is open, and the peer's has the same address and another port. */
static void meet_another_port(void)
{
	struct lnx_rail there;

	start();
	there = rail;
	((struct sockaddr_in *)(void *)there.addr)->sin_port ^= 1;
	meet(&there);
	rail.core_ep = &core;
}

/* Of the one peer. */
static unsigned cut_reads(uint64_t silent_ns)
{
	struct lnx_cut cut = {
		.path = view_path(&peer, 0), .reads = true, .silent_ns = silent_ns,
	};

	lnx_half_open_sort(&cut, 1);
	lnx_half_open_cut_all(&rail, &cut, 1);
	return cut.ncut;
}

/* What a core reads for that peer ends.  Accepted ones may be of others on its host: those in
 * which nothing waits are left alone. */
Test(half_open, cut_of_reads)
{
	static char some[65536];
	int client[2], server[2], i;

	meet_another_port();
	for (i = 0; i < 2; i++)
		try_connect(&client[i], &server[i]);
	still_works(client[0], server[0]);
	while (send(server[1], some, sizeof(some), MSG_DONTWAIT) > 0)
		;
	cr_assert_eq(cut_reads(0), 1);
	still_works(client[0], server[0]);
	cr_assert_eq(send(server[1], some, 1, MSG_NOSIGNAL), -1);
	cr_assert_eq(errno, EPIPE);
	for (i = 0; i < 2; i++) {
		close(client[i]);
		close(server[i]);
	}
}

/* Something came over one of them since that peer is silent: it is of another one. */
Test(half_open, cut_of_reads_where_nothing_came)
{
	static char some[65536];
	int client[2], server[2], i;

	meet_another_port();
	for (i = 0; i < 2; i++) {
		try_connect(&client[i], &server[i]);
		still_works(client[i], server[i]);
		while (send(server[i], some, sizeof(some), MSG_DONTWAIT) > 0)
			;
	}
	usleep(400000);
	cr_assert_eq(send(client[0], some, 1, 0), 1);
	cr_expect_eq(cut_reads(300 * LNX_NS_PER_MS), 1);
	cr_expect_eq(recv(server[0], some, sizeof(some), MSG_DONTWAIT), 1);
	cr_expect_eq(send(server[1], some, 1, MSG_NOSIGNAL), -1);
	/* Unless that does not count. */
	cr_expect_geq(cut_reads(0), 1);
	cr_expect_eq(send(server[0], some, 1, MSG_NOSIGNAL), -1);
	for (i = 0; i < 2; i++) {
		close(client[i]);
		close(server[i]);
	}
}

Test(half_open, cut_of_reads_over_one_made)
{
	struct lnx_rail there;
	int client, server;

	start();
	there = rail;
	try_connect(&client, &server);
	((struct sockaddr_in *)(void *)rail.addr)->sin_port ^= 1;
	meet(&there);
	rail.core_ep = &core;
	still_works(client, server);
	cr_assert_eq(cut_reads(0), 1, "no other peer is there");
	cr_assert_eq(recv(client, (char [1]){ 0 }, 1, 0), 0);
	close(client);
	close(server);
}

/* Our rail listens; `n` peers are there, each at another port of one of two hosts. */
static void meet_many(struct lnx_peer *others, unsigned n)
{
	unsigned i;

	meet_another_port();
	for (i = 0; i < n; i++) {
		make_peer(&others[i], &ep);
		make_path(&others[i], &rail, i % 2 ? 8 + i : OTHER_HOST + i);
	}
}

static void connect_from(unsigned host, int *client, int *server)
{
	struct sockaddr_in sin = {
		.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK + host),
	};

	*client = socket(AF_INET, SOCK_STREAM, 0);
	cr_assert_eq(bind(*client, (void *)&sin, sizeof(sin)), 0);
	memcpy(&sin, rail.addr, sizeof(sin));
	cr_assert_eq(connect(*client, (void *)&sin, sizeof(sin)), 0);
	*server = accept(listener, NULL, NULL);
	cr_assert_geq(*server, 0);
}

/* Many peers fail at a time: each is looked up once, and what leads to hosts of theirs is cut; to
 * others it is not. */
Test(half_open, cut_of_many)
{
	static struct lnx_peer others[40];
	struct lnx_cut cut[40] = { 0 };
	int client[3], server[3];
	unsigned i;

	meet_many(others, LNX_ARRAY_SIZE(others));
	for (i = 0; i < 3; i++)
		connect_from(i, &client[i], &server[i]);
	for (i = 0; i < LNX_ARRAY_SIZE(cut); i++)
		cut[i].path = view_path(&others[i], 0);
	looked_up = 0;
	lnx_half_open_sort(cut, LNX_ARRAY_SIZE(cut));
	cr_expect_eq(looked_up, LNX_ARRAY_SIZE(cut));
	lnx_half_open_cut_all(&rail, cut, LNX_ARRAY_SIZE(cut));
	cr_expect_eq(looked_up, LNX_ARRAY_SIZE(cut));
	for (i = 0; i < LNX_ARRAY_SIZE(cut); i++)
		cr_expect_eq(cut[i].ncut, 1u, "%u", i);
	for (i = 0; i < 2; i++)
		was_ended(client[i]);
	still_works(client[2], server[2]);
	/* Which of them lead where a path does. */
	cr_expect_eq(lnx_half_open_beside(cut, LNX_ARRAY_SIZE(cut), view_path(&peer, 0)),
		     &cut[0], "the lower address");
	make_path(&peer, &rail, OTHER_HOST);
	cr_expect_eq(lnx_half_open_beside(cut, LNX_ARRAY_SIZE(cut), view_path(&peer, 0)),
		     &cut[20]);
	make_path(&peer, &rail, THIRD_HOST);
	cr_expect_null(lnx_half_open_beside(cut, LNX_ARRAY_SIZE(cut), view_path(&peer, 0)));
}

/* Where reads end, each has its own time of silence, and in one host nothing waits. */
Test(half_open, cut_of_many_that_differ)
{
	static struct lnx_peer others[2];
	static char some[65536];
	struct lnx_cut cut[3] = { 0 };
	int client[2], server[2];
	unsigned i;

	meet_many(others, 2);
	for (i = 0; i < 2; i++)
		connect_from(i, &client[i], &server[i]);
	while (send(server[1], some, sizeof(some), MSG_DONTWAIT) > 0)
		;
	for (i = 0; i < 3; i++) {
		cut[i].path = view_path(i ? &others[i - 1] : &peer, 0);
		cut[i].reads = true;
		cut[i].silent_ns = i == 1 ? 3600 * LNX_NS_PER_S : 0;
	}
	lnx_half_open_sort(cut, 3);
	lnx_half_open_cut_all(&rail, cut, 3);
	for (i = 0; i < 3; i++)
		cr_expect_eq(cut[i].ncut, 0u, "%u", i);
	for (i = 0; i < 3; i++)
		cut[i].silent_ns = 0;
	lnx_half_open_cut_all(&rail, cut, 3);
	for (i = 0; i < 3; i++)
		cr_expect_eq(cut[i].ncut, cut[i].path == view_path(&others[0], 0), "%u", i);
	cr_expect_eq(send(server[1], some, 1, MSG_NOSIGNAL), -1);
	still_works(client[0], server[0]);
}

Test(half_open, no_cut)
{
	struct lnx_rail there;
	int client, server;

	start();
	there = rail;
	try_connect(&client, &server);
	meet(&there);
	/* Its core endpoint is closed; or has no sockets. */
	cr_assert_eq(lnx_half_open_cut(&rail, 7), 0);
	rail.core_ep = &core;
	rail.prov = LNX_PROV_SHM;
	cr_assert_eq(lnx_half_open_cut(&rail, 7), 0);
	still_works(client, server);
}

/* Of any connection; then all of them count, and the listener. */
Test(half_open, unread)
{
	int client[3], server[3], i;

	start();
	make_no_peers(&ep);
	rail.ep = &ep;
	cr_expect_eq(lnx_half_open_unread(&rail), 0);
	for (i = 0; i < 3; i++)
		try_connect(&client[i], &server[i]);
	cr_expect_eq(lnx_half_open_unread(&rail), 0);
	say(client[1], server[1], 16);
	cr_expect_eq(lnx_half_open_unread(&rail), 4);
	hear(server[1], 15);
	cr_expect_eq(lnx_half_open_unread(&rail), 4);
	hear(server[1], 1);
	cr_expect_eq(lnx_half_open_unread(&rail), 0);
	still_works(client[1], server[1]);
}

/* A thousandth of the time for one endpoint, a hundredth for all of them; or a fiftieth and a
 * tenth. */
Test(half_open, pause_of_many_endpoints)
{
	unsigned i;

	lnx_half_open_joins();
	cr_assert_eq(lnx_half_open_pause(7), 7000);
	cr_assert_eq(lnx_half_open_pause_short(7), 350);
	for (i = 1; i < 10; i++)
		lnx_half_open_joins();
	cr_assert_eq(lnx_half_open_pause(7), 7000);
	for (i = 10; i < 200; i++)
		lnx_half_open_joins();
	cr_assert_eq(lnx_half_open_pause(7), 7 * 200 * 100);
	cr_assert_eq(lnx_half_open_pause_short(7), 7 * 200 * 10);
	for (i = 0; i < 200; i++)
		lnx_half_open_leaves();
	cr_assert_eq(lnx_half_open_pause(7), 7000);
}
