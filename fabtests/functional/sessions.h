/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* What sessions.c and sessions_forged.c share. */
#ifndef SESSIONS_H
#define SESSIONS_H

#include "actor.h"

/* The port of the first rail in an lnx address that has IPv4 rails. */
void sessions_set_port(unsigned char *name, uint16_t port);

int sessions_stranger(struct ft *ft, const struct ft_case *c);
int sessions_forged(struct ft *ft, const struct ft_case *c);

#endif
