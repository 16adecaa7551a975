/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * fi_rma(3) of an endpoint of native rails: the calls of rma.c, with msg/native.h below.
 */
#define LNX_NATIVE
#include "api/rma.c"
