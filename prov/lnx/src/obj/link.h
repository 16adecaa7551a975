/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The parts of a link: rails as the resolver found them, before any is open. */
#ifndef LNX_LINK_H
#define LNX_LINK_H

#include "conf/links.h"
#include "fi.h"

#define LNX_RAILS_MAX	16		/* rails of one endpoint */

enum lnx_rail_kind {
	LNX_RAIL_DIRECT,	/* peer provider, one operation of ours is one of its
				 * own: shm */
	LNX_RAIL_PEER,		/* peer provider, framed, with buffers of our SRX */
	LNX_RAIL_PLAIN,		/* any RDM provider, framed, with buffers that we
				 * post */
	/* For all rails, or for none (FI_LNX_USE_SRQ=0): operations and receives are
	 * the core's own.  Nothing is lent to the core: libfabric 2.1 crashes when a
	 * core with a receive queue of its own writes an error to a lent CQ. */
	LNX_RAIL_NATIVE_LOCAL,	/* shm */
	LNX_RAIL_NATIVE,		/* any RDM provider */
};

static inline bool lnx_rail_kind_native(enum lnx_rail_kind kind)
{
	return kind >= LNX_RAIL_NATIVE_LOCAL;
}

static inline bool lnx_rail_kind_local(enum lnx_rail_kind kind)
{
	return kind == LNX_RAIL_DIRECT || kind == LNX_RAIL_NATIVE_LOCAL;
}

/* Do we read the CQ of the core?  Else ours is lent to it. */
static inline bool lnx_rail_kind_plain(enum lnx_rail_kind kind)
{
	return kind == LNX_RAIL_PLAIN || lnx_rail_kind_native(kind);
}

struct lnx_rail_spec {
	enum lnx_rail_kind kind;
	char prov[LNX_NAME_MAX];	/* as libfabric spells it */
	char dom[LNX_NAME_MAX];		/* core domain name */
	uint8_t prov_id;		/* enum lnx_prov_id */
	uint16_t group;			/* lnx_addr_group() */
	struct fi_info *info;		/* the core's, owned; also the hints for
					 * opening: FI_THREAD_DOMAIN, manual
					 * progress, FI_AV_TABLE, mode 0; its mr_mode
					 * says what the core requires of us */
};

struct lnx_link_rails {
	char name[LNX_LINK_TEXT_MAX];	/* canonical text: our domain name */
	unsigned nrail;			/* shm first, if it is there */
	struct lnx_rail_spec rail[LNX_RAILS_MAX];
	/* Rails for which every domain is meant, future ones too (core/hotplug.h). */
	unsigned nopen;
	char open[LNX_LINK_PARTS][LNX_NAME_MAX];
};

#endif
