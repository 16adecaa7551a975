# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# Completion of lnxctl(8) for bash.  contrib/check-completions compares the table with
# what lnxctl says.

# Each command, its own options, and what its words are: NAME, SETTABLE, PEER, FILE, COMMAND.
_lnxctl_table() {
	cat <<'TABLE'
list||
info||
net show|--net --nid|
net set|--nid --health --pin --auto --state --credits --peer-credits|
peer show|--nid|
peer set|--nid --health --pin --auto --state|
path show|--nid|
stats show||
stats reset||
global show||
set||SETTABLE
params|--env --live|NAME
udsp add|--src --dst --rte --priority --idx|
udsp del|--idx --id --all --src --dst --rte --priority|
udsp show|--idx --id --src --dst --rte|
export||
import|--dry-run --diff --live|FILE
route add|--net --gateway --hop --priority|
route del|--net --gateway --all|
route show|--net --gateway|
gateway show|--socket|
gateway set|--socket|
fault add||
fault del||
fault show||
fault reset||
ping|--timeout|PEER
discover|--force|PEER
debug recovery|--local --peer|
explain||PEER
check||COMMAND
top|-d -n|
metrics|--dead|
dump||FILE
TABLE
}

_lnxctl_common="-p --all --job --ep -f --dir --wait -v --json --table --yaml --help"

# Values that processes know: the first column of a table that lnxctl prints.
_lnxctl_column() {	# COLUMN ARGUMENT...
	local column=$1
	shift
	"${typed[0]}" "$@" --table 2>/dev/null | awk -v name="$column" '
		!at { for (i = 1; i <= NF; i++) if ($i == name) at = i; next }
		at && NF >= at { print $at }'
}

# Offers the lines of its input that begin with what is typed.  "compgen -W" would run a
# $(COMMAND) in them, and a process may say what it likes.
_lnxctl_offer() {
	local line
	while IFS= read -r line; do
		[[ $line != "$cur"* ]] || COMPREPLY+=("$line")
	done
}

_lnxctl_nids() {	# net | peer
	local chosen
	chosen=$(_lnxctl_chosen)
	# shellcheck disable=SC2086
	"${typed[0]}" $chosen "$1" show 2>/dev/null | sed -n 's/^ *- nid: //p'
}

# The options that choose a process, as far as they are typed.
_lnxctl_chosen() {
	local i
	for ((i = 1; i < ${#typed[@]} - 1; i++)); do
		case ${typed[i]} in
		-p) echo "-p ${typed[i + 1]}" ;;
		--all) echo --all ;;
		del) break ;;	# its --all is another one
		esac
	done
}

# Sets COMPREPLY for the words in "typed".
_lnxctl_find() {
	local words=() i name options kind
	COMPREPLY=()
	# The words of the command, without options and their arguments.
	for ((i = 1; i < ${#typed[@]} - 1; i++)); do
		case ${typed[i]} in
		-p|-f|--dir|--ep|--net|--nid|--health|--pin|--state|--timeout|--wait|-d|-n|\
		--src|--dst|--rte|--priority|--idx|--id|--gateway|--hop|--credits|--peer-credits)
			((i++)) ;;
		-v) [[ ${typed[i + 1]} != [0-9]* ]] || ((i++)) ;;
		-*) ;;
		*) words+=("${typed[i]}") ;;
		esac
	done
	case $prev in
	-p)
		_lnxctl_offer < <(_lnxctl_column pid list)
		return ;;
	--ep|--wait|--src|--dst|--rte|--priority|--health|--pin|--credits|--peer-credits|\
	--timeout|--hop|--net|-d|-n)
		return ;;
	-f|--dir)
		mapfile -t COMPREPLY < <(compgen -f -- "$cur")
		return ;;
	--state)
		mapfile -t COMPREPLY < <(compgen -W "up down" -- "$cur")
		return ;;
	--gateway)
		# shellcheck disable=SC2046
		_lnxctl_offer < <(_lnxctl_column gateway $(_lnxctl_chosen) route show)
		return ;;
	--idx|--id)
		# shellcheck disable=SC2046
		_lnxctl_offer < <(_lnxctl_column "${prev#--}" $(_lnxctl_chosen) udsp show)
		return ;;
	--nid)
		case ${words[0]-} in
		net) i=net ;;
		*) i=peer ;;
		esac
		_lnxctl_offer < <(_lnxctl_nids "$i")
		return ;;
	esac
	# The command, or its second word.
	while IFS='|' read -r name options kind; do
		[ "$name" = "${words[*]:0:2}" ] || [ "$name" = "${words[0]-}" ] || continue
		if [[ $cur == -* ]]; then
			mapfile -t COMPREPLY < <(compgen -W \
				"$options $_lnxctl_common" -- "$cur")
			return
		fi
		case $kind in
		SETTABLE) _lnxctl_offer < <(_lnxctl_column name params --env --live) ;;
		NAME) _lnxctl_offer < <(_lnxctl_column name params --env) ;;
		PEER) _lnxctl_offer < <(_lnxctl_nids peer) ;;
		FILE) mapfile -t COMPREPLY < <(compgen -f -- "$cur") ;;
		COMMAND) mapfile -t COMPREPLY < <(compgen -c -- "$cur") ;;
		esac
		return
	done < <(_lnxctl_table)
	if [[ $cur == -* ]]; then
		mapfile -t COMPREPLY < <(compgen -W \
			"$_lnxctl_common --version --list-commands" -- "$cur")
		return
	fi
	case ${#words[@]} in
	0) i=$(_lnxctl_table | sed 's/[ |].*//' | uniq) ;;
	1) i=$(_lnxctl_table | sed -n "s/^${words[0]} \([^|]*\)|.*/\1/p") ;;
	*) i= ;;
	esac
	mapfile -t COMPREPLY < <(compgen -W "$i" -- "$cur")
}

# bash divides a NID at ':' and '@', and takes ';' in one for the end of the command: so words
# are divided at blanks, and what bash has as a word already is cut off the answers.
_lnxctl() {
	local typed line=${COMP_LINE:0:COMP_POINT} raw cur prev cut i name
	read -r -a typed <<<"$line"
	[[ $line == *[[:blank:]] ]] && typed+=("")
	raw=${typed[-1]}
	cur=${raw//\\/}
	prev=${typed[-2]-}
	_lnxctl_find
	cut=${raw%"${raw##*["$COMP_WORDBREAKS"]}"}
	# A '@' begins a word and belongs to it; behind a '\' nothing is divided.
	cut=${cut%@}
	[[ $raw == *\\* ]] && cut=
	for i in "${!COMPREPLY[@]}"; do
		printf -v name %q "${COMPREPLY[i]}"
		COMPREPLY[i]=${name#"$cut"}
	done
}

complete -F _lnxctl lnxctl
