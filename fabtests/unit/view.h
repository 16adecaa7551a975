/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What tests see of peers, paths and endpoints, and what they change there.  Members of
 * struct lnx_peer, lnx_path and lnx_chan are named here only, so that a change of these
 * structures is a change of view.c.  contrib/check-structure fails otherwise.
 *
 * view_ functions only look; force_ functions bring about what no call of the
 * application and no frame would.  Both are for the endpoint's only thread.
 */
#ifndef LNX_VIEW_H
#define LNX_VIEW_H

#include <sys/types.h>

#include "obj/ep.h"

/* ---- frames to the peer ---- */

/* Numbers: of the next new frame, the next one to be posted, the oldest one that is not
 * acknowledged. */
uint32_t view_next(const struct lnx_peer *peer);
uint32_t view_posted(const struct lnx_peer *peer);
uint32_t view_acked(const struct lnx_peer *peer);
/* All frames so far are acknowledged. */
bool view_all_acked(const struct lnx_peer *peer);
/* Bytes of frames that are posted and not acknowledged. */
uint64_t view_unacked_bytes(const struct lnx_peer *peer);
/* Bytes of copies that completed sends before their acknowledgements. */
uint64_t view_kept(const struct lnx_peer *peer);
/* Frames that wait for the window or a path. */
uint32_t view_queued(const struct lnx_peer *peer);
/* The oldest frame that is not acknowledged; there is one. */
struct lnx_txe *view_oldest(const struct lnx_peer *peer);
/* Large messages that are announced and not ended. */
uint32_t view_announced(const struct lnx_peer *peer);

/* No frame has left yet: the first one gets that number. */
void force_first(struct lnx_peer *peer, uint32_t seq);

/* ---- frames from the peer ---- */

/* Number of the next one in order. */
uint32_t view_rx_next(const struct lnx_peer *peer);
/* Bytes that all peers together may make the endpoint store: credit that they have, and what
 * is stored. */
uint64_t view_exposure(const struct lnx_ep *ep);
/* Frames in the out-of-order queue. */
uint32_t view_ooo(const struct lnx_peer *peer);
/* Frames that are not yet acknowledged. */
uint32_t view_acks_pending(const struct lnx_peer *peer);
/* Bytes that came over the path with that index; index of the path of ACKs. */
uint64_t view_rx_bytes(const struct lnx_peer *peer, unsigned path);
unsigned view_ack_path(const struct lnx_peer *peer);
/* Bytes of its large messages that are not yet requested. */
uint64_t view_pull_left(const struct lnx_peer *peer);
/* Large transfers under way, and how often one was run. */
uint64_t view_pulls(const struct lnx_ep *ep);
uint64_t view_pull_runs(const struct lnx_ep *ep);

void force_rx_next(struct lnx_peer *peer, uint32_t seq);
void force_pull_left(struct lnx_peer *peer, uint64_t bytes);

/* ---- session and address ---- */

/* Our session id and the peer's; 0: no HELLO has come. */
uint64_t view_sid(const struct lnx_peer *peer);
uint64_t view_rx_sid(const struct lnx_peer *peer);
/* When the session began, by our clock. */
uint64_t view_began(const struct lnx_peer *peer);
/* Epoch of the peer's address. */
uint64_t view_address_epoch(const struct lnx_peer *peer);

/* ---- paths ---- */

/* ep->policy.gateways; NULL: it has no routes. */
const struct lnx_gateways *view_gateways(const struct lnx_ep *ep);
unsigned view_npath(const struct lnx_peer *peer);
/* Bits of the paths that share large messages. */
unsigned view_stripe(const struct lnx_peer *peer);
/* The i-th path, or NULL. */
struct lnx_path *view_path(const struct lnx_peer *peer, unsigned i);
/* The first path that begins on rail, or NULL. */
struct lnx_path *view_path_over(const struct lnx_peer *peer,
				const struct lnx_rail *rail);
/* Index of the path that frames take. */
unsigned view_frame_path(const struct lnx_peer *peer);

enum lnx_path_state view_state(const struct lnx_path *path);
const struct lnx_rail *view_rail(const struct lnx_path *path);
unsigned view_index(const struct lnx_path *path);
/* Index of the peer's rail, and its address in our rail's core. */
unsigned view_remote(const struct lnx_path *path);
fi_addr_t view_core_addr(const struct lnx_path *path);
/* Bytes of frames: sent, of these known to be there, reported last, and how many may be
 * in flight before another path is used. */
uint64_t view_sent(const struct lnx_path *path);
uint64_t view_delivered(const struct lnx_path *path);
uint64_t view_reported(const struct lnx_path *path);
uint64_t view_inflight_limit(const struct lnx_path *path);
/* Pieces that are being read from the peer, their bytes; and there are none. */
unsigned view_nread(const struct lnx_path *path);
uint64_t view_read_bytes(const struct lnx_path *path);
bool view_no_reads(const struct lnx_path *path);
struct lnx_chunk;
/* A piece, which the caller removes, is under way over it. */
void view_add_piece(struct lnx_path *path, struct lnx_chunk *piece);
/* Bytes of them that may be under way after some were late; 0: no limit. */
uint64_t view_read_window(const struct lnx_path *path);
/* Pieces that are being read twice, over all paths. */
unsigned view_hedges(const struct lnx_peer *peer);
/* Health of the path, as a number; of it and of the remote rail, with all that belongs
 * to it. */
unsigned view_health(const struct lnx_path *path);
/* Pings without an answer. */
unsigned view_npings(const struct lnx_path *path);
struct lnx_health *view_path_health(struct lnx_path *path);
struct lnx_health *view_remote_health(const struct lnx_path *path);
/* It has counters of its own.  When its far end was pinged last. */
bool view_counts(const struct lnx_path *path);
uint64_t view_last_ping(const struct lnx_path *path);
/* Is that the ping of its far end? */
bool view_pings(const struct lnx_path *path, const struct lnx_ping *ping);
/* Its answer is of no interest any more. */
void force_ping_stopped(struct lnx_path *path);

/* Frames that use credits of the path, and the most that did or waited. */
unsigned view_credits(const struct lnx_path *path);
unsigned view_credits_most(const struct lnx_path *path);
/* Do all paths and rails count as used what their frames are, and what waits as waiting? */
bool view_credits_agree(const struct lnx_ep *ep);

void force_stripe(struct lnx_peer *peer, unsigned paths);
/* path is of the second class, and its peer's other paths share the traffic: until the
 * order of paths is made anew. */
void force_second(struct lnx_peer *peer, const struct lnx_path *path);
void force_state(struct lnx_path *path, enum lnx_path_state state);
/* As if a frame over each of the peer's paths had arrived. */
void force_proven(const struct lnx_peer *peer);
/* So many bytes more, or less, were posted over path and are not acknowledged.  NULL:
 * only their sum over all paths changes. */
void force_unacked(struct lnx_peer *peer, struct lnx_path *path, int64_t bytes);
/* The kernel at its far end was asked since it is silent, or was not. */
void force_kernel_asked(struct lnx_path *path, bool asked);
/* Nothing has come from the peer since since_ns (0: something has), and its kernels were asked
 * then. */
void force_silent(struct lnx_peer *peer, uint64_t since_ns, uint64_t kernels_ns);
/* When it began to connect. */
void force_since(struct lnx_path *path, uint64_t ns);
/* No read before. */
void force_read_retry(struct lnx_path *path, uint64_t ns);
/* Reads bring bps bytes per second, without any delay, as the last one showed that ended
 * then.  best: and never more. */
void force_read_rate(struct lnx_path *path, uint64_t bps, bool best, uint64_t ended_ns);

/* ---- remote memory ---- */

/* Segments of our operations; those that the core reads alone; large writes and key
 * requests of the peer. */
uint32_t view_segments(const struct lnx_peer *peer);
uint32_t view_core_reads(const struct lnx_peer *peer);
uint32_t view_served(const struct lnx_peer *peer);

/* None of our reads was of a key that is not known. */
void force_keys_known(struct lnx_peer *peer);

/* ---- peers on this node ---- */

/* Is it reached through shared memory? */
bool view_local(const struct lnx_peer *peer);
/* Sends that the core was too busy for. */
uint32_t view_local_queued(const struct lnx_peer *peer);
/* Is its process watched by a descriptor? */
bool view_watched(const struct lnx_peer *peer);
/* Its process, and where the peer's id is in its memory. */
struct lnx_cma_owner *view_process(struct lnx_peer *peer);

/* It is certain that the peer's process is pid, which has the id at cookie.  Its large
 * messages stay out of the core. */
void force_process(struct lnx_peer *peer, pid_t pid, uint64_t id,
		   const uint64_t *cookie);

/* ---- peers of an endpoint that was never opened ---- */

/* ep->peers is made, without peers; and ep belongs to process pid. */
/* Timers that nothing runs; 0, or -FI_ENOMEM. */
int make_timers(struct lnx_ep *ep);
void make_no_peers(struct lnx_ep *ep);
void force_pid(struct lnx_ep *ep, pid_t pid);
/* That of the name of its shm region (core/open.h). */
unsigned view_shm_turn(const struct lnx_ep *ep);
/* Make peer, which is zeroed, one of ep's; and forget it. */
void make_peer(struct lnx_peer *peer, struct lnx_ep *ep);
void drop_peer(struct lnx_peer *peer);
/* Its first and only path. */
void make_path(struct lnx_peer *peer, struct lnx_rail *rail, fi_addr_t core_addr);

/* ---- the endpoint ---- */

/* Peers; of these, in no address vector; and none whose session has ended. */
uint32_t view_peers(const struct lnx_ep *ep);
uint32_t view_unsolicited(const struct lnx_ep *ep);
bool view_none_ended(const struct lnx_ep *ep);
/* The first one of those; and its address in the AV. */
const struct lnx_peer *view_first_ended(const struct lnx_ep *ep);
fi_addr_t view_addr(const struct lnx_peer *peer);
/* Our address; and it has not all of our rails. */
const uint8_t *view_address(const struct lnx_ep *ep);
bool view_address_is_short(const struct lnx_ep *ep);
/* What a HELLO must show; refusals that are to be sent. */
uint64_t view_hello_nonce(const struct lnx_ep *ep);
unsigned view_misdirected(const struct lnx_ep *ep);
/* In use: receive entries and buffers of frames, both without the reserve; frames of
 * ours, of all sizes or of one (LNX_TXE_SMALL, ...); pieces that are being pulled. */
size_t view_rxes(const struct lnx_ep *ep);
size_t view_rxbufs(const struct lnx_ep *ep);
/* Those that a plain rail has, posted or about to be. */
unsigned view_rail_bufs(const struct lnx_rail *rail);
/* When they are looked at next, or LNX_NEVER. */
uint64_t view_posted_look(const struct lnx_ep *ep);
size_t view_frames(const struct lnx_ep *ep);
size_t view_frames_of(const struct lnx_ep *ep, unsigned size);
size_t view_chunks(const struct lnx_ep *ep);
/* Where the last three come from. */
struct lnx_pool *view_rxbuf_pool(struct lnx_ep *ep);
struct lnx_pool *view_frame_pool(struct lnx_ep *ep, unsigned size);
struct lnx_pool *view_chunk_pool(struct lnx_ep *ep);
#define VIEW_FRAME_SIZES	4u
/* Bytes in out-of-order queues. */
size_t view_ooo_bytes(const struct lnx_ep *ep);
/* Is that deferred work to be done? */
bool view_work(const struct lnx_ep *ep, uint32_t bit);
/* The next deadline; LNX_NEVER: no timer is armed. */
uint64_t view_due(const struct lnx_ep *ep);
/* A peer came, and since then no descriptors were looked at. */
bool view_new_sockets(const struct lnx_ep *ep);
/* When one of the timers of the endpoint itself runs. */
uint64_t view_own_due(struct lnx_ep *ep, unsigned which);
/* Are local peers watched, whatever else is done? */
bool view_watches_local(const struct lnx_ep *ep);
void force_work(struct lnx_ep *ep, uint32_t bit);
/* RMA operations of ours, their segments; and nothing of them waits for anything. */
size_t view_rma_ops(const struct lnx_ep *ep);
size_t view_rma_segments(const struct lnx_ep *ep);
bool view_rma_idle(const struct lnx_ep *ep);
/* Count what ends in cntr, or NULL. */
void view_count_in(struct lnx_ep *ep, enum lnx_cntr_kind kind, struct lnx_cntr *cntr);
/* The segment that was made last; there is one. */
struct lnx_rma_segment *view_last_segment(const struct lnx_ep *ep);
/* Numbers on the wire that RMA operations of ours have used. */
size_t view_rma_numbers(const struct lnx_ep *ep);
/* No large message of ours is announced to a peer on this node. */
bool view_none_announced(const struct lnx_ep *ep);
/* Messages of which peers on this node have pushed a part. */
unsigned view_pushes(const struct lnx_ep *ep);
/* Messages that no receive matches. */
size_t view_unexpected(const struct lnx_ep *ep);
/* Bytes of those that are by themselves; and frame buffers that others are in. */
size_t view_stored_bytes(const struct lnx_ep *ep);
unsigned view_held_bufs(const struct lnx_ep *ep);
/* It injects faults. */
bool view_injects(const struct lnx_ep *ep);
/* It has a state segment for other processes; and a ping that one of them asked for is
 * under way. */
bool view_published(const struct lnx_ep *ep);
bool view_asked_ping(const struct lnx_ep *ep);
/* So many frames need an acknowledgement; polls of an idle rail, less 1. */
uint32_t view_ack_every(const struct lnx_ep *ep);
uint32_t view_poll_idle_mask(const struct lnx_ep *ep);
/* What peers may read to see whether the endpoint is open. */
const uint64_t *view_cookie(const struct lnx_ep *ep);
/* So many peers got their turn of equal paths. */
uint32_t view_dealt(const struct lnx_ep *ep);
/* Frames that may be queued for a peer, and the longest message. */
size_t view_tx_size(const struct lnx_ep *ep);
size_t view_max_msg_size(const struct lnx_ep *ep);

void force_dealt(struct lnx_ep *ep, uint32_t n);
void force_max_msg_size(struct lnx_ep *ep, size_t n);
/* What the timers of peers run that are made from now on; *look and *retry become what they
 * ran before. */
typedef void peer_timer(struct lnx_timer *t, uint64_t now);
void force_peer_timers(struct lnx_ep *ep, peer_timer **look, peer_timer **retry);
/* As if a setting had been changed. */
void force_settings_changed(struct lnx_ep *ep);
void force_enabled(struct lnx_ep *ep, bool enabled);
/* It closes, and gets no new registrations. */
void force_leaving(struct lnx_ep *ep, bool leaving);
/* Its sensor of links. */
void force_netwatch(struct lnx_ep *ep, struct lnx_netwatch *w);
/* As if a thread slept on wait for completions of receives; NULL: none does. */
void force_sleeper(struct lnx_ep *ep, struct lnx_wait *wait);
/* Other threads use it. */
void force_locks(struct lnx_ep *ep);
/* The next look at the health board is not too soon. */
void force_board_look(struct lnx_ep *ep);

#endif
