/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Which layout of the peer receive entry the loaded libfabric uses.
 *
 * The self-test sends a message to itself and first answers "no match".  Then a core
 * only writes into the entry (the CQ data, a flag, its private pointer) and follows
 * none of our pointers.  The message is started, which makes the core read the rest,
 * only after these three were found in the expected places.  So a wrong guess gives an
 * error and not a wild pointer.
 */
#include "obj/peer_abi.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/clock.h"

size_t lnx_peer_entry_lead = LNX_PEER_LINKS;

static uint32_t loaded_version = LNX_PEER_ABI_OLDEST;
static pthread_once_t check_once = PTHREAD_ONCE_INIT;
static int check_ret;
static char check_why[512] = "";

int lnx_peer_abi_init(uint32_t version)
{
	if (FI_VERSION_LT(version, LNX_PEER_ABI_OLDEST))
		return -FI_ENOSYS;

	loaded_version = version;
	lnx_peer_entry_lead = FI_VERSION_LT(version, LNX_PEER_ABI_NO_LINKS) ?
			      LNX_PEER_LINKS : 0;
	return 0;
}

static void check(void)
{
	char why[160];

	if (!FI_VERSION_LT(LNX_PEER_ABI_NEWEST, loaded_version))
		return;

	check_ret = lnx_peer_abi_selftest(lnx_peer_entry_lead, why,
					  sizeof(why));
	if (!check_ret) {
		LNX_INFO(FI_LOG_CORE, "libfabric %u.%u is newer than the "
			 "newest known (%u.%u); its peer structures were "
			 "tested and fit\n",
			 FI_MAJOR(loaded_version), FI_MINOR(loaded_version),
			 FI_MAJOR(LNX_PEER_ABI_NEWEST),
			 FI_MINOR(LNX_PEER_ABI_NEWEST));
		return;
	}
	check_ret = -FI_ENOSYS;
	snprintf(check_why, sizeof(check_why),
		 "lnx was built for libfabric %u.%u (known up to "
		 "%u.%u) and was loaded into %u.%u, whose peer structures "
		 "could not be shown to be the same (%s); lnx offers nothing. "
		 "Use a newer lnx or an older libfabric",
		 FI_MAJOR_VERSION, FI_MINOR_VERSION,
		 FI_MAJOR(LNX_PEER_ABI_NEWEST), FI_MINOR(LNX_PEER_ABI_NEWEST),
		 FI_MAJOR(loaded_version), FI_MINOR(loaded_version), why);
}

int lnx_peer_abi_check(void)
{
	pthread_once(&check_once, check);
	return check_ret;
}

const char *lnx_peer_abi_why(void)
{
	return check_why;
}

/* ---- self-test ---- */

#define TEST_TAG	0x1122334455667788ULL
#define TEST_DATA	0x0123456789abcdefULL
#define TEST_BYTES	24
#define TEST_SPINS	100000		/* bounds every loop */
#define TEST_SLACK	256		/* room around the entry */

struct test {
	size_t lead;

	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_av *av;
	struct fid_cq *cq;
	struct fid_ep *ep;
	struct fid_ep *srx_ep;

	struct fid_peer_cq peer_cq;
	struct fid_peer_srx peer_srx;

	/* The entry is in the middle, so that a core with another layout still writes
	 * into our memory. */
	union {
		char bytes[2 * TEST_SLACK + sizeof(struct lnx_peer_entry)];
		void *align;
	} room;
	struct lnx_peer_entry *entry;
	void *given;			/* what the core got */

	struct iovec iov[4];
	void *desc[4];
	char buf[TEST_BYTES];
	bool queued;
	bool freed;
	bool received;
	const char *wrong;		/* the first thing that was not as expected */
};

static void wrong(struct test *t, const char *what)
{
	if (!t->wrong)
		t->wrong = what;
}

static struct test *from_srx(struct fid_peer_srx *srx)
{
	return lnx_container_of(srx, struct test, peer_srx);
}

static int get_entry(struct fid_peer_srx *srx, struct fi_peer_match_attr *attr,
		     struct fi_peer_rx_entry **entry)
{
	struct test *t = from_srx(srx);

	if (attr->tag != TEST_TAG || attr->msg_size != TEST_BYTES)
		wrong(t, "tag or size of the match are not those sent");
	*entry = t->given;
	return -FI_ENOENT;
}

/* Completions come with the entry only; there is one test at a time per thread. */
static LNX_THREAD struct test *running;

static int queue_entry(struct fi_peer_rx_entry *entry)
{
	struct test *t = running;

	if (t && (void *)entry == t->given)
		t->queued = true;
	else if (t)
		wrong(t, "an entry came back that was never given");
	return 0;
}

static void free_entry(struct fi_peer_rx_entry *entry)
{
	if (running && (void *)entry == running->given)
		running->freed = true;
}

static void foreach_unspec(struct fid_peer_srx *srx,
			   fi_addr_t (*get_addr)(struct fi_peer_rx_entry *))
{
	(void)srx;
	(void)get_addr;
}

static ssize_t cq_write(struct fid_peer_cq *cq, void *context, uint64_t flags,
			size_t len, void *buf, uint64_t data, uint64_t tag,
			fi_addr_t src)
{
	struct test *t = lnx_container_of(cq, struct test, peer_cq);

	(void)buf;
	(void)src;
	if (!(flags & FI_RECV))
		return 0;
	if (context != &t->received)
		wrong(t, "the completion's context is not the entry's");
	if (len != TEST_BYTES || data != TEST_DATA || tag != TEST_TAG)
		wrong(t, "the completion is not that of the message");
	t->received = true;
	return 0;
}

static ssize_t cq_writeerr(struct fid_peer_cq *cq,
			   const struct fi_cq_err_entry *err)
{
	(void)err;
	wrong(lnx_container_of(cq, struct test, peer_cq),
	      "the message ended in an error");
	return 0;
}

static int no_close(struct fid *fid)
{
	(void)fid;
	return 0;
}

static ssize_t no_cancel(fid_t fid, void *context)
{
	(void)fid;
	(void)context;
	return -FI_ENOENT;
}

static struct fi_ops test_fid_ops = {
	.size = sizeof(struct fi_ops),
	.close = no_close,
};
static struct fi_ops_ep test_ep_ops = {
	.size = sizeof(struct fi_ops_ep),
	.cancel = no_cancel,
};
static struct fi_ops_cq_owner test_cq_ops = {
	.size = sizeof(struct fi_ops_cq_owner),
	.write = cq_write,
	.writeerr = cq_writeerr,
};
static struct fi_ops_srx_owner test_srx_ops = {
	.size = sizeof(struct fi_ops_srx_owner),
	.get_msg = get_entry,
	.get_tag = get_entry,
	.queue_msg = queue_entry,
	.queue_tag = queue_entry,
	.foreach_unspec_addr = foreach_unspec,
	.free_entry = free_entry,
};

static int find_shm(struct fi_info **info)
{
	struct fi_info *hints = fi_allocinfo();
	char name[64];
	int ret;

	if (!hints)
		return -FI_ENOMEM;
	hints->caps = FI_TAGGED | FI_PEER;
	hints->ep_attr->type = FI_EP_RDM;
	hints->domain_attr->threading = FI_THREAD_DOMAIN;
	hints->domain_attr->data_progress = FI_PROGRESS_MANUAL;
	hints->domain_attr->av_type = FI_AV_TABLE;
	hints->fabric_attr->prov_name = strdup("shm");
	ret = hints->fabric_attr->prov_name ?
	      fi_getinfo(FI_VERSION(2, 1), NULL, NULL, LNX_GETINFO_HIDDEN,
			 hints, info) : -FI_ENOMEM;
	fi_freeinfo(hints);
	if (ret)
		return ret;

	/* Not the default name, which belongs to the application. */
	snprintf(name, sizeof(name), "fi_shm://lnx-abi-%ld-%llx",
		 (long)getpid(), (unsigned long long)lnx_clock_ns());
	free((*info)->src_addr);
	(*info)->src_addr = strdup(name);
	if (!(*info)->src_addr) {
		fi_freeinfo(*info);
		return -FI_ENOMEM;
	}
	(*info)->src_addrlen = strlen(name) + 1;
	return 0;
}

static int open_objects(struct test *t, struct fi_info *info)
{
	struct fi_peer_cq_context cq_context = {
		.size = sizeof(cq_context), .cq = &t->peer_cq,
	};
	struct fi_peer_srx_context srx_context = {
		.size = sizeof(srx_context), .srx = &t->peer_srx,
	};
	struct fi_av_attr av_attr = { .type = FI_AV_TABLE, .count = 1 };
	struct fi_cq_attr cq_attr = {
		.flags = FI_PEER, .format = FI_CQ_FORMAT_TAGGED,
		.wait_obj = FI_WAIT_NONE,
	};
	struct fi_rx_attr rx_attr = { .op_flags = FI_PEER };
	int ret;

	ret = fi_fabric(info->fabric_attr, &t->fabric, NULL);
	if (!ret)
		ret = fi_domain(t->fabric, info, &t->domain, NULL);
	if (!ret)
		ret = fi_av_open(t->domain, &av_attr, &t->av, NULL);
	if (!ret)
		ret = fi_cq_open(t->domain, &cq_attr, &t->cq, &cq_context);
	if (!ret)
		ret = fi_endpoint(t->domain, info, &t->ep, NULL);
	if (!ret)
		ret = fi_ep_bind(t->ep, &t->av->fid, 0);
	if (!ret)
		ret = fi_ep_bind(t->ep, &t->cq->fid, FI_TRANSMIT | FI_RECV);
	if (!ret)
		ret = fi_srx_context(t->domain, &rx_attr, &t->srx_ep,
				     &srx_context);
	if (!ret)
		ret = fi_ep_bind(t->ep, &t->srx_ep->fid, 0);
	if (!ret)
		ret = fi_enable(t->ep);
	return ret;
}

static void close_objects(struct test *t)
{
	struct fid *fid[] = {
		t->ep ? &t->ep->fid : NULL,
		t->srx_ep ? &t->srx_ep->fid : NULL,
		t->cq ? &t->cq->fid : NULL,
		t->av ? &t->av->fid : NULL,
		t->domain ? &t->domain->fid : NULL,
		t->fabric ? &t->fabric->fid : NULL,
	};

	for (size_t i = 0; i < LNX_ARRAY_SIZE(fid); i++)
		if (fid[i])
			fi_close(fid[i]);
}

/*
 * Fill the entry with values that cannot be mistaken, at the place where the core will
 * look.  A core may follow one pointer when it queues, the srx: it is also put where
 * the other layout has it.
 */
static void fill_entry(struct test *t)
{
	memset(&t->room, 0xa5, sizeof(t->room));
	t->entry = (struct lnx_peer_entry *)(t->room.bytes + TEST_SLACK);
	t->given = (char *)&t->entry->t - t->lead;
	t->iov[0] = (struct iovec){ t->buf, sizeof(t->buf) };

	t->entry->lead[0] = &t->peer_srx;
	t->entry->lead[1] = &t->peer_srx;
	t->entry->t = (struct lnx_peer_rx){
		.srx = &t->peer_srx,
		.addr = FI_ADDR_UNSPEC,
		.msg_size = (uintptr_t)&t->peer_srx,
		.tag = TEST_TAG,
		.flags = FI_TAGGED | FI_RECV | FI_COMPLETION,
		.context = &t->received,
		.count = 1,
		.desc = t->desc,
		.iov = t->iov,
	};
}

static int send_to_self(struct test *t, const char *message)
{
	char name[128];
	size_t len = sizeof(name);
	fi_addr_t self;
	ssize_t ret;
	int spin;

	ret = fi_getname(&t->ep->fid, name, &len);
	if (ret)
		return (int)ret;
	if (fi_av_insert(t->av, name, 1, &self, 0, NULL) != 1)
		return -FI_EADDRNOTAVAIL;

	for (spin = 0; spin < TEST_SPINS; spin++) {
		ret = fi_tinjectdata(t->ep, message, TEST_BYTES, TEST_DATA,
				     self, TEST_TAG);
		if (ret != -FI_EAGAIN)
			break;
		fi_cq_read(t->cq, NULL, 0);
	}
	return (int)ret;
}

static int run(struct test *t)
{
	static const char message[TEST_BYTES] = "layout of a peer entry";
	struct fi_ops_srx_peer *ops;
	int spin, ret;

	fill_entry(t);
	ret = send_to_self(t, message);
	if (ret) {
		wrong(t, "the message could not be sent");
		return ret;
	}
	for (spin = 0; spin < TEST_SPINS && !t->queued; spin++)
		fi_cq_read(t->cq, NULL, 0);
	if (!t->queued) {
		wrong(t, "the message did not arrive");
		return -FI_ETIMEDOUT;
	}

	if (t->entry->t.cq_data != TEST_DATA ||
	    !(t->entry->t.flags & FI_REMOTE_CQ_DATA) ||
	    !t->entry->t.peer_context || t->entry->t.srx != &t->peer_srx ||
	    t->entry->t.iov != t->iov)
		wrong(t, "members of the entry are in other places");
	if (t->wrong)
		return -FI_ENOSYS;

	ops = t->peer_srx.peer_ops;
	if (!ops || ops->size <= offsetof(struct fi_ops_srx_peer, start_tag) ||
	    !ops->start_tag) {
		wrong(t, "the core cannot start a message");
		return -FI_ENOSYS;
	}
	/* The values for starting the message are set only now. */
	t->entry->t.addr = 0;
	t->entry->t.msg_size = TEST_BYTES;
	ret = ops->start_tag(t->given);
	if (ret) {
		wrong(t, "the message could not be started");
		return -FI_ENOSYS;
	}
	for (spin = 0; spin < TEST_SPINS && !(t->received && t->freed); spin++)
		fi_cq_read(t->cq, NULL, 0);
	if (!t->received || !t->freed)
		wrong(t, "the started message did not complete");
	else if (memcmp(t->buf, message, TEST_BYTES))
		wrong(t, "the message arrived in another place");
	return t->wrong ? -FI_ENOSYS : 0;
}

int lnx_peer_abi_selftest(size_t lead, char *why, size_t why_size)
{
	struct fi_info *info;
	struct test *t;
	int ret;

	ret = find_shm(&info);
	if (ret) {
		snprintf(why, why_size, "shm, which the test uses, is not "
			 "available: %s", fi_strerror(-ret));
		return ret == -FI_ENOSYS ? -FI_ENODATA : ret;
	}
	t = calloc(1, sizeof(*t));
	if (!t) {
		fi_freeinfo(info);
		snprintf(why, why_size, "no memory");
		return -FI_ENOMEM;
	}
	t->lead = lead;
	t->peer_cq.fid = (struct fid){ FI_CLASS_PEER_CQ, t, &test_fid_ops };
	t->peer_cq.owner_ops = &test_cq_ops;
	t->peer_srx.ep_fid.fid =
		(struct fid){ FI_CLASS_PEER_SRX, t, &test_fid_ops };
	t->peer_srx.ep_fid.ops = &test_ep_ops;
	t->peer_srx.owner_ops = &test_srx_ops;

	running = t;
	ret = open_objects(t, info);
	if (ret) {
		wrong(t, "shm could not be opened as a peer");
		if (ret == -FI_ENOSYS)
			ret = -FI_ENODATA;
	} else {
		ret = run(t);
	}
	if (ret)
		snprintf(why, why_size, "%s", t->wrong ? t->wrong :
			 fi_strerror(-ret));
	close_objects(t);
	running = NULL;
	free(t);
	fi_freeinfo(info);
	return ret;
}
