/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * gateway show, gateway set: asks a gateway (lnxrtd) over its socket.  lnxrtd/lnxrtd.h says
 * what goes over it.  What comes back is not trusted.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "conf/yaml.h"
#include "lnxctl/lnxctl.h"

#define SOCKET_FILE	"/run/lnxrtd/control"
#define REPLY_MAX	(1u << 20)
#define REQUEST_MAX	120u		/* bytes */

/* ---- the socket ---- */

static const char *file_of(const struct lnxctl *c)
{
	const char *file = lnxctl_value(c, "socket");

	return file ? file : SOCKET_FILE;
}

/* A descriptor that waits no longer than --wait, or a negative errno. */
static int dial(const struct lnxctl *c)
{
	unsigned ms = c->wait_ms ? c->wait_ms : LNXCTL_REQUEST_WAIT_MS;
	struct timeval wait = { ms / 1000, ms % 1000 * 1000 };
	struct sockaddr_un at = { .sun_family = AF_UNIX };
	const char *file = file_of(c);
	int fd, err;

	if (strlen(file) >= sizeof(at.sun_path))
		return -ENAMETOOLONG;
	memcpy(at.sun_path, file, strlen(file));
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	if (!setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof(wait)) &&
	    !setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &wait, sizeof(wait)) &&
	    !connect(fd, (const struct sockaddr *)&at, sizeof(at)))
		return fd;
	err = -errno;
	close(fd);
	return err;
}

/* 0, and the reply in text, of size bytes with NUL; or a negative errno. */
static int exchange(int fd, const char *request, char *text, size_t size)
{
	ssize_t n;

	if (send(fd, request, strlen(request), MSG_NOSIGNAL) < 0)
		return -errno;
	n = recv(fd, text, size - 1, MSG_TRUNC);
	if (n < 0)
		return -errno;
	/* It has ended, or its answer did not fit. */
	if (!n || (size_t)n >= size)
		return -EPROTO;
	text[n] = '\0';
	lnx_client_printable(text, (size_t)n);
	return 0;
}

static int unreachable(const struct lnxctl *c, int err)
{
	const char *file = file_of(c);
	bool waits = err == -EAGAIN;

	lnxctl_refuse(c, waits ? -ETIMEDOUT : err, "%s: %s", file,
		      waits ? "the gateway does not answer" :
		      err == -ENOENT || err == -ECONNREFUSED ?
		      "no gateway listens there; \"control\" of its configuration names the "
		      "socket, and --socket another one" :
		      err == -EPROTO ? "what it answers makes no sense" : strerror(-err));
	return waits ? LNXCTL_NO_ANSWER : LNXCTL_REFUSED;
}

/*
 * Have the gateway carry out a request.  LNXCTL_OK, with the text of the reply in *text, which
 * is in *memory, to be freed; or a status after a sentence.
 */
static int ask(const struct lnxctl *c, const char *request, char **memory, char **text)
{
	int fd = dial(c), ret = fd, result;
	char *reply = NULL;

	if (fd >= 0) {
		reply = lnx_must(malloc(REPLY_MAX));
		ret = exchange(fd, request, reply, REPLY_MAX);
		close(fd);
	}
	if (ret < 0) {
		free(reply);
		return unreachable(c, ret);
	}
	*text = strchr(reply, '\n');
	if (!*text || sscanf(reply, "%d", &result) != 1 || result > 0) {
		free(reply);
		return unreachable(c, -EPROTO);
	}
	*(*text)++ = '\0';
	*memory = reply;
	if (!result)
		return LNXCTL_OK;
	lnxctl_refuse(c, result, "%s", *text);
	free(reply);
	return LNXCTL_REFUSED;
}

/* ---- show ---- */

struct reading {
	struct lnx_yaml *yaml;
	struct lnx_yaml_node node;	/* the last event */
	struct lnx_refusal why;
	bool brief;			/* no ends, and of drops only their numbers */
};

static bool next(struct reading *rd)
{
	return !lnx_yaml_next(rd->yaml, &rd->node, &rd->why);
}

static bool fail(struct reading *rd)
{
	lnx_refuse(&rd->why, NULL, "it is not what a gateway writes");
	return false;
}

/* A number, or text.  Texts in quotes are texts, though they may look like numbers. */
static void put_scalar(struct lnx_doc *parent, const char *key, const struct lnx_yaml_node *n)
{
	bool minus = n->text[0] == '-';
	uint64_t v;

	if (n->quoted || !lnxctl_number(n->text + minus, INT64_MAX, &v))
		lnx_doc_text(parent, key, n->text);
	else if (minus)
		lnx_doc_int(parent, key, -(int64_t)v);
	else
		lnx_doc_uint(parent, key, v);
}

static bool read_value(struct reading *rd, struct lnx_doc *parent, const char *key);

/* The pairs of a map, the first event of which has been read. */
static bool read_map(struct reading *rd, struct lnx_doc *map)
{
	char key[64];

	while (next(rd) && rd->node.event != LNX_YAML_MAP_END) {
		if (rd->node.event != LNX_YAML_SCALAR)
			return fail(rd);
		snprintf(key, sizeof(key), "%s", rd->node.text);
		if (!next(rd) || !read_value(rd, map, key))
			return false;
	}
	return rd->node.event == LNX_YAML_MAP_END;
}

static bool read_list(struct reading *rd, struct lnx_doc *list)
{
	while (next(rd) && rd->node.event != LNX_YAML_SEQ_END)
		if (!read_value(rd, list, NULL))
			return false;
	return rd->node.event == LNX_YAML_SEQ_END;
}

/* What begins with rd->node becomes a child of parent. */
static bool read_value(struct reading *rd, struct lnx_doc *parent, const char *key)
{
	switch (rd->node.event) {
	case LNX_YAML_SCALAR:
		put_scalar(parent, key, &rd->node);
		return true;
	case LNX_YAML_MAP:
		return read_map(rd, lnx_doc_map(parent, key));
	case LNX_YAML_SEQ:
		return read_list(rd, lnx_doc_list(parent, key));
	default:
		return fail(rd);
	}
}

/* Of drops only those that there were, as numbers. */
static void put_drops(struct lnx_doc *map, const struct lnx_doc *drops)
{
	const struct lnx_doc *reason, *count;
	struct lnx_doc *out = lnx_doc_map(map, "drops");

	for (reason = drops->child; reason; reason = reason->next) {
		count = lnx_doc_get(reason, "count");
		if (count && count->type == LNX_DOC_UINT && count->u)
			lnx_doc_uint(out, reason->key, count->u);
	}
}

/* One key of the state, whose value begins with rd->node. */
static bool read_part(struct reading *rd, struct lnx_doc *map, const char *key)
{
	bool ends = !strcmp(key, "sources") || !strcmp(key, "destinations");
	bool drops = !strcmp(key, "drops");
	struct lnx_doc *aside;
	bool ok;

	/* A list without items is written without a value. */
	if (ends && !rd->brief && rd->node.event == LNX_YAML_SCALAR) {
		lnx_doc_list(map, key);
		return true;
	}
	if (!rd->brief || !(ends || drops))
		return read_value(rd, map, key);
	aside = lnx_doc_new();
	ok = read_value(rd, aside, key);
	if (ok && drops && aside->child->type == LNX_DOC_MAP)
		put_drops(map, aside->child);
	lnx_doc_free(aside);
	return ok;
}

static bool read_state(struct reading *rd, struct lnx_doc *map)
{
	char key[64];

	if (!next(rd) || rd->node.event != LNX_YAML_MAP)
		return fail(rd);
	while (next(rd) && rd->node.event == LNX_YAML_SCALAR) {
		snprintf(key, sizeof(key), "%s", rd->node.text);
		if (!next(rd) || !read_part(rd, map, key))
			return false;
	}
	return rd->node.event == LNX_YAML_MAP_END;
}

static int run_show(struct lnxctl *c)
{
	struct reading rd = { .brief = !c->verbose };
	char *memory, *text;
	int ret = ask(c, "show", &memory, &text);
	struct lnx_doc *map;
	bool ok;

	if (ret)
		return ret;
	c->doc = lnx_doc_new();
	map = lnx_doc_map(lnx_doc_list(c->doc, "gateway"), NULL);
	ok = !lnx_yaml_open(text, strlen(text), &rd.yaml, &rd.why) && read_state(&rd, map);
	lnx_yaml_close(rd.yaml);
	free(memory);
	if (!ok)
		return lnxctl_refuse(c, -EPROTO, "%s: what it answers cannot be read: %s",
				     file_of(c), rd.why.why);
	return lnxctl_finish(c);
}

const struct lnxctl_verb lnxctl_gateway_show = {
	.name = "gateway show", .args = "[--socket FILE] [-v]",
	.help = "a gateway (lnxrtd) of this node; with -v its sources and destinations",
	.option = {
		{ "socket", "FILE", "the socket of the gateway; else " SOCKET_FILE },
	},
	.run = run_show,
};

/* ---- set ---- */

static int run_set(struct lnxctl *c)
{
	char request[REQUEST_MAX], *memory, *text;
	int ret;

	if (strlen(c->arg[0]) + strlen(c->arg[1]) + sizeof("set  ") > sizeof(request) ||
	    strpbrk(c->arg[0], " \n") || strpbrk(c->arg[1], " \n"))
		return lnxctl_usage(c, "\"%.40s %.40s\": must be a name and a number", c->arg[0],
				    c->arg[1]);
	snprintf(request, sizeof(request), "set %s %s", c->arg[0], c->arg[1]);
	ret = ask(c, request, &memory, &text);
	if (!ret)
		free(memory);
	return ret;
}

const struct lnxctl_verb lnxctl_gateway_set = {
	.name = "gateway set", .args = "[--socket FILE] NAME VALUE",
	.help = "change a setting of a gateway; routing 0 drains it, routing 1 begins again",
	.option = {
		{ "socket", "FILE", "the socket of the gateway; else " SOCKET_FILE },
	},
	.min_args = 2, .max_args = 2,
	.run = run_set,
};
