/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Writes to standard error.  See say.h. */
#include "base/say.h"

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <time.h>
#include <unistd.h>

void lnx_say(const char *text, size_t len)
{
	const struct timespec no_wait = { 0, 0 };
	sigset_t pipe_only, old, pending;
	int keep = errno;
	bool was_pending;

	/* SIGPIPE would end the application.  If one was pending already, it is left
	 * pending. */
	sigemptyset(&pipe_only);
	sigaddset(&pipe_only, SIGPIPE);
	sigemptyset(&pending);
	sigpending(&pending);
	was_pending = sigismember(&pending, SIGPIPE) == 1;
	if (pthread_sigmask(SIG_BLOCK, &pipe_only, &old)) {
		errno = keep;
		return;
	}
	if (write(STDERR_FILENO, text, len) < 0 && errno == EPIPE &&
	    !was_pending)
		sigtimedwait(&pipe_only, NULL, &no_wait);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	errno = keep;
}
