# Looks things up in the plan of a lab, which 'mapper lab-plan' prints. Sourced by scripts/lab.
# shellcheck shell=bash

# Succeeds if there is a node with this name, and sets kind, slug and node_port.
look_up() {
    local wanted=$1 words
    while read -r kind slug words; do
        case $kind in
        host | node) read -r _ node_port words <<<"$words" ;;
        xbar) read -r _ _ _ words <<<"$words" ;;
        # The name of the xbar in a node is another name of the node.
        within) kind=node ;;
        *) continue ;;
        esac
        [[ $words == "$wanted" ]] && return
    done <"$dir/plan"
    return 1
}

find_node() {
    look_up "$1" || die "there is no node '$1' in this lab"
}

# Sets near, near_if, far and far_if to the two ends of the cable at an interface of a node. Near is that node.
find_cable() {
    local slug=$1 interface=$2 kind a a_if b b_if
    while read -r kind a a_if b b_if; do
        [[ $kind == cable ]] || continue
        if [[ $a == "$slug" && $a_if == "$interface" ]]; then
            near=$a near_if=$a_if far=$b far_if=$b_if
            return
        elif [[ $b == "$slug" && $b_if == "$interface" ]]; then
            near=$b near_if=$b_if far=$a far_if=$a_if
            return
        fi
    done <"$dir/plan"
    return 1
}

# Sets kind to that of the node of NODE:PORT, and near, near_if, far and far_if to the ends of the cable at the port.
find_port() {
    local argument=$1 port=
    # The port of a host may be left out, since it has one cable. Names may have colons in them.
    if [[ $argument == *:* ]] && look_up "${argument%:*}"; then
        port=${argument##*:}
    else
        find_node "$argument"
    fi
    local interface=fab0
    if [[ $kind == host ]]; then
        [[ -z $port || $port == fab0 || $port == "$node_port" ]] ||
            die "host '${argument%:*}' has only port $node_port, interface fab0"
    else
        [[ $port =~ ^[0-9]+$ ]] || die "name a port of '$argument': $argument:PORT"
        interface=p$port
    fi
    find_cable "$slug" "$interface" || die "no cable is at $argument"
}

# Prints a line for each host: its slug, which is its name in files and namespaces, its IPv4 address, IPv6 address and
# name.
list_hosts() {
    awk '$1 == "host" || $1 == "node" {
        n++
        name = $0
        sub(/^[^ ]+ [^ ]+ [^ ]+ [^ ]+ /, "", name)
        printf "%s 10.77.%d.%d fd77::%x %s\n", $2, n / 256, n % 256, n, name
    }' "$dir/plan"
}

# Sets ipv4 and ipv6 to the addresses of the host with this slug.
find_addresses() {
    read -r ipv4 ipv6 < <(list_hosts | awk -v slug="$1" '$1 == slug { print $2, $3 }') ||
        die "'$1' is no host"
}

# Prints the interfaces of a node that have cables, each on a line.
list_interfaces() {
    awk -v slug="$1" '$1 == "cable" { if ($2 == slug) print $3; if ($4 == slug) print $5 }' "$dir/plan"
}
