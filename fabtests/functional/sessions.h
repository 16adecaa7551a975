/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* What the files of the program share. */
#ifndef SESSIONS_H
#define SESSIONS_H

#include "actor.h"

#include <netinet/in.h>

#define SESSIONS_BUFFERS 32		/* FI_LNX_RX_BUFFERS */

/* The address of the first rail in an lnx address that has IPv4 rails. */
struct sockaddr_in sessions_address(const unsigned char *name);
void sessions_set_address(unsigned char *name, struct in_addr ip, uint16_t port);

/* Start an operation that ends when the peer has executed it: on the first bytes of the
 * memory with that key, of the endpoint at addr[as].  -FI_E* of the call. */
int sessions_rma(struct ft *ft, struct ft_op **op, int as, int call, void *buf,
		 size_t len, uint64_t key);
/* The same: add `count` numbers of 64 bits at buf; their old values go to res. */
int sessions_atomic(struct ft *ft, struct ft_op **op, int as, int call, void *buf,
		    void *res, size_t count, uint64_t key);

/* From so many endpoints of the tcp core, each with a connection to the first rail of that
 * address: begin a message and do not end it.  They stay until the other call, which is for
 * before actor_close. */
int sessions_begin_messages(struct ft *ft, const unsigned char *name, unsigned n);
void sessions_end_messages(void);

int sessions_given_up(struct ft *ft, const struct ft_case *c);
int sessions_idle(struct ft *ft, const struct ft_case *c);
int sessions_unreachable(struct ft *ft, const struct ft_case *c);
int sessions_stranger(struct ft *ft, const struct ft_case *c);
int sessions_halves(struct ft *ft, const struct ft_case *c);
int sessions_flood(struct ft *ft, const struct ft_case *c);
int sessions_forged(struct ft *ft, const struct ft_case *c);

#endif
