/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* See shm_files.h. */
#include "shm_files.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

void shm_files_of(pid_t pid, struct shm_files *files)
{
	char path[64], line[SHM_FILES_PATH + 200];
	int n = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/maps", (int)pid);
	f = fopen(path, "r");
	while (f && n < SHM_FILES && fgets(line, sizeof(line), f)) {
		char *at = strstr(line, "/dev/shm/");

		if (!at || strlen(at) >= SHM_FILES_PATH)
			continue;
		at[strcspn(at, "\n")] = '\0';
		if (!n || strcmp(at, files->path[n - 1]))
			strcpy(files->path[n++], at);
	}
	if (f)
		fclose(f);
	files->n = n;
}

void shm_files_remove(struct shm_files *files, const struct shm_files *keep)
{
	int i, k, nkeep = keep ? keep->n : 0;

	for (i = 0; i < files->n; i++) {
		for (k = 0; k < nkeep && strcmp(files->path[i], keep->path[k]); k++)
			;
		if (k == nkeep)
			unlink(files->path[i]);
	}
	files->n = 0;
}
