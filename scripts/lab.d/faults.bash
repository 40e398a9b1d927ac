# The commands of a lab that break its cables and nodes, and mend them. Sourced by scripts/lab.
# shellcheck shell=bash

cut_cable() {
    need_lab
    find_port "$1"
    # A host whose cable is pulled keeps an interface that is up, but has no carrier.
    if [[ $near_if == fab0 && $far_if != fab0 ]]; then
        ip -n "$prefix$far" link set "$far_if" down
    else
        ip -n "$prefix$near" link set "$near_if" down
    fi
}

silence_cable() {
    need_lab
    find_port "$1"
    command -v tc >/dev/null || die "needs the program tc (iproute2)"
    local end interface way
    # The BPF program takes every frame (TC_ACT_STOLEN) and does not drop it, since the sender learns of a frame
    # that is dropped.
    local take='protocol all prio 1 handle 1 bpf bytecode "1,6 0 0 4," direct-action'
    mkdir -p "$dir/silent"
    for end in "$near $near_if" "$far $far_if"; do
        interface=${end#* }
        {
            echo "qdisc replace dev $interface clsact"
            for way in ingress egress; do echo "filter replace dev $interface $way $take"; done
        } | tc -n "$prefix${end% *}" -batch -
        touch "$dir/silent/$end"
    done
}

mend_cable() {
    need_lab
    find_port "$1"
    local end way
    for end in "$near $near_if" "$far $far_if"; do
        ip -n "$prefix${end% *}" link set "${end#* }" up
        [[ -e $dir/silent/$end ]] || continue
        for way in ingress egress; do
            echo "filter del dev ${end#* } $way protocol all prio 1"
        done | tc -n "$prefix${end% *}" -batch -
        rm "$dir/silent/$end"
    done
}

# Sets pid: the process of a node. Fails if it does not run.
find_process() {
    pid=
    [[ ! -s $dir/pid/$1 ]] || pid=$(<"$dir/pid/$1")
    # The pid file of a process that was killed names a process that is gone, or by now one of somebody else.
    [[ -n $pid && /proc/$pid/ns/net -ef /run/netns/$prefix$1 ]]
}

# Succeeds if a process has ended, with all its threads. A process that has left its namespace may still hold its
# files and its tap interface; a zombie does not.
has_ended() {
    ! grep -qs '^State:[[:space:]]*[^ZX[:space:]]' "/proc/$1/task/"*/status
}

# Sends a signal to a node's process, and waits until it has ended. Fails if that takes more than two seconds.
end_process() {
    local slug=$1 signal=$2 pid _
    find_process "$slug" || return 0
    # The process may have ended by itself since it was found.
    kill "-$signal" "$pid" 2>/dev/null || true
    for _ in {1..200}; do
        has_ended "$pid" && return
        sleep 0.01
    done
    return 1
}

# Keeps cables of a node cut whose interface here is down. The node's daemon sets its interfaces up when it starts,
# so the far ends of these cables are set down instead.
keep_cut() {
    local interface flags near near_if far far_if
    while read -r interface; do
        find_cable "$1" "$interface" || continue
        # Somebody may have removed the interface.
        flags=$(ip -n "$prefix$1" -o link show "$interface" 2>/dev/null) || continue
        [[ $flags =~ [\<,]UP[,\>] ]] || ip -n "$prefix$far" link set "$far_if" down
    done < <(list_interfaces "$1")
}

kill_node() {
    need_lab
    find_node "$1"
    local pid
    find_process "$slug" || die "'$1' does not run"
    end_process "$slug" KILL || die "'$1' does not end"
}

restart_node() {
    need_lab
    find_node "$1"
    find_mapper
    end_process "$slug" TERM || end_process "$slug" KILL || die "'$1' does not end"
    [[ $kind == xbar ]] || keep_cut "$slug"
    local wanted=$slug kind slug rest
    while read -r kind slug rest; do
        [[ $slug == "$wanted" && $kind != within ]] || continue
        start "$kind" "$slug" "$rest" </dev/null || { tell_why "$slug"; exit 1; }
        return
    done <"$dir/plan"
}
