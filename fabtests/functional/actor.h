/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Processes with endpoints of their own, for cases in which endpoints come and
 * go.  Rank 0 forks all of them while nothing is open yet, and tells each when
 * to do what; rank 1 only waits.  They share memory with rank 0, so that it can
 * be looked at without their help, also after they were killed.
 */
#ifndef ACTOR_H
#define ACTOR_H

#include "../common/rma.h"
#include "shm_files.h"

#define ACTORS_MAX	24
#define ACTOR_ROOM	(1 << 20)
#define ACTOR_LOG	4096

struct actor_mem {
	char why[FT_WHY_MAX];		/* it failed */
	volatile unsigned done;		/* receives that ended well */
	volatile unsigned failed;	/* receives that ended with an error */
	/* 1 + cq data, by receive; 0: it has not ended.  The last is always 0. */
	volatile uint64_t log[ACTOR_LOG];
	volatile bool stop;
	volatile unsigned count[4];	/* by `play`: its own */
	struct shm_files leaves;	/* of ACTOR_MORTALS: what the present one leaves */
	_Alignas(64)
	unsigned char at[ACTOR_ROOM];
};

struct actor {
	pid_t pid;			/* 0: none */
	int fd;
	struct actor_mem *mem;		/* shared */
};

/* Those of the case that runs. */
extern struct actor actors[ACTORS_MAX];

/* The body of a case, run by rank 0 with nothing open.  Ends all actors. */
int actors_run(struct ft *ft, const struct ft_case *c);

/* Fork actor i, which calls play.  FT_PASS or FT_FAIL. */
int actor_start(struct ft *ft, int i,
		int (*play)(struct ft *ft, struct actor *me));
/* It is reaped; what the last one of ACTOR_MORTALS left behind is removed. */
void actor_kill(struct actor *a);
/* Both sides: pass a block.  Hearing makes progress, if the endpoint is open
 * and not `deaf`. */
int actor_tell(struct ft *ft, struct actor *a, const void *buf, size_t len);
int actor_hear(struct ft *ft, struct actor *a, void *buf, size_t len,
	       bool deaf);
/* Has it said something, or ended? */
bool actor_speaks(const struct actor *a);

/* ---- an actor that does as it is told ---- */

enum {
	ACTOR_OPEN,			/* under that name, if it has a length */
	ACTOR_CLOSE,
	ACTOR_KNOW,			/* insert the name as ft->addr[0] */
	ACTOR_POST,			/* n receives of any source and tag, every
					 * second one tagged, of `size` bytes at
					 * mem->at */
	ACTOR_POST_FROM,		/* n receives from addr[0] with that key as
					 * tag, all to the same `size` bytes at
					 * mem->at; their cq data are logged.  Only
					 * once in a life */
	ACTOR_REG,			/* mem->at, with that key */
	ACTOR_SEND,			/* n messages to addr[0] one by one, tag:
					 * key, contents: 0, 1, 2 ... of rank 1, and
					 * cq data: the same; a first one that
					 * fails is repeated */
	ACTOR_START,			/* n equal ones at once, of rank 1 and number
					 * `key`, without waiting for them */
	ACTOR_ECHO,			/* until mem->stop: return what comes from
					 * addr[0], of up to `size` bytes, under tag
					 * key with key + 1 */
	ACTOR_LIVES,			/* n lives of an endpoint that sends its
					 * number (from `key` on) and name */
	ACTOR_SERVERS,			/* n endpoints, one after the other, that
					 * receive one message each */
	ACTOR_MORTALS,			/* the same, each in a process of its own that
					 * ends without closing it */
	ACTOR_EARLY,			/* n such processes: each sends to that name a message
					 * under tag `key`, an untagged one and `size` others,
					 * which nothing waits for, and ends */
};

struct actor_order {
	int what;
	unsigned n;
	size_t size;
	uint64_t key;
	size_t name_len;
	unsigned char name[FT_NAME_MAX];
};

struct actor_answer {
	unsigned errors;		/* ACTOR_SEND: that failed before the first */
	size_t name_len;
	unsigned char name[FT_NAME_MAX];
};

int actor_obeys(struct ft *ft, struct actor *me);
/* Give an order and wait for the answer. */
int actor_do(struct ft *ft, struct actor *a, const struct actor_order *o,
	     struct actor_answer *answer, bool deaf);

/* The first bytes of a message of ACTOR_LIVES. */
struct actor_life {
	uint64_t number;
	uint64_t name_len;
	unsigned char name[FT_NAME_MAX];
};
#define ACTOR_TAG_TELLS		0x71	/* it only sends */
#define ACTOR_TAG_ASKS		0x72	/* wants its number back */
#define ACTOR_TAG_ANSWER	0x73

/* ---- both sides ---- */

/* Open ft->o; under that name unless name_len is 0. */
int actor_open(struct ft *ft, const unsigned char *name, size_t name_len);
void actor_close(struct ft *ft);
/* A counter of the endpoint over lnx; UINT64_MAX: there is none of that name. */
uint64_t actor_stat(struct ft *ft, const char *name);
/* Make a request of lnx's control interface to ft->o.ep: "fault add drop". */
int actor_ask(struct ft *ft, const char *request);
/* Start a send that completes when the peer has it.  -FI_E* of the call. */
int actor_put(struct ft *ft, struct ft_op **op, fi_addr_t to, bool tagged,
	      uint64_t tag, const void *buf, size_t len, uint64_t data);

#endif
