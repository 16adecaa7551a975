/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Variables of core providers that lnx and its gateways set, never over a value that the user
 * chose.  Cores read them when they initialise: in a module of libfabric after the module
 * itself, in a program with the first call of libfabric.
 *
 * Gateways must have what endpoints have: ofi_rxm connects only those that have buffers of the
 * same size, and into its own 16 KiB no frame with an envelope fits.
 */
#ifndef LNX_TUNE_H
#define LNX_TUNE_H

#include <stdlib.h>

/*
 * ofi_rxm posts 4096 receive buffers of 16 KiB per endpoint, but our rails need few.  tcp
 * injects up to 128 bytes; ofi_rxm can inject that less its own 64-byte header, which our
 * header would fill, so small frames would not be injected.
 */
static inline void lnx_tune_cores(void)
{
	setenv("FI_OFI_RXM_MSG_RX_SIZE", "128", 0);
	setenv("FI_TCP_MAX_INJECT", "512", 0);
}

/*
 * Messages of ofi_rxm leave from one buffer, longer ones in several, which does not survive
 * a broken connection.  With buffers for 32 KiB and our header, messages of 32 and 64 KiB
 * take 0.7 to 0.8 of the time that they take with its own 16 KiB, and those of 16 KiB fit
 * into one frame.  Longer buffers gain nothing more and cost: it makes 1024 of them at once
 * and clears them, for receives when a rail is opened or opened anew, for sends at the first
 * message that it cannot inject, and nothing is delivered meanwhile: 8 ms with 16 KiB, 16
 * with 32, 50 with 96.  Both ends need buffers of the same size, so that this is done only
 * where a link, or a net of a gateway, names tcp;ofi_rxm.
 */
static inline void lnx_tune_rxm(void)
{
	setenv("FI_OFI_RXM_BUFFER_SIZE", "32832", 0);
}

#endif
