/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The object that a thread of the application sleeps on.  One epoll
 * descriptor over an eventfd of ours, a clock, and the descriptors of the rails.  Any
 * thread, no lock.
 */
#ifndef LNX_WAIT_H
#define LNX_WAIT_H

#include <stdbool.h>

#include "fi.h"

struct lnx_wait;
/*
 * Open the object that an attribute's wait_obj asks for.  *wait is NULL for
 * FI_WAIT_NONE; FI_WAIT_UNSPEC is FI_WAIT_FD.  0, -FI_ENOSYS for other kinds,
 * -FI_ENOMEM, or the error of opening the descriptor.
 */
int lnx_wait_open(enum fi_wait_obj obj, struct lnx_wait **wait);
void lnx_wait_close(struct lnx_wait *wait);
/* fi_control of an object with wait (or NULL): FI_GETWAIT, FI_GETWAITOBJ. */
int lnx_wait_control(const struct lnx_wait *wait, int command, void *arg);
/* Something was written: wake a thread that sleeps or is about to. */
void lnx_wait_signal(struct lnx_wait *wait);
/* The same, even if no thread has armed it. */
void lnx_wait_wake(struct lnx_wait *wait);
/*
 * fi_cq_signal: end one blocking read (the current or the next one) without an entry.
 */
void lnx_wait_kick(struct lnx_wait *wait);
/* Was there a kick?  Clears it. */
bool lnx_wait_signalled(struct lnx_wait *wait);
/* The same without clearing it. */
bool lnx_wait_kicked(const struct lnx_wait *wait);
/* Request a signal from now on; then check again before sleeping. */
void lnx_wait_arm(struct lnx_wait *wait);
/* Wake threads that sleep on the descriptor then at that time (lnx_clock_ns); LNX_NEVER:
 * not by the clock.  0, or a negative errno: there is no clock for that. */
int lnx_wait_until(struct lnx_wait *wait, uint64_t at_ns);
/* Let the descriptor of a rail wake the sleeper, or stop that. */
int lnx_wait_add_fd(struct lnx_wait *wait, int fd);
void lnx_wait_del_fd(struct lnx_wait *wait, int fd);
/* Sleep until signalled, a rail's descriptor is ready, or max_ms (-1: no end)
 * have passed. */
void lnx_wait_block(struct lnx_wait *wait, int max_ms);

#endif
