/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * One TCP connection, for fabtests/bench/gateways: what relays of TCP and a kernel that
 * forwards are measured with.  Both ends poll, as endpoints of libfabric do.
 *
 *	tcp serve PORT			takes one connection after the other
 *	tcp rate ADDRESS PORT SIZE MS	sends for so long; prints ns per SIZE bytes
 *	tcp lat ADDRESS PORT SIZE MS	there and back; prints half of the median, in ns
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define LONGEST		(4u << 20)
/* As bench/rate has them: a relay is not faster because its ends have all data in a cache. */
#define RING		(4u * LONGEST)
#define SLOTS_MAX	256u
#define ROUNDS		1000000u

/* The first bytes of a connection. */
struct request {
	char what[8];
	uint64_t size;
};

static char *buf;			/* of RING bytes */

static double now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static void __attribute__((noreturn)) die(const char *what)
{
	perror(what);
	exit(1);
}

/* All of it; false: the other end has closed. */
static int move(int fd, char *p, size_t len, int out)
{
	while (len) {
		ssize_t n = out ? send(fd, p, len, MSG_DONTWAIT | MSG_NOSIGNAL) :
				  recv(fd, p, len, MSG_DONTWAIT);

		if (!n)
			return 0;
		if (n < 0 && errno != EAGAIN && errno != EINTR)
			die(out ? "send" : "recv");
		if (n > 0) {
			p += n;
			len -= (size_t)n;
		}
	}
	return 1;
}

static void no_delay(int fd)
{
	int one = 1;

	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
}

/* Where message number n is. */
static char *slot(uint64_t n, size_t size)
{
	size_t slots = RING / size;

	return buf + n % (slots > SLOTS_MAX ? SLOTS_MAX : slots) * size;
}

/* Take everything, and then say how much it was. */
static void take(int fd, size_t size)
{
	uint64_t total = 0;

	for (;;) {
		size_t have = total % size;
		ssize_t n = recv(fd, slot(total / size, size) + have, size - have, MSG_DONTWAIT);

		if (!n)
			break;
		if (n < 0 && errno != EAGAIN && errno != EINTR)
			return;
		total += n > 0 ? (uint64_t)n : 0;
	}
	move(fd, (char *)&total, sizeof(total), 1);
}

static int serve(unsigned port)
{
	struct sockaddr_in in = { .sin_family = AF_INET,
				  .sin_port = htons((uint16_t)port) };
	int one = 1, fd = socket(AF_INET, SOCK_STREAM, 0), c;
	struct request q;

	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (bind(fd, (struct sockaddr *)&in, sizeof(in)) || listen(fd, 8))
		die("listen");
	printf("ready\n");
	fflush(stdout);
	while ((c = accept(fd, NULL, NULL)) >= 0) {
		no_delay(c);
		if (move(c, (char *)&q, sizeof(q), 0) && q.size && q.size <= LONGEST) {
			if (strcmp(q.what, "lat"))
				take(c, q.size);
			else
				while (move(c, buf, q.size, 0) && move(c, buf, q.size, 1))
					;
		}
		close(c);
	}
	die("accept");
}

static int begin(const char *what, const char *address, unsigned port, size_t size)
{
	struct sockaddr_in in = { .sin_family = AF_INET,
				  .sin_port = htons((uint16_t)port) };
	struct request q = { .size = size };
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	snprintf(q.what, sizeof(q.what), "%s", what);
	if (inet_pton(AF_INET, address, &in.sin_addr) != 1 ||
	    connect(fd, (struct sockaddr *)&in, sizeof(in)))
		die(address);
	no_delay(fd);
	move(fd, (char *)&q, sizeof(q), 1);
	return fd;
}

static int rate(int fd, size_t size, double ms)
{
	double begun = now_ns(), end = begun + ms * 1e6;
	uint64_t sent = 0, got = 0;

	do {
		move(fd, slot(sent / size, size), size, 1);
		sent += size;
	} while (now_ns() < end);
	shutdown(fd, SHUT_WR);
	/* The end is when the other end has had all of it. */
	if (!move(fd, (char *)&got, sizeof(got), 0) || got != sent) {
		fprintf(stderr, "tcp: %llu of %llu bytes arrived\n",
			(unsigned long long)got, (unsigned long long)sent);
		return 1;
	}
	printf("rate %zu %.1f\n", size, (now_ns() - begun) / (double)sent * (double)size);
	return 0;
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static int lat(int fd, size_t size, double ms)
{
	double *took = malloc(ROUNDS * sizeof(*took)), begun = now_ns(), t = begun;
	unsigned n = 0;

	if (!took)
		die("malloc");
	while (n < ROUNDS && (t - begun < ms * 1e6 || !n)) {
		double before = t;

		move(fd, buf, size, 1);
		move(fd, buf, size, 0);
		t = now_ns();
		took[n++] = t - before;
	}
	qsort(took, n, sizeof(*took), compare);
	printf("latency %zu %.1f\n", size, took[n / 2] / 2);
	free(took);
	return 0;
}

int main(int argc, char **argv)
{
	size_t size;
	int fd;

	buf = malloc(RING);
	if (!buf)
		die("malloc");
	/* Pages that were never written to are all the same one, and in every cache. */
	memset(buf, 1, RING);
	if (argc == 3 && !strcmp(argv[1], "serve"))
		return serve((unsigned)atoi(argv[2]));
	if (argc != 6 || (strcmp(argv[1], "rate") && strcmp(argv[1], "lat"))) {
		fprintf(stderr, "usage: tcp serve PORT\n"
			"       tcp rate|lat ADDRESS PORT SIZE MS\n");
		return 2;
	}
	size = strtoul(argv[4], NULL, 10);
	if (!size || size > LONGEST) {
		fprintf(stderr, "tcp: 1 to %u bytes\n", LONGEST);
		return 2;
	}
	fd = begin(argv[1], argv[2], (unsigned)atoi(argv[3]), size);
	return argv[1][0] == 'r' ? rate(fd, size, atof(argv[5])) :
				   lat(fd, size, atof(argv[5]));
}
