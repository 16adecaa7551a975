/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Hostile senders, beside two endpoints that talk to each other: plain sockets,
 * and an endpoint of the core provider that sends bytes which are frames of lnx.
 * They must end nothing, read or write nothing, and learn no endpoint's id; the
 * messages of the two go on.  See sessions.c.
 */
#include "sessions.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lnx_wire.h"
#include "lnx_wire_addr.h"

#define SECRET		0x5c
#define KEY		0x1234567u
#define RAIL_AT		offsetof(struct lnx_wire_addr, rails)
#define IP_AT		(RAIL_AT + LNX_WIRE_ADDR_RAIL_HEAD)
#define PORT_AT		(IP_AT + 4)
#define ECHO_MAX	300000
/* An attack comes in turns, between which it rests. */
#define TURNS		3
#define FRAMES		1500		/* of one turn */
#define ATTACK_S	7.0		/* its longest time */
#define CONNECTS	20
#define FLOOD_S		0.3
#define HELD		8
#define HALVES		SESSIONS_BUFFERS /* messages of one turn that do not end */
#define CONNECT_S	1.0		/* a flood of connections */
#define HELD_MAX	128
#define SLOWER		3.0		/* round trips, beside it, in the best turn, if
					 * times are judged */
/* Of what must be told to no stranger, so many bytes in turn are no accident. */
#define RUN		16

void sessions_set_address(unsigned char *name, struct in_addr ip, uint16_t port)
{
	memcpy(name + IP_AT, &ip, sizeof(ip));
	name[PORT_AT] = (unsigned char)port;
	name[PORT_AT + 1] = (unsigned char)(port >> 8);
}

/* What an attacker knows, at the start of its memory.  It writes what it gets
 * to `got`. */
struct plan {
	int prov;			/* LNX_WIRE_PROV_* */
	bool keyed;			/* the endpoints have a job key, it has not */
	bool ids;			/* it knows these: */
	unsigned char name[2][FT_NAME_MAX];	/* else with ids of 0 */
	uint64_t seed;
	unsigned sent, refused;		/* what it did */
	unsigned guesses;		/* of keys: writes and reads that left */
	bool read;			/* a read changed its buffer */
	size_t n_got;
	unsigned char got[ACTOR_ROOM / 2];
};

static uint64_t id_of(const unsigned char *name)
{
	uint64_t id;

	memcpy(&id, name + offsetof(struct lnx_wire_addr, eid), sizeof(id));
	return le64toh(id);
}

struct sockaddr_in sessions_address(const unsigned char *name)
{
	struct sockaddr_in in = {
		.sin_family = AF_INET,
		.sin_port = htons((uint16_t)(name[PORT_AT] |
					     name[PORT_AT + 1] << 8)),
	};

	memcpy(&in.sin_addr, name + IP_AT, 4);
	return in;
}

static void keep(struct plan *p, const void *what, size_t len)
{
	if (len > sizeof(p->got) - p->n_got)
		len = sizeof(p->got) - p->n_got;
	memcpy(p->got + p->n_got, what, len);
	p->n_got += len;
}

/* ---- plain sockets ---- */

static int connect_to(const struct plan *p)
{
	struct sockaddr_in to = sessions_address(p->name[0]);
	struct timeval tv = { .tv_sec = 2 };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &tv, sizeof(tv));
	if (fd >= 0 && !connect(fd, (void *)&to, sizeof(to)))
		return fd;
	close(fd);
	return -1;
}

static void read_all(struct plan *p, int fd, int ms)
{
	struct timeval tv = { .tv_usec = ms * 1000 };
	unsigned char buf[4096];
	ssize_t n;

	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof(tv));
	while ((n = recv(fd, buf, sizeof(buf), 0)) > 0)
		keep(p, buf, (size_t)n);
}

static void fill(void *buf, size_t len, uint64_t *seed)
{
	unsigned char *at = buf;
	size_t i;

	for (i = 0; i < len; i++)
		at[i] = (unsigned char)pattern_random(seed);
}

/* What it costs to share a core with an attacker is not meant: others have it first. */
static void give_way(void)
{
	errno = 0;
	if (nice(5) == -1 && errno)
		printf("# nice: %s\n", strerror(errno));
}

static void attack_raw(struct plan *p)
{
	static unsigned char junk[65536];
	double end = ft_now() + ATTACK_S;
	int i, fd;

	for (i = 0; i < CONNECTS && ft_now() < end; i++) {
		size_t len = pattern_random(&p->seed) %
			     (i % 4 ? 200 : sizeof(junk));

		fd = connect_to(p);
		if (fd < 0)
			continue;
		fill(junk, len, &p->seed);
		/* Frames, as far as a socket can send some. */
		if (i % 3 == 0 && len >= sizeof(struct lnx_wire_hdr)) {
			struct lnx_wire_hdr *w = (void *)junk;

			w->magic = LNX_WIRE_MAGIC;
			w->version = LNX_WIRE_VERSION;
			w->kind = (uint8_t)(i % LNX_KIND_MAX);
		}
		p->sent += send(fd, junk, len, MSG_NOSIGNAL) > 0;
		read_all(p, fd, 30);
		close(fd);
	}
	/* A flood: as much as it takes. */
	fd = connect_to(p);
	end = ft_now() + FLOOD_S;
	while (fd >= 0 && ft_now() < end) {
		fill(junk, 64, &p->seed);
		if (send(fd, junk, sizeof(junk), MSG_NOSIGNAL | MSG_DONTWAIT) <
		    0 && errno != EAGAIN)
			break;
	}
	close(fd);
}

static int play_raw(struct ft *ft, struct actor *me)
{
	struct plan *p = (void *)me->mem->at;
	int i, turn, held[HELD];
	char byte;

	give_way();
	for (turn = 0; turn < TURNS; turn++) {
		FT_TRY(actor_hear(ft, me, &byte, 1, true));
		for (i = 0; i < HELD && !turn; i++)
			held[i] = connect_to(p);
		attack_raw(p);
		for (i = 0; i < HELD; i++)
			if (held[i] >= 0)
				read_all(p, held[i], 10);
		FT_TRY(actor_tell(ft, me, &byte, 1));
	}
	/* The silent connections stay until we are ended. */
	return actor_hear(ft, me, &byte, 1, true);
}

/* ---- frames from an endpoint of the core ---- */

#define SLOTS		64
#define LONG		300000		/* of no frame */
#define BARE_RX		32
#define REACH		64		/* bytes of a write or read */
#define GUESSES		8		/* of each */

static struct {
	unsigned char frame[LONG];
	struct ft_op *op;
} slot[SLOTS];

/* An lnx address of the bare endpoint itself, which says that it is `id`. */
static void own_address(struct ft *ft, const struct plan *p, uint64_t id,
			unsigned char *at)
{
	struct sockaddr_in me;

	memcpy(&me, ft->o.name, sizeof(me));
	memcpy(at, p->name[0], LNX_WIRE_ADDR_BYTES);
	id = htole64(id);
	memcpy(at + offsetof(struct lnx_wire_addr, eid), &id, sizeof(id));
	sessions_set_address(at, me.sin_addr, ntohs(me.sin_port));
}

static uint64_t id_for(struct plan *p)
{
	if (p->ids && pattern_random(&p->seed) % 4)
		return id_of(p->name[pattern_random(&p->seed) % 2]);
	return pattern_random(&p->seed) | 1;
}

/* Write a frame to `to`, an endpoint that was named; returns its length. */
static size_t make_frame(struct ft *ft, struct plan *p, int to,
			 unsigned char *frame)
{
	static const uint8_t forged[] = {
		LNX_KIND_NO_SESSION, LNX_KIND_NO_SESSION, LNX_KIND_BYE,
		LNX_KIND_PROBE, LNX_KIND_ACK, LNX_KIND_RAIL, LNX_KIND_FIN,
		LNX_KIND_PONG, LNX_KIND_MSG, LNX_KIND_RESP,
	};
	uint64_t r = pattern_random(&p->seed), tag = pattern_random(&p->seed);
	unsigned char *payload = frame + sizeof(struct lnx_wire_hdr);
	struct lnx_wire_hdr *w = (void *)frame;
	/* With a job key a HELLO in the name of the other endpoint is no use either. */
	uint8_t kind = p->ids && p->keyed && r % 3 == 0 ? LNX_KIND_HELLO :
		       p->ids ? forged[r % sizeof(forged)] :
				(uint8_t)(1 + r % (LNX_KIND_MAX + 1));
	size_t len = 0;

	memset(w, 0, sizeof(*w));
	switch (kind) {
	case LNX_KIND_HELLO:
		own_address(ft, p, p->ids ? id_of(p->name[!to]) :
			    pattern_random(&p->seed) | 1, payload);
		len = LNX_WIRE_ADDR_BYTES;
		if (!p->keyed || r >> 50 & 1)
			break;
		w->flags = LNX_WIRE_F_KEYED;
		fill(payload + len, sizeof(struct lnx_wire_proof), &p->seed);
		len += sizeof(struct lnx_wire_proof);
		break;
	case LNX_KIND_PROBE:
		w->key = htole64(r >> 40 & 1);
		own_address(ft, p, id_for(p), payload);
		len = w->key ? LNX_WIRE_ADDR_BYTES : 0;
		break;
	case LNX_KIND_MSG:
	case LNX_KIND_TAG:
	case LNX_KIND_PUT:
	case LNX_KIND_PUT_RTS:
	case LNX_KIND_ATOMIC:
	case LNX_KIND_RTS_MSG:
	case LNX_KIND_RTS_TAG:
	case LNX_KIND_RESP:
		len = (r >> 8) % 300;
		fill(payload, len, &p->seed);
		w->len = htole64(len);
		break;
	case LNX_KIND_GET:
		w->len = htole64(8);
		break;
	case LNX_KIND_NO_SESSION:
		tag = 1 + tag % 3;
		break;
	case LNX_KIND_RAIL:
		tag = 0;
		break;
	case LNX_KIND_FIN:
	case LNX_KIND_ACK:
	case LNX_KIND_BYE:
	default:
		tag %= 64;
		break;
	}
	w->magic = LNX_WIRE_MAGIC;
	w->version = LNX_WIRE_VERSION;
	w->kind = kind;
	w->path = (uint8_t)((r >> 16) % 3);
	w->seq = htole32((uint32_t)(kind == LNX_KIND_HELLO ? 0 :
				    (r >> 24) % 64));
	w->ack = htole32((uint32_t)((r >> 32) % 64));
	w->src = htole64(id_for(p));
	w->dst = htole64(id_for(p));
	if (p->ids && r % 5)
		w->dst = htole64(id_of(p->name[to]));
	if (p->ids && kind == LNX_KIND_NO_SESSION && r % 7)
		w->src = htole64(id_of(p->name[!to]));
	w->tag = htole64(tag);
	w->data = htole64(kind == LNX_KIND_RAIL ? r % 3 :
			  kind == LNX_KIND_HELLO ? 0 : r % 1000);
	if (kind == LNX_KIND_PUT || kind == LNX_KIND_GET ||
	    kind == LNX_KIND_ATOMIC || kind == LNX_KIND_KEYS) {
		w->key = htole64(KEY);
		w->tag = htole64(tag % 4096);
	}
	len += sizeof(*w);
	/* Some are not what they should be. */
	if (r >> 60 == 0)
		frame[tag % len] ^= (unsigned char)(r >> 3);
	if (r >> 60 == 1)
		len = tag % (len + 1);
	if (r >> 60 == 2) {
		fill(payload, 128, &p->seed);
		len = r % 2 ? LNX_FRAME_MAX : LNX_FRAME_MAX +
					      tag % (LONG - LNX_FRAME_MAX);
	}
	return len ? len : 1;
}

static void look_at(struct plan *p, struct ft_op *op, const void *buf)
{
	if (op->done && !op->err)
		keep(p, buf, op->len);
}

/* What a bare endpoint has. */
struct bare {
	struct plan *plan;
	struct ft_op *rx[BARE_RX];
	fi_addr_t to[2];
};

static unsigned char bare_in[BARE_RX][LNX_FRAME_MAX];

static int receive_bare(struct ft *ft, struct bare *b, int i)
{
	ft_op_reset(b->rx[i]);
	b->rx[i]->posted = true;
	FT_CALL(ft, fi_recv(ft->o.ep, bare_in[i], sizeof(bare_in[i]), NULL,
			    FI_ADDR_UNSPEC, b->rx[i]));
	return FT_PASS;
}

static int open_bare(struct ft *ft, struct bare *b)
{
	struct ft_cfg cfg = { .caps = FI_MSG | FI_TAGGED | FI_RMA };
	struct sockaddr_in here = sessions_address(b->plan->name[0]);
	int i;

	ft->opts.prov = b->plan->prov == LNX_WIRE_PROV_TCP ? "tcp" : "tcp;ofi_rxm";
	ft->opts.domain = NULL;
	ft->opts.local = inet_ntoa(here.sin_addr);
	if (ft_objs_open(ft, &cfg, &ft->o))
		return FT_FAIL;
	ft->cfg = cfg;
	ft->open = true;
	for (i = 0; i < 2; i++) {
		struct sockaddr_in at = sessions_address(b->plan->name[i]);

		FT_CHECK(ft, fi_av_insert(ft->o.av, &at, 1, &b->to[i], 0, NULL) ==
			 1, "fi_av_insert of the core failed");
	}
	for (i = 0; i < BARE_RX; i++) {
		b->rx[i] = ft_op_new(ft);
		FT_TRY(receive_bare(ft, b, i));
	}
	for (i = 0; i < SLOTS; i++)
		slot[i].op = ft_op_new(ft);
	return FT_PASS;
}

/* One frame, if its slot is free soon. */
static void send_bare(struct ft *ft, struct bare *b, int s)
{
	struct plan *p = b->plan;
	int target = (int)(pattern_random(&p->seed) % 2);
	double soon = ft_now() + 1;
	struct ft_op *op = slot[s].op;
	ssize_t ret;
	size_t len;

	while (op->posted && !op->done && ft_now() < soon)
		ft_progress(ft);
	if (op->posted && !op->done)
		return;
	len = make_frame(ft, p, target, slot[s].frame);
	ft_op_reset(op);
	op->posted = true;
	do {
		ret = fi_send(ft->o.ep, slot[s].frame, len, NULL, b->to[target], op);
		ft_progress(ft);
	} while (ret == -FI_EAGAIN && ft_now() < soon);
	op->posted = !ret;
	p->sent += !ret;
	p->refused += ret != 0;
}

static int attack_bare(struct ft *ft, struct bare *b)
{
	double end = ft_now() + ATTACK_S;
	int i, k;

	for (k = 0; k < FRAMES && ft_now() < end; k++) {
		send_bare(ft, b, k % SLOTS);
		for (i = 0; i < BARE_RX; i++) {
			if (!b->rx[i]->done)
				continue;
			look_at(b->plan, b->rx[i], bare_in[i]);
			FT_TRY(receive_bare(ft, b, i));
		}
	}
	ft_linger(ft, 0.2);
	return FT_PASS;
}

enum { SENDS, WRITES, READS };

/* Of memory with a key of the core.  Did it leave over a connection? */
static bool reach(struct ft *ft, struct bare *b, int what, uint64_t key,
		  unsigned char *buf)
{
	struct fid_ep *ep = ft->o.ep;
	struct ft_op *op = ft_op_new(ft);
	double end = ft_now() + 1;
	fi_addr_t to = b->to[0];
	ssize_t ret;

	op->posted = true;
	do {
		ret = what == SENDS ? fi_send(ep, buf, REACH, NULL, to, op) :
		      what == WRITES ? fi_write(ep, buf, REACH, NULL, to, 0, key, op) :
				       fi_read(ep, buf, REACH, NULL, to, 0, key, op);
		ft_progress(ft);
	} while (ret == -FI_EAGAIN && ft_now() < end);
	op->posted = !ret;
	return !ret && !ft_wait_for(ft, op, 1) && op->err != FI_ENOTCONN;
}

/* A wrong key ends the connection, and ofi_rxm does not make another one at once. */
static void connect_again(struct ft *ft, struct bare *b, unsigned char *junk)
{
	double end = ft_now() + 2;

	do
		ft_linger(ft, 0.005);
	while (!reach(ft, b, SENDS, 0, junk) && ft_now() < end);
}

/* It may take several tries until the end of a connection is noticed. */
static bool guess(struct ft *ft, struct bare *b, int what, uint64_t key,
		  unsigned char *buf, unsigned char *junk, double end)
{
	bool left;

	do {
		connect_again(ft, b, junk);
		left = reach(ft, b, what, key, buf);
	} while (!left && ft_now() < end);
	return left;
}

/* Keys that are easy to guess; not all if the core, which was cut off after each, does not
 * connect again for long: that is seen on busy machines. */
static void guess_keys(struct ft *ft, struct bare *b)
{
	double end = ft_now() + ft->run->timeout_s / 3;
	static unsigned char from[REACH], to[REACH];
	unsigned k;

	memset(from, 0x11, sizeof(from));
	memset(to, 0x22, sizeof(to));
	for (k = 0; k < GUESSES && ft_now() < end; k++) {
		uint64_t key = k ? (uint64_t)k - 1 : KEY;

		b->plan->guesses += guess(ft, b, WRITES, key, from, from, end);
		b->plan->guesses += guess(ft, b, READS, key, to, from, end);
	}
	/* Also of a read that has not ended. */
	b->plan->read = pattern_is_filled(to, sizeof(to), 0x22) >= 0;
}

static int play_bare(struct ft *ft, struct actor *me)
{
	struct bare b = { .plan = (void *)me->mem->at };
	int i, turn;
	char byte;

	give_way();
	for (turn = 0; turn < TURNS; turn++) {
		FT_TRY(actor_hear(ft, me, &byte, 1, true));
		if (!turn)
			FT_TRY(open_bare(ft, &b));
		FT_TRY(attack_bare(ft, &b));
		if (turn == TURNS - 1) {
			for (i = 0; i < BARE_RX; i++)
				look_at(b.plan, b.rx[i], bare_in[i]);
			guess_keys(ft, &b);
		}
		FT_TRY(actor_tell(ft, me, &byte, 1));
	}
	return FT_PASS;
}

/* ---- messages that begin and do not end ---- */

static int play_halves(struct ft *ft, struct actor *me)
{
	struct plan *p = (void *)me->mem->at;
	int turn, ret = FT_PASS;
	char byte;

	give_way();
	for (turn = 0; turn < TURNS && ret == FT_PASS; turn++) {
		ret = actor_hear(ft, me, &byte, 1, false);
		if (ret == FT_PASS)
			ret = sessions_begin_messages(ft, p->name[0], HALVES);
		p->sent += HALVES;
		if (ret == FT_PASS)
			ret = actor_tell(ft, me, &byte, 1);
	}
	/* They stay until we are ended. */
	if (ret == FT_PASS)
		ret = actor_hear(ft, me, &byte, 1, false);
	sessions_end_messages();
	return ret;
}

/* ---- a flood of connections ---- */

/* As many as the kernel makes, for some time: one after the other, or some that are held. */
static unsigned flood(struct plan *p, int held)
{
	double end = ft_now() + CONNECT_S;
	int fd[HELD_MAX], i = 0, k;
	unsigned n = 0;

	memset(fd, -1, sizeof(fd));
	while (ft_now() < end) {
		k = i++ % held;
		if (fd[k] >= 0)
			close(fd[k]);
		fd[k] = connect_to(p);
		n += fd[k] >= 0;
	}
	for (k = 0; k < held; k++)
		if (fd[k] >= 0)
			close(fd[k]);
	return n;
}

static int play_flood(struct ft *ft, struct actor *me)
{
	static const int held[TURNS] = { 1, 16, HELD_MAX };
	struct plan *p = (void *)me->mem->at;
	unsigned n;
	int turn;
	char byte;

	give_way();
	for (turn = 0; turn < TURNS; turn++) {
		FT_TRY(actor_hear(ft, me, &byte, 1, true));
		n = flood(p, held[turn]);
		printf("# %u connections in %.1f s, %d at a time\n", n, CONNECT_S, held[turn]);
		fflush(stdout);
		p->sent += n;
		FT_TRY(actor_tell(ft, me, &byte, 1));
	}
	return FT_PASS;
}

/* ---- the two that talk ---- */

static unsigned char *out, *in, *mem;

/* A message there and back. */
static int round_trip(struct ft *ft, uint64_t n)
{
	static const size_t sizes[] = { 8, 5000, 65536, 0, 16320, ECHO_MAX };
	struct ft_msg m = { .tagged = true, .addr = ft->addr[1], .tag = 1,
			    .buf = out, .len = sizes[n % 6] };
	struct ft_op *tx = ft_op_new(ft), *rx = ft_op_new(ft);

	pattern_fill(out, m.len, ft->run->seed, 0, n);
	m.tag = 2;
	m.buf = in;
	FT_CALL(ft, ft_recv(ft, rx, &m));
	m.tag = 1;
	m.buf = out;
	FT_CALL(ft, ft_send(ft, tx, &m));
	FT_DONE(ft, tx);
	FT_DONE(ft, rx);
	FT_CHECK(ft, rx->len == m.len &&
		 pattern_check(in, m.len, ft->run->seed, 0, n) < 0,
		 "message %llu came back wrong", (unsigned long long)n);
	ft->nops -= 2;
	return FT_PASS;
}

#define TIMED		300
#define AFTERWARDS	5

static bool has(const struct plan *p, const unsigned char *name)
{
	return memmem(p->got, p->n_got,
		      name + offsetof(struct lnx_wire_addr, eid), 8) != NULL;
}

/* Was it told what is in our memory? */
static bool has_secret(const struct plan *p)
{
	unsigned char run[RUN];

	memset(run, SECRET, sizeof(run));
	return memmem(p->got, p->n_got, run, sizeof(run)) != NULL;
}

/* The time that a round trip takes on average while the attacker rests. */
static int alone(struct ft *ft, uint64_t *n, double *each)
{
	double start = ft_now();
	int i;

	for (i = 0; i < TIMED; i++)
		FT_TRY(round_trip(ft, (*n)++));
	*each = (ft_now() - start) / TIMED;
	return FT_PASS;
}

/* The attack; *slower: how many times as long round trips take beside it on average, in
 * the best turn, than before or after it; *first: how long they took before all. */
static int turns(struct ft *ft, struct actor *x, uint64_t *n, double *slower,
		 double *first)
{
	double start, before, beside, after, ratio;
	unsigned trips;
	char byte = 1;
	int i;

	*slower = 0;
	FT_TRY(alone(ft, n, &before));
	*first = before;
	for (i = 0; i < TURNS; i++) {
		FT_TRY(actor_tell(ft, x, &byte, 1));
		start = ft_now();
		for (trips = 0; !trips || !actor_speaks(x); trips++)
			FT_TRY(round_trip(ft, (*n)++));
		beside = (ft_now() - start) / trips;
		FT_TRY(actor_hear(ft, x, &byte, 1, false));
		FT_TRY(alone(ft, n, &after));
		ratio = beside / (before > after ? before : after);
		if (!i || ratio < *slower)
			*slower = ratio;
		before = after;
	}
	return FT_PASS;
}

/* How many times as long round trips take when all turns are over, and what they have left
 * behind is still there.  A silence that has not ended may be in some. */
static int afterwards(struct ft *ft, uint64_t *n, double first, double *slower)
{
	double each;
	int i;

	*slower = 0;
	for (i = 0; i < AFTERWARDS; i++) {
		FT_TRY(alone(ft, n, &each));
		if (!i || each / first < *slower)
			*slower = each / first;
	}
	return FT_PASS;
}

/* Receives from any source, which must stay unused, and memory. */
static int lay_out(struct ft *ft, struct ft_op **trap, struct ft_mr *mr)
{
	struct ft_msg m = { .buf = mem, .len = 4096, .addr = FI_ADDR_UNSPEC };
	int i;

	memset(mem, SECRET, ACTOR_ROOM);
	memset(mr, 0, sizeof(*mr));
	FT_CALL(ft, fi_mr_reg(ft->o.domain, mem, ACTOR_ROOM, FT_MR_ACCESS, 0,
			      KEY, 0, &mr->mr, NULL));
	ft->o.extra[ft->o.nextra++] = &mr->mr->fid;
	for (i = 0; i < 4; i++) {
		m.tagged = i % 2;
		m.tag = 0xdead;
		trap[i] = ft_op_new(ft);
		FT_CALL(ft, ft_recv(ft, trap[i], &m));
	}
	return FT_PASS;
}

static int besieged(struct ft *ft, bool ids,
		    int (*play)(struct ft *ft, struct actor *me))
{
	struct actor_order o = { .what = ACTOR_OPEN };
	struct actor *b = &actors[0], *x = &actors[1];
	struct ft_op *trap[4];
	struct actor_answer say;
	struct plan *p;
	struct ft_mr mr;
	uint64_t n = 0, stale, bad;
	double slower, first;
	int i;

	out = realloc(out, ECHO_MAX);
	in = realloc(in, ECHO_MAX);
	mem = realloc(mem, ACTOR_ROOM);
	FT_CHECK(ft, out && in && mem, "no memory");
	FT_TRY(actor_start(ft, 0, actor_obeys));
	FT_TRY(actor_start(ft, 1, play));
	FT_TRY(actor_do(ft, b, &o, &say, true));
	FT_TRY(actor_open(ft, NULL, 0));
	FT_TRY(lay_out(ft, trap, &mr));
	FT_CHECK(ft, fi_av_insert(ft->o.av, say.name, 1, &ft->addr[1], 0,
				  NULL) == 1, "fi_av_insert failed");
	o.what = ACTOR_KNOW;
	memcpy(o.name, ft->o.name, sizeof(o.name));
	FT_TRY(actor_do(ft, b, &o, NULL, false));
	o = (struct actor_order){ .what = ACTOR_ECHO, .size = ECHO_MAX,
				  .key = 1 };
	FT_TRY(actor_tell(ft, b, &o, sizeof(o)));
	for (; n < 12; n++)
		FT_TRY(round_trip(ft, n));

	p = (void *)x->mem->at;
	static_assert(sizeof(*p) <= ACTOR_ROOM, "a plan fits");
	p->prov = ft->o.name[RAIL_AT] & LNX_WIRE_ADDR_PROV_MASK;
	p->keyed = getenv("FI_LNX_JOB_KEY") != NULL;
	p->ids = ids;
	p->seed = ft->run->seed;
	memcpy(p->name[0], ft->o.name, FT_NAME_MAX);
	memcpy(p->name[1], say.name, FT_NAME_MAX);
	for (i = 0; i < 2 && !ids; i++)
		memset(p->name[i] + offsetof(struct lnx_wire_addr, eid), 0, 8);
	FT_CHECK(ft, p->prov == LNX_WIRE_PROV_TCP ||
		 p->prov == LNX_WIRE_PROV_TCP_RXM, "another rail comes first");
	FT_TRY(turns(ft, x, &n, &slower, &first));
	/* Messages that do not end keep buffers, so that nothing comes until that is found out:
	 * most of a turn is such a silence, of 5 to 20 times a round trip.  It has to end, while
	 * those messages stay. */
	if (play == play_halves)
		FT_TRY(afterwards(ft, &n, first, &slower));
	for (i = 0; i < 60; i++)
		FT_TRY(round_trip(ft, n++));

	stale = actor_stat(ft, "stale_frames") + actor_stat(ft, "key_drops");
	bad = actor_stat(ft, "bad_frames");
	printf("# %llu messages beside %u attacks (%u not taken); %llu stale "
	       "frames, of these %llu HELLOs without the key, %llu bad ones; "
	       "the attacker got %zu bytes, and guessed %u times; round trips took "
	       "%.2f times as long\n", (unsigned long long)n, p->sent, p->refused,
	       (unsigned long long)stale,
	       (unsigned long long)actor_stat(ft, "key_drops"),
	       (unsigned long long)bad, p->n_got, p->guesses, slower);
	FT_CHECK(ft, !p->keyed || !ids || actor_stat(ft, "key_drops") >= 20,
		 "only %llu HELLOs arrived",
		 (unsigned long long)actor_stat(ft, "key_drops"));
	FT_CHECK(ft, p->sent >= 20, "the attacker sent only %u times", p->sent);
	FT_CHECK(ft, play != play_bare || stale + bad >= 20, "only %llu frames "
		 "arrived", (unsigned long long)(stale + bad));
	FT_CHECK(ft, ids || (!has(p, ft->o.name) && !has(p, say.name)),
		 "the attacker was told an endpoint's id");
	FT_CHECK(ft, p->n_got < sizeof(p->got), "the attacker got more than it can "
		 "keep");
	FT_CHECK(ft, !has_secret(p), "the attacker was told what is in memory");
	FT_CHECK(ft, play != play_bare || p->guesses >= 1,
		 "only %u guesses of the attacker left", p->guesses);
	FT_CHECK(ft, !p->read, "a read of the attacker changed its buffer");
	FT_CHECK(ft, slower <= SLOWER || !ft_judges_times(),
		 "round trips take %.1f times as long beside the attacker", slower);
	for (i = 0; i < 4; i++)
		FT_CHECK(ft, !trap[i]->done, "a receive ended: %s",
			 fi_strerror(trap[i]->err));
	FT_CHECK(ft, pattern_is_filled(mem, ACTOR_ROOM, SECRET) < 0,
		 "memory was written at %lld",
		 pattern_is_filled(mem, ACTOR_ROOM, SECRET));
	FT_CHECK(ft, !ft->unexpected[0], "%s", ft->unexpected);
	b->mem->stop = true;
	FT_TRY(actor_hear(ft, b, &say, sizeof(say), false));
	FT_CHECK(ft, actor_stat(ft, "failed") == 0, "operations failed");
	return FT_PASS;
}

/* a: from an endpoint of the core */
int sessions_stranger(struct ft *ft, const struct ft_case *c)
{
	return besieged(ft, false, c->a ? play_bare : play_raw);
}

/* As many as there are buffers, and more.  In ofi_rxm a message that does not end has none of
 * our buffers: it comes into one that ofi_rxm has for all. */
int sessions_halves(struct ft *ft, const struct ft_case *c)
{
	(void)c;
	if (strstr(getenv("FI_LNX_PROV_LINKS"), "ofi_rxm"))
		return ft_skip(ft, "ofi_rxm has buffers of its own");
	return besieged(ft, false, play_halves);
}

int sessions_flood(struct ft *ft, const struct ft_case *c)
{
	(void)c;
	return besieged(ft, false, play_flood);
}

int sessions_forged(struct ft *ft, const struct ft_case *c)
{
	(void)c;
	return besieged(ft, true, play_bare);
}
