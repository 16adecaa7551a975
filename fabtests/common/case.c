/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Runs named cases and prints TAP; starts the ranks for --fork.
 *
 * With --fork the first process is only a supervisor.  When a rank dies in the
 * middle of a case (a crash, or the hang guard), the supervisor ends the other
 * ranks, prints that case as failed, and starts new ranks from the next case.
 * So one crash does not hide the other results.
 */
#include "ft.h"

#include <errno.h>
#include <fnmatch.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define ABSENT 77
#define VERDICT 1

/* Written by rank 0, read by the supervisor. */
struct tally {
	volatile int current;		/* case that runs; ncases at the end */
	volatile bool reported;		/* its result line is printed */
	volatile int lines, pass, fail, skip, todo;
	char absent[FT_WHY_MAX];	/* why there is nothing to test */
};

static struct tally *tally;

/* ---- starting ranks ---- */

static pid_t start_rank(struct ft *ft, int lfd, int rank)
{
	pid_t parent = getpid(), pid = fork();

	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(1);
	ft->rank = rank;		/* for messages, until it is known */
	if (rank)
		close(lfd);
	ft_join(ft, lfd, rank);
	if (!rank)
		close(lfd);
	return 0;
}

/*
 * Start all ranks.  Returns true in a rank.  In the parent it returns false
 * after all ranks have ended; *status is then the worst of their results (128 +
 * number for a signal).
 */
static bool fork_ranks(struct ft *ft, int *status)
{
	pid_t pids[OOB_MAX_RANKS];
	int i, n = ft->run->nranks, lfd, left = n, code, st;
	pid_t pid;

	ft->opts.port = 0;
	lfd = oob_listen("127.0.0.1", &ft->opts.port);
	if (lfd < 0)
		ft_die(ft, "cannot listen on 127.0.0.1: %s", strerror(-lfd));
	fflush(NULL);
	for (i = 0; i < n; i++) {
		pids[i] = start_rank(ft, lfd, i);
		if (!pids[i])
			return true;
		if (pids[i] < 0)
			ft_die(ft, "fork: %s", strerror(errno));
	}
	close(lfd);
	*status = 0;
	while (left) {
		pid = waitpid(-1, &st, 0);
		if (pid < 0)
			break;
		for (i = 0; i < n && pids[i] != pid; i++)
			;
		if (i == n)
			continue;
		pids[i] = 0;
		left--;
		code = WIFSIGNALED(st) ? 128 + WTERMSIG(st) : WEXITSTATUS(st);
		if (!code)
			continue;
		/* The first rank that dies is the cause: report that one. */
		if (!*status) {
			*status = code;
			if (code > 128)
				fprintf(stderr, "# rank process %d: %s\n", i,
					strsignal(code - 128));
			/* Give the other ranks time to print their own message. */
			usleep(200 * 1000);
		}
		for (i = 0; i < n; i++)
			if (pids[i])
				kill(pids[i], SIGKILL);
	}
	return false;
}

void ft_init(struct ft *ft, int argc, char **argv, const char *title,
	     int nranks)
{
	int status;

	ft_parse(ft, argc, argv, title, nranks);
	if (!ft->opts.fork)
		ft_join(ft, -1, ft->opts.server ? 1 : 0);
	else if (!fork_ranks(ft, &status))
		exit(status);
	if (!ft->run->one_core) {
		long cores = sysconf(_SC_NPROCESSORS_ONLN);
		cpu_set_t set;

		CPU_ZERO(&set);
		CPU_SET((unsigned)ft->rank % (unsigned)(cores > 0 ? cores : 1),
			&set);
		sched_setaffinity(0, sizeof(set), &set);
	}
	ft_guard(ft, "the program");
}

/* ---- cases ---- */

static bool selected(struct ft *ft, const struct ft_case *c)
{
	if (ft->run->only[0] && fnmatch(ft->run->only, c->name, 0))
		return false;
	if (c->huge && !ft->run->huge)
		return false;
	return !(c->slow && ft->run->quick);
}

static void line(enum ft_result r, const char *name, const char *why,
		 const char *todo)
{
	int n = ++tally->lines;

	if (r == FT_PASS) {
		tally->pass++;
		printf("ok %d - %s\n", n, name);
	} else if (r == FT_SKIP) {
		tally->skip++;
		printf("ok %d - %s # SKIP %s\n", n, name, why);
	} else if (todo && todo[0]) {
		tally->todo++;
		printf("not ok %d - %s # TODO %s\n# %s\n", n, name, todo, why);
	} else {
		tally->fail++;
		printf("not ok %d - %s\n# %s\n", n, name, why);
	}
	fflush(stdout);
}

struct verdict {
	int32_t result;
	int32_t abandoned;		/* failed only because another rank left */
	char why[FT_WHY_MAX];
	char todo[FT_WHY_MAX];
};

/* A rank that left because of another one has the less useful reason. */
static int weight(const struct verdict *v)
{
	if (v->result == FT_FAIL)
		return v->abandoned ? 1 : 3;
	return v->result == FT_SKIP ? 2 : 0;
}

/* All ranks agree on one verdict: the worst, with the reason of the first rank
 * that gave it. */
static struct verdict agree(struct ft *ft, int result)
{
	struct verdict mine = {
		.result = result, .abandoned = ft->abandoned,
	};
	static struct verdict all[OOB_MAX_RANKS];
	int i, worst = 0, ret;

	memcpy(mine.why, ft->why, sizeof(mine.why));
	memcpy(mine.todo, ft->todo, sizeof(mine.todo));
	/* Other ranks may still be at a barrier of the case; they will come. */
	do {
		ret = oob_gather_kind(&ft->oob, VERDICT, &mine, all,
				      sizeof(mine));
	} while (ret == -ECANCELED);
	if (ret)
		ft_die(ft, "result exchange: %s", strerror(-ret));
	ft->abandoned = false;
	for (i = 1; i < ft->n; i++)
		if (weight(&all[i]) > weight(&all[worst]))
			worst = i;
	mine = all[worst];
	if (mine.result == FT_FAIL)
		snprintf(mine.why, sizeof(mine.why), "rank %d: %.*s", worst,
			 FT_WHY_MAX - 24, all[worst].why);
	return mine;
}

static bool same_cfg(const struct ft_cfg *a, const struct ft_cfg *b)
{
	return a->caps == b->caps && a->tx_op_flags == b->tx_op_flags &&
	       a->format == b->format && a->wait == b->wait &&
	       a->threading == b->threading && a->av_type == b->av_type &&
	       a->selective == b->selective && a->alone == b->alone &&
	       a->no_cq == b->no_cq && a->automatic == b->automatic && a->order == b->order &&
	       a->mr_mode == b->mr_mode && a->bind == b->bind;
}

/* The hints that no provider meets, as text. */
static int not_offered(struct ft *ft, const struct ft_cfg *cfg)
{
	static const struct { uint64_t bit; const char *name; } caps[] = {
		{ FI_RMA, " FI_RMA" }, { FI_ATOMIC, " FI_ATOMIC" },
		{ FI_RMA_EVENT, " FI_RMA_EVENT" }, { FI_FENCE, " FI_FENCE" },
	};
	char text[128] = "";
	size_t i;

	for (i = 0; i < sizeof(caps) / sizeof(caps[0]); i++)
		if (cfg->caps & caps[i].bit)
			strcat(text, caps[i].name);
	if (cfg->order)
		snprintf(text + strlen(text), sizeof(text) - strlen(text),
			 " msg_order %#llx", (unsigned long long)cfg->order);
	return ft_skip(ft, "fi_getinfo: not offered%s%s", *text ? " with" : "",
		       text);
}

/* Objects as the case wants them; those of the case before are reused where
 * they fit. */
static int prepare(struct ft *ft, const struct ft_case *c)
{
	int ret;

	if (ft->open && same_cfg(&ft->cfg, &c->cfg))
		return FT_PASS;
	if (ft_close(ft))
		return FT_FAIL;
	if (c->cfg.alone)
		return FT_PASS;
	ret = ft_open(ft, &c->cfg);
	if (ret == -FI_ENODATA)
		return not_offered(ft, &c->cfg);
	/* A provider may refuse an endpoint that has only counters. */
	if (ret == -FI_ENOCQ && c->cfg.no_cq)
		return FT_SKIP;
	/* A provider that lnx links may lack a feature; lnx has to provide it. */
	if (ret == -FI_ENOSYS && !ft_is_bare(ft, "lnx"))
		return FT_SKIP;
	return ret ? FT_FAIL : FT_PASS;
}

static void run_case(struct ft *ft, const struct ft_case *c)
{
	int ranks = c->ranks ? c->ranks : 2, result, ret;
	struct verdict v;

	ft->why[0] = ft->todo[0] = '\0';
	ft->spoiled = false;
	ft_guard(ft, c->name);
	if (c->guard_s)			/* FT_GUARD_S changes it as well */
		ft_guard_s(ft, c->name, c->guard_s * ft->run->guard_s /
			   FT_GUARD_S);
	if (ranks > ft->n) {
		ft_skip(ft, "needs %d ranks, the job has %d", ranks, ft->n);
		v = agree(ft, FT_SKIP);
	} else {
		v = agree(ft, prepare(ft, c));
		if (v.result == FT_PASS) {
			ft->why[0] = '\0';
			result = c->fn(ft, c);
			if (result == FT_PASS && ft->unexpected[0])
				result = ft_fail(ft, "%s", ft->unexpected);
			v = agree(ft, result);
		}
	}
	if (!ft->rank) {
		line(v.result, c->name, v.why, v.todo);
		tally->reported = true;
	}
	if ((v.result != FT_PASS || ft->spoiled) && ft->open) {
		/* What this case leaves must not disturb the next one. */
		ret = ft_close(ft);
		if (ret && v.result != FT_FAIL)
			fprintf(stderr, "# rank %d: after %s: %s\n", ft->rank,
				c->name, ft->why);
	}
	ft_ops_drop(ft);
}

/*
 * Is the provider missing?  Rank 0 asks before the first case, with the default
 * configuration.
 */
static bool absent(struct ft *ft)
{
	struct ft_cfg cfg = { 0 };
	struct fi_info *info;
	int32_t ret = 0;

	if (!ft->rank) {
		ret = ft_getinfo(ft, &cfg, &info);
		if (!ret)
			fi_freeinfo(info);
		else
			snprintf(tally->absent, sizeof(tally->absent),
				 "fi_getinfo(%s%s%s): %s", ft->opts.prov,
				 ft->opts.domain ? ", domain " : "",
				 ft->opts.domain ? ft->opts.domain : "",
				 fi_strerror(-ret));
	}
	if (oob_bcast(&ft->oob, &ret, sizeof(ret)))
		ft_die(ft, "lost rank 0");
	return ret != 0;
}

static int run_cases(struct ft *ft, const struct ft_case *cases, int n)
{
	int i;

	if (absent(ft))
		return ABSENT;
	for (i = ft->run->first; i < n; i++) {
		if (!selected(ft, &cases[i]))
			continue;
		if (!ft->rank) {
			tally->reported = false;
			tally->current = i;
		}
		run_case(ft, &cases[i]);
	}
	if (!ft->rank) {
		tally->current = n;
		tally->reported = false;
	}
	ft_guard(ft, "closing");
	if (ft_close(ft)) {
		fprintf(stderr, "# rank %d: closing at the end: %s\n",
			ft->rank, ft->why);
		return 1;
	}
	ft_barrier(ft);
	ft_fini(ft);
	return 0;
}

static const char *death(int status, char *buf, size_t len)
{
	if (status == 124)
		snprintf(buf, len, "hung, or a message was lost");
	else if (status > 128)
		snprintf(buf, len, "a rank died: %s", strsignal(status - 128));
	else
		snprintf(buf, len, "a rank left with status %d", status);
	return buf;
}

static int conclude(struct ft *ft, const char *prog)
{
	const char *links = getenv("FI_LNX_PROV_LINKS");

	if (tally->absent[0]) {
		printf("1..0 # SKIP %s\n", tally->absent);
		return getenv("FT_REQUIRE") ? 1 : ABSENT;
	}
	printf("1..%d\n", tally->lines);
	printf("# %s over %s%s%s: %d passed, %d failed, %d skipped, "
	       "%d known deviations, seed %llu\n", prog, ft->opts.prov,
	       ft_is_bare(ft, "lnx") && links ? " " : "",
	       ft_is_bare(ft, "lnx") && links ? links : "", tally->pass,
	       tally->fail, tally->skip, tally->todo,
	       (unsigned long long)ft->run->seed);
	fflush(stdout);
	return tally->fail ? 1 : 0;
}

/* The supervisor of --fork.  Returns in the parent only. */
static void supervise(struct ft *ft, const struct ft_case *cases, int n)
{
	char buf[100];
	int status;

	for (;;) {
		if (fork_ranks(ft, &status))
			exit(run_cases(ft, cases, n));
		if (!status || (status == ABSENT && tally->absent[0]))
			return;
		death(status, buf, sizeof(buf));
		if (tally->current >= n) {
			line(FT_FAIL, "close-at-end", buf, NULL);
			return;
		}
		if (tally->current < 0) {
			line(FT_FAIL, "start", buf, NULL);
			return;
		}
		if (tally->reported) {
			char name[80];

			snprintf(name, sizeof(name), "close-after-%s",
				 cases[tally->current].name);
			line(FT_FAIL, name, buf, NULL);
		} else {
			line(FT_FAIL, cases[tally->current].name, buf, NULL);
		}
		ft->run->first = tally->current + 1;
		tally->reported = false;
		if (ft->run->first >= n)
			return;
	}
}

int ft_main(int argc, char **argv, const char *title,
	    const struct ft_case *cases, int ncases)
{
	const char *prog = strrchr(argv[0], '/');
	static struct ft ft;
	int i, status, nranks = 2;

	for (i = 0; i < ncases; i++)
		if (cases[i].ranks > nranks)
			nranks = cases[i].ranks;
	ft_parse(&ft, argc, argv, title, nranks);
	if (ft.opts.list) {
		for (i = 0; i < ncases; i++)
			if (selected(&ft, &cases[i]))
				printf("%s\n", cases[i].name);
		return 0;
	}
	tally = mmap(NULL, sizeof(*tally), PROT_READ | PROT_WRITE,
		     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (tally == MAP_FAILED)
		ft_die(&ft, "out of memory");
	tally->current = -1;
	if (ft.opts.fork) {
		supervise(&ft, cases, ncases);
	} else {
		ft_join(&ft, -1, ft.opts.server ? 1 : 0);
		status = run_cases(&ft, cases, ncases);
		if (ft.rank)
			return status;
		if (status && status != ABSENT)
			tally->fail++;
	}
	return conclude(&ft, prog ? prog + 1 : argv[0]);
}
