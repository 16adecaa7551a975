/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The cases of getinfo_test.c. */
#include "getinfo_test.h"

#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_tagged.h>

#define API		FI_VERSION(2, 1)
/* The compiler warns at libfabric's own name (deprecated). */
#define MR_BASIC	(1 << 0)
#define MR_SCALABLE	(1 << 1)
#define LINKS(text)	"FI_LNX_PROV_LINKS=" text

/* ---- helpers ---- */

const char *gi_make_net(void)
{
	static const char script[] =
		"exec 2>/dev/null; set -e; ip link set lo up;"
		"ip link add r0 type veth peer name r1;"
		"ip link add r2 type veth peer name r3;"
		"for i in r0 r1 r2 r3; do ip link set $i up; done;"
		"ip addr add 10.77.1.1/24 dev r0;"
		"ip addr add 10.77.9.1/24 dev r0;"
		"ip addr add fd77:1::1/64 dev r0 nodad;"
		"ip addr add 10.77.2.1/24 dev r1;"
		"ip addr add fd77:3::1/64 dev r2 nodad";

	if (unshare(CLONE_NEWNET))
		return "no permission for a network namespace";
	if (system(script))
		return "interfaces could not be made";
	return NULL;
}

/* Our module: the library may have a built-in lnx, with a version near its own. */
static bool is_lnx(const struct fi_info *info)
{
	return !strcmp(info->fabric_attr->prov_name, "lnx") &&
	       info->fabric_attr->prov_version > FI_VERSION(1000, 0);
}

static struct fi_info *new_hints(void)
{
	struct fi_info *hints = fi_allocinfo();

	if (!hints)
		abort();
	hints->fabric_attr->prov_name = strdup("lnx");
	return hints;
}

static int query(const struct fi_info *hints, struct fi_info **list)
{
	*list = NULL;
	return fi_getinfo(API, NULL, NULL, 0, hints, list);
}

/* Names of the domains of a list, "a b c". */
static const char *domains(const struct fi_info *list)
{
	static char buf[4096];

	*buf = '\0';
	for (; list; list = list->next) {
		if (!is_lnx(list))
			continue;
		if (*buf)
			strcat(buf, " ");
		strncat(buf, list->domain_attr->name, 500);
	}
	return buf;
}

#define CHECK_DOMAINS(list, should)					\
	do {								\
		const char *is_ = domains(list);			\
		if (strcmp(is_, should))				\
			gi_fail(__FILE__, __LINE__,			\
				"domains are \"%s\", not \"%s\"", is_,	\
				should);				\
	} while (0)

/* ---- when lnx is asked for, and when not ---- */

static void run_asked_by_hint(void)
{
	struct fi_info *hints = new_hints(), *list;

	CHECK_INT(query(hints, &list), 0);
	CHECK(list && is_lnx(list));
	CHECK(list && !strncmp(list->domain_attr->name, "shm+", 4));
	fi_freeinfo(list);
	fi_freeinfo(hints);
}

static void run_not_asked(void)
{
	struct fi_info *list;

	CHECK_INT(fi_getinfo(API, NULL, NULL, 0, NULL, &list), 0);
	CHECK_DOMAINS(list, "");
	fi_freeinfo(list);
	CHECK(!getenv("FI_OFI_RXM_MSG_RX_SIZE"));
}

static void run_asked_by_filter(void)
{
	struct fi_info *list, *info;

	CHECK_INT(fi_getinfo(API, NULL, NULL, 0, NULL, &list), 0);
	for (info = list; info; info = info->next)
		CHECK(is_lnx(info));
	CHECK(list && !strncmp(list->domain_attr->name, "shm+", 4));
	fi_freeinfo(list);
}

static void run_asked_among_others(void)
{
	struct fi_info *list;

	CHECK_INT(fi_getinfo(API, NULL, NULL, 0, NULL, &list), 0);
	CHECK(*domains(list));
	fi_freeinfo(list);
}

static void run_other_provider(void)
{
	struct fi_info *hints = fi_allocinfo(), *list = NULL;

	hints->fabric_attr->prov_name = strdup("shm");
	CHECK_INT(query(hints, &list), 0);
	CHECK_DOMAINS(list, "");
	fi_freeinfo(list);
	fi_freeinfo(hints);
}

/* Any link may be named if FI_LNX_LINKS does not say which ones. */
static void run_domain_is_a_link(void)
{
	struct fi_info *hints = new_hints(), *list;

	hints->domain_attr->name = strdup("shm+tcp:lo");
	CHECK_INT(query(hints, &list), 0);
	CHECK_DOMAINS(list, "shm+tcp:lo");
	fi_freeinfo(list);
	fi_freeinfo(hints);
}

static void run_nothing(void)
{
	struct fi_info *hints = new_hints(), *list;

	/* Asked twice: an error is reported once. */
	CHECK_INT(query(hints, &list), -FI_ENODATA);
	CHECK(!list);
	CHECK_INT(query(hints, &list), -FI_ENODATA);
	fi_freeinfo(hints);
}

static void run_any(void)
{
	struct fi_info *hints = new_hints(), *list;

	CHECK_INT(query(hints, &list), 0);
	fi_freeinfo(list);
	fi_freeinfo(hints);
}

static void run_bad_domain_named(void)
{
	struct fi_info *hints = new_hints(), *list;

	hints->domain_attr->name = strdup("shm+tcp:nosuch");
	CHECK_INT(query(hints, &list), -FI_ENODATA);
	fi_freeinfo(hints);
}

/* The default link has all rails that exist; a missing network is no error. */
static void run_no_network(void)
{
	struct fi_info *hints = new_hints(), *list;

	if (system("ip link del r0; ip link del r2"))
		gi_fail(__FILE__, __LINE__, "could not remove interfaces");
	CHECK_INT(query(hints, &list), 0);
	CHECK_DOMAINS(list, "shm+tcp:lo");
	fi_freeinfo(list);
	fi_freeinfo(hints);
}

/* ---- attributes ---- */

static void check_names(const struct fi_info *info, const char *domain)
{
	CHECK(!strcmp(info->fabric_attr->prov_name, "lnx"));
	CHECK(!strcmp(info->fabric_attr->name, "lnx"));
	CHECK(!strcmp(info->domain_attr->name, domain));
	CHECK(is_lnx(info));
}

static void run_attributes(void)
{
	struct fi_info *hints = new_hints(), *i;
	uint64_t caps = FI_MSG | FI_TAGGED | FI_SEND | FI_RECV |
			FI_RMA | FI_ATOMIC | FI_READ | FI_WRITE |
			FI_REMOTE_READ | FI_RMA_EVENT |
			FI_REMOTE_WRITE | FI_MULTI_RECV | FI_SOURCE |
			FI_DIRECTED_RECV | FI_LOCAL_COMM | FI_REMOTE_COMM;
	uint64_t order = FI_ORDER_SAS | FI_ORDER_RAR | FI_ORDER_RAW |
			 FI_ORDER_WAR | FI_ORDER_WAW | FI_ORDER_RMA_RAR |
			 FI_ORDER_RMA_RAW | FI_ORDER_RMA_WAR |
			 FI_ORDER_RMA_WAW | FI_ORDER_ATOMIC_RAR |
			 FI_ORDER_ATOMIC_RAW | FI_ORDER_ATOMIC_WAR |
			 FI_ORDER_ATOMIC_WAW;

	CHECK_INT(query(hints, &i), 0);
	fi_freeinfo(hints);
	if (!i)
		return;
	check_names(i, "shm+tcp:lo");
	CHECK(!i->next);
	/* Loopback reaches this node only, shm too. */
	CHECK_INT(i->caps & ~FI_REMOTE_COMM, caps & ~FI_REMOTE_COMM);
	CHECK_INT(i->tx_attr->caps, FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC |
		  FI_SEND | FI_READ | FI_WRITE);
	CHECK_INT(i->rx_attr->caps, FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC |
		  FI_RMA_EVENT | FI_RECV |
		  FI_REMOTE_READ | FI_REMOTE_WRITE | FI_MULTI_RECV | FI_SOURCE | FI_DIRECTED_RECV);
	CHECK_INT(i->mode, 0);
	CHECK(i->src_addr && !i->dest_addr);
	CHECK_INT(i->src_addrlen, 64);		/* what fi_getname wants */
	if (i->src_addr) {
		char copy[64];

		memcpy(copy, i->src_addr, i->src_addrlen);
		CHECK(!memcmp(copy, "LNXA", 4));
	}
	CHECK_INT(i->ep_attr->type, FI_EP_RDM);
	/* A protocol of our own: libfabric's built-in lnx speaks another one. */
	CHECK(i->ep_attr->protocol & 0x80000000U);
	CHECK(i->ep_attr->max_msg_size >= 1ULL << 32);
	CHECK(i->ep_attr->mem_tag_format == 0xaaaaaaaaaaaaaaaaULL);
	CHECK_INT(i->tx_attr->msg_order, order);
	CHECK_INT(i->rx_attr->msg_order, order);
	CHECK(i->ep_attr->max_order_waw_size >= 4096);
	CHECK(i->ep_attr->max_order_raw_size >= 4096);
	CHECK(i->ep_attr->max_order_war_size >= 4096);
	CHECK_INT(i->tx_attr->inject_size, 4096);
	CHECK_INT(i->tx_attr->iov_limit, 4);
	CHECK_INT(i->rx_attr->iov_limit, 4);
	CHECK_INT(i->tx_attr->size, 1024);
	CHECK_INT(i->rx_attr->size, 1024);
	CHECK_INT(i->tx_attr->op_flags, 0);
	CHECK_INT(i->domain_attr->threading, FI_THREAD_SAFE);
	CHECK_INT(i->domain_attr->control_progress, FI_PROGRESS_MANUAL);
	CHECK_INT(i->domain_attr->data_progress, FI_PROGRESS_MANUAL);
	CHECK_INT(i->domain_attr->resource_mgmt, FI_RM_ENABLED);
	CHECK_INT(i->domain_attr->av_type, FI_AV_UNSPEC);
	CHECK_INT(i->domain_attr->mr_mode, 0);
	CHECK_INT(i->domain_attr->cq_data_size, 8);
	fi_freeinfo(i);
}

static void run_shm_only(void)
{
	struct fi_info *hints = new_hints(), *i;

	CHECK_INT(query(hints, &i), 0);
	if (i) {
		check_names(i, "shm");
		CHECK(!i->next);
		CHECK(i->caps & FI_LOCAL_COMM);
		CHECK(!(i->caps & FI_REMOTE_COMM));
		CHECK_INT(i->tx_attr->inject_size, 4096);
		fi_freeinfo(i);
	}
	hints->caps = FI_TAGGED | FI_REMOTE_COMM;
	CHECK_INT(query(hints, &i), -FI_ENODATA);
	fi_freeinfo(hints);
}

/* Primary capabilities and their modifiers are returned only if requested. */
static void run_caps(void)
{
	static const struct {
		uint64_t ask, must, must_not;
	} row[] = {
		{ FI_TAGGED, FI_TAGGED | FI_SEND | FI_RECV,
		  FI_MSG | FI_SOURCE | FI_DIRECTED_RECV },
		{ FI_MSG, FI_MSG | FI_MULTI_RECV, FI_TAGGED },
		{ FI_MSG | FI_SEND, FI_MSG | FI_SEND,
		  FI_RECV | FI_MULTI_RECV },
		{ FI_TAGGED | FI_SOURCE, FI_SOURCE, FI_DIRECTED_RECV },
		{ FI_TAGGED | FI_DIRECTED_RECV, FI_DIRECTED_RECV, FI_SOURCE },
		{ FI_MSG | FI_LOCAL_COMM, FI_LOCAL_COMM, 0 },
	};
	struct fi_info *hints = new_hints(), *i;

	for (size_t r = 0; r < sizeof(row) / sizeof(row[0]); r++) {
		hints->caps = row[r].ask;
		CHECK_INT(query(hints, &i), 0);
		if (!i) {
			printf("#   row %zu\n", r);
			continue;
		}
		CHECK_INT(i->caps & row[r].must, row[r].must);
		CHECK_INT(i->caps & row[r].must_not, 0);
		CHECK_INT((i->tx_attr->caps | i->rx_attr->caps |
			   i->domain_attr->caps) & ~i->caps, 0);
		if (!(i->caps & FI_RECV))
			CHECK_INT(i->rx_attr->caps, 0);
		fi_freeinfo(i);
	}
	fi_freeinfo(hints);
}

/* ---- hints one by one ---- */

/* HINT changes new hints and checks that fi_getinfo takes or refuses them. */
enum verdict { TAKEN, REFUSED };
static void hint_is(const char *what, struct fi_info *hints,
		    enum verdict should)
{
	struct fi_info *list;
	int ret = query(hints, &list);

	if (ret != (should == TAKEN ? 0 : -FI_ENODATA))
		gi_fail(__FILE__, __LINE__, "%s: returned %d", what, ret);
	fi_freeinfo(list);
}

#define HINT(should, ...)						\
	do {								\
		struct fi_info *h = new_hints();			\
		__VA_ARGS__;						\
		hint_is(#__VA_ARGS__, h, should);			\
		fi_freeinfo(h);						\
	} while (0)

/* The attribute that is returned for a hint. */
#define RETURNS(field, should, ...)					\
	do {								\
		struct fi_info *h = new_hints(), *i;			\
		__VA_ARGS__;						\
		CHECK_INT(query(h, &i), 0);				\
		if (i)							\
			CHECK_INT(i->field, should);			\
		fi_freeinfo(i);						\
		fi_freeinfo(h);						\
	} while (0)

static void run_hints(void)
{
	HINT(TAKEN, h->ep_attr->type = FI_EP_RDM);
	HINT(REFUSED, h->ep_attr->type = FI_EP_MSG);
	HINT(REFUSED, h->ep_attr->type = FI_EP_DGRAM);
	HINT(REFUSED, h->ep_attr->protocol = FI_PROTO_RXM);
	HINT(REFUSED, h->ep_attr->protocol = FI_PROTO_LNX);
	HINT(REFUSED, h->ep_attr->protocol_version = 1000);
	HINT(TAKEN, h->ep_attr->max_msg_size = 1ULL << 32);
	HINT(REFUSED, h->ep_attr->max_msg_size = (1ULL << 32) + 1);
	HINT(TAKEN, h->ep_attr->rx_ctx_cnt = FI_SHARED_CONTEXT);
	HINT(REFUSED, h->ep_attr->rx_ctx_cnt = 2);
	HINT(TAKEN, h->ep_attr->tx_ctx_cnt = 1);
	HINT(REFUSED, h->ep_attr->tx_ctx_cnt = 2);
	HINT(TAKEN, h->ep_attr->mem_tag_format = UINT64_MAX);
	HINT(TAKEN, h->ep_attr->mem_tag_format = FI_TAG_MPI);

	HINT(TAKEN, h->addr_format = FI_FORMAT_UNSPEC);
	HINT(REFUSED, h->addr_format = FI_SOCKADDR_IN);
	HINT(REFUSED, h->addr_format = FI_ADDR_STR);
	HINT(TAKEN, h->mode = ~0ULL);

	RETURNS(rx_attr->caps, FI_RMA | FI_REMOTE_READ | FI_REMOTE_WRITE,
		h->caps = FI_RMA);
	RETURNS(rx_attr->caps, 0, h->caps = FI_RMA | FI_WRITE);
	RETURNS(tx_attr->caps, FI_RMA | FI_WRITE, h->caps = FI_RMA | FI_WRITE);
	RETURNS(tx_attr->caps, FI_TAGGED | FI_RMA | FI_SEND | FI_WRITE,
		h->caps = FI_TAGGED | FI_RMA | FI_WRITE);
	HINT(TAKEN, h->caps = FI_MSG | FI_ATOMIC);
	HINT(REFUSED, h->caps = FI_MSG | FI_HMEM);
	HINT(REFUSED, h->caps = FI_MSG | FI_PEER);
	HINT(REFUSED, h->caps = FI_MSG | FI_FENCE);
	HINT(REFUSED, h->caps = FI_TAGGED, h->tx_attr->caps = FI_MSG);
	HINT(TAKEN, h->caps = FI_TAGGED, h->tx_attr->caps = FI_TAGGED);

	HINT(TAKEN, h->tx_attr->inject_size = 4096);
	HINT(REFUSED, h->tx_attr->inject_size = 4097);
	HINT(TAKEN, h->tx_attr->iov_limit = 4);
	HINT(REFUSED, h->tx_attr->iov_limit = 5);
	HINT(REFUSED, h->rx_attr->iov_limit = 5);
	RETURNS(tx_attr->size, 65536, h->tx_attr->size = 65536);
	RETURNS(rx_attr->size, 7, h->rx_attr->size = 7);
	HINT(REFUSED, h->tx_attr->size = 65537);
	HINT(REFUSED, h->rx_attr->size = SIZE_MAX);
	HINT(TAKEN, h->tx_attr->msg_order = FI_ORDER_SAS);
	HINT(TAKEN, h->tx_attr->msg_order = FI_ORDER_SAS | FI_ORDER_RAW);
	HINT(TAKEN, h->tx_attr->msg_order = FI_ORDER_SAW);
	HINT(REFUSED, h->tx_attr->msg_order = FI_ORDER_SAR);
	HINT(TAKEN, h->rx_attr->msg_order = FI_ORDER_ATOMIC_WAW);
	HINT(REFUSED, h->tx_attr->comp_order = 1);
	RETURNS(tx_attr->op_flags, FI_COMPLETION | FI_DELIVERY_COMPLETE,
		h->tx_attr->op_flags = FI_COMPLETION | FI_DELIVERY_COMPLETE);
	HINT(TAKEN, h->tx_attr->op_flags = FI_INJECT_COMPLETE);
	HINT(TAKEN, h->tx_attr->op_flags = FI_TRANSMIT_COMPLETE);
	HINT(TAKEN, h->tx_attr->op_flags = FI_INJECT);
	HINT(REFUSED, h->tx_attr->op_flags = FI_COMMIT_COMPLETE);
	HINT(REFUSED, h->tx_attr->op_flags = FI_MATCH_COMPLETE);
	RETURNS(rx_attr->op_flags, FI_MULTI_RECV,
		h->rx_attr->op_flags = FI_MULTI_RECV);
	HINT(REFUSED, h->rx_attr->op_flags = FI_DELIVERY_COMPLETE);

	RETURNS(domain_attr->threading, FI_THREAD_DOMAIN,
		h->domain_attr->threading = FI_THREAD_DOMAIN);
	RETURNS(domain_attr->threading, FI_THREAD_COMPLETION,
		h->domain_attr->threading = FI_THREAD_COMPLETION);
	RETURNS(domain_attr->threading, FI_THREAD_ENDPOINT,
		h->domain_attr->threading = FI_THREAD_ENDPOINT);
	HINT(REFUSED, h->domain_attr->threading = (enum fi_threading)77);
	RETURNS(domain_attr->data_progress, FI_PROGRESS_AUTO,
		h->domain_attr->data_progress = FI_PROGRESS_AUTO);
	RETURNS(domain_attr->control_progress, FI_PROGRESS_AUTO,
		h->domain_attr->control_progress = FI_PROGRESS_AUTO);
	RETURNS(domain_attr->av_type, FI_AV_MAP,
		h->domain_attr->av_type = FI_AV_MAP);
	RETURNS(domain_attr->av_type, FI_AV_TABLE,
		h->domain_attr->av_type = FI_AV_TABLE);
	RETURNS(domain_attr->resource_mgmt, FI_RM_ENABLED,
		h->domain_attr->resource_mgmt = FI_RM_DISABLED);
	HINT(TAKEN, h->domain_attr->cq_data_size = 8);
	HINT(REFUSED, h->domain_attr->cq_data_size = 9);
	HINT(REFUSED, h->domain_attr->mr_key_size = 9);
	HINT(TAKEN, h->domain_attr->max_ep_srx_ctx = 1);
	HINT(REFUSED, h->domain_attr->max_ep_srx_ctx = 1 << 20);
	HINT(REFUSED, h->domain_attr->max_group_id = 1);
	HINT(REFUSED, h->domain_attr->ep_cnt = 1 << 20);
	RETURNS(domain_attr->mr_mode, 0, h->domain_attr->mr_mode =
		FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED |
		FI_MR_PROV_KEY | FI_MR_ENDPOINT);
	/* A bit that we do not need is not made a requirement. */
	RETURNS(domain_attr->mr_mode, 0,
		h->domain_attr->mr_mode = FI_MR_VIRT_ADDR);
	RETURNS(domain_attr->mr_mode, 0,
		h->domain_attr->mr_mode = FI_MR_PROV_KEY);
	RETURNS(domain_attr->mr_mode, 0,
		h->domain_attr->mr_mode = FI_MR_ALLOCATED);
	RETURNS(domain_attr->mr_mode, MR_BASIC,
		h->domain_attr->mr_mode = MR_BASIC);
	RETURNS(domain_attr->mr_mode, MR_SCALABLE,
		h->domain_attr->mr_mode = MR_SCALABLE);

	HINT(TAKEN, h->fabric_attr->name = strdup("lnx"));
	HINT(REFUSED, h->fabric_attr->name = strdup("shm"));
	HINT(TAKEN, h->domain_attr->name = strdup("shm+tcp:lo"));
	HINT(REFUSED, h->domain_attr->name = strdup("shm+tcp"));
	HINT(REFUSED, h->domain_attr->name = strdup("shm"));
	HINT(REFUSED, h->domain_attr->name = strdup("lo"));
	HINT(REFUSED, h->src_addr = strdup("x"), h->src_addrlen = 2);
	HINT(REFUSED, h->src_addr = calloc(1, 64), h->src_addrlen = 64);
	HINT(REFUSED, h->dest_addr = strdup("x"), h->dest_addrlen = 2);
	HINT(REFUSED, h->dest_addr = calloc(1, 64), h->dest_addrlen = 64);
}

/* The rails get the application's own operations, and only shm accepts our keys
 * then. */
static void run_no_srq(void)
{
	RETURNS(domain_attr->mr_mode, 0, h->caps = FI_MSG);
	RETURNS(domain_attr->mr_mode, MR_SCALABLE,
		h->domain_attr->mr_mode = MR_SCALABLE);
	HINT(REFUSED, h->domain_attr->mr_mode = MR_BASIC);
}

static void run_no_srq_shm(void)
{
	RETURNS(domain_attr->mr_mode, MR_BASIC,
		h->domain_attr->mr_mode = MR_BASIC);
}

static void run_no_thread(void)
{
	HINT(REFUSED, h->domain_attr->data_progress = FI_PROGRESS_AUTO);
	HINT(TAKEN, h->domain_attr->data_progress = FI_PROGRESS_MANUAL);
}

static void run_versions(void)
{
	/* The answers of shm and tcp;ofi_rxm. */
	static const struct { uint32_t api; int ask, mr_mode; } row[] = {
		{ FI_VERSION(1, 4), 0, MR_BASIC },
		{ FI_VERSION(1, 4), MR_BASIC, MR_BASIC },
		{ FI_VERSION(1, 4), MR_SCALABLE, MR_SCALABLE },
		{ FI_VERSION(1, 5), 0, 0 },
		{ FI_VERSION(1, 5), MR_BASIC, MR_BASIC },
		{ FI_VERSION(1, 5), MR_SCALABLE, MR_SCALABLE },
		{ FI_VERSION(1, 9), 0, 0 },
		{ FI_VERSION(1, 18), 0, 0 },
		{ FI_VERSION(2, 0), 0, 0 },
		{ FI_VERSION(2, 1), 0, 0 },
		{ FI_VERSION(2, 1), MR_BASIC, MR_BASIC },
		{ FI_VERSION(2, 1), MR_SCALABLE, MR_SCALABLE },
	};
	struct fi_info *hints = new_hints(), *i;

	for (size_t r = 0; r < sizeof(row) / sizeof(row[0]); r++) {
		i = NULL;
		hints->domain_attr->mr_mode = row[r].ask;
		CHECK_INT(fi_getinfo(row[r].api, NULL, NULL, 0, hints, &i),
			  0);
		if (i) {
			CHECK_INT(i->domain_attr->mr_mode, row[r].mr_mode);
			CHECK_INT(i->fabric_attr->api_version, row[r].api);
		}
		fi_freeinfo(i);
	}
	fi_freeinfo(hints);
}

/* The result of fi_getinfo must be valid hints for fi_getinfo. */
static void run_own_result(void)
{
	struct fi_info *hints = new_hints(), *first, *again;

	CHECK_INT(query(hints, &first), 0);
	for (struct fi_info *i = first; i; i = i->next) {
		CHECK_INT(query(i, &again), 0);
		if (!again)
			continue;
		CHECK(!strcmp(again->domain_attr->name,
			      i->domain_attr->name));
		CHECK(!again->next);
		CHECK(again->src_addr && again->src_addrlen == i->src_addrlen &&
		      !memcmp(again->src_addr, i->src_addr, i->src_addrlen));
		CHECK_INT(again->caps, i->caps);
		CHECK_INT(again->tx_attr->caps, i->tx_attr->caps);
		CHECK_INT(again->rx_attr->caps, i->rx_attr->caps);
		CHECK_INT(again->domain_attr->threading,
			  i->domain_attr->threading);
		fi_freeinfo(again);
	}
	fi_freeinfo(first);
	fi_freeinfo(hints);
}

/* One capability alone is returned in each attribute that has it. */
static void run_caps_alone(void)
{
	static const struct { uint64_t cap, tx, rx, dom; } row[] = {
		{ FI_MSG, FI_MSG, FI_MSG, 0 },
		{ FI_TAGGED, FI_TAGGED, FI_TAGGED, 0 },
		{ FI_RMA, FI_RMA, FI_RMA, 0 },
		{ FI_ATOMIC, FI_ATOMIC, FI_ATOMIC, 0 },
		{ FI_DIRECTED_RECV, 0, FI_DIRECTED_RECV, 0 },
		{ FI_SOURCE, 0, FI_SOURCE, 0 },
		{ FI_RMA_EVENT, 0, FI_RMA_EVENT, 0 },
		{ FI_MULTI_RECV, 0, FI_MULTI_RECV, 0 },
		{ FI_SEND, FI_SEND, 0, 0 }, { FI_RECV, 0, FI_RECV, 0 },
		{ FI_READ, FI_READ, 0, 0 }, { FI_WRITE, FI_WRITE, 0, 0 },
		{ FI_REMOTE_READ, 0, FI_REMOTE_READ, 0 },
		{ FI_REMOTE_WRITE, 0, FI_REMOTE_WRITE, 0 },
		{ FI_LOCAL_COMM, 0, 0, FI_LOCAL_COMM },
	};
	struct fi_info *hints = new_hints(), *i;

	for (size_t r = 0; r < sizeof(row) / sizeof(row[0]); r++) {
		hints->caps = row[r].cap;
		CHECK_INT(query(hints, &i), 0);
		if (!i) {
			printf("#   row %zu\n", r);
			continue;
		}
		if (!(i->caps & row[r].cap) ||
		    (i->tx_attr->caps & row[r].cap) != row[r].tx ||
		    (i->rx_attr->caps & row[r].cap) != row[r].rx ||
		    (i->domain_attr->caps & row[r].cap) != row[r].dom)
			gi_fail(__FILE__, __LINE__, "row %zu: caps %#llx, tx "
				"%#llx, rx %#llx, domain %#llx", r,
				(unsigned long long)i->caps,
				(unsigned long long)i->tx_attr->caps,
				(unsigned long long)i->rx_attr->caps,
				(unsigned long long)i->domain_attr->caps);
		CHECK_INT((i->tx_attr->caps | i->rx_attr->caps |
			   i->domain_attr->caps) & ~i->caps, 0);
		fi_freeinfo(i);
	}
	fi_freeinfo(hints);
}

/* ---- every provider that there is ---- */

struct side {
	struct fid_domain *domain;
	struct fid_av *av;
	struct fid_cq *cq;
	struct fid_ep *ep;
	char name[64];
	fi_addr_t other;
};

static int open_side(struct side *s, struct fid_fabric *fabric,
		     struct fi_info *info)
{
	struct fi_av_attr av = { .type = FI_AV_TABLE };
	struct fi_cq_attr cq = { .format = FI_CQ_FORMAT_TAGGED };
	size_t len = sizeof(s->name);

	return fi_domain(fabric, info, &s->domain, NULL) ||
	       fi_av_open(s->domain, &av, &s->av, NULL) ||
	       fi_cq_open(s->domain, &cq, &s->cq, NULL) ||
	       fi_endpoint(s->domain, info, &s->ep, NULL) ||
	       fi_ep_bind(s->ep, &s->av->fid, 0) ||
	       fi_ep_bind(s->ep, &s->cq->fid, FI_TRANSMIT | FI_RECV) ||
	       fi_enable(s->ep) || fi_getname(&s->ep->fid, s->name, &len);
}

static void close_side(struct side *s)
{
	if (s->ep)
		CHECK_INT(fi_close(&s->ep->fid), 0);
	if (s->cq)
		CHECK_INT(fi_close(&s->cq->fid), 0);
	if (s->av)
		CHECK_INT(fi_close(&s->av->fid), 0);
	if (s->domain)
		CHECK_INT(fi_close(&s->domain->fid), 0);
}

/* Two endpoints of this process exchange small and large messages.  A link that
 * hangs is ended by the guard of the case. */
static void talk(const char *link, struct fi_info *info)
{
	static char in[200000], out[200000];
	static const size_t lens[] = { 8, sizeof(out) };
	struct fid_fabric *fabric = NULL;
	struct fi_cq_tagged_entry e;
	struct side s[2] = { 0 };
	struct fi_context2 ctx[2];

	if (fi_fabric(info->fabric_attr, &fabric, NULL) ||
	    open_side(&s[0], fabric, info) || open_side(&s[1], fabric, info)) {
		gi_fail(__FILE__, __LINE__, "%s: offered, and does not open",
			link);
		goto out;
	}
	CHECK_INT(fi_av_insert(s[0].av, s[1].name, 1, &s[0].other, 0, NULL), 1);
	CHECK_INT(fi_av_insert(s[1].av, s[0].name, 1, &s[1].other, 0, NULL), 1);
	for (size_t i = 0; i < sizeof(lens) / sizeof(lens[0]); i++) {
		unsigned done = 0;
		ssize_t ret;

		memset(out, 'a' + (int)i, lens[i]);
		memset(in, 0, lens[i]);
		CHECK_INT(fi_trecv(s[1].ep, in, lens[i], NULL, FI_ADDR_UNSPEC,
				   1, 0, &ctx[1]), 0);
		do {
			ret = fi_tsend(s[0].ep, out, lens[i], NULL, s[0].other,
				       1, &ctx[0]);
			fi_cq_read(s[1].cq, NULL, 0);
			fi_cq_read(s[0].cq, NULL, 0);
		} while (ret == -FI_EAGAIN);
		CHECK_INT(ret, 0);
		while (!ret && done < 2) {
			for (unsigned k = 0; k < 2; k++) {
				ret = fi_cq_read(s[k].cq, &e, 1);
				done += ret == 1;
				if (ret == -FI_EAVAIL)
					break;
				ret = 0;
			}
		}
		CHECK_INT(done, 2);
		CHECK(!memcmp(in, out, lens[i]));
	}
out:
	close_side(&s[0]);
	close_side(&s[1]);
	if (fabric)
		CHECK_INT(fi_close(&fabric->fid), 0);
}

/* Each is either a link that works, or is refused with a reason. */
static void run_every_provider(void)
{
	/* Some need the name of a domain, or of a provider layered over them. */
	static const char *const form[] = {
		"", ":lo", ";ofi_rxm:lo", ";ofi_rxd:lo",
	};
	struct fi_info *all, *p, *list, *hints = new_hints();
	unsigned works = 0;
	char name[128];

	CHECK_INT(fi_getinfo(API, NULL, NULL, FI_PROV_ATTR_ONLY, NULL, &all),
		  0);
	for (p = all; p; p = p->next)
	for (size_t i = 0; i < sizeof(form) / sizeof(form[0]); i++) {
		int ret;

		snprintf(name, sizeof(name), "%s%s", p->fabric_attr->prov_name,
			 form[i]);
		free(hints->domain_attr->name);
		hints->domain_attr->name = strdup(name);
		ret = query(hints, &list);
		/* "lnx" cannot be parsed as a link at all. */
		CHECK(!ret || ret == -FI_ENODATA || !strncmp(name, "lnx", 3));
		printf("# link %s: %s\n", name, fi_strerror(-ret));
		if (ret)
			continue;
		CHECK(strncmp(name, "sockets", 7));
		works++;
		talk(name, list);
		fi_freeinfo(list);
	}
	CHECK(works >= 3);		/* shm, tcp, tcp;ofi_rxm */
	fi_freeinfo(all);
	fi_freeinfo(hints);
}

/* ---- what known applications ask for ---- */

static struct fi_info *mpi_hints(uint64_t caps)
{
	struct fi_info *h = fi_allocinfo();

	h->mode = FI_CONTEXT | FI_CONTEXT2;
	h->caps = caps;
	h->ep_attr->type = FI_EP_RDM;
	h->tx_attr->msg_order = FI_ORDER_SAS;
	h->rx_attr->msg_order = FI_ORDER_SAS;
	h->tx_attr->op_flags = FI_COMPLETION;
	h->rx_attr->op_flags = FI_COMPLETION;
	h->domain_attr->threading = FI_THREAD_DOMAIN;
	h->domain_attr->resource_mgmt = FI_RM_ENABLED;
	h->domain_attr->av_type = FI_AV_MAP;
	h->domain_attr->cq_data_size = 4;
	return h;
}

static void run_open_mpi(void)
{
	uint64_t caps = FI_TAGGED | FI_LOCAL_COMM | FI_REMOTE_COMM |
			FI_DIRECTED_RECV;
	struct fi_info *h = mpi_hints(caps), *i = NULL;

	/* Release 4.1 */
	CHECK_INT(fi_getinfo(FI_VERSION(1, 5), NULL, NULL, 0, h, &i), 0);
	CHECK(*domains(i));
	for (struct fi_info *n = i; n; n = n->next)
		if (is_lnx(n)) {
			CHECK_INT(n->domain_attr->av_type, FI_AV_MAP);
			CHECK_INT(n->mode, 0);
			CHECK(n->caps & FI_DIRECTED_RECV);
		}
	fi_freeinfo(i);

	/* Release 5: with device memory first, then without. */
	h->caps |= FI_MSG | FI_HMEM;
	h->domain_attr->mr_mode = FI_MR_HMEM | FI_MR_ALLOCATED;
	i = NULL;
	fi_getinfo(FI_VERSION(1, 18), NULL, NULL, 0, h, &i);
	CHECK_DOMAINS(i, "");
	fi_freeinfo(i);
	h->caps &= ~FI_HMEM;
	h->domain_attr->mr_mode = 0;
	i = NULL;
	CHECK_INT(fi_getinfo(FI_VERSION(1, 18), NULL, NULL, 0, h, &i), 0);
	CHECK(*domains(i));
	fi_freeinfo(i);
	fi_freeinfo(h);
}

static void run_pingpong(void)
{
	struct fi_info *h = new_hints(), *i;

	h->ep_attr->type = FI_EP_RDM;
	h->caps = FI_MSG;
	h->mode = FI_CONTEXT | FI_CONTEXT2;
	h->domain_attr->mr_mode = FI_MR_LOCAL | FI_MR_VIRT_ADDR |
				  FI_MR_ALLOCATED | FI_MR_PROV_KEY;
	CHECK_INT(query(h, &i), 0);
	fi_freeinfo(i);
	fi_freeinfo(h);
}

/* ---- rails and names ---- */

static void run_all_domains(void)
{
	struct fi_info *hints = new_hints(), *list;

	CHECK_INT(query(hints, &list), 0);
	/* No lo, no r3, and one entry per interface, however many addresses it
	 * has.  The core determines their order. */
	CHECK(list && list->next && list->next->next);
	for (struct fi_info *i = list; i; i = i->next) {
		CHECK(!strstr(i->domain_attr->name, "lo"));
		CHECK(!strstr(i->domain_attr->name, "r3"));
	}
	if (list) {
		const char *full = list->domain_attr->name;

		CHECK(!strncmp(full, "shm+tcp:", 8));
		CHECK_INT(strlen(full), strlen("shm+tcp:r0,r1,r2"));
		CHECK(strstr(full, "r0") && strstr(full, "r1") &&
		      strstr(full, "r2"));
		CHECK(list->caps & FI_REMOTE_COMM);
	}
	fi_freeinfo(list);
	fi_freeinfo(hints);
}

static void run_order(void)
{
	struct fi_info *hints = new_hints(), *list;

	CHECK_INT(query(hints, &list), 0);
	CHECK_DOMAINS(list, "shm+tcp:r1,r0 shm+tcp:r1 shm+tcp:r0 tcp:r2 "
			    "tcp:r0,r2 tcp:r0");
	fi_freeinfo(list);

	hints->domain_attr->name = strdup("shm+tcp:r0");
	CHECK_INT(query(hints, &list), 0);
	CHECK_DOMAINS(list, "shm+tcp:r0");
	fi_freeinfo(list);
	fi_freeinfo(hints);
}

/* The first entry is of fabric "lnx", every other one of a fabric of its own,
 * for Open MPI.  An entry's names, as hints, give the same entry again. */
static void run_fabrics(void)
{
	struct fi_info *hints = new_hints(), *list, *i, *again;
	unsigned n = 0;
	char name[512];

	CHECK_INT(query(hints, &list), 0);
	for (i = list; i; i = i->next, n++) {
		if (n)
			snprintf(name, sizeof(name), "lnx:%s",
				 i->domain_attr->name);
		CHECK(!strcmp(i->fabric_attr->name, n ? name : "lnx"));
		free(hints->fabric_attr->name);
		free(hints->domain_attr->name);
		hints->fabric_attr->name = strdup(i->fabric_attr->name);
		hints->domain_attr->name = strdup(i->domain_attr->name);
		CHECK_INT(query(hints, &again), 0);
		CHECK(again && !again->next);
		if (again)
			CHECK(!strcmp(again->fabric_attr->name,
				      i->fabric_attr->name));
		fi_freeinfo(again);
	}
	CHECK(n > 2);
	/* The first name alone gives the first entry; another entry's name
	 * gives none. */
	free(hints->domain_attr->name);
	hints->domain_attr->name = NULL;
	free(hints->fabric_attr->name);
	hints->fabric_attr->name = strdup("lnx");
	CHECK_INT(query(hints, &again), 0);
	CHECK(again && !again->next);
	fi_freeinfo(again);
	free(hints->fabric_attr->name);
	hints->fabric_attr->name = strdup("lnx:elsewhere");
	CHECK_INT(query(hints, &again), -FI_ENODATA);
	fi_freeinfo(hints);
	fi_freeinfo(list);
}

static void run_lo_alone(void)
{
	struct fi_info *hints = new_hints(), *list;

	if (system("ip link del r0; ip link del r2"))
		gi_fail(__FILE__, __LINE__, "could not remove interfaces");
	CHECK_INT(query(hints, &list), 0);
	CHECK_DOMAINS(list, "shm+tcp:lo");
	fi_freeinfo(list);
	fi_freeinfo(hints);
}

static void run_two_kinds(void)
{
	struct fi_info *hints = new_hints(), *list;

	CHECK_INT(query(hints, &list), 0);
	CHECK_DOMAINS(list, "shm+tcp;ofi_rxm:r0+tcp:r1 shm+tcp;ofi_rxm:r0 "
			    "shm+tcp:r1");
	fi_freeinfo(list);
	fi_freeinfo(hints);
}

static void source_is(const char *node, uint64_t flags, const char *should)
{
	struct fi_info *hints = new_hints(), *list = NULL;
	int ret = fi_getinfo(API, node, "4711", flags, hints, &list);

	if (strcmp(domains(list), should) ||
	    ret != (*should ? 0 : -FI_ENODATA))
		gi_fail(__FILE__, __LINE__, "%s: returned %d, \"%s\"", node,
			ret, domains(list));
	fi_freeinfo(list);
	fi_freeinfo(hints);
}

static void run_source(void)
{
	source_is("10.77.2.1", FI_SOURCE, "shm+tcp:r1");
	source_is("10.77.1.1", FI_SOURCE | FI_NUMERICHOST, "shm+tcp:r0");
	/* A second address, and one of the other family. */
	source_is("10.77.9.1", FI_SOURCE, "shm+tcp:r0");
	source_is("fd77:1::1", FI_SOURCE, "shm+tcp:r0");
	source_is("127.0.0.1", FI_SOURCE, "");
	source_is("10.77.77.77", FI_SOURCE, "");
	source_is("no address", FI_SOURCE | FI_NUMERICHOST, "");
	/* Address of a peer: not used. */
	source_is("10.77.77.77", 0, "shm+tcp:r0,r1 shm+tcp:r0 shm+tcp:r1");
}

static void run_no_shm(void)
{
	struct fi_info *hints = new_hints(), *list;

	CHECK_INT(query(hints, &list), 0);
	CHECK_DOMAINS(list, "tcp:lo");
	fi_freeinfo(list);
	fi_freeinfo(hints);
}

/* The name stands for the rails that the endpoint would have: fewer rails
 * cannot use it. */
static void run_no_shm_named(void)
{
	struct fi_info *hints = new_hints(), *list;

	hints->domain_attr->name = strdup("shm+tcp:lo");
	CHECK_INT(query(hints, &list), -FI_ENODATA);
	CHECK_INT(query(hints, &list), -FI_ENODATA);
	free(hints->domain_attr->name);
	hints->domain_attr->name = strdup("tcp:lo");
	CHECK_INT(query(hints, &list), 0);
	CHECK_DOMAINS(list, "tcp:lo");
	fi_freeinfo(list);
	fi_freeinfo(hints);
}

static void run_no_shm_default(void)
{
	struct fi_info *hints = new_hints(), *list;

	CHECK_INT(query(hints, &list), 0);
	CHECK(list && is_lnx(list));
	for (struct fi_info *i = list; i; i = i->next)
		CHECK(!strstr(i->domain_attr->name, "shm"));
	fi_freeinfo(list);
	fi_freeinfo(hints);
}

static void run_lo(void)
{
	struct fi_info *hints = new_hints(), *list;

	CHECK_INT(query(hints, &list), 0);
	CHECK_DOMAINS(list, "shm+tcp:lo");
	fi_freeinfo(list);
	fi_freeinfo(hints);
}

static void run_rxm_lo(void)
{
	struct fi_info *hints = new_hints(), *list;

	CHECK_INT(query(hints, &list), 0);
	CHECK_DOMAINS(list, "shm+tcp;ofi_rxm:lo");
	fi_freeinfo(list);
	fi_freeinfo(hints);
	CHECK(!strcmp(getenv("FI_OFI_RXM_MSG_RX_SIZE"), "128"));
}

static void run_rx_size_kept(void)
{
	run_lo();
	CHECK(!strcmp(getenv("FI_OFI_RXM_MSG_RX_SIZE"), "77"));
}

static void run_good_and_bad(void)
{
	struct fi_info *hints = new_hints(), *list;

	CHECK_INT(query(hints, &list), 0);
	CHECK_DOMAINS(list, "shm+tcp:lo");
	fi_freeinfo(list);
	fi_freeinfo(hints);
}

/* ---- start-up ---- */

static void *getinfo_thread(void *arg)
{
	struct fi_info *hints = new_hints(), *list;

	(void)arg;
	for (int n = 0; n < 3; n++) {
		if (query(hints, &list) ||
		    strcmp(list->domain_attr->name, "shm+tcp:lo"))
			return arg;
		fi_freeinfo(list);
	}
	fi_freeinfo(hints);
	return NULL;
}

static void run_threads(void)
{
	pthread_t thread[8];
	void *bad;
	size_t i, n = sizeof(thread) / sizeof(thread[0]);

	for (i = 0; i < n; i++)
		if (pthread_create(&thread[i], NULL, getinfo_thread, thread))
			abort();
	for (i = 0; i < n; i++) {
		pthread_join(thread[i], &bad);
		CHECK(!bad);
	}
}

/* Asked with an old API, because a pretended old library knows no newer one. */
static void run_other_version(void)
{
	struct fi_info *hints = new_hints(), *list = NULL;

	fi_getinfo(FI_VERSION(1, 5), NULL, NULL, 0, hints, &list);
	CHECK_DOMAINS(list, "");
	fi_freeinfo(list);
	fi_freeinfo(hints);
}

/* Does the library have the newest known layout of the peer entry? */
static bool has_newest_layout(void)
{
	char pretend[32];
	bool newest;

	snprintf(pretend, sizeof(pretend), "%s", getenv("TEST_FI_VERSION"));
	unsetenv("TEST_FI_VERSION");
	newest = fi_version() >= FI_VERSION(2, 3);
	setenv("TEST_FI_VERSION", pretend, 1);
	return newest;
}

static void run_too_new(void)
{
	if (has_newest_layout()) {
		printf("# SKIP this library has the newest known layout\n");
		exit(77);
	}
	run_other_version();
}

static void run_new_but_same(void)
{
	if (!has_newest_layout()) {
		printf("# SKIP this library has the oldest known layout\n");
		exit(77);
	}
	run_lo();
}

#define LO	LINKS("shm+tcp:lo")

const struct gi_case gi_cases[] = {
	{ "asked_by_hint", { 0 }, run_asked_by_hint, 0, { 0 }, 0 },
	{ "not_asked", { 0 }, run_not_asked, 0, { 0 }, 0 },
	{ "asked_by_filter", { "FI_PROVIDER=lnx" }, run_asked_by_filter, 0,
	  { 0 }, 0 },
	{ "asked_among_others", { "FI_PROVIDER=tcp,lnx,shm" },
	  run_asked_among_others, 0, { 0 }, 0 },
	{ "other_provider", { LO }, run_other_provider, 0, { 0 }, 0 },
	{ "domain_is_a_link", { 0 }, run_domain_is_a_link, 0, { 0 }, 0 },
	{ "excluded", { "FI_PROVIDER=^lnx", LO }, run_nothing, 0, { 0 }, 0 },

	{ "attributes", { LO }, run_attributes, 0, { 0 }, 0 },
	{ "shm_only", { LINKS("shm") }, run_shm_only, 0, { 0 }, 0 },
	{ "caps", { LO }, run_caps, 0, { 0 }, 0 },
	{ "caps_alone", { LO }, run_caps_alone, 0, { 0 }, 0 },
	{ "every_provider", { 0 }, run_every_provider, -1,
	  { "provider \"sockets\" is libfabric's old" }, 0 },
	{ "hints", { LO }, run_hints, 0, { 0 }, 0 },
	{ "no_thread", { LO, "FI_LNX_THREAD=0" }, run_no_thread, 0, { 0 }, 0 },
	{ "no_srq", { LINKS("shm+tcp;ofi_rxm:lo"), "FI_LNX_USE_SRQ=0" },
	  run_no_srq, 0, { 0 }, 0 },
	{ "no_srq_shm", { LINKS("shm"), "FI_LNX_USE_SRQ=0" },
	  run_no_srq_shm, 0, { 0 }, 0 },
	{ "versions", { LO }, run_versions, 0, { 0 }, 0 },
	{ "own_result", { LINKS("shm+tcp:lo|shm|tcp:lo") }, run_own_result, 0,
	  { 0 }, 0 },
	{ "open_mpi", { LINKS("shm+tcp:r0") }, run_open_mpi, 0, { 0 }, 1 },
	{ "open_mpi_filter", { LINKS("shm+tcp:r0"), "FI_PROVIDER=lnx" },
	  run_open_mpi, 0, { 0 }, 1 },
	{ "pingpong", { LO }, run_pingpong, 0, { 0 }, 0 },

	{ "all_domains", { LINKS("shm+tcp") }, run_all_domains, 0, { 0 }, 1 },
	{ "all_domains_filter", { LINKS("shm+tcp"), "FI_PROVIDER=lnx" },
	  run_all_domains, 0, { 0 }, 1 },
	{ "order", { LINKS(" tcp:r1,r0 + shm | tcp:r2|tcp:r0,r2") },
	  run_order, 0, { 0 }, 1 },
	{ "fabrics", { LINKS("shm+tcp:r0,r1|tcp:r2") }, run_fabrics, 0, { 0 },
	  1 },
	{ "lo_alone", { LINKS("shm+tcp") }, run_lo_alone, 0, { 0 }, 1 },
	{ "two_kinds", { LINKS("shm+tcp;ofi_rxm:r0+tcp:r1") }, run_two_kinds,
	  0, { 0 }, 1 },
	{ "source", { LINKS("shm+tcp:r0,r1") }, run_source, 0, { 0 }, 1 },
	{ "no_shm", { LO, "FI_LNX_DISABLE_SHM=1" }, run_no_shm, 0, { 0 }, 0 },
	{ "no_shm_no_link", { LINKS("shm"), "FI_LNX_DISABLE_SHM=1" },
	  run_nothing, 1, { "\"shm\"", "FI_LNX_DISABLE_SHM" }, 0 },
	{ "no_shm_among_links", { LINKS("shm|shm+tcp:lo|tcp:lo"),
	  "FI_LNX_DISABLE_SHM=1" }, run_no_shm, 1,
	  { "\"shm|shm+tcp:lo|tcp:lo\"", "FI_LNX_DISABLE_SHM" }, 0 },
	{ "no_shm_named", { LO, "FI_LNX_DISABLE_SHM=1" }, run_no_shm_named, 1,
	  { "\"shm+tcp:lo\"", "FI_LNX_DISABLE_SHM" }, 0 },
	{ "no_shm_default", { "FI_LNX_DISABLE_SHM=1" }, run_no_shm_default, 0,
	  { 0 }, 0 },
	{ "old_spelling", { LINKS("shm+tcp:lo:lnx") }, run_lo, 0, { 0 }, 0 },
	{ "rxm", { LINKS("shm+tcp;ofi_rxm:lo") }, run_rxm_lo, 0, { 0 }, 0 },
	{ "rxm_hidden", { LINKS("shm+tcp;ofi_rxm:lo"), "FI_PROVIDER=lnx" },
	  run_nothing, 1, { "FI_PROVIDER=\"lnx\" hides",
	  "set FI_PROVIDER=\"lnx,tcp;ofi_rxm,shm\"", "or unset it" }, 0 },
	{ "rxm_cured", { LINKS("shm+tcp;ofi_rxm:lo"),
	  "FI_PROVIDER=lnx,tcp;ofi_rxm,shm" }, run_rxm_lo, 0, { 0 }, 0 },
	{ "rx_size_kept", { LO, "FI_OFI_RXM_MSG_RX_SIZE=77" },
	  run_rx_size_kept, 0, { 0 }, 0 },

	{ "unknown_provider", { LINKS("shm+foo:eth0") }, run_nothing, 1,
	  { "FI_LNX_PROV_LINKS=\"shm+foo:eth0\", at \"foo:eth0\" "
	    "(character 5)", "provider \"foo\" is not available", "usable here",
	    "tcp;ofi_rxm", "shm, tcp" }, 0 },
	{ "unknown_domain", { LINKS("shm+tcp:nosuch") }, run_nothing, 1,
	  { "at \"tcp:nosuch\"", "no domain \"nosuch\"", "it has:", " lo" },
	  0 },
	{ "link_local_domain", { LINKS("tcp:r3") }, run_nothing, 1,
	  { "at \"tcp:r3\"", "only a link-local address" }, 1 },
	{ "absent_provider", { LINKS("shm+opx") }, run_nothing, 1,
	  { "provider \"opx\" is not available" }, 0 },
	{ "sockets_provider", { LINKS("shm+sockets") }, run_nothing, 1,
	  { "at \"sockets\" (character 5)", "provider \"sockets\" is",
	    "name \"tcp\" in its place", "usable here" }, 0 },
	{ "no_peer_provider", { LINKS("shm+sm2") }, run_nothing, 1,
	  { "provider \"sm2\" has neither FI_PEER nor" }, 0 },
	{ "datagram_provider", { LINKS("shm+udp") }, run_nothing, 1,
	  { "provider \"udp\" has neither FI_PEER nor", "udp;ofi_rxd" }, 0 },
	{ "hidden_unknown", { LINKS("shm+foo"), "FI_PROVIDER=lnx" },
	  run_nothing, 1, { "usable here", "FI_PROVIDER=\"lnx\" is set" }, 0 },
	{ "good_and_bad", { LINKS("shm+tcp:lo|shm+foo") }, run_good_and_bad, 1,
	  { "at \"foo\" (character 16)" }, 0 },
	{ "empty_group", { LINKS("shm++tcp") }, run_nothing, 1,
	  { "\"shm++tcp\", character 5" }, 0 },
	{ "empty_link", { LINKS("shm||tcp") }, run_nothing, 1,
	  { "\"shm||tcp\", character 5" }, 0 },
	{ "lnx_in_link", { LINKS("shm+lnx") }, run_nothing, 1,
	  { "character 5", "lnx cannot be a part of its own link" }, 0 },
	{ "twice", { LINKS("shm+tcp+tcp:lo") }, run_nothing, 1,
	  { "already" }, 0 },
	{ "unprintable", { LINKS("shm+\033[31m\x01") }, run_nothing, 1,
	  { "shm+?[31m?" }, 0 },
	{ "empty_text", { LINKS(""), "FI_PROVIDER=lnx" }, run_asked_by_filter,
	  0, { 0 }, 0 },

	{ "bad_value", { LO, "FI_LNX_WINDOW=banana" }, run_lo, 1,
	  { "FI_LNX_WINDOW", "banana", "4096" }, 0 },
	{ "bad_switch", { LO, "FI_LNX_DUMP_STATS=perhaps" }, run_lo, 1,
	  { "FI_LNX_DUMP_STATS", "perhaps" }, 0 },
	{ "unknown_variable", { LO, "FI_LNX_WINDO=3" }, run_lo, 1,
	  { "FI_LNX_WINDO", "FI_LNX_WINDOW" }, 0 },

	{ "two_bad_values", { LO, "FI_LNX_WINDOW=1", "FI_LNX_DEFER=-1" }, run_lo,
	  2, { "FI_LNX_WINDOW=\"1\"", "FI_LNX_DEFER=\"-1\"" }, 0 },
	{ "contradiction", { LINKS("shm"), "FI_LNX_PROTOCOL=direct",
			     "FI_LNX_USE_SRQ=1" }, run_any, 1,
	  { "FI_LNX_PROTOCOL=direct contradicts FI_LNX_USE_SRQ=1" }, 0 },
	{ "contradiction_with_health", { LO, "FI_LNX_HEALTH_SENSITIVITY=0",
					 "FI_LNX_RETRY_COUNT=3" }, run_lo, 1,
	  { "FI_LNX_RETRY_COUNT=3", "FI_LNX_HEALTH_SENSITIVITY" }, 0 },
	{ "bad_fault", { LO, "FI_LNX_FAULT=explode" }, run_nothing, 1,
	  { "FI_LNX_FAULT=\"explode\", character 1" }, 0 },
	/* An application's mistake: the application reports it. */
	{ "bad_domain_named", { 0 }, run_bad_domain_named, 1,
	  { "no domain \"nosuch\"" }, GI_LOG_ONLY },
	{ "no_network", { "FI_PROVIDER=lnx" }, run_no_network, 0, { 0 },
	  GI_NETNS },

	{ "threads", { LO }, run_threads, 0, { 0 }, 0 },
	{ "library_too_old", { LO, "TEST_FI_VERSION=2.0" }, run_other_version,
	  1, { "built for libfabric", "loaded into 2.0" }, 0 },
	/* Newer than known: handled as the newest layout, which a library up to
	 * 2.2 lacks. */
	{ "library_too_new", { LO, "TEST_FI_VERSION=3.4" }, run_too_new, 1,
	  { "built for libfabric", "loaded into 3.4",
	       "could not be shown to be the same" }, 0 },
	{ "library_new_but_same", { LO, "TEST_FI_VERSION=3.4" },
	  run_new_but_same, 0, { 0 }, 0 },
	{ .name = NULL },
};
