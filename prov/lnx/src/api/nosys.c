/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Default tables of functions that return "not supported"; libfabric does not export
 * its own.
 */
#include "api/api.h"
#include "api/flags.h"

/* These functions are not to use their arguments. */
#pragma GCC diagnostic ignored "-Wunused-parameter"

#define NO(type, name, code, ...) \
	type name(__VA_ARGS__) { return code; }

LNX_COLD ssize_t lnx_api_bad_flags(const char *call, uint64_t flags)
{
	char text[256] = "";

	fi_tostr_r(text, sizeof(text), &flags, FI_TYPE_OP_FLAGS);
	FI_WARN_SPARSE(&lnx_prov, FI_LOG_EP_DATA,
		       "%s: flags 0x%llx (%s) are not for this call, or are not supported here\n",
		       call, (unsigned long long)flags, text);
	return -FI_EBADFLAGS;
}

NO(int, lnx_nosys_bind, -FI_EINVAL, struct fid *fid, struct fid *bfid,
   uint64_t flags)
NO(int, lnx_nosys_control, -FI_ENOSYS, struct fid *fid, int command, void *arg)
NO(int, lnx_nosys_ops_open, -FI_ENOSYS, struct fid *fid, const char *name,
   uint64_t flags, void **ops, void *context)

/* ---- RMA ---- */

NO(static ssize_t, no_read, -FI_EOPNOTSUPP, struct fid_ep *ep, void *buf,
   size_t len, void *desc, fi_addr_t src, uint64_t addr, uint64_t key,
   void *context)
NO(static ssize_t, no_rwv, -FI_EOPNOTSUPP, struct fid_ep *ep,
   const struct iovec *iov, void **desc, size_t count, fi_addr_t peer,
   uint64_t addr, uint64_t key, void *context)
NO(static ssize_t, no_rmamsg, -FI_EOPNOTSUPP, struct fid_ep *ep,
   const struct fi_msg_rma *msg, uint64_t flags)
NO(static ssize_t, no_write, -FI_EOPNOTSUPP, struct fid_ep *ep,
   const void *buf, size_t len, void *desc, fi_addr_t dest, uint64_t addr,
   uint64_t key, void *context)
NO(static ssize_t, no_inject_write, -FI_EOPNOTSUPP, struct fid_ep *ep,
   const void *buf, size_t len, fi_addr_t dest, uint64_t addr, uint64_t key)
NO(static ssize_t, no_writedata, -FI_EOPNOTSUPP, struct fid_ep *ep,
   const void *buf, size_t len, void *desc, uint64_t data, fi_addr_t dest,
   uint64_t addr, uint64_t key, void *context)
NO(static ssize_t, no_inject_writedata, -FI_EOPNOTSUPP, struct fid_ep *ep,
   const void *buf, size_t len, uint64_t data, fi_addr_t dest, uint64_t addr,
   uint64_t key)

struct fi_ops_rma lnx_no_rma_ops = {
	.size = sizeof(struct fi_ops_rma),
	.read = no_read,
	.readv = no_rwv,
	.readmsg = no_rmamsg,
	.write = no_write,
	.writev = no_rwv,
	.writemsg = no_rmamsg,
	.inject = no_inject_write,
	.writedata = no_writedata,
	.injectdata = no_inject_writedata,
};

/* ---- atomics ---- */

NO(static ssize_t, no_atomic, -FI_EOPNOTSUPP, struct fid_ep *ep,
   const void *buf, size_t count, void *desc, fi_addr_t dest, uint64_t addr,
   uint64_t key, enum fi_datatype datatype, enum fi_op op, void *context)
NO(static ssize_t, no_atomicv, -FI_EOPNOTSUPP, struct fid_ep *ep,
   const struct fi_ioc *iov, void **desc, size_t count, fi_addr_t dest,
   uint64_t addr, uint64_t key, enum fi_datatype datatype, enum fi_op op,
   void *context)
NO(static ssize_t, no_atomicmsg, -FI_EOPNOTSUPP, struct fid_ep *ep,
   const struct fi_msg_atomic *msg, uint64_t flags)
NO(static ssize_t, no_inject_atomic, -FI_EOPNOTSUPP, struct fid_ep *ep,
   const void *buf, size_t count, fi_addr_t dest, uint64_t addr, uint64_t key,
   enum fi_datatype datatype, enum fi_op op)
NO(static ssize_t, no_fetch, -FI_EOPNOTSUPP, struct fid_ep *ep,
   const void *buf, size_t count, void *desc, void *result, void *result_desc,
   fi_addr_t dest, uint64_t addr, uint64_t key, enum fi_datatype datatype,
   enum fi_op op, void *context)
NO(static ssize_t, no_fetchv, -FI_EOPNOTSUPP, struct fid_ep *ep,
   const struct fi_ioc *iov, void **desc, size_t count, struct fi_ioc *resultv,
   void **result_desc, size_t result_count, fi_addr_t dest, uint64_t addr,
   uint64_t key, enum fi_datatype datatype, enum fi_op op, void *context)
NO(static ssize_t, no_fetchmsg, -FI_EOPNOTSUPP, struct fid_ep *ep,
   const struct fi_msg_atomic *msg, struct fi_ioc *resultv,
   void **result_desc, size_t result_count, uint64_t flags)
NO(static ssize_t, no_compare, -FI_EOPNOTSUPP, struct fid_ep *ep,
   const void *buf, size_t count, void *desc, const void *compare,
   void *compare_desc, void *result, void *result_desc, fi_addr_t dest,
   uint64_t addr, uint64_t key, enum fi_datatype datatype, enum fi_op op,
   void *context)
NO(static ssize_t, no_comparev, -FI_EOPNOTSUPP, struct fid_ep *ep,
   const struct fi_ioc *iov, void **desc, size_t count,
   const struct fi_ioc *comparev, void **compare_desc, size_t compare_count,
   struct fi_ioc *resultv, void **result_desc, size_t result_count,
   fi_addr_t dest, uint64_t addr, uint64_t key, enum fi_datatype datatype,
   enum fi_op op, void *context)
NO(static ssize_t, no_comparemsg, -FI_EOPNOTSUPP, struct fid_ep *ep,
   const struct fi_msg_atomic *msg, const struct fi_ioc *comparev,
   void **compare_desc, size_t compare_count, struct fi_ioc *resultv,
   void **result_desc, size_t result_count, uint64_t flags)
NO(static int, no_valid, -FI_EOPNOTSUPP, struct fid_ep *ep,
   enum fi_datatype datatype, enum fi_op op, size_t *count)

struct fi_ops_atomic lnx_no_atomic_ops = {
	.size = sizeof(struct fi_ops_atomic),
	.write = no_atomic,
	.writev = no_atomicv,
	.writemsg = no_atomicmsg,
	.inject = no_inject_atomic,
	.readwrite = no_fetch,
	.readwritev = no_fetchv,
	.readwritemsg = no_fetchmsg,
	.compwrite = no_compare,
	.compwritev = no_comparev,
	.compwritemsg = no_comparemsg,
	.writevalid = no_valid,
	.readwritevalid = no_valid,
	.compwritevalid = no_valid,
};

/* ---- messages, before fi_enable ---- */

NO(static ssize_t, off_recv, -FI_EOPBADSTATE, struct fid_ep *ep, void *buf,
   size_t len, void *desc, fi_addr_t src, void *context)
NO(static ssize_t, off_xferv, -FI_EOPBADSTATE, struct fid_ep *ep,
   const struct iovec *iov, void **desc, size_t count, fi_addr_t peer,
   void *context)
NO(static ssize_t, off_xfermsg, -FI_EOPBADSTATE, struct fid_ep *ep,
   const struct fi_msg *msg, uint64_t flags)
NO(static ssize_t, off_send, -FI_EOPBADSTATE, struct fid_ep *ep,
   const void *buf, size_t len, void *desc, fi_addr_t dest, void *context)
NO(static ssize_t, off_inject, -FI_EOPBADSTATE, struct fid_ep *ep,
   const void *buf, size_t len, fi_addr_t dest)
NO(static ssize_t, off_senddata, -FI_EOPBADSTATE, struct fid_ep *ep,
   const void *buf, size_t len, void *desc, uint64_t data, fi_addr_t dest,
   void *context)
NO(static ssize_t, off_injectdata, -FI_EOPBADSTATE, struct fid_ep *ep,
   const void *buf, size_t len, uint64_t data, fi_addr_t dest)

struct fi_ops_msg lnx_msg_off_ops = {
	.size = sizeof(struct fi_ops_msg),
	.recv = off_recv,
	.recvv = off_xferv,
	.recvmsg = off_xfermsg,
	.send = off_send,
	.sendv = off_xferv,
	.sendmsg = off_xfermsg,
	.inject = off_inject,
	.senddata = off_senddata,
	.injectdata = off_injectdata,
};

NO(static ssize_t, off_trecv, -FI_EOPBADSTATE, struct fid_ep *ep, void *buf,
   size_t len, void *desc, fi_addr_t src, uint64_t tag, uint64_t ignore,
   void *context)
NO(static ssize_t, off_trecvv, -FI_EOPBADSTATE, struct fid_ep *ep,
   const struct iovec *iov, void **desc, size_t count, fi_addr_t src,
   uint64_t tag, uint64_t ignore, void *context)
NO(static ssize_t, off_txfermsg, -FI_EOPBADSTATE, struct fid_ep *ep,
   const struct fi_msg_tagged *msg, uint64_t flags)
NO(static ssize_t, off_tsend, -FI_EOPBADSTATE, struct fid_ep *ep,
   const void *buf, size_t len, void *desc, fi_addr_t dest, uint64_t tag,
   void *context)
NO(static ssize_t, off_tsendv, -FI_EOPBADSTATE, struct fid_ep *ep,
   const struct iovec *iov, void **desc, size_t count, fi_addr_t dest,
   uint64_t tag, void *context)
NO(static ssize_t, off_tinject, -FI_EOPBADSTATE, struct fid_ep *ep,
   const void *buf, size_t len, fi_addr_t dest, uint64_t tag)
NO(static ssize_t, off_tsenddata, -FI_EOPBADSTATE, struct fid_ep *ep,
   const void *buf, size_t len, void *desc, uint64_t data, fi_addr_t dest,
   uint64_t tag, void *context)
NO(static ssize_t, off_tinjectdata, -FI_EOPBADSTATE, struct fid_ep *ep,
   const void *buf, size_t len, uint64_t data, fi_addr_t dest, uint64_t tag)

struct fi_ops_tagged lnx_tagged_off_ops = {
	.size = sizeof(struct fi_ops_tagged),
	.recv = off_trecv,
	.recvv = off_trecvv,
	.recvmsg = off_txfermsg,
	.send = off_tsend,
	.sendv = off_tsendv,
	.sendmsg = off_txfermsg,
	.inject = off_tinject,
	.senddata = off_tsenddata,
	.injectdata = off_tinjectdata,
};
