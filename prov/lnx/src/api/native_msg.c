/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * fi_msg(3) of an endpoint of native rails: the calls of msg.c, with msg/native.h below.
 */
#define LNX_NATIVE
#include "api/msg.c"
