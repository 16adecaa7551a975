/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* What prov.c would define, for tests of the layers above without a core
 * (fake_world.c). */
#include "fi.h"

struct fi_provider lnx_prov = { .name = "lnx" };
