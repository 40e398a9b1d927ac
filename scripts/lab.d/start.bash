# Makes the namespaces and cables of a lab, and starts its nodes. Sourced by scripts/lab.
# shellcheck shell=bash

build() {
    local kind slug a_if b b_if rest
    {
        while read -r kind slug rest; do
            case $kind in host | node | xbar) echo "netns add $prefix$slug" ;; esac
        done <"$dir/plan"
        while read -r kind slug rest; do
            [[ $kind == cable ]] || continue
            read -r a_if b b_if <<<"$rest"
            echo "link add $a_if netns $prefix$slug type veth peer name $b_if netns $prefix$b"
        done <"$dir/plan"
        while read -r kind slug rest; do
            [[ $kind == host ]] || continue
            # A host without a cable gets an interface, too. It has no carrier, since its other end is down.
            [[ -n $(list_interfaces "$slug") ]] ||
                echo "link add fab0 netns $prefix$slug type veth peer name unplugged netns $prefix$slug"
        done <"$dir/plan"
    } >"$dir/batch"
    ip -batch "$dir/batch"
    rm "$dir/batch"
    for_each_node set_up host node xbar
}

# Sets all interfaces of a node up, also the loopback interface.
set_up() {
    local kind=$1 slug=$2 interface first
    {
        echo "link set lo up"
        if [[ $kind == host ]]; then
            echo "link set fab0 address ${3%% *} up"
        else
            # The address of a node is that of its first port.
            first=$(list_interfaces "$slug" | sort -V | head -n 1)
            [[ $kind != node ]] || echo "link set $first address ${3%% *}"
            while read -r interface; do echo "link set $interface up"; done < <(list_interfaces "$slug")
        fi
    } | ip -n "$prefix$slug" -batch -
}

# for_each_node FUNCTION KIND..: calls FUNCTION KIND SLUG REST for every node of these kinds, side by side, and waits
# for all. REST is the rest of the node's line in the plan.
for_each_node() {
    local function=$1 kind slug rest pid started=() failed=0
    shift
    while read -r kind slug rest; do
        [[ " $* " == *" $kind "* ]] || continue
        "$function" "$kind" "$slug" "$rest" </dev/null &
        started+=($!)
    done <"$dir/plan"
    for pid in "${started[@]}"; do
        wait "$pid" || failed=1
    done
    ((failed == 0)) || die "not every node could be started"
}

# Starts the process of a node, and returns when it is ready.
start() {
    "start_$1" "$2" "$3"
}

start_xbar() {
    local slug=$1 first ports tag options=() interface named=()
    read -r first ports tag _ <<<"$2"
    options=(--run-dir "$dir/run/$slug" --first-port "$first" --port-count "$ports")
    if [[ $tag == - ]]; then options+=(--kind plain); else options+=(--kind tagged --tag "$tag"); fi
    while read -r interface; do
        named+=("${interface#p}=$interface")
    done < <(list_interfaces "$slug")
    # An xbar without a cable has nothing to forward.
    ((${#named[@]})) || return 0
    run_daemon "$slug" xbar --ports "$(IFS=, && echo "${named[*]}")" "${options[@]}"
}

start_host() {
    local options=()
    read_agent_options "$1"
    run_daemon "$1" agent --interface fab0 --run-dir "$dir/run/$1" "${options[@]}"
}

start_node() {
    local options=() ports
    read_agent_options "$1"
    ports=$(list_interfaces "$1" | sort -V | paste -sd ,)
    run_daemon "$1" node --ports "$ports" --run-dir "$dir/run/$1" "${options[@]}"
}

# Adds to the array options those that every agent has, and the addresses of the tap interface of this host.
read_agent_options() {
    local plain_ports given ipv4 ipv6
    plain_ports=$(awk '$1 == "xbar" && $5 == "-" && $4 > most { most = $4 } END { print most + 0 }' "$dir/plan")
    ((plain_ports < 2)) || options+=(--plain-ports "$plain_ports")
    if [[ -e $dir/taps ]]; then
        find_addresses "$1"
        options+=(--tap ip0 --address "$ipv4/16" --address "$ipv6/64")
    fi
    # The agent is told its name, since all namespaces of a lab have the name of the machine.
    options+=(--host-name "$1")
    mapfile -d '' -t given <"$dir/options"
    options+=("${given[@]}")
}

run_daemon() {
    local slug=$1
    shift
    ip netns exec "$prefix$slug" "$MAPPER" "$@" \
        --daemon-pid-file "$dir/pid/$slug" --verbose-file "$dir/log/$slug" 2>"$dir/log/$slug.start"
}

# Says why the nodes with these slugs could not be started, or any node if none is named.
tell_why() {
    local slug file
    [[ -d $dir/log ]] || return 0
    for slug in "${@:-*}"; do
        # shellcheck disable=SC2231 # the pattern stands for all nodes if none was named
        for file in "$dir"/log/$slug.start; do
            # Lines that begin with a date are left out: they are in the log as well.
            [[ ! -e $file ]] ||
                sed -E "/^[0-9]{4}-/d; s#^((mapper|error): )?#$(basename "$file" .start): #" "$file" >&2 || true
        done
    done
}
