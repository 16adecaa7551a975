/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Random numbers for keys.  See key_pool.h. */
#include "core/key_pool.h"

#include <pthread.h>
#include <sys/mman.h>

#include "core/open.h"

/* As many as the kernel always gives in one piece. */
#define KEYS	(LNX_RANDOM_MAX / sizeof(uint64_t))

/*
 * One for the process.  It is in memory that is all zeros in a child after fork(): then
 * the pool is empty, and its lock free, also if the parent holds it.
 */
static struct pool {
	pthread_mutex_t lock;
	size_t left;
	uint64_t key[KEYS];
} *pool;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void create(void)
{
	struct pool *p = mmap(NULL, sizeof(*p), PROT_READ | PROT_WRITE,
			      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		return;
	/* Linux 4.14.  Zeros are PTHREAD_MUTEX_INITIALIZER. */
	if (madvise(p, sizeof(*p), MADV_WIPEONFORK))
		munmap(p, sizeof(*p));
	else
		pool = p;
}

void lnx_key_pool_fini(void)
{
	if (pool)
		munmap(pool, sizeof(*pool));
	pool = NULL;
}

int lnx_key_random(uint64_t *key)
{
	int ret = 0;

	pthread_once(&once, create);
	if (!pool)
		return lnx_host_random(key, sizeof(*key));
	pthread_mutex_lock(&pool->lock);
	if (!pool->left) {
		ret = lnx_host_random(pool->key, sizeof(pool->key));
		if (!ret)
			pool->left = KEYS;
	}
	if (!ret) {
		*key = pool->key[--pool->left];
		pool->key[pool->left] = 0;
	}
	pthread_mutex_unlock(&pool->lock);
	return ret;
}
