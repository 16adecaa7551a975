/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Reads YAML into structs by tables of keys: for conf/config_*.c only. */
#ifndef LNX_CONFIG_READER_H
#define LNX_CONFIG_READER_H

#include "base/compiler.h"
#include "conf/config.h"
#include "conf/yaml.h"

typedef const struct lnx_yaml_node config_node;

struct config_reader {
	struct lnx_yaml *yaml;
	struct lnx_config *config;
	struct lnx_nets nets;		/* names that are known */
	struct lnx_config_error *e;
	struct lnx_refusal r;
	char path[LNX_CONFIG_KEY_MAX];	/* of the present value; may be cut */
	struct lnx_rule *rule[LNX_RULES_MAX];	/* of `udsp`, by index */
};

/* A key of a mapping; read gets its value, and obj of lnx_config_map. */
struct config_key {
	const char *name;
	int (*read)(struct config_reader *rd, config_node *value,
		    void *obj);
};

/* For lnx_config_map: a table and its length. */
#define CONFIG_KEYS(k)	(k), LNX_ARRAY_SIZE(k)

/* All of them return 0, -ENOMEM, or -EINVAL, with rd->e filled. */

/* Something about node is wrong.  Returns -EINVAL. */
int LNX_PRINTF(3, 4) lnx_config_fail(struct config_reader *rd,
				     config_node *node, const char *fmt,
				     ...);
/* Returns -ENOMEM. */
int lnx_config_no_memory(struct config_reader *rd, config_node *node);
/* A key is missing in the mapping that began with node. */
int lnx_config_missing(struct config_reader *rd, config_node *node, const char *key);
/* The text of node is: rd->r says why, and r->at is an offset in it. */
int lnx_config_refuse(struct config_reader *rd, config_node *node);

int lnx_config_next(struct config_reader *rd, struct lnx_yaml_node *node);

/* Read a mapping that may have these keys, each once; n of them. */
int lnx_config_map(struct config_reader *rd, config_node *node,
		   const struct config_key *key, unsigned n, void *obj);

/* Read a mapping with keys of any name: each is given to pair with its value's node. */
int lnx_config_pairs(struct config_reader *rd, config_node *node,
		     const char *keys,
		     int (*pair)(struct config_reader *rd,
				 config_node *key, const char *name,
				 config_node *value, void *obj),
		     void *obj);

/* Read a sequence: item gets each. */
int lnx_config_seq(struct config_reader *rd, config_node *node,
		   int (*item)(struct config_reader *rd,
			       config_node *node, void *obj), void *obj);

/* Read a scalar, which is not empty; *out is a copy. */
int lnx_config_text(struct config_reader *rd, config_node *node,
		    const char **out);
int lnx_config_uint(struct config_reader *rd, config_node *node,
		    uint32_t min, uint32_t max, uint32_t *out);
int lnx_config_bool(struct config_reader *rd, config_node *node,
		    bool *out);

/* Skip a value. */
int lnx_config_skip(struct config_reader *rd, config_node *node);

/* One more entry of a list of at most LNX_CONFIG_LIST; *list may move. */
int lnx_config_read_more(struct config_reader *rd, config_node *node,
			 void *list, unsigned *n, size_t size);

/* ---- keys ---- */

/* conf/config_net.c: one net by its name (tcp1); a pattern for NIDs, or one NID. */
int lnx_config_net_name(struct config_reader *rd, config_node *node, const char **out);
int lnx_config_nids(struct config_reader *rd, config_node *node, bool one,
		    const char **out);

/* Read `nets` alone, whose names other keys use. */
int lnx_config_read_nets(struct config_reader *rd);
/* Read everything (conf/config_keys.c). */
int lnx_config_read_all(struct config_reader *rd);

int lnx_config_read_nets_key(struct config_reader *rd, config_node *value, void *obj);
int lnx_config_read_net_key(struct config_reader *rd, config_node *value, void *obj);
/* conf/config_peer.c */
int lnx_config_read_route_key(struct config_reader *rd, config_node *value, void *obj);
int lnx_config_read_peer_key(struct config_reader *rd, config_node *value, void *obj);
/* conf/config_gateway.c */
int lnx_config_read_limits_key(struct config_reader *rd, config_node *value, void *obj);
int lnx_config_read_allow_key(struct config_reader *rd, config_node *value, void *obj);
int lnx_config_read_port(struct config_reader *rd, config_node *value, void *obj);
int lnx_config_read_key_file(struct config_reader *rd, config_node *value, void *obj);
int lnx_config_read_state_file(struct config_reader *rd, config_node *value, void *obj);
int lnx_config_read_control_file(struct config_reader *rd, config_node *value, void *obj);

#endif
