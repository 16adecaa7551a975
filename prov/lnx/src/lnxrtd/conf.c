/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The configuration file of a gateway: from YAML to settings. */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "lnxrtd/lnxrtd.h"
#include "os/route_key.h"

#define FILE_MAX	(1u << 20)

static int LNX_PRINTF(2, 3) fail(char why[RTD_WHY], const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(why, RTD_WHY, fmt, ap);
	va_end(ap);
	return -1;
}

/* The bytes of a file, for free(), or NULL with why. */
static char *read_file(const char *file, size_t *len, struct stat *st, char why[RTD_WHY])
{
	int fd = open(file, O_RDONLY | O_CLOEXEC);
	char *text = NULL;
	ssize_t n;

	*len = 0;
	if (fd < 0 || fstat(fd, st)) {
		fail(why, "%s: %s", file, strerror(errno));
		goto out;
	}
	text = malloc(FILE_MAX);
	if (!text) {
		fail(why, "memory is short");
		goto out;
	}
	while (*len < FILE_MAX && (n = read(fd, text + *len, FILE_MAX - *len)) > 0)
		*len += (size_t)n;
	if (*len == FILE_MAX) {
		fail(why, "%s: it is longer than 1 MiB", file);
		free(text);
		text = NULL;
	}
out:
	if (fd >= 0)
		close(fd);
	return text;
}

/* Several on one interface listen on ports one behind the other. */
static int number_ports(struct rtd_conf *conf, char why[RTD_WHY])
{
	unsigned i, k, number;

	for (i = 0; i < conf->nport; i++) {
		number = conf->port[i].number;
		for (k = 0; k < i; k++)
			number += !strcmp(conf->port[k].interface, conf->port[i].interface);
		if (number > UINT16_MAX)
			return fail(why, "routing.port: the nets on %s need ports one behind "
				    "the other, and the last would be %u",
				    conf->port[i].interface, number);
		conf->port[i].number = (uint16_t)number;
	}
	return 0;
}

/* The core provider and the interfaces of the nets. */
static int read_ports(struct rtd_conf *conf, char why[RTD_WHY])
{
	const struct lnx_config *c = conf->config;
	unsigned i, k, m;

	for (i = 0; i < c->n_net; i++) {
		struct lnx_span w = { c->net[i].net, strlen(c->net[i].net) };
		char name[LNX_NET_NAME_MAX];
		uint8_t prov = 0;

		lnx_nets_name(&c->nets, w, name, &prov);
		for (k = 0; k < c->net[i].n; k++) {
			const struct lnx_config_ni *ni = &c->net[i].ni[k];

			for (m = 0; m < ni->n; m++) {
				struct rtd_port_conf *p = &conf->port[conf->nport];

				if (conf->nport == RTD_RAILS)
					return fail(why, "net: there are more than %d "
						    "interfaces", RTD_RAILS);
				snprintf(p->prov, sizeof(p->prov), "%s",
					 lnx_addr_prov_name(prov));
				snprintf(p->interface, sizeof(p->interface), "%s",
					 ni->interface[m]);
				p->number = c->port == LNX_CONFIG_UNSET ?
					    LNX_ROUTE_PORT : (uint16_t)c->port;
				if (ni->credits != LNX_CONFIG_UNSET)
					p->tx_max = ni->credits;
				conf->nport++;
			}
		}
	}
	if (!conf->nport)
		return fail(why, "net: no interface is named, and a gateway uses only those "
			    "that are");
	return number_ports(conf, why);
}

static int net_part(const struct lnx_config *c, const char *name, struct lnx_nid_part *out)
{
	struct lnx_refusal r = { .text = name };
	struct lnx_pattern p;

	memset(out, 0, sizeof(*out));
	if (!name)
		return 0;
	if (lnx_nid_pattern_parse(&c->nets, (struct lnx_span){ name, strlen(name) }, &p, &r))
		return -1;
	*out = p.part[0];
	return 0;
}

static int copy_name(char *to, size_t size, const char *from, const char *what,
		     char why[RTD_WHY])
{
	if (from && strlen(from) >= size)
		return fail(why, "routing.%s: %.200s: the name has more than %zu bytes", what,
			    from, size - 1);
	snprintf(to, size, "%s", from ? from : "");
	return 0;
}

static int read_settings(struct rtd_conf *conf, char why[RTD_WHY])
{
	const struct lnx_config *c = conf->config;
	struct rtd_settings *s = &conf->settings;
	const uint32_t buffers[] = { c->tiny, c->small, c->large };
	uint32_t per_net = LNX_CONFIG_UNSET;
	unsigned i;

	rtd_settings_default(s);
	for (i = 0; i < RTD_CLASSES; i++)
		if (buffers[i] != LNX_CONFIG_UNSET)
			s->count[i] = buffers[i];
	/* LNet has this number for each net; here the first one counts. */
	for (i = 0; i < c->n_net && per_net == LNX_CONFIG_UNSET; i++)
		if (c->net[i].n && c->net[i].ni[0].peer_buffer_credits)
			per_net = c->net[i].ni[0].peer_buffer_credits;
	if (per_net != LNX_CONFIG_UNSET)
		s->grant_large = per_net;
	for (i = 0; i < LNX_CONFIG_LIMITS; i++)
		if (c->limit[i] != LNX_CONFIG_UNSET)
			rtd_setting_put(s, RTD_SETTING_LIMITS + i, c->limit[i]);
	for (i = 0; i < c->n_allow; i++) {
		struct rtd_rule *rule = &s->rule[s->nrule++];

		rule->deny = c->allow[i].deny;
		if (net_part(c, c->allow[i].from, &rule->from) ||
		    net_part(c, c->allow[i].to, &rule->to))
			return fail(why, "allow[%u]: its nets are not known", i);
	}
	conf->enable = c->routing != 0;
	if (copy_name(conf->state_file, sizeof(conf->state_file), c->state_file,
		      "state", why) ||
	    copy_name(conf->control_file, LNX_MIN(sizeof(conf->control_file), RTD_SOCKET_MAX),
		      c->control_file, "control", why))
		return -1;
	return c->key_file ? lnx_route_key_read(c->key_file, &s->key, why, RTD_WHY) : 0;
}

int rtd_conf_read(struct rtd_conf *out, const char *file, char why[RTD_WHY])
{
	struct rtd_conf conf = { .enable = true };
	struct lnx_config_error e;
	struct stat st;
	size_t len;
	char *text = read_file(file, &len, &st, why);
	int ret;

	if (!text)
		return -1;
	ret = lnx_config_read(text, len, NULL, &conf.config, &e);
	free(text);
	if (ret) {
		lnx_config_error_print(&e, file, why, RTD_WHY);
		return -1;
	}
	if (read_ports(&conf, why) || read_settings(&conf, why)) {
		lnx_config_destroy(conf.config);
		return -1;
	}
	while (!conf.settings.id)
		if (getentropy(&conf.settings.id, sizeof(conf.settings.id)))
			conf.settings.id = lnx_clock_wall_ns();
	if (getentropy(&conf.settings.secret, sizeof(conf.settings.secret)))
		conf.settings.secret = lnx_clock_wall_ns();
	*out = conf;
	return 0;
}

void rtd_conf_free(struct rtd_conf *conf)
{
	lnx_config_destroy(conf->config);
	conf->config = NULL;
}
