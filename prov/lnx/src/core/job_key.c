/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The key of a job.  See job_key.h. */
#include "core/job_key.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "conf/conf.h"
#include "core/open.h"
#include "core/warn_once.h"
#include "fi.h"
#include "lnx_wire.h"

#define HASH_BYTES	LNX_WIRE_HASH_BYTES
#define CONTEXT		"lnx HELLO hash 1"
#define FRAME_MAX	(sizeof(struct lnx_wire_hdr) + LNX_HELLO_BYTES + \
			 sizeof(struct lnx_wire_proof))

bool lnx_job_key_wanted(const struct lnx_conf *conf)
{
	return conf->job_key || conf->job_key_file;
}

#ifdef HAVE_SODIUM
#include <dlfcn.h>
#include <sodium.h>

struct lnx_job_key {
	uint8_t bytes[crypto_generichash_KEYBYTES];
};

/* ---- the library ---- */

/* Opened by name and not linked: most jobs have no key. */
static const char *const files[] = {
	"libsodium.so.23",		/* of 1.0.12 to 1.0.18 */
	"libsodium.so.26",		/* of later releases */
};

#define CALLS(call) \
	call(sodium_init) \
	call(sodium_memcmp) \
	call(sodium_memzero) \
	call(crypto_generichash)

static struct {
#define CALL(name) __typeof__(&name) name;
	CALLS(CALL)
#undef CALL
} lib;
static pthread_mutex_t lib_lock = PTHREAD_MUTEX_INITIALIZER;
static bool lib_open;

static bool open_file(const char *name)
{
	void *file = dlopen(name, RTLD_NOW | RTLD_LOCAL);

	if (!file)
		return false;
#define CALL(name) \
	lib.name = (__typeof__(&name))dlsym(file, #name); \
	if (!lib.name) \
		goto missing;
	CALLS(CALL)
#undef CALL
	if (lib.sodium_init() >= 0)
		return true;
missing:
	dlclose(file);
	return false;
}

/* It stays loaded: it has state of its own. */
static bool open_lib(void)
{
	size_t i;
	bool ok;

	pthread_mutex_lock(&lib_lock);
	for (i = 0; i < LNX_ARRAY_SIZE(files) && !lib_open; i++)
		lib_open = open_file(files[i]);
	ok = lib_open;
	pthread_mutex_unlock(&lib_lock);
	return ok;
}

static void wipe(void *at, size_t len)
{
	lib.sodium_memzero(at, len);
}

static int no_library(void)
{
	if (open_lib())
		return 0;
	lnx_warn_once(true, "FI_LNX_JOB_KEY needs libsodium, and neither %s nor %s can be loaded: install it (Debian: libsodium23), or unset the variable",
		      files[0], files[1]);
	return -FI_ENOSYS;
}

/* ---- the text ---- */

/* The end of the sentence that begins with the name of the file. */
static int bad_file(const char *path, int ret, const char *why)
{
	char shown[300];

	lnx_warn_once(true, "FI_LNX_JOB_KEY_FILE=\"%s\": %s",
		      lnx_warn_printable(path, strlen(path), shown, sizeof(shown)),
		      why);
	return ret;
}

/* Read up to max bytes: their number, or -1 with errno. */
static ssize_t read_all(int fd, uint8_t *buf, size_t max)
{
	size_t n = 0;
	ssize_t got;

	while (n < max) {
		got = read(fd, buf + n, max - n);
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return -1;
		if (!got)
			break;
		n += (size_t)got;
	}
	return (ssize_t)n;
}

static int check_file(const char *path, const struct stat *st)
{
	if (!S_ISREG(st->st_mode))
		return bad_file(path, -FI_EACCES, "it must be a regular file");
	if (st->st_uid != geteuid() && st->st_uid != 0)
		return bad_file(path, -FI_EACCES, "it belongs to another user; it must be owned by the user of this process, or by root");
	if (st->st_mode & 077)
		return bad_file(path, -FI_EACCES, "others may read or write it; its mode must be 0600 or 0400 (chmod 600)");
	return 0;
}

/* The text in the file; buf has room for one byte more than max.  *len is set also
 * after an error, to what must be wiped. */
static int read_file(const char *path, uint8_t *buf, size_t max, size_t *len)
{
	struct stat st;
	ssize_t n;
	int fd, ret;

	*len = 0;
	/* Opening something else than a file must not wait. */
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	if (fd < 0 || fstat(fd, &st)) {
		ret = bad_file(path, -FI_EACCES, strerror(errno));
	} else {
		ret = check_file(path, &st);
		n = ret ? 0 : read_all(fd, buf, max + 1);
		if (n < 0)
			ret = bad_file(path, -FI_EACCES, strerror(errno));
		else
			*len = (size_t)n;
	}
	if (fd >= 0)
		close(fd);
	if (!ret && *len && buf[*len - 1] == '\n')
		--*len;
	return ret;
}

static int check_len(const char *name, size_t len)
{
	if (len >= LNX_JOB_KEY_MIN && len <= LNX_JOB_KEY_MAX)
		return 0;
	lnx_warn_once(true, "%s: the key is %s; it must have %d to %d bytes",
		      name, !len ? "empty" : len < LNX_JOB_KEY_MIN ?
		      "too short" : "too long", LNX_JOB_KEY_MIN,
		      LNX_JOB_KEY_MAX);
	return -FI_EINVAL;
}

/* A short key has no meaning of its own: it must not be that of something else. */
static void derive(struct lnx_job_key *key, const void *text, size_t len)
{
	static const uint8_t context[] = "lnx job key 1...";

	lib.crypto_generichash(key->bytes, sizeof(key->bytes), text, len,
			       context, sizeof(context) - 1);
}

static int load(const struct lnx_conf *conf, struct lnx_job_key *key)
{
	uint8_t text[LNX_JOB_KEY_MAX + 2];
	const char *name = "FI_LNX_JOB_KEY";
	const void *at = conf->job_key;
	size_t len = 0, used = 0;
	int ret = 0;

	if (conf->job_key) {
		len = strlen(conf->job_key);
	} else {
		name = "FI_LNX_JOB_KEY_FILE";
		at = text;
		ret = read_file(conf->job_key_file, text, LNX_JOB_KEY_MAX + 1,
				&len);
		used = sizeof(text);
	}
	if (!ret)
		ret = check_len(name, len);
	if (!ret)
		derive(key, at, len);
	wipe(text, used);
	return ret;
}

/* ---- job_key.h ---- */

static int contradictions(const struct lnx_conf *conf)
{
	const char *name = conf->job_key ? "FI_LNX_JOB_KEY" :
					   "FI_LNX_JOB_KEY_FILE";

	if (conf->job_key && conf->job_key_file)
		lnx_warn_once(true, "FI_LNX_JOB_KEY and FI_LNX_JOB_KEY_FILE are both set; set one of them");
	else if (lnx_conf_native(conf))
		lnx_warn_once(true, "%s: with FI_LNX_PROTOCOL=direct or FI_LNX_USE_SRQ=0 there are no frames that it could protect; unset these, or it",
			      name);
	else
		return 0;
	return -FI_EINVAL;
}

int lnx_job_key_load(const struct lnx_conf *conf, struct lnx_job_key **out)
{
	struct lnx_job_key *key;
	int ret;

	*out = NULL;
	if (!lnx_job_key_wanted(conf))
		return 0;
	ret = contradictions(conf);
	if (!ret)
		ret = no_library();
	if (ret)
		return ret;
	key = calloc(1, sizeof(*key));
	if (!key)
		return -FI_ENOMEM;
	ret = load(conf, key);
	if (ret) {
		lnx_job_key_free(key);
		return ret;
	}
	*out = key;
	return 0;
}

void lnx_job_key_free(struct lnx_job_key *key)
{
	if (key)
		wipe(key, sizeof(*key));
	free(key);
}

/* All that the frame says, without what may change on its way to the peer. */
static void hash(const struct lnx_job_key *key, const void *frame, size_t len,
		 uint8_t out[HASH_BYTES])
{
	static const uint8_t context[] = CONTEXT;
	uint8_t text[sizeof(context) + FRAME_MAX];
	struct lnx_wire_hdr w;
	size_t n = len - HASH_BYTES;

	memcpy(&w, frame, sizeof(w));
	w.hops = w.path = 0;
	w.rail = 0;
	w.ack = 0;
	memcpy(text, context, sizeof(context));
	memcpy(text + sizeof(context), &w, sizeof(w));
	memcpy(text + sizeof(context) + sizeof(w),
	       (const uint8_t *)frame + sizeof(w), n - sizeof(w));
	lib.crypto_generichash(out, HASH_BYTES, text, sizeof(context) + n,
			       key->bytes, sizeof(key->bytes));
}

static bool has_proof(size_t len)
{
	return len >= sizeof(struct lnx_wire_hdr) +
		      sizeof(struct lnx_wire_proof) && len <= FRAME_MAX;
}

void lnx_job_key_sign(const struct lnx_job_key *key, void *frame, size_t len)
{
	if (has_proof(len))
		hash(key, frame, len, (uint8_t *)frame + len - HASH_BYTES);
}

bool lnx_job_key_verify(const struct lnx_job_key *key, const void *frame,
			size_t len)
{
	uint8_t right[HASH_BYTES];

	if (!has_proof(len))
		return false;
	hash(key, frame, len, right);
	return !lib.sodium_memcmp(right, (const uint8_t *)frame + len -
				  HASH_BYTES, HASH_BYTES);
}

#else /* HAVE_SODIUM */

int lnx_job_key_load(const struct lnx_conf *conf, struct lnx_job_key **key)
{
	*key = NULL;
	if (!lnx_job_key_wanted(conf))
		return 0;
	lnx_warn_once(true, "%s: this lnx was built without libsodium and cannot use a key; build it with libsodium-dev installed, or unset the variable",
		      conf->job_key ? "FI_LNX_JOB_KEY" :
				      "FI_LNX_JOB_KEY_FILE");
	return -FI_ENOSYS;
}

void lnx_job_key_free(struct lnx_job_key *key)
{
	(void)key;
}

void lnx_job_key_sign(const struct lnx_job_key *key, void *frame, size_t len)
{
	(void)key, (void)frame, (void)len;
}

bool lnx_job_key_verify(const struct lnx_job_key *key, const void *frame,
			size_t len)
{
	(void)key, (void)frame, (void)len;
	return false;
}

#endif

int lnx_job_key_check(const struct lnx_conf *conf)
{
	struct lnx_job_key *key;
	int ret = lnx_job_key_load(conf, &key);

	lnx_job_key_free(key);
	return ret;
}
