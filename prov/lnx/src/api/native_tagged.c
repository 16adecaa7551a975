/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * fi_tagged(3) of an endpoint of native rails: the calls of tagged.c, with msg/native.h
 * below.
 */
#define LNX_NATIVE
#include "api/tagged.c"
