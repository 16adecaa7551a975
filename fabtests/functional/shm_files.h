/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Files in /dev/shm that a killed process leaves behind. */
#ifndef SHM_FILES_H
#define SHM_FILES_H

#include <sys/types.h>

#define SHM_FILES	8
#define SHM_FILES_PATH	200

struct shm_files {
	int n;
	char path[SHM_FILES][SHM_FILES_PATH];
};

/* Those that the process maps now; none if it is not there. */
void shm_files_of(pid_t pid, struct shm_files *files);
/* Remove them, but not those in `keep`, which may be NULL; then there are none. */
void shm_files_remove(struct shm_files *files, const struct shm_files *keep);

#endif
