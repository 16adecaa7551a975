/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Options, and joining the job. */
#include "ft.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define PORT 47592

enum { OPT_NO_VERIFY = 256, OPT_FORK, OPT_QUICK, OPT_HUGE, OPT_LIST,
       OPT_ONE_CORE, OPT_SECONDS, OPT_DIRECTED, OPT_MR_BASIC };

static const struct option longs[] = {
	{ "no-verify", no_argument, NULL, OPT_NO_VERIFY },
	{ "fork", no_argument, NULL, OPT_FORK },
	{ "quick", no_argument, NULL, OPT_QUICK },
	{ "huge", no_argument, NULL, OPT_HUGE },
	{ "list", no_argument, NULL, OPT_LIST },
	{ "one-core", no_argument, NULL, OPT_ONE_CORE },
	{ "directed", no_argument, NULL, OPT_DIRECTED },
	{ "mr-basic", no_argument, NULL, OPT_MR_BASIC },
	{ "seconds", required_argument, NULL, OPT_SECONDS },
	{ "help", no_argument, NULL, 'h' },
	{ 0 }
};

static void usage(FILE *f, const char *prog, const char *title)
{
	fprintf(f,
"%s: %s\n"
"usage: %s [options]            server, or all ranks with --fork\n"
"       %s [options] SERVER     client of the server on that host\n"
"  -p PROV    provider, as fi_info spells it (lnx)\n"
"  -d DOMAIN  domain; -f FABRIC fabric\n"
"  -B ADDR    local address to use (fi_getinfo with FI_SOURCE)\n"
"  -P PORT    out-of-band TCP port of the server (%d)\n"
"  -n N       ranks in the job, the server included\n"
"  --fork     start all ranks here and talk over loopback\n"
"The server's values of these are used by all ranks:\n"
"  -s SIZE    message size with k, m or g, or all\n"
"  -I N       iterations; -w N warm-up; -r N repeats\n"
"  -N NUM     a number, -m WORD a mode: the program's own\n"
"  --seconds N  run this long instead of a number of rounds, where a program\n"
"             can do so\n"
"  -S SEED    of message contents and random choices\n"
"  -c GLOB    only cases with such names; --list shows them\n"
"  -v         verify data (default); --no-verify\n"
"  --quick    leave slow cases out; --huge adds very large ones\n"
"  --directed receives name their source, where a case has one source; other\n"
"             cases are left out\n"
"  --mr-basic memory is registered as FI_MR_BASIC wants it\n"
"  --one-core do not spread ranks over the cores\n"
"FT_TIMEOUT_S and FT_GUARD_S change the limits of one wait (30) and of one\n"
"case (180), for slow machines and instrumented runs.\n",
		prog, title, prog, prog, PORT);
}

static uint64_t parse_size(const char *prog, const char *s)
{
	char *end;
	uint64_t v;

	if (!strcmp(s, "all"))
		return UINT64_MAX;
	errno = 0;
	v = strtoull(s, &end, 0);
	switch (*end) {
	case 'g': case 'G':
		v <<= 10;	/* fall through */
	case 'm': case 'M':
		v <<= 10;	/* fall through */
	case 'k': case 'K':
		v <<= 10;
		end++;
	}
	if (errno || end == s || *end) {
		fprintf(stderr, "%s: '%s' is not a number\n", prog, s);
		exit(2);
	}
	return v;
}

static double env_number(const char *name, double def)
{
	const char *s = getenv(name);
	double v = s ? atof(s) : 0;

	return v > 0 ? v : def;
}

void ft_parse(struct ft *ft, int argc, char **argv, const char *title,
	      int nranks)
{
	const char *prog = strrchr(argv[0], '/');
	struct ft_opts *o = &ft->opts;
	struct ft_run *r = &o->run;
	int c;

	prog = prog ? prog + 1 : argv[0];
	memset(ft, 0, sizeof(*ft));
	ft->run = r;
	o->prov = "lnx";
	o->port = PORT;
	r->nranks = nranks;
	r->verify = true;
	r->size = UINT64_MAX;
	r->seed = (uint64_t)time(NULL) ^ ((uint64_t)getpid() << 32);
	r->timeout_s = env_number("FT_TIMEOUT_S", 30);
	r->guard_s = (unsigned)env_number("FT_GUARD_S", FT_GUARD_S);
	while ((c = getopt_long(argc, argv, "p:d:f:B:P:n:s:I:w:r:N:m:S:c:vh",
				longs, NULL)) != -1) {
		switch (c) {
		case 'p': o->prov = optarg; break;
		case 'd': o->domain = optarg; break;
		case 'f': o->fabric = optarg; break;
		case 'B': o->local = optarg; break;
		case 'P': o->port = (int)parse_size(prog, optarg); break;
		case 'n': r->nranks = (int)parse_size(prog, optarg); break;
		case 's': r->size = parse_size(prog, optarg); break;
		case 'I': r->iters = parse_size(prog, optarg); break;
		case 'w': r->warmup = parse_size(prog, optarg); break;
		case 'r': r->repeats = parse_size(prog, optarg); break;
		case 'N': r->arg = parse_size(prog, optarg); break;
		case 'm': snprintf(r->mode, sizeof(r->mode), "%s", optarg);
			break;
		case 'S': r->seed = parse_size(prog, optarg); break;
		case 'c': snprintf(r->only, sizeof(r->only), "%s", optarg);
			break;
		case 'v': r->verify = true; break;
		case OPT_NO_VERIFY: r->verify = false; break;
		case OPT_FORK: o->fork = true; break;
		case OPT_QUICK: r->quick = true; break;
		case OPT_HUGE: r->huge = true; break;
		case OPT_LIST: o->list = true; break;
		case OPT_ONE_CORE: r->one_core = true; break;
		case OPT_DIRECTED: r->directed = true; break;
		case OPT_MR_BASIC: r->mr_basic = true; break;
		case OPT_SECONDS:
			r->seconds = (double)parse_size(prog, optarg);
			break;
		case 'h': usage(stdout, prog, title); exit(0);
		default: usage(stderr, prog, title); exit(2);
		}
	}
	if (optind < argc)
		o->server = argv[optind++];
	if (optind < argc || (o->fork && o->server) || r->nranks < 1 ||
	    r->nranks > OOB_MAX_RANKS) {
		usage(stderr, prog, title);
		exit(2);
	}
	/*
	 * Providers over sockets list every interface.  If none is chosen,
	 * ranks that --fork starts stay on this machine.
	 */
	if (o->fork && !o->domain && !o->local && !strncmp(o->prov, "tcp", 3))
		o->domain = "lo";
}

static void idle(void *arg)
{
	struct ft *ft = arg;

	if (ft->open)
		ft_progress(ft);
}

/* lfd is the listening socket of rank 0, or -1. */
void ft_join(struct ft *ft, int lfd, int rank_hint)
{
	struct ft_opts *o = &ft->opts;
	bool own = false;
	int ret;

	if (!o->fork && !o->server) {
		if (o->run.nranks > 1)
			lfd = oob_listen(NULL, &o->port);
		if (o->run.nranks > 1 && lfd < 0)
			ft_die(ft, "cannot listen on port %d: %s", o->port,
			       strerror(-lfd));
		own = o->run.nranks > 1;
		if (own)
			fprintf(stderr, "# waiting for %d client(s) on port "
				"%d\n", o->run.nranks - 1, o->port);
	}
	if (rank_hint == 0)
		ret = oob_serve(&ft->oob, lfd, o->run.nranks);
	else
		ret = oob_join(&ft->oob, o->server ? o->server : "127.0.0.1",
			       o->port, o->run.timeout_s);
	if (own)
		close(lfd);
	if (ret)
		ft_die(ft, "out-of-band connection: %s", strerror(-ret));
	ft->rank = ft->oob.rank;
	ft->n = ft->oob.n;
	ret = oob_bcast(&ft->oob, &o->run, sizeof(o->run));
	if (ret)
		ft_die(ft, "out-of-band connection: %s", strerror(-ret));
	ft->oob.idle = idle;
	ft->oob.idle_arg = ft;
}
