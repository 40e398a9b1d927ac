# shellcheck shell=bash disable=SC2154 # Names that are set in the script that reads this file.
# What kernels carry that obey segments (srv6) or forward by destination (routes), beside Linux as a router: part of
# scripts/bench/throughput, which sets the names that are used here.

# The nodes of a ring of six. From the first to the fourth of them packets pass two others.
ring_nodes=(h1 h2 h3 h4 h5 h6)

# lab_of KIND COMMAND..: a command of scripts/lab for the ring whose kernels are used in this way.
lab_of() {
    LAB_NAME=${lab}_$1 scripts/lab "${@:2}"
}

# busy_ms: how long the processors have worked since the machine started, in milliseconds.
busy_ms() {
    awk -v hertz="$(getconf CLK_TCK)" '/^cpu / { print int(($2 + $3 + $4 + $7 + $8) * 1000 / hertz) }' /proc/stat
}

# linux_iperf OPTION..: iperf3 through the two routers.
linux_iperf() {
    within h1 iperf3 --client 10.99.2.2 --time "$seconds" --json "$@"
}

# kernel_iperf KIND OPTION..: iperf3 between nodes of the ring.
kernel_iperf() {
    lab_of "$1" iperf h1 h4 "$seconds" --json "${@:2}"
}

# tcp_of COMMAND..: runs an iperf3 of TCP, and prints megabits a second and milliseconds of all processors a gigabyte.
tcp_of() {
    local before mbits
    before=$(busy_ms)
    mbits=$("$@" | tr -d ' \t' | mbits)
    awk -v mbits="$mbits" -v ms="$(($(busy_ms) - before))" -v s="$seconds" \
        'BEGIN { printf "%d %d\n", mbits, (mbits > 0) ? ms / (mbits * s / 8000) : 0 }'
}

# packets_of COMMAND..: runs an iperf3 of UDP, and prints how many datagrams arrived a second.
packets_of() {
    "$@" --udp --length 18 --bitrate 0 | tr -d ' \t' | awk -v s="$seconds" -F '[:,}]' '
        /^"sum":/ { inside = 1 }
        inside && /^"packets":/ { packets = $2 }
        inside && /^"lost_packets":/ { lost = $2 }
        END { printf "%d\n", (packets - lost) / s }'
}

build_rings() {
    local kind
    for kind in srv6 routes; do
        lab_of "$kind" up ring:n=6,hosts=1 --nodes -- --data-path "$kind" >/dev/null
    done
    await_rings
    offload_rings
}

# Gives the ports the offloads that the interfaces of the routers have. Those of veth begin without one of them.
offload_rings() {
    local kind node port
    for kind in srv6 routes; do
        for node in "${ring_nodes[@]}"; do
            for port in p1 p2; do lab_of "$kind" exec "$node" ethtool -K "$port" gro on gso on tso on >/dev/null; done
        done
    done
}

await_rings() {
    local kind
    for kind in srv6 routes; do
        lab_of "$kind" boards --wait 60 >/dev/null
        # Ways are used once they are proved.
        for _ in {1..100}; do
            [[ $(lab_of "$kind" exec h1 ip route get 10.77.0.4) == *ip0* ]] || break
            sleep 0.1
        done
        lab_of "$kind" ping-all >/dev/null
    done
}

# mtu BYTES: has all cables carry frames of that length.
mtu() {
    local kind node port
    for port in h1:e0 r1:e1 r1:e2 r2:e1 r2:e2 h2:e0; do
        ip -n "$prefix${port%:*}" link set "${port#*:}" mtu "$1"
    done
    for kind in srv6 routes; do
        for node in "${ring_nodes[@]}"; do lab_of "$kind" kill "$node"; done
        for node in "${ring_nodes[@]}"; do
            for port in p1 p2; do lab_of "$kind" exec "$node" ip link set "$port" mtu "$1"; done
            lab_of "$kind" restart "$node"
        done
    done
    await_rings
}

# tcp_rows FLOWS MTU: two rows, of TCP in so many flows.
tcp_rows() {
    local flows=$1 at=$1.$2 round kind linux linux_ms through ms
    for ((round = 0; round < rounds; round++)); do
        tcp_of linux_iperf --parallel "$flows" >>"$run_dir/linux.$at"
        for kind in srv6 routes; do
            tcp_of kernel_iperf "$kind" --parallel "$flows" >>"$run_dir/$kind.$at"
        done
    done
    linux=$(cut -d ' ' -f 1 "$run_dir/linux.$at" | median) linux_ms=$(cut -d ' ' -f 2 "$run_dir/linux.$at" | median)
    for kind in srv6 routes; do
        through=$(cut -d ' ' -f 1 "$run_dir/$kind.$at" | median) ms=$(cut -d ' ' -f 2 "$run_dir/$kind.$at" | median)
        row "TCP Mbit/s, two hops, $kind, MTU $2, $flows flows" "$linux" "$through" "$(ratio "$through" "$linux")"
        row '    milliseconds of all processors a gigabyte' "$linux_ms" "$ms" "$(ratio "$ms" "$linux_ms")"
    done
}

packet_rows() {
    local round kind linux through
    for ((round = 0; round < rounds; round++)); do
        packets_of linux_iperf >>"$run_dir/linux.packets"
        for kind in srv6 routes; do packets_of kernel_iperf "$kind" >>"$run_dir/$kind.packets"; done
    done
    linux=$(median <"$run_dir/linux.packets")
    for kind in srv6 routes; do
        through=$(median <"$run_dir/$kind.packets")
        row "datagrams of 18 bytes a second, two hops, $kind" "$linux" "$through" "$(ratio "$through" "$linux")"
    done
}

kernels() {
    local flows
    offload on
    build_rings
    for flows in 1 4 64; do tcp_rows "$flows" 1500; done
    packet_rows
    mtu 9000
    for flows in 1 4; do tcp_rows "$flows" 9000; done
}
