/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The file of the health board.  See health_board.h. */
#include "core/health_board.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/interval.h"
#include "base/statefile.h"
#include "core/policy.h"
#include "lnx_state.h"
#include "policy/board.h"

#define NETNS		"/proc/self/ns/net"
#define PEERS_MAX	256u		/* that are looked at */

const char *lnx_board_root = LNX_STATE_DIR;

/* ---- the file ---- */

/* What is there; an empty board if there is none. */
static void read_board(int dir, uid_t uid, struct lnx_board *board)
{
	int fd = lnx_statefile_open(dir, LNX_BOARD_FILE, uid, O_RDONLY);
	ssize_t n = 0;

	memset(board, 0, sizeof(*board));
	if (fd >= 0) {
		n = pread(fd, board, sizeof(*board), 0);
		close(fd);
	}
	if (n < 0 || !lnx_board_valid(board, (size_t)n))
		lnx_board_init(board);
}

static void get_board(struct lnx_board *board)
{
	uid_t uid = geteuid();
	int dir = lnx_statefile_dir(lnx_board_root, uid, false);

	if (dir < 0) {
		lnx_board_init(board);
		return;
	}
	read_board(dir, uid, board);
	close(dir);
}

/* Open it for writing.  What is there and is no file of ours is removed. */
static int open_own(int dir, uid_t uid)
{
	int fd = lnx_statefile_open(dir, LNX_BOARD_FILE, uid, O_RDWR);

	if (fd >= 0)
		return fd;
	if (fd != -ENOENT && unlinkat(dir, LNX_BOARD_FILE, 0) && errno != ENOENT)
		return -errno;
	fd = openat(dir, LNX_BOARD_FILE, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
		    0600);
	/* Another process was faster. */
	if (fd < 0 && errno == EEXIST)
		return lnx_statefile_open(dir, LNX_BOARD_FILE, uid, O_RDWR);
	if (fd < 0)
		return -errno;
	fchmod(fd, 0600);
	return fd;
}

static bool write_at(int fd, const void *data, size_t len, size_t at)
{
	return pwrite(fd, data, len, (off_t)at) == (ssize_t)len;
}

static bool write_slot(int fd, const struct lnx_rail *rail, uint64_t netns,
		       const struct lnx_board_news *news, uint64_t now)
{
	struct lnx_board board;
	struct stat st;
	unsigned i;
	ssize_t n;

	memset(&board, 0, sizeof(board));
	n = pread(fd, &board, sizeof(board), 0);
	if (n < 0 || fstat(fd, &st))
		return false;
	if (!lnx_board_valid(&board, (size_t)n)) {
		/* It was just made, or something else was written into it. */
		lnx_board_init(&board);
		if (!write_at(fd, &board, sizeof(board), 0))
			return false;
	}
	if (st.st_size > (off_t)sizeof(board) && ftruncate(fd, sizeof(board)))
		return false;
	i = lnx_board_place(&board, rail->name, netns, now);
	return lnx_board_put(&board.slot[i], i, rail->name, netns, news) &&
	       write_at(fd, &board.slot[i], sizeof(board.slot[i]),
			offsetof(struct lnx_board, slot) + i * sizeof(board.slot[i]));
}

static bool tell(const struct lnx_rail *rail, uint64_t netns,
		 const struct lnx_board_news *news, uint64_t now)
{
	uid_t uid = geteuid();
	int dir = lnx_statefile_dir(lnx_board_root, uid, true), fd;
	bool ok;

	if (dir < 0)
		return false;
	fd = open_own(dir, uid);
	ok = fd >= 0 && write_slot(fd, rail, netns, news, now);
	if (fd >= 0)
		close(fd);
	close(dir);
	return ok;
}

LNX_COLD void lnx_health_board_clean(int dir, uid_t uid, uint64_t now)
{
	struct lnx_board board;

	if (faccessat(dir, LNX_BOARD_FILE, F_OK, AT_SYMLINK_NOFOLLOW))
		return;
	read_board(dir, uid, &board);
	if (!lnx_board_matters(&board, now))
		unlinkat(dir, LNX_BOARD_FILE, 0);
}

/* ---- rails ---- */

static uint64_t net_namespace(void)
{
	struct stat st;

	return stat(NETNS, &st) ? 0 : (uint64_t)st.st_ino;
}

/* What has come over it, in any unit: it changes with each proof of life. */
static uint64_t came(const struct lnx_rail *rail)
{
	uint64_t n = rail->traffic.recvs + rail->traffic.recv_length +
		     rail->counts.reads_done;
	unsigned i;

	for (i = 0; i < LNX_KIND_MAX; i++)
		n += rail->counts.received[i];
	return n;
}

struct use {
	unsigned up, dead;		/* paths */
	uint64_t speed;
};

/* Its PROBEs have been unanswered for long, and since then the peer has answered others. */
static bool is_mute(const struct lnx_peer *peer, const struct lnx_path *path, uint64_t now)
{
	const struct lnx_path_speed *s = path->speed;
	unsigned i;

	if (!s || !s->unanswered_ns || lnx_ns_since(now, s->unanswered_ns) < LNX_CONNECTING_NS)
		return false;
	for (i = 0; i < peer->npath; i++) {
		const struct lnx_path_speed *other = peer->path[i]->speed;

		if (other && other != s && other->answered_ns > s->unanswered_ns)
			return true;
	}
	return false;
}

/* It delivers nothing, though it is not drained and its link is up. */
static bool is_dead(const struct lnx_peer *peer, const struct lnx_path *path, uint64_t now)
{
	if (path->state == LNX_PATH_DOWN)
		return !path->detect.drained && !path->detect.remote_down &&
		       !path->rail->link_down;
	if (path->state == LNX_PATH_UP)
		return is_mute(peer, path, now);
	return path->state == LNX_PATH_CONNECTING && path->since_ns && lnx_peer_acked(peer) &&
	       lnx_ns_since(now, path->since_ns) > LNX_CONNECTING_NS;
}

/* Something else reaches the peer. */
static bool reached(const struct lnx_peer *peer, const struct lnx_path *but)
{
	unsigned i;

	for (i = 0; i < peer->npath; i++)
		if (peer->path[i] != but && peer->path[i]->state == LNX_PATH_UP)
			return true;
	return false;
}

static void look_at_peer(const struct lnx_ep *ep, const struct lnx_peer *peer,
			 struct use use[LNX_RAILS_MAX], uint64_t now)
{
	unsigned i;

	for (i = 0; i < peer->npath; i++) {
		const struct lnx_path *path = peer->path[i];
		unsigned r = lnx_policy_index(ep, path->rail);
		bool dead = is_dead(peer, path, now);

		/* What a gateway does says nothing of our rail. */
		if (r >= LNX_RAILS_MAX || lnx_rail_is_leg(path->rail))
			continue;
		use[r].up += !dead && path->state == LNX_PATH_UP;
		use[r].dead += dead && reached(peer, path);
		if (path->speed)
			use[r].speed = LNX_MAX(use[r].speed,
					       LNX_MAX(path->speed->send.rate,
						       path->speed->read.rate));
	}
}

/* How are our rails used?  Only where there is a choice can a rail be found to be dead. */
static bool look_at_peers(const struct lnx_ep *ep, struct use use[LNX_RAILS_MAX],
			  uint64_t now)
{
	unsigned n = 0, i;
	struct lnx_node *node;
	bool connecting = false;

	memset(use, 0, LNX_RAILS_MAX * sizeof(*use));
	for (node = ep->peers.all.next; node != &ep->peers.all && n < PEERS_MAX;
	     node = node->next) {
		const struct lnx_peer *peer =
			lnx_list_entry(node, struct lnx_peer, all_link);

		if (peer->npath < 2 || peer->self || !lnx_peer_open(peer))
			continue;
		n++;
		look_at_peer(ep, peer, use, now);
		for (i = 0; i < peer->npath; i++)
			connecting |= peer->path[i]->state == LNX_PATH_CONNECTING ||
				      is_mute(peer, peer->path[i], now);
	}
	return connecting;
}

static struct lnx_board_own own_of(struct lnx_rail *rail, const struct use *use)
{
	struct lnx_rail_board *b = &rail->board;
	uint64_t n = came(rail);
	struct lnx_board_own own = {
		.value = rail->health.value, .fatal = rail->link_down,
		.dead = use && use->dead && !use->up, .pinned = rail->health.pinned,
		.hearsay = rail->health.hearsay, .proven = n != b->came,
		.speed = use ? use->speed : 0, .told_ns = b->told_ns,
		.heard_ns = b->heard_ns, .told = b->told, .told_fatal = b->told_fatal,
	};

	b->came = n;
	return own;
}

/* Trust what another process says, if there is reason to. */
static void hear(struct lnx_rail *rail, const struct lnx_board_own *own,
		 const struct lnx_board_news *heard, uint64_t now)
{
	struct lnx_rail_board *b = &rail->board;
	int value = lnx_board_takes(own, heard, now);
	unsigned changed = 0;

	if (value >= 0) {
		changed = lnx_health_hearsay(&rail->health, (unsigned)value, now);
		b->heard_ns = heard->when_ns;
		b->heard = heard->value;
		b->heard_pid = heard->pid;
		b->heard_speed = heard->speed;
		LNX_INFO(FI_LOG_EP_CTRL,
			 "rail %s: process %u says that its health is %u; it is avoided until something comes over it\n",
			 rail->name, heard->pid, heard->value);
	} else if (lnx_board_expires(own, heard, now)) {
		changed = lnx_health_unhear(&rail->health);
	}
	if (changed)
		lnx_policy_stale(rail->ep);
}

static bool told(struct lnx_rail *rail, const struct lnx_board_own *own, uint64_t netns,
		 uint64_t now)
{
	struct lnx_board_news say = lnx_board_said(own, (uint32_t)getpid(), now);
	struct lnx_rail_board *b = &rail->board;

	if (!tell(rail, netns, &say, now))
		return false;
	b->told_ns = now;
	b->told = say.value;
	b->told_fatal = say.fatal;
	return true;
}

static bool shared(const struct lnx_rail *rail)
{
	return !lnx_rail_kind_local(rail->kind) && rail->ep->conf->health_board &&
	       rail->ep->conf->health_sensitivity && !rail->ep->native;
}

LNX_COLD void lnx_health_board_rail(struct lnx_rail *rail, uint64_t now)
{
	struct lnx_board_news heard;
	struct lnx_board board;
	struct lnx_board_own own;
	int at;

	if (!shared(rail))
		return;
	get_board(&board);
	own = own_of(rail, NULL);
	at = lnx_board_find(&board, rail->name, net_namespace(), now, &heard);
	hear(rail, &own, at < 0 ? NULL : &heard, now);
}

LNX_COLD uint64_t lnx_health_board_run(struct lnx_ep *ep, uint64_t now)
{
	uint64_t netns = net_namespace();
	struct use use[LNX_RAILS_MAX];
	struct lnx_board board;
	bool soon, tells = true;
	unsigned i;

	if (!ep->conf->health_board || ep->closing)
		return LNX_NEVER;
	/* Several things may happen at a time: they are news together. */
	if (now < ep->due.board_ns)
		return ep->due.board_ns;
	ep->due.board_ns = now + LNX_BOARD_GAP_NS;
	soon = look_at_peers(ep, use, now);
	get_board(&board);
	for (i = 0; i < ep->nnet; i++) {
		struct lnx_rail *rail = ep->rail[ep->nrail - ep->nnet + i];
		struct lnx_board_news heard = { 0 };
		struct lnx_board_own own;
		int at;

		if (!shared(rail))
			continue;
		own = own_of(rail, &use[i]);
		at = lnx_board_find(&board, rail->name, netns, now, &heard);
		if (tells && lnx_board_tells(&own, at < 0 ? NULL : &heard, now))
			tells = told(rail, &own, netns, now);
		else
			hear(rail, &own, at < 0 ? NULL : &heard, now);
		soon |= lnx_board_bad(&own);
	}
	return ep->links.several || soon ?
	       now + (soon ? LNX_BOARD_SOON_NS : LNX_BOARD_LOOK_NS) : LNX_NEVER;
}
