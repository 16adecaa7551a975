/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A small program over ADIOS2's SST: "sst write NAME STEPS N" sends STEPS arrays of
 * N numbers to "sst read NAME STEPS N", which checks them.  The data goes over
 * SST's RDMA data plane, which uses libfabric: the reader reads it from the writer's
 * memory.  SST_INTERFACE: the interface of SST's own connections.
 */
#include <adios2_c.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WAIT_S	60.0f

static void check(int ok, const char *what)
{
	if (ok)
		return;
	fprintf(stderr, "sst: %s failed\n", what);
	exit(1);
}

static double value(size_t step, size_t i)
{
	return (double)(step * 1000003 + i);
}

static adios2_engine *start(adios2_adios *adios, adios2_io **io,
			    const char *name, adios2_mode mode)
{
	const char *interface = getenv("SST_INTERFACE");
	adios2_engine *engine;

	*io = adios2_declare_io(adios, "sst");
	check(*io != NULL, "adios2_declare_io");
	check(!adios2_set_engine(*io, "SST"), "adios2_set_engine");
	/* Otherwise SST falls back to sockets without a message. */
	check(!adios2_set_parameter(*io, "DataTransport", "RDMA"),
	      "adios2_set_parameter");
	check(!adios2_set_parameter(*io, "OpenTimeoutSecs", "60"),
	      "adios2_set_parameter");
	if (interface)
		check(!adios2_set_parameter(*io, "NetworkInterface",
					    interface),
		      "adios2_set_parameter");
	engine = adios2_open(*io, name, mode);
	check(engine != NULL, "adios2_open");
	return engine;
}

static void writes(adios2_adios *adios, const char *name, size_t steps,
		   size_t n)
{
	size_t shape[1] = { n }, first[1] = { 0 }, step, i;
	double *data = malloc(n * sizeof(*data));
	adios2_step_status status;
	adios2_variable *var;
	adios2_engine *engine;
	adios2_io *io;

	check(data != NULL, "malloc");
	engine = start(adios, &io, name, adios2_mode_write);
	var = adios2_define_variable(io, "x", adios2_type_double, 1, shape,
				     first, shape,
				     adios2_constant_dims_true);
	check(var != NULL, "adios2_define_variable");
	for (step = 0; step < steps; step++) {
		for (i = 0; i < n; i++)
			data[i] = value(step, i);
		check(!adios2_begin_step(engine, adios2_step_mode_append,
					 WAIT_S, &status) &&
		      status == adios2_step_status_ok, "adios2_begin_step");
		check(!adios2_put(engine, var, data, adios2_mode_sync),
		      "adios2_put");
		check(!adios2_end_step(engine), "adios2_end_step");
	}
	check(!adios2_close(engine), "adios2_close");
	free(data);
}

static void reads(adios2_adios *adios, const char *name, size_t steps,
		  size_t n)
{
	double *data = malloc(n * sizeof(*data));
	adios2_step_status status;
	adios2_variable *var;
	adios2_engine *engine;
	adios2_io *io;
	size_t step, i;

	check(data != NULL, "malloc");
	engine = start(adios, &io, name, adios2_mode_read);
	for (step = 0; step < steps; step++) {
		memset(data, 0xff, n * sizeof(*data));
		check(!adios2_begin_step(engine, adios2_step_mode_read,
					 WAIT_S, &status) &&
		      status == adios2_step_status_ok, "adios2_begin_step");
		var = adios2_inquire_variable(io, "x");
		check(var != NULL, "adios2_inquire_variable");
		check(!adios2_get(engine, var, data, adios2_mode_sync),
		      "adios2_get");
		check(!adios2_end_step(engine), "adios2_end_step");
		for (i = 0; i < n; i++)
			if (data[i] != value(step, i)) {
				fprintf(stderr, "sst: step %zu: element %zu "
					"is %g\n", step, i, data[i]);
				exit(1);
			}
	}
	check(!adios2_close(engine), "adios2_close");
	free(data);
	printf("%zu steps of %zu numbers read\n", steps, n);
}

int main(int argc, char **argv)
{
	adios2_adios *adios;
	size_t steps, n;

	if (argc != 5) {
		fprintf(stderr, "usage: sst write|read NAME STEPS N\n");
		return 2;
	}
	steps = strtoul(argv[3], NULL, 0);
	n = strtoul(argv[4], NULL, 0);
	adios = adios2_init_serial();
	check(adios != NULL, "adios2_init");
	if (!strcmp(argv[1], "write"))
		writes(adios, argv[2], steps, n);
	else
		reads(adios, argv[2], steps, n);
	check(!adios2_finalize(adios), "adios2_finalize");
	return 0;
}
