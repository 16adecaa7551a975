/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Messages of one endpoint and its peer on the scripted core, whose clock and network are
 * the script's: what is executed for a message is the same in each run, to the instruction.
 * bench/check-cost runs it under callgrind, with N and with 2 N exchanges.
 *
 *	cost_bench EXCHANGES [NAME=VALUE...] [rules] [far] [routes] [reader] [planted]
 *
 * NAME=VALUE: a parameter.  rules: 64 rules of the user are there, which change nothing of the order of paths.
 * far: the peer has one rail more, in a net in which we have none.  routes: over a gateway to
 * that net, which are not used.
 * reader: a reader of the state has looked, so that frames are counted by kind.  planted: a
 * few instructions more for each message, which the check must see.
 */
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/policy.h"
#include "obj/counting.h"
#include "unit/fake_core.h"

#define RAILS		2u
#define RULES		64u
#define SIZE		64u
#define BEFORE		200u	/* exchanges until all is as it stays */

static struct fake f;
static struct fake_peer peer;
static volatile unsigned planted;

static void check(bool ok, const char *what)
{
	if (ok)
		return;
	fprintf(stderr, "cost_bench: %s\n", what);
	exit(1);
}

static void put_rules(char *text, size_t size)
{
	size_t n = 0;
	unsigned i;

	/* The first one gives both rails the same, and the others are about rails that are
	 * not there: the order of paths is the one without rules. */
	n = (size_t)snprintf(text, size, "src: tcp");
	for (i = 1; i < RULES; i++)
		n += (size_t)snprintf(text + n, size - n, i % 2 ?
				      "; dst: 10.%u.0.*@tcp, priority: %u" :
				      "; src: 10.%u.0.1@tcp, priority: %u", i, i);
	check(n < size, "the text of the rules is too long");
}

static void add_far_rail(void)
{
	struct sockaddr_in in = { .sin_family = AF_INET, .sin_port = htons(5001),
				  .sin_addr.s_addr = htonl(0x0a020005) };
	struct lnx_addr_rail *rail = &peer.where.rail[peer.where.nrail];

	*rail = rail[-1];
	rail->group++;
	memcpy(rail->raw, &in, sizeof(in));
	peer.where.nrail++;
	check(!lnx_addr_pack(&peer.where, peer.blob), "the address of the peer is too long");
}

/* What has left reaches the peer. */
static void deliver(void)
{
	struct fake_sent *s;
	unsigned i;

	for (i = 0; i < RAILS; i++) {
		while ((s = fake_take(f.core[i]))) {
			if (s->h.kind == LNX_KIND_HELLO && !s->h.seq &&
			    s->h.src != peer.theirs) {
				peer.theirs = s->h.src;
				peer.got = 0;
			}
			if (lnx_wire_kind_sequenced(s->h.kind) && s->h.seq == peer.got)
				peer.got++;
			free(s);
		}
	}
}

static unsigned completions(void)
{
	struct fi_cq_tagged_entry e[8];
	ssize_t n = fi_cq_read(f.cq, e, 8);

	check(n >= 0 || n == -FI_EAGAIN, "an operation failed");
	return n < 0 ? 0 : (unsigned)n;
}

static void meet(bool far)
{
	unsigned i;

	fake_peer_init(&f, &peer, 1000);
	if (far)
		add_far_rail();
	fake_peer_insert(&f, &peer);
	fake_hello(&f, &peer);
	for (i = 0; i < 100; i++) {
		fake_after_ms(&f, 1);
		deliver();
	}
	fake_ack(&f, &peer);
	fake_passes(&f, 4);
}

/* One message and its answer.  The clock stands still: no timer is due. */
static void exchange(void)
{
	static char out[SIZE], in[SIZE];
	unsigned done = 0, tries;

	check(!fi_trecv(f.ep, in, SIZE, NULL, peer.addr, 1, 0, NULL), "fi_trecv");
	check(!fi_tsend(f.ep, out, SIZE, NULL, peer.addr, 1, NULL), "fi_tsend");
	deliver();
	fake_tag(&f, &peer, 1, out, SIZE);
	for (tries = 0; done < 2 && tries < 100; tries++) {
		fake_pass(&f);
		done += completions();
	}
	check(done == 2, "an exchange does not end");
}

/* callgrind counts what this calls. */
static void __attribute__((noinline)) measured(unsigned n, bool plant)
{
	while (n--) {
		exchange();
		if (plant)
			planted++;
	}
}

static void read_counts(void)
{
	struct lnx_peer *p = lnx_peer_by_eid(f.lnx, peer.eid);
	unsigned i;

	check(p && p->npath == RAILS, "the peer is not met over all rails");
	for (i = 0; i < p->npath; i++)
		check(lnx_path_counts_get(p, p->path[i]), "no counts of a path");
}

static void set_param(const char *word)
{
	const char *value = strchr(word, '=');
	char why[600];
	int row;

	check(value, "what is no other word must be NAME=VALUE");
	row = lnx_conf_find(word, (size_t)(value - word));
	check(row >= 0, "there is no such parameter");
	check(!lnx_conf_set(&fake_conf, (size_t)row, value + 1, why, sizeof(why)), why);
}

int main(int argc, char **argv)
{
	static char text[64 * RULES];
	struct fake_opt opt = { .nrail = RAILS, .kind = { LNX_RAIL_PLAIN, LNX_RAIL_PLAIN } };
	bool reader = false, plant = false, far = false;
	unsigned i, n;
	int k;

	check(argc > 1, "how many exchanges?");
	n = (unsigned)strtoul(argv[1], NULL, 10);
	for (k = 2; k < argc; k++) {
		if (!strcmp(argv[k], "rules")) {
			put_rules(text, sizeof(text));
			fake_conf.udsp = text;
		} else if (!strcmp(argv[k], "far")) {
			fake_conf.nets = "tcp1=127.0.0.0/8; tcp2=10.2.0.0/16";
			far = true;
		} else if (!strcmp(argv[k], "routes")) {
			fake_conf.routes = "tcp2 via 10.9.0.9@tcp1";
		} else if (!strcmp(argv[k], "reader")) {
			reader = true;
		} else if (!strcmp(argv[k], "planted")) {
			plant = true;
		} else {
			set_param(argv[k]);
		}
	}
	fake_separate = true;
	fake_open(&f, &opt);
	meet(far);
	check(!fake_conf.routes || f.lnx->policy.gateways, "there are no routes");
	if (reader)
		read_counts();
	for (i = 0; i < BEFORE; i++)
		exchange();
	measured(n, plant);
	for (i = 0; i < RAILS; i++)
		check(!f.core[i]->nrouted && !f.core[i]->nhellos, "the gateway is used");
	fake_close_quick(&f);
	return 0;
}
