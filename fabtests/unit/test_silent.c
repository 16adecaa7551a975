/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Connections of a gateway over which nothing comes: which are ended, and which closed. */
#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "lnxrtd/lnxrtd.h"

#define CONNECT_MS	20u
#define MANY		600

static struct rtd_settings settings = { .connect_ns = CONNECT_MS * LNX_NS_PER_MS };
static struct rtd_rail rail;
static struct rtd_ports ports = { .n = 1 };
static struct rtd_silent silent;
static int listener;
static uint64_t now = LNX_NS_PER_S;

const struct rtd_settings *rtd_relay_settings(const struct rtd_relay *r)
{
	(void)r;
	return &settings;
}

const struct rtd_rail *rtd_port_rail(const struct rtd_port *p)
{
	(void)p;
	return &rail;
}

static void start(void)
{
	struct sockaddr_in sin = {
		.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	socklen_t len = sizeof(sin);

	listener = socket(AF_INET, SOCK_STREAM, 0);
	cr_assert_eq(bind(listener, (void *)&sin, sizeof(sin)), 0);
	cr_assert_eq(listen(listener, 8), 0);
	cr_assert_eq(getsockname(listener, (void *)&sin, &len), 0);
	rail.addr.prov = LNX_PROV_TCP;
	rail.addr.rawlen = sizeof(sin);
	memcpy(rail.addr.raw, &sin, sizeof(sin));
}

static int connection(int *server)
{
	struct sockaddr_in sin;
	int client = socket(AF_INET, SOCK_STREAM, 0);

	memcpy(&sin, rail.addr.raw, sizeof(sin));
	cr_assert_eq(connect(client, (void *)&sin, sizeof(sin)), 0);
	*server = accept(listener, NULL, NULL);
	cr_assert_geq(*server, 0);
	return client;
}

static bool is_open(int fd)
{
	return fcntl(fd, F_GETFD) >= 0;
}

/* After so many ms all are looked at. */
static void look_after(unsigned ms)
{
	poll(NULL, 0, (int)ms);
	do {
		now += LNX_NS_PER_S;
		rtd_silent_look(&silent, &ports, now);
	} while (silent.dir);
}

static unsigned npolled;

unsigned char *__real_lnx_polled(int end);
unsigned char *__wrap_lnx_polled(int end);

unsigned char *__wrap_lnx_polled(int end)
{
	npolled++;
	return __real_lnx_polled(end);
}

TestSuite(silent, .init = start);

/* One that says nothing is ended; one that does not end with that is closed. */
Test(silent, ended_then_closed)
{
	int server, client = connection(&server);
	char c;

	look_after(0);
	cr_expect(is_open(server));
	look_after(CONNECT_MS + 10);
	cr_assert(is_open(server));
	cr_expect_eq(recv(client, &c, 1, 0), 0);
	look_after(2 * CONNECT_MS + 10);
	cr_expect_not(is_open(server));
	close(client);
}

/* All that was stopped for long: what it polls still it will find, and close itself. */
Test(silent, polled_still)
{
	struct epoll_event event = { .events = EPOLLIN };
	int server, client = connection(&server), epoll = epoll_create1(0);

	cr_assert_eq(epoll_ctl(epoll, EPOLL_CTL_ADD, server, &event), 0);
	close(client);
	look_after(2 * CONNECT_MS + 10);
	cr_assert(is_open(server), "it was closed under its owner");
	look_after(2 * CONNECT_MS + 10);
	cr_assert(is_open(server), "it was closed under its owner");
	cr_assert_eq(epoll_ctl(epoll, EPOLL_CTL_DEL, server, NULL), 0);
	look_after(1);
	cr_expect_not(is_open(server));
	close(epoll);
}

/* Many, which are looked at in several calls: which of them are polled is asked once. */
Test(silent, many_that_have_ended)
{
	int server[MANY], i;

	for (i = 0; i < MANY; i++) {
		int client = connection(&server[i]);

		close(client);
	}
	look_after(2 * CONNECT_MS + 10);
	for (i = 0; i < MANY; i++)
		cr_expect_not(is_open(server[i]), "%d", i);
	cr_expect_eq(npolled, 1u);
	rtd_silent_close(&silent);
}

/* One that has said something is none of these. */
Test(silent, has_said_something)
{
	int server, client = connection(&server);

	cr_assert_eq(send(client, "xy", 2, 0), 2);
	look_after(2 * CONNECT_MS + 10);
	look_after(2 * CONNECT_MS + 10);
	close(client);
	look_after(2 * CONNECT_MS + 10);
	cr_expect(is_open(server));
	close(server);
}
