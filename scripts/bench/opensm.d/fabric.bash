# Shared by the benches that run OpenSM on a fabric that ibsim simulates. They set `out`, a folder that
# `stop_and_clean` empties in the end, and `bench`, their name. `found` is the fabric with OpenSM's LIDs.
# shellcheck shell=bash disable=SC2154,SC2120

PATH=$PATH:/usr/sbin
simulator=
host=

die() { echo "$bench: $*" >&2 && exit 1; }

# need_opensm: finds the programs and the library that lets them take ibsim for the network.
need_opensm() {
    local program
    for library in /usr/lib/*/umad2sim/libumad2sim.so /usr/{lib,lib64,local/lib}/umad2sim/libumad2sim.so; do
        if [[ -e $library ]]; then break; fi
    done
    [[ -e $library ]] || die 'libumad2sim is missing: install libumad2sim0'
    for program in opensm ibsim ibnetdiscover; do
        command -v "$program" >/dev/null || die "$program is missing"
    done
}

stop() {
    if [[ -n $simulator ]]; then
        kill "$simulator" 2>/dev/null || true
        # Its sockets' names are free for the next once it has ended.
        wait "$simulator" 2>/dev/null || true
    fi
    simulator=
}

stop_and_clean() {
    stop
    rm -rf "$out"
}

# simulate NET [CONSOLE]: simulates a fabric that nobody has configured, and obeys a pipe that the caller holds open.
simulate() {
    host=$(sed -En '/^Ca\t/ { s/^Ca\t[0-9]+ "([^"]+)".*/\1/p; q }' "$1")
    export IBSIM_SOCKNAME=bench-$bench-$$
    rm -f "$out/ibsim"
    # ibsim ends when its input does. Its input is a pipe that it holds at both ends, so it never ends, and no other
    # process is needed to keep it open.
    if [[ -n ${2:-} ]]; then
        ibsim -s -N 100000 -S 20000 -P 1000000 "$1" >"$out/ibsim" 2>&1 <"$2" &
    else
        ibsim -s -n -N 100000 -S 20000 -P 1000000 "$1" >"$out/ibsim" 2>&1 <> <(:) &
    fi
    simulator=$!
    until grep -qs 'simulator ready' "$out/ibsim"; do
        kill -0 "$simulator" 2>/dev/null || die "ibsim did not start: $(tail -1 "$out/ibsim")"
        read -rt 0.1 <> <(:) || true
    done
    # It listens some time after it says so.
    until grep -q "@$IBSIM_SOCKNAME:ctl" /proc/net/unix; do
        kill -0 "$simulator" 2>/dev/null || die "ibsim ended: $(tail -1 "$out/ibsim")"
        read -rt 0.1 <> <(:) || true
    done
}

# start NET: simulates a fabric, lets OpenSM give LIDs, which stay in force, and writes the fabric with them to
# $out/found.net.
start() {
    simulate "$1"
    configure 600 -R minhop || die "OpenSM does not configure the fabric: $(tail -1 "$out/log")"
    in_fabric ibnetdiscover -o 64 >"$out/found.net"
}

# in_fabric COMMAND..: runs a program on the first host of the simulated network. It runs in $out, since the library
# that leads it to the simulator writes into the current folder.
in_fabric() {
    (cd "$out" && LD_PRELOAD=$library SIM_HOST=$host OSM_TMP_DIR=$out OSM_CACHE_DIR=$out exec "$@")
}

# configure SECONDS ARGUMENTS..: lets OpenSM configure the network once.
configure() {
    local seconds=$1
    shift
    rm -f "$out/opensm-lfts.dump"
    in_fabric timeout "$seconds" opensm --once -e -f "$out/log" -D 0x47 -n 64 -t 5000 "$@" >/dev/null 2>&1
}

# judge: runs `mapper check` on OpenSM's tables, for its JSON. A status of 3 is no failure: a proof does not hold, but
# the JSON still says how good the tables are.
judge() {
    "$MAPPER" check "$out/found.net" --lfts "$out/opensm-lfts.dump" --format json "$@" >"$out/json" 2>/dev/null ||
        true
}

# value KEY: prints the number behind a key in the JSON of the last run.
value() {
    sed -En "s/.*\"$1\":(null|[0-9.eE+-]+).*/\1/p" "$out/json"
}
