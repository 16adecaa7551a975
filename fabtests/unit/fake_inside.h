/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* What fake_core.c and fake_world.c share and tests do not need. */
#ifndef LNX_FAKE_INSIDE_H
#define LNX_FAKE_INSIDE_H

#include <stdio.h>
#include <stdlib.h>

#include "fake_core.h"

/* Fuzz targets use it too, so it is not Criterion's. */
#define FAKE_CHECK(cond)						\
	do {								\
		if (!(cond)) {						\
			fprintf(stderr, "%s:%d: not true: %s (at %s:%d)\n", \
				__FILE__, __LINE__, #cond, fake_file,	\
				fake_line);				\
			abort();					\
		}							\
	} while (0)

struct fake_op {
	struct fake_op *next;
	uint64_t flags;			/* FI_SEND, FI_RECV or FI_READ */
	void *context;
	void *buf;
	size_t len;
	uint64_t raddr, key;
	int err;
};

struct fake_arrival {
	struct fake_arrival *next;
	struct fake_core *core;		/* the core that holds it as unexpected */
	struct fi_peer_rx_entry *entry;
	bool tagged, has_data;
	fi_addr_t src;
	uint64_t tag, data;
	size_t len;
	_Alignas(64) uint8_t bytes[];
};

/* fi_getname of a core: the address of this host and the core's port. */
int fake_own_name(const struct fake_core *core, void *addr, size_t *len);

#endif
