/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Job keys between processes: the right ones, different ones, none on one side, and
 * settings that are refused.  Each process is this program again, as `job_key node`, with
 * an environment of its own; it opens an endpoint, and then does what its standard input
 * says.  sessions.c, with FI_LNX_JOB_KEY set, has hostile senders.
 *
 * usage: job_key [-p lnx] [ignored options]
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_tagged.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define KEY		"correct horse battery staple"
#define OTHER		"Tr0ub4dor&3 Tr0ub4dor&3"
#define LINE_BYTES	2048
#define WAIT_MS		20000		/* hang guard */
#define MESSAGES	10

static uint64_t now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000;
}

/* ---- a node ---- */

static struct fid_ep *ep;
static struct fid_cq *cq;
static struct fid_av *av;
static fi_addr_t peer;
static unsigned sent, failed, received;
static int last_err;

static void say(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vprintf(fmt, ap);
	va_end(ap);
	putchar('\n');
	fflush(stdout);
}

static int open_all(void)
{
	struct fi_info *hints = fi_allocinfo(), *info;
	struct fi_av_attr av_attr = { .type = FI_AV_TABLE };
	struct fi_cq_attr cq_attr = { .format = FI_CQ_FORMAT_TAGGED };
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	int ret;

	hints->fabric_attr->prov_name = strdup("lnx");
	hints->ep_attr->type = FI_EP_RDM;
	hints->caps = FI_TAGGED;
	ret = fi_getinfo(FI_VERSION(1, 20), NULL, NULL, 0, hints, &info);
	if (ret)
		return ret;
	ret = fi_fabric(info->fabric_attr, &fabric, NULL);
	if (!ret)
		ret = fi_domain(fabric, info, &domain, NULL);
	if (!ret)
		ret = fi_endpoint(domain, info, &ep, NULL);
	if (!ret)
		ret = fi_av_open(domain, &av_attr, &av, NULL);
	if (!ret)
		ret = fi_cq_open(domain, &cq_attr, &cq, NULL);
	if (!ret)
		ret = fi_ep_bind(ep, &av->fid, 0);
	if (!ret)
		ret = fi_ep_bind(ep, &cq->fid, FI_TRANSMIT | FI_RECV);
	return ret ? ret : fi_enable(ep);
}

static void progress(void)
{
	struct fi_cq_err_entry e = { 0 };
	struct fi_cq_tagged_entry c;
	ssize_t n;

	while ((n = fi_cq_read(cq, &c, 1)) == 1) {
		sent += (c.flags & FI_SEND) != 0;
		received += (c.flags & FI_RECV) != 0;
	}
	if (n == -FI_EAVAIL && fi_cq_readerr(cq, &e, 0) == 1) {
		failed++;
		last_err = e.err;
	}
}

/* n sends that end when the peer has the message. */
static void do_send(unsigned n)
{
	struct iovec iov = { (void *)"12345678", 8 };
	struct fi_msg_tagged m = { .msg_iov = &iov, .iov_count = 1,
				   .addr = peer, .tag = 1 };
	uint64_t begin = now_ms();
	unsigned i, refused = 0;
	ssize_t ret;

	sent = failed = 0;
	last_err = 0;
	for (i = 0; i < n; i++) {
		do {
			ret = fi_tsendmsg(ep, &m, FI_COMPLETION |
					  FI_DELIVERY_COMPLETE);
			progress();
		} while (ret == -FI_EAGAIN && now_ms() < begin + WAIT_MS);
		if (ret) {
			refused++;
			last_err = (int)-ret;
		}
	}
	while (sent + failed + refused < n && now_ms() < begin + WAIT_MS)
		progress();
	say("sent %u failed %u err %d ms %u", sent, failed + refused, last_err,
	    (unsigned)(now_ms() - begin));
}

static void do_recv(unsigned n)
{
	uint64_t begin = now_ms();

	while (received < n && now_ms() < begin + WAIT_MS)
		progress();
	say("received %u", received);
	received = 0;
}

static void hex(char *text, const uint8_t *at, size_t len)
{
	size_t i;

	for (i = 0; i < len; i++)
		sprintf(text + 2 * i, "%02x", at[i]);
}

static void do_know(const char *text)
{
	uint8_t name[256];
	unsigned byte;
	size_t n = 0;

	for (; n < sizeof(name) && sscanf(text, "%2x", &byte) == 1; text += 2)
		name[n++] = (uint8_t)byte;
	say("inserted %d", fi_av_insert(av, name, 1, &peer, 0, NULL));
}

static int node(void)
{
	char line[LINE_BYTES], text[520] = "";
	struct pollfd in = { .fd = 0, .events = POLLIN };
	static uint8_t buf[4 * MESSAGES][8];
	size_t len = 256, i;
	uint8_t name[256];
	int ret = open_all();

	if (ret) {
		say("refused %s", fi_strerror(-ret));
		return 0;
	}
	if (fi_getname(&ep->fid, name, &len))
		return 1;
	hex(text, name, len);
	for (i = 0; i < sizeof(buf) / sizeof(buf[0]); i++)
		fi_trecv(ep, buf[i], sizeof(buf[i]), NULL, FI_ADDR_UNSPEC, 1, 0,
			 NULL);
	say("name %s", text);
	for (;;) {
		while (!poll(&in, 1, 0))
			progress();
		/* One line at a time is sent. */
		ret = (int)read(0, line, sizeof(line) - 1);
		if (ret <= 0)
			break;
		line[ret] = '\0';
		if (!strncmp(line, "know ", 5))
			do_know(line + 5);
		else if (!strncmp(line, "send ", 5))
			do_send((unsigned)atoi(line + 5));
		else if (!strncmp(line, "recv ", 5))
			do_recv((unsigned)atoi(line + 5));
		else
			say("what?");
	}
	fi_close(&ep->fid);
	return 0;
}

/* ---- the test ---- */

struct node {
	pid_t pid;
	int in, out;
	FILE *err;
	char name[LINE_BYTES];
};

static char why[4096];

#define CHECK(cond, ...)						\
	do {								\
		if (!(cond)) {						\
			snprintf(why, sizeof(why), __VA_ARGS__);	\
			return false;					\
		}							\
	} while (0)

static bool hear(struct node *n, char *line)
{
	struct pollfd p = { .fd = n->out, .events = POLLIN };
	size_t len = 0;

	*line = '\0';
	while (len < LINE_BYTES - 1 && poll(&p, 1, 2 * WAIT_MS) == 1 &&
	       read(n->out, line + len, 1) == 1 && line[len] != '\n')
		len++;
	line[len] = '\0';
	return len > 0;
}

static void tell(struct node *n, const char *fmt, ...)
{
	char line[LINE_BYTES];
	va_list ap;
	int len;

	va_start(ap, fmt);
	len = vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	if (write(n->in, line, (size_t)len) != len)
		perror("write");
}

/* env: "NAME=value" strings, NULL-ended. */
static bool start(struct node *n, const char *const *env)
{
	char line[LINE_BYTES];
	int in[2], out[2];

	n->err = tmpfile();
	CHECK(n->err && !pipe2(in, O_CLOEXEC) && !pipe2(out, O_CLOEXEC),
	      "no pipe");
	fflush(stdout);
	n->pid = fork();
	if (!n->pid) {
		unsetenv("FI_LNX_JOB_KEY");
		unsetenv("FI_LNX_JOB_KEY_FILE");
		unsetenv("FI_LOG_LEVEL");
		setenv("FI_LNX_DISABLE_SHM", "1", 1);
		for (; *env; env++)
			putenv((char *)*env);
		dup2(in[0], 0);
		dup2(out[1], 1);
		dup2(fileno(n->err), 2);
		execl("/proc/self/exe", "job_key", "node", NULL);
		_exit(1);
	}
	close(in[0]);
	close(out[1]);
	n->in = in[1];
	n->out = out[0];
	CHECK(hear(n, line), "a process says nothing");
	snprintf(n->name, sizeof(n->name), "%s", line);
	return true;
}

/* What it wrote to standard error, after its end. */
static const char *stop(struct node *n)
{
	static char text[4 << 20];
	uint64_t end = now_ms() + WAIT_MS;
	size_t len;

	if (n->pid <= 0)
		return "";
	close(n->in);
	close(n->out);
	while (waitpid(n->pid, NULL, WNOHANG) == 0)
		if (now_ms() > end)
			kill(n->pid, SIGKILL);
		else
			usleep(1000);
	n->pid = 0;
	rewind(n->err);
	len = fread(text, 1, sizeof(text) - 1, n->err);
	text[len] = '\0';
	fclose(n->err);
	return text;
}

static unsigned lines(const char *text)
{
	unsigned n = 0;

	for (; *text; text++)
		n += *text == '\n';
	return n;
}

static struct node a, b, c;

static bool know(struct node *n, const struct node *other)
{
	char line[LINE_BYTES];

	CHECK(!strncmp(other->name, "name ", 5), "an endpoint does not open: %s",
	      other->name);
	tell(n, "know %s", other->name + 5);
	CHECK(hear(n, line) && !strcmp(line, "inserted 1"), "%s", line);
	return true;
}

/* MESSAGES from one to the other: all arrive, or all fail with that error. */
static bool sent_to(struct node *from, struct node *to, int err)
{
	unsigned ok, bad, ms, want = err ? 0 : MESSAGES;
	char line[LINE_BYTES];
	int e;

	if (!know(from, to))
		return false;
	tell(from, "send %d", MESSAGES);
	CHECK(hear(from, line) &&
	      sscanf(line, "sent %u failed %u err %d ms %u", &ok, &bad, &e,
		     &ms) == 4, "%s", line);
	printf("# %s\n", line);
	CHECK(ok == want && bad == MESSAGES - want && e == err, "%s, wanted %d",
	      line, err);
	CHECK(!err || ms < 5000, "it takes %u ms", ms);
	tell(to, "recv %u", want);
	CHECK(hear(to, line) && (unsigned)atoi(line + 9) == want, "%s", line);
	return true;
}

static bool end_with(struct node *n, unsigned want, const char *part)
{
	const char *err = stop(n);

	CHECK(lines(err) == want && (!want || strstr(err, part)),
	      "%u lines on standard error instead of %u with \"%s\": %s",
	      lines(err), want, part, err);
	CHECK(!strstr(err, KEY) && !strstr(err, OTHER), "the key is shown: %s",
	      err);
	return true;
}

#define ENV(...)	((const char *const[]){ __VA_ARGS__, NULL })
#define NONE		((const char *const[]){ NULL })

static char file[] = "/tmp/lnx-job-key-XXXXXX", file_var[80];

static bool write_file(const char *text, mode_t mode)
{
	int fd;

	snprintf(file_var, sizeof(file_var), "FI_LNX_JOB_KEY_FILE=%s", file);
	fd = open(file, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	CHECK(fd >= 0 && write(fd, text, strlen(text)) ==
	      (ssize_t)strlen(text) && !fchmod(fd, mode) && !close(fd),
	      "%s: %s", file, strerror(errno));
	return true;
}

static bool same(void)
{
	return write_file(KEY "\n", 0600) &&
	       start(&a, ENV("FI_LNX_JOB_KEY=" KEY)) &&
	       start(&b, ENV(file_var)) && sent_to(&a, &b, 0) &&
	       sent_to(&b, &a, 0) && sent_to(&a, &b, 0) &&
	       end_with(&a, 0, "") && end_with(&b, 0, "");
}

static bool differ(const char *const *one, const char *const *other)
{
	static const char part[] = "job keys differ";

	return start(&a, one) && start(&b, other) &&
	       sent_to(&a, &b, FI_EACCES) && sent_to(&a, &b, FI_EACCES) &&
	       sent_to(&b, &a, FI_EACCES) && end_with(&a, 1, part) &&
	       end_with(&b, 1, part);
}

static bool different(void)
{
	return differ(ENV("FI_LNX_JOB_KEY=" KEY), ENV("FI_LNX_JOB_KEY=" OTHER));
}

static bool one_has_none(void)
{
	return differ(ENV("FI_LNX_JOB_KEY=" KEY), NONE);
}

static bool other_has_none(void)
{
	return differ(NONE, ENV("FI_LNX_JOB_KEY=" KEY));
}

/* Some time passes, and it is tried again. */
static bool later(void)
{
	if (!start(&a, ENV("FI_LNX_JOB_KEY=" KEY)) ||
	    !start(&b, ENV("FI_LNX_JOB_KEY=" OTHER)) ||
	    !sent_to(&a, &b, FI_EACCES))
		return false;
	usleep(1300000);
	return sent_to(&a, &b, FI_EACCES) &&
	       end_with(&a, 1, "job keys differ") &&
	       end_with(&b, 1, "job keys differ");
}

/* Two that have the key, and one that has another. */
static bool beside(void)
{
	return start(&a, ENV("FI_LNX_JOB_KEY=" KEY)) &&
	       start(&b, ENV("FI_LNX_JOB_KEY=" KEY)) &&
	       start(&c, ENV("FI_LNX_JOB_KEY=" OTHER)) &&
	       sent_to(&a, &b, 0) && sent_to(&c, &b, FI_EACCES) &&
	       sent_to(&c, &a, FI_EACCES) && sent_to(&a, &b, 0) &&
	       sent_to(&b, &a, 0) && end_with(&a, 1, "job keys differ") &&
	       end_with(&b, 1, "job keys differ") &&
	       end_with(&c, 1, "job keys differ");
}

/* libfabric logs the values of variables that it is asked for. */
static bool logged(void)
{
	const char *err;

	if (!start(&a, ENV("FI_LNX_JOB_KEY=" KEY, "FI_LOG_LEVEL=debug")) ||
	    !start(&b, ENV("FI_LNX_JOB_KEY=" OTHER, "FI_LOG_LEVEL=debug")) ||
	    !sent_to(&a, &b, FI_EACCES))
		return false;
	err = stop(&a);
	CHECK(strstr(err, "job keys differ"), "the log is empty");
	CHECK(!strstr(err, KEY), "the log has the key");
	err = stop(&b);
	CHECK(strstr(err, "job keys differ") && !strstr(err, OTHER),
	      "the log is empty, or has the other key");
	return true;
}

static bool is_refused(const char *const *env, const char *part)
{
	if (!start(&a, env))
		return false;
	CHECK(!strncmp(a.name, "refused ", 8), "it opens: %s", part);
	return end_with(&a, 1, part);
}

static bool settings(void)
{
	static const mode_t mode[] = { 0644, 0640, 0620, 0602, 0601, 0777 };
	size_t i;

	for (i = 0; i < sizeof(mode) / sizeof(mode[0]); i++)
		if (!write_file(KEY, mode[i]) || !is_refused(ENV(file_var), file))
			return false;
	return write_file(KEY, 0400) &&
	       is_refused(ENV(file_var, "FI_LNX_JOB_KEY=" KEY), "both set") &&
	       is_refused(ENV(file_var, "FI_LNX_USE_SRQ=0"), "FI_LNX_USE_SRQ") &&
	       is_refused(ENV("FI_LNX_JOB_KEY=" KEY, "FI_LNX_PROTOCOL=direct"),
			  "FI_LNX_PROTOCOL") &&
	       is_refused(ENV("FI_LNX_JOB_KEY="), "empty") &&
	       is_refused(ENV("FI_LNX_JOB_KEY=short"), "too short") &&
	       is_refused(ENV("FI_LNX_JOB_KEY_FILE=/nothing"), "/nothing") &&
	       write_file("\n", 0600) && is_refused(ENV(file_var), "empty") &&
	       start(&a, ENV("FI_LNX_JOB_KEYS=" KEY)) &&
	       end_with(&a, 1, "FI_LNX_JOB_KEYS");
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		bool (*run)(void);
	} cases[] = {
		{ "same-key", same }, { "different-keys", different },
		{ "key-to-none", one_has_none }, { "none-to-key", other_has_none },
		{ "tried-again-later", later },
		{ "beside-a-session", beside }, { "settings", settings },
		{ "not-in-the-log", logged },
	};
	unsigned i, n = sizeof(cases) / sizeof(cases[0]);
	int bad = 0;

	if (argc > 1 && !strcmp(argv[1], "node"))
		return node();
	signal(SIGPIPE, SIG_IGN);
	close(mkstemp(file));
	if (!start(&a, ENV("FI_LNX_JOB_KEY=" KEY)))
		return 1;
	/* Without libsodium, or without lnx. */
	if (strncmp(a.name, "name ", 5)) {
		printf("1..0 # SKIP %s; %s\n", a.name, stop(&a));
		unlink(file);
		return 77;
	}
	stop(&a);
	printf("1..%u\n", n);
	for (i = 0; i < n; i++) {
		bool ok = cases[i].run();

		stop(&a);
		stop(&b);
		stop(&c);
		printf("%sok %u - %s\n", ok ? "" : "not ", i + 1, cases[i].name);
		if (!ok)
			printf("# %s\n", why);
		fflush(stdout);
		bad |= !ok;
	}
	unlink(file);
	return bad;
}
