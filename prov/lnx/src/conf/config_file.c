/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Reads the configuration file.  See config.h. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "conf/config.h"

#define ETC		"/etc/lnx.conf"
#define BYTES_MAX	(1u << 20)	/* far more than any has */

/* All of the file, of *len bytes; NULL with errno. */
static char *read_all(const char *path, size_t *len)
{
	char *text = malloc(BYTES_MAX + 1);
	/* A pipe without a writer must not stop us. */
	int fd = text ? open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK) : -1, err;
	FILE *file = fd >= 0 ? fdopen(fd, "r") : NULL;

	errno = text ? errno : ENOMEM;
	if (file) {
		errno = 0;
		*len = fread(text, 1, BYTES_MAX + 1, file);
		err = ferror(file) ? errno ? errno : EIO :
		      *len > BYTES_MAX ? EFBIG : 0;
		fclose(file);
		if (!err)
			return text;
		errno = err;
	}
	err = errno;
	if (fd >= 0 && !file)
		close(fd);
	free(text);
	errno = err;
	return NULL;
}

int lnx_config_load(const char *path, struct lnx_config **out, char *why, size_t size)
{
	const char *name = path ? path : ETC;
	struct lnx_config_error e;
	size_t len = 0;
	char *text = read_all(name, &len);
	int ret;

	*out = NULL;
	if (!text) {
		ret = errno;
		if (!path && ret == ENOENT)
			return 0;
		snprintf(why, size, "%s%s: it cannot be read: %s%s",
			 path ? "FI_LNX_CONFIG: " : "", name, strerror(ret),
			 ret == EFBIG ? "; at most 1 MiB are read" : "");
		return -ret;
	}
	memset(&e, 0, sizeof(e));
	ret = lnx_config_read(text, len, NULL, out, &e);
	if (ret)
		lnx_config_error_print(&e, name, why, size);
	free(text);
	return ret;
}
