# shellcheck shell=bash
# The kernel's tables of neighbours. All namespaces of a machine share one table for IPv4 and one for IPv6, so that each host of a
# lab has an entry for each other one in the same table. In a full table nobody finds anybody, with nothing but a line in the kernel's log.

# Makes room in the tables for all hosts of the lab, and keeps the limits that were there before in "$dir/neighbours".
widen_neighbour_tables() {
    local hosts limit
    hosts=$(list_hosts | wc -l)
    for limit in /proc/sys/net/ipv{4,6}/neigh/default/gc_thresh{3,2,1}; do
        [[ -w $limit ]] || continue
        (($(<"$limit") < 2 * hosts * hosts)) || continue
        echo "$limit $(<"$limit")" >>"$dir/neighbours"
        echo $((2 * hosts * hosts)) >"$limit"
    done
}

# Sets the limits as they were before the lab. A lab of many hosts that came up later and is still up may have too little room then.
restore_neighbour_tables() {
    local limit before
    [[ -f $dir/neighbours ]] || return 0
    while read -r limit before; do echo "$before" >"$limit"; done <"$dir/neighbours"
}
