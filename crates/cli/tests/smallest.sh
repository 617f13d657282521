#!/bin/sh
# Stands for the command where tests run what pages say, in its smallest form: one seed (where there are ranges, the first or
# the second one), some seconds, few cells, and in real time a second of the last control alone. What shows until Ctrl-C is
# pressed gets that after a second.
set -eu
real=
case " $* " in
*" watch "* | *" --watch "* | *" advise "* | *" receiver "* | *" recommend "*)
	timeout --preserve-status -s INT 1 "$NARROWS" "$@"
	exit
	;;
*" --dry-run "* | " papers list "*) ;;
" run "*" --on kernel "* | " run "*" --on quic-real "* | " compare "*" --on "*kernel*)
	real=1
	# The others begin within the first second.
	set -- "$@" --set warmup='1 s' --set duration='300 ms' --set flows.mptcp.start='0 s'
	;;
" run "* | " compare "*) set -- "$@" --set warmup='1 s' --set duration='1500 ms' ;;
*" --quick "*) ;;
" papers "*) set -- "$@" --quick ;;
esac
[ -z "$real" ] || [ "$1" != compare ] || set -- "$@" --jobs 4
case " $* " in
" evaluate "*) set -- "$@" --only 7.10 ;;
" compare "*" --seeds "*) ;;
" compare "*) set -- "$@" --seeds 1 ;;
esac
last=
for word in "$@"; do
	shift
	case $last in
	--seeds)
		case $word in
		1..*) word=1..1 ;;
		*..*) word=2..2 ;;
		*) word=1 ;;
		esac
		;;
	--shard) word=1/1 ;;
	--cc) [ -z "$real" ] || word=${word##*,} ;;
	esac
	last=$word
	set -- "$@" "$word"
done
exec "$NARROWS" "$@"
