/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The route key in its file.  See route_key.h. */
#include "os/route_key.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/span.h"

#define DIGITS		16
#define BYTES_MAX	256	/* blanks and newlines may be around it */

int lnx_route_key_read(const char *file, uint64_t *key, char *why, size_t size)
{
	/* Opening something else than a file must not wait. */
	int fd = open(file, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK), err = 0;
	char text[BYTES_MAX];
	struct stat st;
	ssize_t n = 0;

	if (fd < 0 || fstat(fd, &st))
		err = errno;
	else if (!S_ISREG(st.st_mode))
		err = EINVAL;
	else
		n = read(fd, text, sizeof(text));
	if (n < 0)
		err = errno;
	if (fd >= 0)
		close(fd);
	if (err) {
		snprintf(why, size, "%s: it cannot be read: %s", file, strerror(err));
		return -EINVAL;
	}
	if (st.st_mode & 077) {
		snprintf(why, size, "%s: its mode is %04o, and others must not read a route "
			 "key: chmod 600 %s", file, st.st_mode & 07777, file);
		return -EINVAL;
	}
	if (!lnx_span_hex64(lnx_span_trim((struct lnx_span){ text, (size_t)n }), key) ||
	    !*key) {
		snprintf(why, size, "%s: a route key is %d hex digits, not all 0", file, DIGITS);
		return -EINVAL;
	}
	return 0;
}
