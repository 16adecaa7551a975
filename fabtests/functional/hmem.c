/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * FI_HMEM with FI_HMEM_SYSTEM, the only memory that every machine has.  Buffers
 * are registered by fi_mr_regattr with their iface, and every operation has
 * descriptors.
 */
#include "../common/rma.h"

#include <stdio.h>
#include <string.h>

#define CAPS	(FT_RMA_CAPS | FI_HMEM)
#define BYTES	(1u << 20)

static unsigned char out[BYTES], in[BYTES];
static struct ft_mr omr, imr;

static int reg(struct ft *ft, struct ft_mr *m, void *buf)
{
	struct iovec iov = { .iov_base = buf, .iov_len = BYTES };
	struct fi_mr_attr attr = {
		.mr_iov = &iov, .iov_count = 1, .access = FT_MR_ACCESS,
		.requested_key = ft_mr_new_key(ft), .context = m,
		.iface = FI_HMEM_SYSTEM,
	};

	memset(m, 0, sizeof(*m));
	m->buf = buf;
	m->len = BYTES;
	FT_CALL(ft, fi_mr_regattr(ft->o.domain, &attr, 0, &m->mr));
	FT_CALL(ft, ft_mr_ready(ft, &ft->o, m));
	FT_CHECK(ft, !(ft_mr_mode(&ft->o) & FI_MR_HMEM) || fi_mr_desc(m->mr),
		 "memory without a descriptor");
	return FT_PASS;
}

static int with_memory(struct ft *ft, const struct ft_case *c)
{
	int ret = FT_FAIL, late = FT_PASS;

	FT_CHECK(ft, ft->o.info->caps & FI_HMEM, "granted without FI_HMEM");
	FT_TRY(reg(ft, &omr, out));
	if (reg(ft, &imr, in) == FT_PASS)
		ret = ft_mr_share(ft, &imr) ? FT_FAIL : c->body(ft, c);
	if (ret == FT_PASS && ft_barrier(ft))
		ret = FT_FAIL;
	if (imr.mr && ft_mr_close(ft, &imr))
		late = FT_FAIL;
	if (ft_mr_close(ft, &omr))
		late = FT_FAIL;
	return ret == FT_PASS ? late : ret;
}

/* fi_sendmsg and fi_recvmsg in two pieces, with a descriptor for each. */
static int messages(struct ft *ft, const struct ft_case *c)
{
	static const size_t sizes[] = { 8, 500, 4096, 20000, BYTES };
	void *odesc[2] = { fi_mr_desc(omr.mr), fi_mr_desc(omr.mr) };
	void *idesc[2] = { fi_mr_desc(imr.mr), fi_mr_desc(imr.mr) };
	size_t i;

	for (i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		size_t half = sizes[i] / 2;
		struct iovec iov[2];
		struct ft_op *op = ft_op_new(ft);
		struct fi_msg_tagged t = {
			.msg_iov = iov, .iov_count = 2, .tag = 5, .context = op,
		};
		struct fi_msg m = {
			.msg_iov = iov, .iov_count = 2, .context = op,
		};
		double end = ft_now() + ft->run->timeout_s;
		ssize_t ret;

		iov[0].iov_base = ft->rank ? out : in;
		iov[0].iov_len = half;
		iov[1].iov_base = (char *)iov[0].iov_base + half;
		iov[1].iov_len = sizes[i] - half;
		t.desc = m.desc = ft->rank ? odesc : idesc;
		t.addr = m.addr = ft->addr[!ft->rank];
		if (ft->rank) {
			pattern_fill(out, sizes[i], ft->run->seed, 1, i);
			/* b: the message arrives before its receive is posted. */
			if (!c->b && ft_barrier(ft))
				return FT_FAIL;
		} else {
			memset(in, 0, sizes[i]);
			if (c->b && ft_barrier(ft))
				return FT_FAIL;
			if (c->b)
				ft_linger(ft, 0.05);
		}
		op->posted = true;
		do {
			ret = !ft->rank ?
			      (c->a ? fi_trecvmsg(ft->o.ep, &t, FI_COMPLETION) :
				      fi_recvmsg(ft->o.ep, &m, FI_COMPLETION)) :
			      (c->a ? fi_tsendmsg(ft->o.ep, &t, FI_COMPLETION) :
				      fi_sendmsg(ft->o.ep, &m, FI_COMPLETION));
			if (ret == -FI_EAGAIN)
				ft_progress(ft);
		} while (ret == -FI_EAGAIN && ft_now() < end);
		FT_CALL(ft, ret);
		if (!!ft->rank == !!c->b && ft_barrier(ft))
			return FT_FAIL;
		FT_DONE(ft, op);
		FT_CHECK(ft, ft->rank || (op->len == sizes[i] &&
			 pattern_check(in, sizes[i], ft->run->seed, 1, i) < 0),
			 "%zu bytes: wrong ones, or %zu", sizes[i], op->len);
		FT_TRY(ft_barrier(ft) ? FT_FAIL : FT_PASS);
	}
	return FT_PASS;
}

/* Every form of call that takes a descriptor, to and from the other rank's memory. */
static int rma(struct ft *ft, const struct ft_case *c)
{
	static const int calls[] = {
		FT_WRITE, FT_WRITEV, FT_WRITEMSG, FT_READ, FT_READV, FT_READMSG,
	};
	size_t i, len = (size_t)c->a;

	for (i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
		bool read = calls[i] >= FT_READ;
		unsigned char *to = read ? out : in;
		struct ft_op *op = ft_op_new(ft);
		struct ft_rma r;

		pattern_fill(read ? in : out, len, ft->run->seed,
			     (unsigned)ft->rank, i);
		memset(to, 0, len);
		FT_TRY(ft_barrier(ft) ? FT_FAIL : FT_PASS);
		ft_rma_set(ft, &r, calls[i], out, len, &omr, &imr, !ft->rank, 0);
		r.flags = read ? 0 : FI_DELIVERY_COMPLETE;
		FT_CALL(ft, ft_rma(ft, op, &r));
		FT_DONE(ft, op);
		/* Both directions at once: the target may have to make progress. */
		ft_linger(ft, 0.02);
		FT_TRY(ft_barrier(ft) ? FT_FAIL : FT_PASS);
		ft_linger(ft, 0.02);
		FT_CHECK(ft, pattern_check(to, len, ft->run->seed,
					   (unsigned)!ft->rank, i) < 0,
			 "%s: wrong bytes", ft_rma_names[calls[i]]);
	}
	return FT_PASS;
}

/* Memory of a device that does not exist here cannot be registered. */
static int no_device(struct ft *ft, const struct ft_case *c)
{
	struct iovec iov = { .iov_base = out, .iov_len = 4096 };
	struct fi_mr_attr attr = {
		.mr_iov = &iov, .iov_count = 1, .access = FT_MR_ACCESS,
		.requested_key = ft_mr_new_key(ft), .iface = FI_HMEM_SYNAPSEAI,
	};
	struct fid_mr *mr = NULL;
	int ret = fi_mr_regattr(ft->o.domain, &attr, 0, &mr);

	(void)c;
	if (!ret)
		fi_close(&mr->fid);
	FT_CHECK(ft, ret < 0, "memory of a device that is not there was "
		 "registered");
	return FT_PASS;
}

int main(int argc, char **argv)
{
	static struct ft_case cases[16];
	struct ft_case *c = cases;
	int i;

#define CASE(body_, ...) do {						\
	snprintf(c->name, sizeof(c->name), __VA_ARGS__);		\
	c->fn = with_memory;						\
	c->body = (body_);						\
	c->cfg.caps = CAPS;						\
	c->cfg.mr_mode = FT_MR_ALL | FI_MR_HMEM;			\
	c++;								\
} while (0)

	for (i = 0; i < 4; i++) {
		c->a = !(i & 1);
		c->b = (uint64_t)i / 2;
		CASE(messages, "%s-%s", i & 1 ? "messages" : "tagged",
		     i / 2 ? "unexpected" : "posted");
	}
	c->a = 100;
	CASE(rma, "rma-small");
	c->a = BYTES;
	CASE(rma, "rma-large");
	CASE(no_device, "no-device");
	/* Without FI_HMEM it is refused too: otherwise it would be used as host
	 * memory. */
	strcpy(c->name, "no-device-without-hmem");
	c->cfg.caps = FT_RMA_CAPS;
	c->cfg.mr_mode = FT_MR_ALL;
	(c++)->fn = no_device;
	return ft_main(argc, argv, "memory of devices", cases,
		       (int)(c - cases));
}
