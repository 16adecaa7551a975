/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The health board of endpoints: what one has found dead another one avoids, until its own
 * PROBE is answered; and a board that is wrong, or no board, costs no more than that.
 */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/health_board.h"
#include "fail_world.h"
#include "policy/board.h"
#include "rel/piece.h"
#include "rel/sched.h"
#include "seed.h"
#include "view.h"

#define BOTH(name)	FAIL_BOTH(board_live, name)
#define FULL		LNX_HEALTH_MAX

static char root[64], dir_path[128], file[192];
static struct lnx_board_news news;

static void set_up(void)
{
	strcpy(root, "/tmp/lnx-board-XXXXXX");
	cr_assert(mkdtemp(root));
	snprintf(dir_path, sizeof(dir_path), "%s/lnx-%u", root, (unsigned)geteuid());
	snprintf(file, sizeof(file), "%s/" LNX_BOARD_FILE, dir_path);
	lnx_board_root = root;
	fake_conf.health_board = true;
}

static void clean_up(void)
{
	char command[200];

	snprintf(command, sizeof(command), "rm -rf '%s'", root);
	cr_assert_eq(system(command), 0);
}

TestSuite(board_live_plain, .init = set_up, .fini = clean_up);
TestSuite(board_live_peer, .init = set_up, .fini = clean_up);

static uint64_t netns(void)
{
	struct stat st;

	return stat("/proc/self/ns/net", &st) ? 0 : (uint64_t)st.st_ino;
}

static void read_file(struct lnx_board *b)
{
	int fd = open(file, O_RDONLY);

	memset(b, 0, sizeof(*b));
	if (fd < 0)
		return;
	cr_assert(read(fd, b, sizeof(*b)) >= 0);
	close(fd);
}

/* What the board says of a rail of ours; -1: nothing. */
static int says(unsigned rail)
{
	static struct lnx_board b;

	read_file(&b);
	if (lnx_board_find(&b, f.lnx->rail[rail]->name, netns(), fake_now_ns, &news) < 0)
		return -1;
	return news.value;
}

static void write_file(const void *bytes, size_t len, mode_t mode)
{
	int fd;

	mkdir(dir_path, 0700);
	fd = open(file, O_RDWR | O_CREAT | O_TRUNC, mode);
	cr_assert(fd >= 0);
	cr_assert_eq(write(fd, bytes, len), (ssize_t)len);
	fchmod(fd, mode);
	close(fd);
}

static uint64_t another_speed;		/* that it has measured; 0: none */

/* Another process says so of that rail. */
static void another_says(unsigned rail, uint16_t value)
{
	static struct lnx_board b;
	struct lnx_board_news n = {
		.when_ns = fake_now_ns, .value = value, .pid = 1, .speed = another_speed,
	};

	lnx_board_init(&b);
	cr_assert(lnx_board_put(&b.slot[7], 7, f.lnx->rail[rail]->name, netns(), &n));
	write_file(&b, sizeof(b), 0600);
}

/* As if its rails were opened now: their names are the world's. */
static void rails_look(void)
{
	unsigned i;

	lnx_lock(&f.lnx->lock);
	for (i = 0; i < f.lnx->nrail; i++)
		lnx_health_board_rail(f.lnx->rail[i], fake_now_ns);
	lnx_unlock(&f.lnx->lock);
}

/* A look at the board that would be due some time. */
static void look_now(void)
{
	lnx_lock(&f.lnx->lock);
	force_board_look(f.lnx);
	(void)lnx_health_board_run(f.lnx, fake_now_ns);
	lnx_unlock(&f.lnx->lock);
}

static unsigned health(unsigned rail)
{
	return f.lnx->rail[rail]->health.value;
}

BOTH(a_dead_rail_is_told_and_its_recovery_too)
{
	struct side *s = &side[0];
	unsigned i;

	open_met(kind, 2, 1);
	run_ms(50);
	cr_expect_eq(says(0), -1, "nothing is written while all is well");
	black_hole(0);
	send1(s, 200);
	RUN_UNTIL(is_down(s, 0), 2000);
	RUN_UNTIL(says(0) == 0, 300);
	cr_expect_eq(news.pid, (uint32_t)getpid());
	cr_expect(!news.fatal);
	cr_expect(says(1) == -1 || says(1) > 500, "the innocent");
	heal(0);
	RUN_UNTIL(!is_down(s, 0), 20000);
	/* Its health goes up with what passes. */
	for (i = 0; i < 100 && says(0) != FULL; i++) {
		send1(s, 200);
		run_ms(100);
	}
	cr_expect_eq(says(0), (int)FULL);
	close_clean();
}

/* The rail by which the first message leaves. */
static unsigned first_rail(void)
{
	struct side *s = &side[0];

	send1(s, 100);
	RUN_UNTIL(s->nseen[0] + s->nseen[1], 5000);
	return s->nseen[1] != 0;
}

BOTH(a_new_endpoint_avoids_it_until_it_answers)
{
	unsigned usual;

	open_n(kind, 2, 1);
	usual = first_rail();
	close_now();
	memset(side, 0, sizeof(side));
	open_n(kind, 2, 1);
	another_says(usual, 0);
	rails_look();
	cr_expect_eq(health(usual), 0u);
	cr_expect(f.lnx->rail[usual]->health.hearsay);
	cr_expect_eq(first_rail(), !usual);
	cr_expect_eq(side[0].nseen[usual], 0u);
	/* It was wrong, and a PROBE shows that. */
	send1(&side[0], 100);
	RUN_UNTIL(health(usual) == FULL, 2000);
	cr_expect_not(f.lnx->rail[usual]->health.hearsay);
	RUN_UNTIL(says(usual) == FULL, 20000);
	cr_expect_eq(f.lnx->stats.paths_down, 0u);
	close_clean();
}

/* Bits per second that pieces are expected to have on a path of unknown rate. */
static uint64_t expected(unsigned rail)
{
	const struct lnx_path *path = path_of(&side[0], rail);
	const struct lnx_sched_path *fact;
	struct lnx_sched s;

	lnx_lock(&f.lnx->lock);
	lnx_piece_facts(inside(&side[0]), 3, fake_now_ns, &s);
	lnx_unlock(&f.lnx->lock);
	fact = &s.path[view_index(path)];
	return fact->link_bps;
}

BOTH(a_sick_rail_is_as_fast_as_others_say_until_it_answers)
{
	uint64_t nominal;
	unsigned i;

	open_met(kind, 2, 1);
	run_ms(50);
	nominal = expected(0);
	another_speed = 1000;
	another_says(0, 600);
	/* A proof of life counts from one look to the next. */
	look_now();
	fake_now_ns += 1000;
	another_says(0, 600);
	rails_look();
	cr_assert(f.lnx->rail[0]->health.hearsay);
	cr_expect_eq(expected(0), 8000u);
	cr_expect_eq(expected(1), nominal, "the other one");
	for (i = 0; i < 100 && f.lnx->rail[0]->health.hearsay; i++) {
		send1(&side[0], 100);
		run_ms(50);
	}
	cr_expect_not(f.lnx->rail[0]->health.hearsay);
	cr_expect_eq(expected(0), nominal);
	another_speed = 0;
	close_clean();
}

BOTH(without_another_rail_it_is_used)
{
	open_n(kind, 1, 1);
	another_says(0, 0);
	rails_look();
	cr_expect_eq(health(0), 0u);
	send1(&side[0], 100);
	RUN_UNTIL(side[0].nseen[0], 100);
	close_clean();
}

BOTH(hearsay_ends_when_it_is_not_repeated)
{
	open_n(kind, 2, 1);
	another_says(0, 300);
	rails_look();
	cr_expect_eq(health(0), 300u);
	fake_now_ns += LNX_BOARD_TRUST_NS + 1000;
	look_now();
	cr_expect_eq(health(0), (unsigned)FULL);
	close_now();
}

/* Bytes that are no board, and what is no file of ours. */
BOTH(what_is_no_board_changes_nothing)
{
	static uint8_t bytes[3 * sizeof(struct lnx_board)];
	char other[256];
	unsigned i, k;

	rnd_begin();
	open_n(kind, 2, 1);
	for (i = 0; i < 50; i++) {
		size_t len = rnd(sizeof(bytes));

		for (k = 0; k < len; k++)
			bytes[k] = (uint8_t)rnd(256);
		if (i & 1)
			memcpy(bytes, LNX_BOARD_MAGIC, 8);
		write_file(bytes, LNX_MAX(len, 8u), 0600);
		rails_look();
	}
	another_says(0, 0);
	cr_assert_eq(chmod(file, 0644), 0);
	rails_look();
	snprintf(other, sizeof(other), "%s/other", root);
	cr_assert_eq(chmod(file, 0600), 0);
	cr_assert_eq(rename(file, other), 0);
	cr_assert_eq(symlink(other, file), 0);
	rails_look();
	unlink(file);
	cr_assert_eq(mkfifo(file, 0600), 0);
	rails_look();
	cr_expect(health(0) == FULL && health(1) == FULL);
	/* It is replaced when there is news. */
	f.lnx->rail[1]->health.value = 0;
	look_now();
	cr_expect_eq(says(1), 0);
	f.lnx->rail[1]->health.value = FULL;
	send1(&side[0], 100);
	RUN_UNTIL(side[0].nseen[0] + side[0].nseen[1], 1000);
	close_now();
}

BOTH(no_directory_is_no_error)
{
	lnx_board_root = "/nonexistent";
	open_met(kind, 2, 1);
	black_hole(0);
	send1(&side[0], 200);
	RUN_UNTIL(is_down(&side[0], 0), 2000);
	run_ms(2000);
	cr_expect_eq(side[0].nseen[1], 1u);
	heal(0);
	close_clean();
}

BOTH(switched_off)
{
	fake_conf.health_board = false;
	open_met(kind, 2, 1);
	another_says(1, 0);
	rails_look();
	cr_expect_eq(health(1), (unsigned)FULL);
	unlink(file);
	black_hole(0);
	send1(&side[0], 200);
	RUN_UNTIL(is_down(&side[0], 0), 2000);
	run_ms(2000);
	cr_expect(access(file, F_OK), "nothing is written");
	heal(0);
	close_clean();
}

BOTH(an_old_board_is_removed)
{
	int dir;

	open_n(kind, 1, 1);
	another_says(0, 0);
	dir = open(dir_path, O_RDONLY | O_DIRECTORY);
	lnx_health_board_clean(dir, geteuid(), fake_now_ns + LNX_BOARD_TRUST_NS);
	cr_expect_eq(access(file, F_OK), 0, "a process may trust it");
	lnx_health_board_clean(dir, geteuid(), fake_now_ns + LNX_BOARD_TRUST_NS + LNX_NS_PER_S);
	cr_expect(access(file, F_OK));
	write_file("x", 1, 0600);
	lnx_health_board_clean(dir, geteuid(), fake_now_ns);
	cr_expect(access(file, F_OK));
	close(dir);
	close_now();
}

/* A process that writes news of rails all the time: of rail 0 from 100 to 199, of rail 1
 * from 200 to 299. */
static void write_always(unsigned n)
{
	lnx_lock(&f.lnx->lock);
	for (;;) {
		f.lnx->rail[0]->health.value = (uint16_t)(100 + n++ % 100);
		f.lnx->rail[1]->health.value = (uint16_t)(200 + n % 100);
		force_board_look(f.lnx);
		(void)lnx_health_board_run(f.lnx, fake_now_ns);
	}
}

/* Several write at once, and are killed in the middle of that. */
BOTH(many_write_at_once)
{
	unsigned i, k, seen = 0;
	pid_t pid[4];

	rnd_begin();
	open_n(kind, 2, 1);
	another_says(0, 150);
	for (i = 0; i < 30; i++) {
		for (k = 0; k < 4; k++) {
			pid[k] = fork();
			cr_assert(pid[k] >= 0);
			if (!pid[k])
				write_always(k * 17);
		}
		for (k = 0; k < 200; k++) {
			int v = says(0);

			cr_assert(v == -1 || (v >= 100 && v < 200), "%d", v);
			seen += v >= 0;
			v = says(1);
			cr_assert(v == -1 || (v >= 200 && v < 300), "%d", v);
		}
		usleep((useconds_t)rnd(3000));
		for (k = 0; k < 4; k++)
			kill(pid[k], SIGKILL);
		for (k = 0; k < 4; k++)
			cr_assert_eq(waitpid(pid[k], NULL, 0), pid[k]);
	}
	cr_expect_gt(seen, 1000u, "most of the time there is news");
	/* Whatever they have left: the next news is read. */
	f.lnx->rail[0]->health.value = 77;
	look_now();
	cr_expect_eq(says(0), 77);
	close_now();
}
