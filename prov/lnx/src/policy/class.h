/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Classes of failures: what is charged, and whether the message may have arrived
 * nevertheless.  classes.def is the only table.  Does no I/O.
 */
#ifndef LNX_CLASS_H
#define LNX_CLASS_H

#include <stdbool.h>
#include <stddef.h>

enum lnx_health_class {
	LNX_CLASS_OK,			/* not a failure */
#define LNX_CLASS(NAME, name, pays, sure, help) LNX_CLASS_##NAME,
#include "policy/classes.def"
#undef LNX_CLASS
	LNX_CLASS_COUNT
};

/* Charge targets; bits. */
enum lnx_charge {
	LNX_CHARGE_NONE = 0,
	LNX_CHARGE_LOCAL = 1,		/* the local rail */
	LNX_CHARGE_REMOTE = 2,		/* the peer's rail */
	LNX_CHARGE_BOTH = 3,
	LNX_CHARGE_PATH = 4,		/* the pair of them */
};

struct lnx_class_row {
	const char *name;		/* "remote_dropped" */
	const char *help;		/* half a sentence */
	unsigned char pays;		/* enum lnx_charge, without PATH */
	bool sure;			/* it has certainly not arrived */
};

/* Indexed by class. */
extern const struct lnx_class_row lnx_class_rows[LNX_CLASS_COUNT];

/* "remote_dropped"; "ok"; "unknown" for an invalid number.  Static text. */
const char *lnx_class_name(unsigned class);

/* The class of that name, len bytes, case ignored; -1: there is none. */
int lnx_class_find(const char *name, size_t len);

/*
 * The charge targets of a failure, as bits.  nremote: known rails of the peer.  As in
 * LNet, the only rail of a peer is not charged (there is no other to prefer); and a
 * failure to send to oneself is charged to the local rail only.
 */
unsigned lnx_class_charges(unsigned class, unsigned nremote, bool to_self);

/* Count one failure in <name>_count. */
struct lnx_stats;
void lnx_class_count(struct lnx_stats *stats, unsigned class);

#endif
