/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The key of a job: FI_LNX_JOB_KEY, or the contents of the file FI_LNX_JOB_KEY_FILE.
 * With one, a HELLO carries a keyed hash of what it says (lnx_wire_proof), and HELLOs
 * without the right hash begin no session (rel/session.h).
 *
 * The hash is libsodium's, BLAKE2b with 256 bits.  The library is loaded when a key is
 * set.  A key that cannot be used is an error, never ignored.
 */
#ifndef LNX_JOB_KEY_H
#define LNX_JOB_KEY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct lnx_conf;
struct lnx_job_key;

/* Lengths of the text, without a newline at its end. */
#define LNX_JOB_KEY_MIN	16
#define LNX_JOB_KEY_MAX	1024

/* Is one of the variables set? */
bool lnx_job_key_wanted(const struct lnx_conf *conf);

/*
 * Load the key that conf says; *key is NULL if it says none, or after an error.  0;
 * -FI_EINVAL, -FI_EACCES (of the file), -FI_ENOSYS (libsodium is not there) after one
 * warning, which never contains the key; -FI_ENOMEM.  Any thread.
 */
int lnx_job_key_load(const struct lnx_conf *conf, struct lnx_job_key **key);
/* Would that succeed? */
int lnx_job_key_check(const struct lnx_conf *conf);
/* Overwrites it.  NULL is allowed. */
void lnx_job_key_free(struct lnx_job_key *key);

/*
 * frame[len] is a HELLO with F_KEYED: header, address, lnx_wire_proof with its nonce.
 * Write the hash.  Must be done again when anything in the frame has changed, except
 * the path, the rail and the acknowledgement.
 */
void lnx_job_key_sign(const struct lnx_job_key *key, void *frame, size_t len);
/* Is it the right hash?  The comparison takes the same time wherever they differ. */
bool lnx_job_key_verify(const struct lnx_job_key *key, const void *frame,
			size_t len);

#endif
