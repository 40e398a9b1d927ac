# User traffic over the fabric of a lab. Sourced by scripts/lab.
# shellcheck shell=bash

need_taps() {
    need_lab
    [[ -e $dir/taps ]] || die "the hosts of lab '$name' have no tap interfaces: there is no /dev/net/tun here"
}

ping_all() {
    local version=4
    case "$*" in '') ;; -6) version=6 ;; *) usage >&2 && exit 2 ;; esac
    need_taps
    command -v ping >/dev/null || die "needs the program ping (iputils-ping)"
    local slugs=() names=() addresses=() slug ipv4 ipv6 words from to
    while read -r slug ipv4 ipv6 words; do
        slugs+=("$slug") names+=("$words")
        if ((version == 4)); then addresses+=("$ipv4"); else addresses+=("$ipv6"); fi
    done < <(list_hosts)
    for from in "${!slugs[@]}"; do
        for to in "${!slugs[@]}"; do
            ((from == to)) ||
                printf '%s\0' "$prefix${slugs[from]}" "${addresses[to]}" "${names[from]}" "${names[to]}"
        done
    done >"$dir/pairs"
    # shellcheck disable=SC2016 # $1 to $4 are arguments of the shell that xargs starts
    xargs --null --no-run-if-empty --max-args 4 --max-procs 64 sh -c '
        ip netns exec "$1" ping -q -n -c 1 -W 1 "$2" >/dev/null 2>&1 || echo "$3 cannot reach $4 at $2"
    ' sh <"$dir/pairs" | sort -V >"$dir/failed"
    cat "$dir/failed"
    local pairs=$((${#slugs[@]} * (${#slugs[@]} - 1))) failed
    failed=$(wc -l <"$dir/failed")
    echo "$((pairs - failed)) of $pairs pairs of hosts reach each other over IPv$version"
    ((failed == 0))
}

iperf() {
    local from=$1 to=$2 seconds=${3:-5} slug kind ipv4 there server i
    need_taps
    command -v iperf3 >/dev/null || die "needs the program iperf3"
    find_node "$to"
    there=$prefix$slug
    find_addresses "$slug"
    find_node "$from"
    [[ $kind != xbar ]] || die "'$from' is no host"
    ip netns exec "$there" iperf3 --server --one-off --bind "$ipv4" >/dev/null 2>"$dir/iperf3" &
    server=$!
    # shellcheck disable=SC2064 # the process is the one that was just started, whatever the variable is later
    trap "kill $server 2>/dev/null || true" EXIT
    for i in {1..200}; do
        [[ -z $(ip netns exec "$there" ss -Hltn 'sport = :5201') ]] || break
        if ((i == 200)) || ! kill -0 "$server" 2>/dev/null; then
            die "iperf3 does not listen: $(<"$dir/iperf3")"
        fi
        sleep 0.02
    done
    ip netns exec "$prefix$slug" iperf3 --client "$ipv4" --time "$seconds" --connect-timeout 2000 "${@:4}"
}
