/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * An endpoint that does what lines on standard input say and counts what libfabric said
 * was done, for check-stats, which compares that with lnxctl.  Each line is answered with
 * one line, "ok ..." or "error ...":
 *
 *	pid			of this process
 *	name			the endpoint's address, in hex
 *	memory			base and key of memory that peers may use
 *	know HEX		insert an address; its number
 *	KIND ADDR N SIZE	N operations of SIZE bytes: tag, msg; and with
 *	KIND ADDR N SIZE BASE KEY	write, read, add, fadd (atomics of 8-byte elements)
 *	want KIND N SIZE	N receives of up to that size: tag, msg
 *	spin, still		while it waits for a line it makes progress, or none
 *	counts			operations and bytes of each kind, since the last counts
 *	first ADDR		microseconds until a message to ADDR has arrived there
 *	quit			close and end
 */
#include "../common/rma.h"

#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LINE		1024
#define AT_ONCE		16u
#define MEMORY		(8u << 20)

enum kind { TAG, MSG, WRITE, READ, ADD, FADD, WANT_TAG, WANT_MSG, KINDS };
static const char *const names[KINDS] = {
	"tag", "msg", "write", "read", "add", "fadd", "want tag", "want msg",
};

static struct ft ft;
static struct ft_cfg cfg = {
	.caps = FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC, .mr_mode = FT_MR_ALL,
};
static struct ft_objs own;
static struct ft_mr remote, local;
static unsigned char *target, *mem, *results;
static bool spins;
static struct { uint64_t n, bytes; } count[KINDS];

/* One command under way. */
static struct fi_context2 ctx[AT_ONCE];
static uint64_t started, done;
static enum kind doing;

/* ---- operations ---- */

/* Read completions.  False: an error, which is printed. */
static bool progress(void)
{
	struct fi_cq_tagged_entry e[16];
	struct fi_cq_err_entry ee = { 0 };
	ssize_t n = fi_cq_read(own.cq, e, 16), i;

	if (n == -FI_EAGAIN)
		return true;
	if (n < 0) {
		if (n == -FI_EAVAIL && fi_cq_readerr(own.cq, &ee, 0) == 1)
			n = -ee.err;
		printf("error %s\n", fi_strerror((int)-n));
		return false;
	}
	for (i = 0; i < n; i++) {
		const char *c = e[i].op_context;

		if (c < (char *)ctx || c >= (char *)(ctx + AT_ONCE))
			continue;
		done++;
		count[doing].n++;
		if (doing >= WANT_TAG)
			count[doing].bytes += e[i].len;
	}
	return true;
}

static ssize_t start(enum kind kind, void *c, size_t size, fi_addr_t to, uint64_t base,
		     uint64_t key)
{
	void *desc = local.mr ? fi_mr_desc(local.mr) : NULL;

	switch (kind) {
	case TAG:
		return fi_tsend(own.ep, mem, size, desc, to, 1, c);
	case MSG:
		return fi_send(own.ep, mem, size, desc, to, c);
	case WANT_TAG:
		return fi_trecv(own.ep, results, size, desc, FI_ADDR_UNSPEC, 1, 0, c);
	case WANT_MSG:
		return fi_recv(own.ep, results, size, desc, FI_ADDR_UNSPEC, c);
	case WRITE:
		return fi_write(own.ep, mem, size, desc, to, base, key, c);
	case READ:
		return fi_read(own.ep, results, size, desc, to, base, key, c);
	case ADD:
		return fi_atomic(own.ep, mem, size / 8, desc, to, base, key, FI_UINT64,
				 FI_SUM, c);
	case FADD:
		return fi_fetch_atomic(own.ep, mem, size / 8, desc, results, desc, to, base,
				       key, FI_UINT64, FI_SUM, c);
	default:
		return -FI_EINVAL;
	}
}

static void run(enum kind kind, uint64_t n, size_t size, fi_addr_t to, uint64_t base,
		uint64_t key)
{
	started = done = 0;
	doing = kind;
	while (done < n) {
		if (started < n && started - done < AT_ONCE) {
			ssize_t ret = start(kind, &ctx[started % AT_ONCE], size, to, base,
					    key);

			if (!ret) {
				started++;
				if (kind < WANT_TAG)
					count[kind].bytes += size;
				continue;
			}
			if (ret != -FI_EAGAIN) {
				printf("error %s: %s\n", names[kind],
				       fi_strerror((int)-ret));
				return;
			}
		}
		if (!progress())
			return;
	}
	printf("ok\n");
}

/* FI_DELIVERY_COMPLETE: it is there. */
static void first(fi_addr_t to)
{
	struct iovec iov = { .iov_base = mem, .iov_len = 8 };
	struct fi_msg_tagged m = {
		.msg_iov = &iov, .iov_count = 1, .addr = to, .tag = 1, .context = ctx,
	};
	double begin = ft_now();
	ssize_t ret;

	started = 1;
	done = 0;
	doing = TAG;
	do {
		ret = fi_tsendmsg(own.ep, &m, FI_DELIVERY_COMPLETE | FI_COMPLETION);
		if (ret == -FI_EAGAIN && !progress())
			return;
	} while (ret == -FI_EAGAIN);
	while (!ret && !done)
		if (!progress())
			return;
	count[TAG].bytes += 8;
	if (ret)
		printf("error %s\n", fi_strerror((int)-ret));
	else
		printf("ok %.0f\n", (ft_now() - begin) * 1e6);
}

/* ---- lines ---- */

static void counts(void)
{
	unsigned i;

	printf("ok");
	for (i = 0; i < KINDS; i++)
		printf(" %" PRIu64 " %" PRIu64, count[i].n, count[i].bytes);
	printf("\n");
	memset(count, 0, sizeof(count));
}

/* An operation, or receives.  False: the line is none. */
static bool operate(const char *line)
{
	uint64_t n, size, to = 0, base = 0, key = 0;
	unsigned k;
	int got;

	for (k = 0; k < KINDS; k++) {
		size_t len = strlen(names[k]);

		if (strncmp(line, names[k], len) || line[len] != ' ')
			continue;
		if (k >= WANT_TAG)
			got = sscanf(line + len, "%" SCNu64 " %" SCNu64, &n, &size) == 2;
		else
			got = sscanf(line + len, "%" SCNu64 " %" SCNu64 " %" SCNu64
				     " %" SCNu64 " %" SCNu64, &to, &n, &size, &base,
				     &key) == (k < WRITE ? 3 : 5);
		if (!got || size > MEMORY)
			return false;
		run((enum kind)k, n, (size_t)size, to, base, key);
		return true;
	}
	return false;
}

static void obey(char *line)
{
	uint64_t a;

	line[strcspn(line, "\n")] = '\0';
	if (!strcmp(line, "pid"))
		printf("ok %d\n", (int)getpid());
	else if (!strcmp(line, "name"))
		ft_say_name(&own);
	else if (!strcmp(line, "memory"))
		printf("ok %" PRIu64 " %" PRIu64 "\n",
		       ft_mr_mode(&own) & FI_MR_VIRT_ADDR ? (uint64_t)(uintptr_t)target : 0,
		       fi_mr_key(remote.mr));
	else if (!strncmp(line, "know ", 5))
		ft_know(&own, line + 5);
	else if (!strcmp(line, "counts"))
		counts();
	else if (sscanf(line, "first %" SCNu64, &a) == 1)
		first(a);
	else if (!strcmp(line, "spin") || !strcmp(line, "still"))
		spins = printf("ok\n") && line[1] == 'p';
	else if (!operate(line))
		printf("error unknown: %s\n", line);
}

/* Is there a line?  False: the script is gone. */
static bool get_line(char *line)
{
	struct pollfd p = { .fd = STDIN_FILENO, .events = POLLIN };

	while (!poll(&p, 1, spins ? 0 : 1000))
		if (spins && !progress())
			return false;
	return fgets(line, LINE, stdin) != NULL;
}

static int loop(void)
{
	char line[LINE];

	while (get_line(line)) {
		bool quit = !strcmp(line, "quit\n");

		if (quit) {
			int ret = ft_mr_close(&ft, &remote);

			ret = ret ? ret : ft_mr_close(&ft, &local);
			ret = ret ? ret : ft_objs_close(&ft, &own);
			printf(ret ? "error %s\n" : "ok\n", fi_strerror(-ret));
			fflush(stdout);
			return ret != 0;
		}
		obey(line);
		fflush(stdout);
	}
	return 1;
}

int main(int argc, char **argv)
{
	int ret;

	ft_init(&ft, argc, argv, "an endpoint that counts what it does", 1);
	/* Scripts may need long. */
	ft_guard_s(&ft, "a script", 20 * ft.run->guard_s);
	/* Lines are looked for with poll. */
	setvbuf(stdin, NULL, _IONBF, 0);
	target = calloc(1, MEMORY);
	mem = calloc(2, MEMORY);
	if (!target || !mem)
		return 1;
	results = mem + MEMORY;
	ret = ft_objs_open(&ft, &cfg, &own);
	if (!ret)
		ret = ft_mr_open(&ft, &own, &remote, target, MEMORY, FT_MR_ACCESS);
	if (!ret && (ft_mr_mode(&own) & FI_MR_LOCAL))
		ret = ft_mr_open(&ft, &own, &local, mem, 2u * MEMORY, FT_MR_ACCESS);
	if (ret) {
		printf("error %s\n", ft.why);
		return ret == -FI_ENODATA ? 77 : 1;
	}
	printf("ok open\n");
	fflush(stdout);
	ret = loop();
	free(target);
	free(mem);
	ft_fini(&ft);
	return ret;
}
