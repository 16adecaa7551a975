# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# Nodes 1 and 2 of a lab on different nets, and gateways (lnxrtd) between them, one behind the
# other: what functional/run and mpi/run share.  For bash, to be sourced.
# Gateway K is on nets K-1 and K, node 2 on net HOPS.

# routed_nets HOPS: what "lab up --nets" takes.
routed_nets() {
	local k nets="0:1,g1"

	for ((k = 1; k < $1; k++)); do nets+=" $k:g$k,g$((k + 1))"; done
	echo "$nets $1:g$1,2"
}

# routed_begin HOPS BUILD DIR LAB...: start them, which end with the lab, and export how to reach
# them.  DIR: for their files.
routed_begin() {
	local hops=$1 build=$2 dir=$3 nets="" k i
	shift 3

	FI_LNX_NETS="tcp1=10.77.0.0/24"
	for ((k = 1; k <= hops; k++)); do FI_LNX_NETS+="; tcp$((k + 1))=10.77.$k.0/24"; done
	FI_LNX_ROUTES="tcp1 hop=$hops via 10.77.$hops.$((240 + hops))@tcp$((hops + 1))"
	FI_LNX_ROUTES+="; tcp$((hops + 1)) hop=$hops via 10.77.0.241@tcp1"
	export FI_LNX_NETS FI_LNX_ROUTES
	nets=${FI_LNX_NETS//; /, }
	for ((k = 1; k <= hops; k++)); do
		rm -f "$dir/lnxrtd-$k.state"
		{
			echo "nets: {${nets//=/: }}"
			echo "net:"
			echo "- {net type: tcp$k, local NI(s): [{interfaces: {0: rail$((k - 1))}}]}"
			echo "- {net type: tcp$((k + 1)), local NI(s): [{interfaces: {0: rail$k}}]}"
			echo "routing: {state: $dir/lnxrtd-$k.state}"
			[ "$hops" -eq 1 ] || echo "route:"
			[ $k -eq 1 ] || printf -- "- {net: tcp1, gateway: %s, hop: %d}\n" \
				"10.77.$((k - 1)).$((239 + k))@tcp$k" $((k - 1))
			[ $k -eq "$hops" ] || printf -- "- {net: tcp%d, gateway: %s, hop: %d}\n" \
				$((hops + 1)) "10.77.$k.$((241 + k))@tcp$((k + 1))" $((hops - k))
		} >"$dir/lnxrtd-$k.conf"
		"$@" exec "g$k" -- "$build/lnxrtd" -c "$dir/lnxrtd-$k.conf" &
		disown
	done
	for ((k = 1; k <= hops; k++)); do
		for ((i = 0; i < 600; i++)); do
			[ ! -e "$dir/lnxrtd-$k.state" ] || break
			sleep 0.1
		done
		[ -e "$dir/lnxrtd-$k.state" ] || {
			echo "run: lnxrtd does not begin on g$k" >&2
			return 1
		}
	done
}

# routed_forwarded HOPS DIR: print how many frames each has forwarded; not 0: one has none.
routed_forwarded() {
	local k n status=0

	sleep 1.5	# its state is written within a second
	for ((k = 1; k <= $1; k++)); do
		n=$(sed -n 's/^    route_count: //p' "$2/lnxrtd-$k.state")
		echo "gateway g$k forwarded ${n:-0} frames"
		[ "${n:-0}" -gt 0 ] || status=1
	done
	return $status
}
