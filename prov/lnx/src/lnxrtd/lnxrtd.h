/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* What the files of the program share; the relay itself is relay.h. */
#ifndef LNX_RTD_H
#define LNX_RTD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/un.h>

#include "conf/config.h"
#include "lnxrtd/reads.h"
#include "lnxrtd/relay.h"
#include "os/netwatch.h"

#define RTD_CONF	"/etc/lnxrtd.conf"
#define RTD_WHY		512		/* bytes of a sentence, with NUL */

struct rtd_port;			/* a rail in libfabric: port.c */

/* One rail as the configuration names it. */
struct rtd_port_conf {
	char prov[32];			/* name of the core provider */
	char interface[64];
	uint16_t number;		/* of the port that it listens on */
	uint32_t tx_max;		/* 0: the provider's */
};

/* All that a configuration file says. */
struct rtd_conf {
	struct lnx_config *config;
	struct rtd_settings settings;
	bool enable;
	unsigned nport;
	struct rtd_port_conf port[RTD_RAILS];
	char state_file[256], control_file[256];	/* empty: none */
};

/* Read a file.  0, or -1 with a sentence in why; conf is unchanged then. */
int rtd_conf_read(struct rtd_conf *conf, const char *file, char why[RTD_WHY]);
void rtd_conf_free(struct rtd_conf *conf);

/* ---- own.c ---- */

/* The addresses of this host, of all interfaces.  Zeroed: none. */
struct rtd_own {
	struct lnx_net_addr *addr;
	unsigned n;
};

/* Read them anew; they stay as they were if that fails. */
void rtd_own_read(struct rtd_own *own);
void rtd_own_free(struct rtd_own *own);
/* Is the address in this sockaddr one of them? */
bool rtd_own_has(const struct rtd_own *own, const void *sockaddr, size_t len);

/* ---- port.c ---- */

/* The rails of the program, and the relay that they serve. */
struct rtd_ports {
	struct rtd_relay *relay;
	struct rtd_own own;
	struct rtd_port *port[RTD_RAILS];
	unsigned n;
};

/*
 * Open the core endpoint of a rail: it listens on the interface's address and the port.
 * 0, or -1 with a sentence in why.
 */
int rtd_port_open(struct rtd_port **out, const struct rtd_port_conf *conf,
		  const struct lnx_nets *nets, char why[RTD_WHY]);
/* The NID that the rail will have, without opening it.  As rtd_port_open. */
int rtd_port_look(const struct rtd_port_conf *conf, const struct lnx_nets *nets,
		  struct lnx_nid *nid, char why[RTD_WHY]);
/* Nothing is sent or received any more: what the core has goes back to the relay, which
 * may be destroyed then. */
void rtd_port_stop(struct rtd_port *p);
void rtd_port_close(struct rtd_port *p);
const struct rtd_rail *rtd_port_rail(const struct rtd_port *p);
const char *rtd_port_interface(const struct rtd_port *p);
/* It is rail number rail of the relay now. */
void rtd_port_bind(struct rtd_port *p, struct rtd_relay *relay, unsigned rail);

extern const struct rtd_ops rtd_port_ops;	/* arg: struct rtd_ports */

/* Post receives, as many as there are buffers. */
void rtd_port_fill(struct rtd_port *p);
/* Handle what the core has completed; returns how many, RTD_READ_BATCH at most.  Adds those to
 * *frames that have come. */
unsigned rtd_port_poll(struct rtd_port *p, unsigned *frames);
/* A descriptor that becomes readable when there is something; -1: it has none, and has to
 * be polled. */
int rtd_port_fd(const struct rtd_port *p);
/* May one wait for that descriptor now? */
bool rtd_port_quiet(struct rtd_port *p);
/* Questions to kernels that are under way. */
unsigned rtd_port_asking(struct rtd_port *p, uint64_t now);

/* ---- links.c ---- */

/* What tells of links that go down and come up.  Zeroed: closed. */
struct rtd_links {
	struct lnx_netwatch *watch;	/* NULL: the kernel does not tell */
	bool known[RTD_RAILS];		/* the rail has been seen as an interface */
};

/* Without the kernel's word all rails count as up. */
void rtd_links_open(struct rtd_links *l);
void rtd_links_close(struct rtd_links *l);
/* A descriptor that becomes readable when something has changed; -1: none. */
int rtd_links_fd(const struct rtd_links *l);
/* Tell the relay which rails are up, and read the addresses of this host. */
void rtd_links_look(struct rtd_links *l, struct rtd_ports *ports, uint64_t now);

/* ---- silent.c ---- */

/* Zeroed: it has not looked yet. */
struct rtd_silent {
	void *dir;
	uint64_t next_ns;
	bool any;			/* found, the last time */
	int *ended;			/* descriptors of those that ended long ago */
	unsigned n_ended, room;
};

/* End accepted connections over which nothing has come for connect_ns.  Looks at a few of them,
 * and seldom.  Returns when it must be called again, whatever happens; UINT64_MAX: never. */
uint64_t rtd_silent_look(struct rtd_silent *s, const struct rtd_ports *ports, uint64_t now);
void rtd_silent_close(struct rtd_silent *s);

/* ---- settings.c ---- */

/* Settings that have a name: the first are buffers, the others the limits of conf/config.h, in
 * its order and units. */
#define RTD_SETTING_LIMITS	3u
#define RTD_SETTINGS		(RTD_SETTING_LIMITS + LNX_CONFIG_LIMITS)

/* "tiny_buffers"; i < RTD_SETTINGS, as below. */
const char *rtd_setting_name(unsigned i);
uint64_t rtd_setting_value(const struct rtd_settings *s, unsigned i);
/* The value has been checked. */
void rtd_setting_put(struct rtd_settings *s, unsigned i, uint32_t value);
/* Set the one of that name.  0; -ENOENT or -EINVAL, with a sentence in why. */
int rtd_setting_set(struct rtd_settings *s, const char *name, const char *value,
		    char why[RTD_WHY]);

/* ---- admin.c ---- */

#define RTD_REQUEST	128u		/* bytes of a request, with NUL */
#define RTD_SOCKET_MAX	sizeof(((struct sockaddr_un *)0)->sun_path)	/* of its name, too */

/*
 * The socket over which lnxctl shows and sets a gateway; only the user that the gateway runs
 * as and root may connect.  A connection is of one request and one reply, each a packet:
 *	show			-> the state, as in its file
 *	set NAME VALUE		NAME: "routing" (0 or 1), or of a setting
 * A reply begins with 0 or a negative errno, and a newline; then text, or a sentence.
 * The gateway waits for no connection.
 */
struct rtd_admin;

/* Listen at that name, which must be free, or left by a gateway that has ended.  0, or -1 with a
 * sentence in why. */
int rtd_admin_open(struct rtd_admin **out, const char *file, char why[RTD_WHY]);
/* NULL is fine. */
void rtd_admin_close(struct rtd_admin *a);
/* A descriptor that becomes readable when there is something to do; -1: a is NULL. */
int rtd_admin_fd(const struct rtd_admin *a);
/* Take connections and answer requests, a few.  True: the relay may have changed. */
bool rtd_admin_run(struct rtd_admin *a, struct rtd_relay *r, uint64_t now);

/* ---- state.c ---- */

/* Write the state as YAML, so that readers see the old or the new one, in a file that only our
 * user may read.  0 or -errno. */
int rtd_state_write(const struct rtd_relay *r, const char *file, uint64_t now);
/* The same as text.  Length without NUL, as snprintf. */
size_t rtd_state_print(const struct rtd_relay *r, char *buf, size_t size, uint64_t now);

#endif
