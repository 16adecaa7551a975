/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The states of a path.  See path.h. */
#include "rel/path.h"

#define I	LNX_PATH_IDLE
#define C	LNX_PATH_CONNECTING
#define U	LNX_PATH_UP
#define X	LNX_PATH_DEAD
#define D	LNX_PATH_DOWN

const uint8_t lnx_path_table[LNX_PATH_NSTATE][LNX_PATH_NEVENT] = {
	/*		TOOK REFUSED BROKE EXPIRED GAVE_UP LOST ANSWERED REOPENED */
	[LNX_PATH_IDLE] =	{ U, C, I, X, I, D, I, C },
	[LNX_PATH_CONNECTING] =	{ U, C, C, X, I, D, C, C },
	[LNX_PATH_UP] =		{ U, C, C, X, I, D, U, C },
	[LNX_PATH_DEAD] =	{ U, C, X, X, I, D, X, C },
	[LNX_PATH_DOWN] =	{ D, D, D, X, D, D, U, D },
};

#define N	LNX_FAR_UNKNOWN
#define M	LNX_FAR_MUTE
#define R	LNX_FAR_REFUSES
#define A	LNX_FAR_ANSWERED

const uint8_t lnx_far_table[LNX_FAR_NSTATE][LNX_FAR_NEVENT] = {
	/*		ANEW ANSWERS REFUSES SILENT ASKS REOPENED PONG */
	[LNX_FAR_UNKNOWN] =	{ N, M, R, N, N, N, A },
	[LNX_FAR_MUTE] =	{ N, M, R, N, N, N, A },
	[LNX_FAR_REFUSES] =	{ N, M, R, N, R, N, A },
	[LNX_FAR_ANSWERED] =	{ N, A, A, A, A, A, A },
};
