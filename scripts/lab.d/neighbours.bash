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

# Sets the limits as they were before the lab. Where another lab that is up has widened them, too, it is left the lower limit to set
# when it goes down, so that the last one that does so leaves the machine as it was before the first.
restore_neighbour_tables() {
    local limits entry limit before theirs
    [[ -f $dir/neighbours ]] || return 0
    mapfile -t limits <"$dir/neighbours"
    rm "$dir/neighbours"
    for entry in "${limits[@]}"; do
        read -r limit before <<<"$entry"
        theirs=$(grep -ls "^$limit " /run/mapper-lab/*/neighbours | head -n 1) || true
        if [[ $theirs ]]; then
            awk -v limit="$limit" -v least="$before" \
                '$1 == limit && $2 > least { $2 = least } { print }' "$theirs" >"$theirs.new"
            mv "$theirs.new" "$theirs"
        else
            echo "$before" >"$limit"
        fi
    done
}
