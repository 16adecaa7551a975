/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * An endpoint that does what lines on standard input say, for scripts that look at it
 * from outside (check-lnxctl).  Each line is answered with one line, "ok ..." or
 * "error ...":
 *
 *	pid			of this process
 *	name			the endpoint's address, in hex
 *	know HEX		insert an address; its number
 *	send ADDR N SIZE	N tagged messages
 *	recv N SIZE		N of up to that size, from any source
 *	spin, still		while it waits for a line it makes progress, or none
 *	spin more		the second endpoint (more) does, too
 *	block MS		sleep in fi_cq_sread for so long
 *	flow ADDR SIZE		while it spins it also sends tagged messages, on and on
 *	sink SIZE		while it spins it also receives such
 *	ebb			no more of them; what was begun ends
 *	counts			messages and bytes sent, received: what completions said
 *	more			open another endpoint, and leave it alone
 *	less			close that again
 *	fork			a child that only closes what it has; its exit status
 *	child			a child that opens an endpoint of its own and reads
 *				lines in our place; its status
 *	quit			close and end
 *
 * With -m wait its queue has a wait object, which "block" needs; with -m auto the provider
 * makes progress without being called.
 */
#include "../common/ft.h"

#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define LINE		1024
#define AT_ONCE		64u

static struct ft ft;
static struct ft_cfg cfg = { .caps = FI_MSG | FI_TAGGED };
static struct ft_objs own, more;
static bool spins, spins_more, has_more;
static uint64_t sends, send_bytes, recvs, recv_bytes;
static unsigned char *mem;
static size_t mem_size;

/* ---- operations ---- */

struct side {
	struct fi_context2 ctx[AT_ONCE];
	uint64_t started, done;
};

static struct side tx, rx;
/* What goes on while it spins. */
static struct side flow;
static bool flows, flow_sends;
static size_t flow_size;
static fi_addr_t flow_to;

static bool is_of(const struct side *s, const void *ctx)
{
	return (const char *)ctx >= (const char *)s->ctx &&
	       (const char *)ctx < (const char *)(s->ctx + AT_ONCE);
}

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
		if (is_of(&tx, e[i].op_context)) {
			tx.done++;
		} else if (is_of(&flow, e[i].op_context)) {
			flow.done++;
			recvs += !flow_sends;
			recv_bytes += flow_sends ? 0 : e[i].len;
		} else if (is_of(&rx, e[i].op_context)) {
			rx.done++;
			recvs++;
			recv_bytes += e[i].len;
		}
	}
	return true;
}

static bool enough(size_t size)
{
	unsigned char *p;

	if (size <= mem_size)
		return true;
	p = realloc(mem, size);
	if (!p)
		return false;
	mem = p;
	memset(mem, 7, size);
	mem_size = size;
	return true;
}

/* n operations; start returns as fi_tsend.  False: an error was printed. */
static bool run(struct side *s, uint64_t n, size_t size, fi_addr_t addr,
		ssize_t (*start)(void *ctx, size_t size, fi_addr_t addr))
{
	if (!enough(size)) {
		printf("error out of memory\n");
		return false;
	}
	s->started = s->done = 0;
	while (s->done < n) {
		if (s->started < n && s->started - s->done < AT_ONCE) {
			ssize_t ret = start(&s->ctx[s->started % AT_ONCE], size, addr);

			if (!ret) {
				s->started++;
				continue;
			}
			if (ret != -FI_EAGAIN) {
				printf("error %s\n", fi_strerror((int)-ret));
				return false;
			}
		}
		if (!progress())
			return false;
	}
	return true;
}

static ssize_t send_one(void *ctx, size_t size, fi_addr_t addr)
{
	ssize_t ret = fi_tsend(own.ep, mem, size, NULL, addr, 1, ctx);

	if (!ret) {
		sends++;
		send_bytes += size;
	}
	return ret;
}

static ssize_t recv_one(void *ctx, size_t size, fi_addr_t addr)
{
	return fi_trecv(own.ep, mem, size, NULL, addr, 1, 0, ctx);
}

/* One more of the flow, if there is room.  False: an error was printed. */
static bool go_on(void)
{
	void *ctx = &flow.ctx[flow.started % AT_ONCE];
	ssize_t ret;

	if (!flows || flow.started - flow.done >= AT_ONCE)
		return true;
	ret = flow_sends ? send_one(ctx, flow_size, flow_to) :
			   recv_one(ctx, flow_size, FI_ADDR_UNSPEC);
	flow.started += !ret;
	if (!ret || ret == -FI_EAGAIN)
		return true;
	printf("error %s\n", fi_strerror((int)-ret));
	return false;
}

/* One call that may sleep; what completes meanwhile is none of the other operations. */
static void block(int ms)
{
	struct fi_cq_tagged_entry e;
	ssize_t ret = fi_cq_sread(own.cq, &e, 1, NULL, ms);

	printf(ret == -FI_EAGAIN ? "ok\n" : "error fi_cq_sread returned %zd\n", ret);
}

static void begin_flow(bool sends_it, size_t size, fi_addr_t to)
{
	if (flows || !enough(size)) {
		printf("error a flow already, or out of memory\n");
		return;
	}
	flow.started = flow.done = 0;
	flow_sends = sends_it;
	flow_size = size;
	flow_to = to;
	flows = true;
	printf("ok\n");
}

static void end_flow(void)
{
	flows = false;
	while (flow_sends && flow.done < flow.started)
		if (!progress())
			return;
	printf("ok\n");
}

/* ---- lines ---- */

static void open_more(bool open)
{
	int ret = open == has_more ? -FI_EBUSY : open ?
		  ft_objs_open(&ft, &cfg, &more) : ft_objs_close(&ft, &more);

	if (!ret)
		has_more = open;
	printf(ret ? "error %s\n" : "ok\n", fi_strerror(-ret));
}

static int loop(void);

static void in_child(bool new)
{
	int status = 0;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (!pid) {
		if (new) {
			struct ft_objs mine;

			if (ft_objs_open(&ft, &cfg, &mine))
				_exit(3);
			own = mine;
			has_more = false;
			_exit(loop());
		}
		_exit(ft_objs_close(&ft, &own) ? 2 : 0);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		printf("error fork\n");
	else
		printf("ok %d\n", WIFEXITED(status) ? WEXITSTATUS(status) :
		       128 + WTERMSIG(status));
}

static void obey(char *line)
{
	uint64_t a, n, size;

	line[strcspn(line, "\n")] = '\0';
	if (!strcmp(line, "pid")) {
		printf("ok %d\n", (int)getpid());
	} else if (!strcmp(line, "name")) {
		ft_say_name(&own);
	} else if (!strncmp(line, "know ", 5)) {
		ft_know(&own, line + 5);
	} else if (sscanf(line, "send %" SCNu64 " %" SCNu64 " %" SCNu64, &a, &n,
			  &size) == 3) {
		if (run(&tx, n, (size_t)size, a, send_one))
			printf("ok\n");
	} else if (sscanf(line, "recv %" SCNu64 " %" SCNu64, &n, &size) == 2) {
		if (run(&rx, n, (size_t)size, FI_ADDR_UNSPEC, recv_one))
			printf("ok\n");
	} else if (!strcmp(line, "spin") || !strcmp(line, "still") ||
		   !strcmp(line, "spin more")) {
		spins = line[1] == 'p';
		spins_more = !strcmp(line, "spin more");
		printf("ok\n");
	} else if (sscanf(line, "block %" SCNu64, &n) == 1) {
		block((int)n);
	} else if (sscanf(line, "flow %" SCNu64 " %" SCNu64, &a, &size) == 2) {
		begin_flow(true, (size_t)size, a);
	} else if (sscanf(line, "sink %" SCNu64, &size) == 1) {
		begin_flow(false, (size_t)size, 0);
	} else if (!strcmp(line, "ebb")) {
		end_flow();
	} else if (!strcmp(line, "counts")) {
		printf("ok %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 "\n", sends,
		       send_bytes, recvs, recv_bytes);
	} else if (!strcmp(line, "more") || !strcmp(line, "less")) {
		open_more(line[0] == 'm');
	} else if (!strcmp(line, "fork") || !strcmp(line, "child")) {
		in_child(line[0] == 'c');
	} else {
		printf("error unknown: %s\n", line);
	}
}

/* Is there a line?  False: the script is gone. */
static bool wait_line(void)
{
	struct pollfd p = { .fd = STDIN_FILENO, .events = POLLIN };

	while (!poll(&p, 1, spins ? 0 : 1000)) {
		if (spins && (!go_on() || !progress()))
			return false;
		/* It has no operations: this only makes progress. */
		if (spins_more && has_more)
			fi_cq_read(more.cq, NULL, 0);
	}
	return true;
}

/* One byte at a time: what is behind the line may be for a child. */
static bool get_line(char *line)
{
	size_t n = 0;

	if (!wait_line())
		return false;
	while (n + 1 < LINE) {
		if (read(STDIN_FILENO, line + n, 1) != 1)
			return false;
		if (line[n++] == '\n')
			break;
	}
	line[n] = '\0';
	return true;
}

static int loop(void)
{
	char line[LINE];

	while (get_line(line)) {
		if (!strcmp(line, "quit\n")) {
			int ret = ft_objs_close(&ft, &own);

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

	ft_init(&ft, argc, argv, "an endpoint that is told what to do", 1);
	/* Scripts may need long. */
	ft_guard_s(&ft, "a script", 20 * ft.run->guard_s);
	cfg.wait = !strcmp(ft.run->mode, "wait") ? FI_WAIT_UNSPEC : FI_WAIT_NONE;
	cfg.automatic = !strcmp(ft.run->mode, "auto");
	ret = ft_objs_open(&ft, &cfg, &own);
	if (ret) {
		printf("error %s\n", ft.why);
		return ret == -FI_ENODATA ? 77 : 1;
	}
	printf("ok open\n");
	fflush(stdout);
	ret = loop();
	if (has_more)
		ft_objs_close(&ft, &more);
	free(mem);
	ft_fini(&ft);
	return ret;
}
