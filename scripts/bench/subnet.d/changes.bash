# shellcheck shell=bash disable=SC2154 # Names that are set in the script that reads this file.
# What a change costs an agent and OpenSM: a host that starts again, and a cable between switches that fails. Part of
# scripts/bench/subnet, which sets the names that are used here.

# simulate_with_console NET: simulates a fabric, as `simulate`, and obeys what is written to the descriptor `cables`.
simulate_with_console() {
    rm -f "$out/cables"
    mkfifo "$out/cables"
    exec {cables}<>"$out/cables"
    simulate "$1" "$out/cables"
}

# pick NET: sets `rebooted`, a host far from the manager's, and `cut`, the end of a cable between switches, as ibsim names them.
pick() {
    rebooted=$(sed -En '/^Ca\t/ s/^Ca\t[0-9]+ ("[^"]+").*/\1[1]/p' "$1" | tail -1)
    cut=$(awk -F '"' '
        NR == FNR { if (/^Switch/) is_switch[$2] = 1; next }
        /^Switch/ { at = $2; next }
        /^Ca/ { at = "" }
        at && /^\[/ && is_switch[$2] { port = $1; gsub(/[^0-9]/, "", port); print "\"" at "\"[" port "]" }' "$1" "$1" |
        sed -n '$!{h;d};x;p')
}

# on_processor: for how long the simulator has worked so far, in microseconds.
on_processor() {
    local worked
    read -r worked _ <"/proc/$simulator/schedstat"
    echo $((worked / 1000))
}

# quiet FILE: waits until a file has not grown for QUIET_S seconds.
quiet() {
    local size=-1
    while ((size != $(stat -c %s "$1"))); do
        size=$(stat -c %s "$1")
        read -rt "${QUIET_S:-2}" <> <(:) || true
    done
}

# type_line LINE: has the simulator do something to a cable.
type_line() { echo "$1" >&"$cables"; }

# change KIND: does it, once nothing else is under way. `log` is what grows while a manager works.
change() {
    case $1 in
    reboot)
        type_line "Unlink $rebooted"
        quiet "$log"
        # Its time counts from when it is there again.
        lines=$(wc -l <"$log")
        type_line "ReLink $rebooted"
        ;;
    cable) type_line "Unlink $cut" ;;
    esac
    quiet "$log"
}

# their_change KIND LEVEL: has OpenSM bring the subnet up and then meet with a change, and sets `sent`. `changes` is its log from
# then on, at this level, and `timed` that of the part whose time counts.
their_change() {
    rm -f "$out"/{log,console,input}
    simulate_with_console "$out/fabric.net"
    mkfifo "$out/input"
    echo 'force_log_flush TRUE' >"$out/options"
    (
        cd "$out" || exit
        LD_PRELOAD=$library SIM_HOST=$host OSM_TMP_DIR=$out OSM_CACHE_DIR=$out \
            exec opensm -F options -q local -s 0 -e -f "$out/log" -D "$2" -n 8 -t 5000 -R "$engine"
    ) <"$out/input" >"$out/console" 2>&1 &
    local opensm=$! before
    exec {input}>"$out/input"
    log=$out/log
    await "$log" 'SUBNET UP'
    quiet "$log"
    before=$(their_sent 1)
    local first
    lines=$(wc -l <"$log")
    first=$lines
    worked=$(on_processor)
    change "$1"
    worked=$(($(on_processor) - worked))
    changes=$(tail -n +$((first + 1)) "$log")
    timed=$(tail -n +$((lines + 1)) "$log")
    sent=$(($(their_sent 2) - before))
    kill -KILL "$opensm"
    exec {input}>&- {cables}>&-
    wait "$opensm" 2>/dev/null || true
    stop
}

# their_sent TIMES: how many datagrams of subnet management OpenSM has sent, as it tells when it is asked for so manyth time.
their_sent() {
    echo status >&"$input"
    local told
    until told=$(grep -a 'QP0 MADs sent' "$out/console" | sed -n "$1p") && [[ $told ]]; do
        read -rt 0.1 <> <(:) || true
    done
    sed -E 's/.*: *([0-9]+).*/\1/' <<<"$told"
}

# theirs_upon KIND: sets `ms`, `simulated` (of that, at most, the simulator), `sent` and `blocks`. What it writes is counted in a run of its
# own, as the level of the log that tells it takes time.
theirs_upon() {
    their_change "$1" 0x57
    blocks=$(grep -c 'osm_[lm]ft_rcv_process: \[' <<<"$changes" || true)
    their_change "$1" 0x43
    local from until
    from=$(grep -m1 'num:128' <<<"$timed") || die "OpenSM told of no trap before its log was quiet: set QUIET_S, as to 10"
    until=$(grep 'SUBNET UP' <<<"$timed" | tail -1)
    ms=$(($(stamp "$until") - $(stamp "$from")))
    simulated=$((worked / 1000))
}

# ours_upon KIND: the same by an agent. Its time is from the first trap until it says that all is in force. Upon a failed cable it says so when
# tables lead all hosts around it; what no host waits for follows a second later, and is among the datagrams and blocks.
ours_upon() {
    simulate_with_console "$out/fabric.net"
    rm -rf "$out/lids" "$out/run"
    log=$out/agent
    # Looks at switches come later than the bench looks.
    "$MAPPER" agent --interface "ibsim:$host" --level 1 --engine "$engine" --mad-timeout-ms 5000 --run-dir "$out/run" \
        --lid-file "$out/lids" --watch-interval-ms 600000 --log-level debug >/dev/null 2>"$log" &
    local agent=$! before=()
    await "$log" 'the subnet is up'
    quiet "$log"
    read -ra before < <(our_counts)
    lines=$(wc -l <"$log")
    worked=$(on_processor)
    change "$1"
    worked=$(($(on_processor) - worked))
    timed=$(tail -n +$((lines + 1)) "$log" | sed -E 's/\x1b\[[0-9;]*m//g')
    local after=()
    read -ra after < <(our_counts)
    sent=$((after[0] - before[0])) blocks=$((after[1] - before[1]))
    local from until
    from=$(grep -m1 'a trap' <<<"$timed")
    until=$(grep -E 'the subnet is (up|as it was)' <<<"$timed")
    if [[ $1 == cable ]]; then until=${until%%$'\n'*}; else until=${until##*$'\n'}; fi
    ms=$((($(date -d "${until%% *}" +%s%N) - $(date -d "${from%% *}" +%s%N)) / 1000000))
    simulated=$((worked / 1000))
    kill "$agent"
    wait "$agent" 2>/dev/null || true
    exec {cables}>&-
    stop
}

# our_counts: how many datagrams the agent has sent, and how many blocks of tables it has written.
our_counts() {
    "$MAPPER" board-info --run-dir "$out/run" --format json >"$out/json"
    local sent blocks
    sent=$(sed -En 's/.*"sent": *([0-9]+).*/\1/p' "$out/json" | head -1)
    blocks=$(sed -En 's/.*"blocks": *([0-9]+).*/\1/p' "$out/json" | head -1)
    echo "$sent $blocks"
}

# print_changes SPEC: a line for each kind of change.
print_changes() {
    pick "$out/fabric.net"
    local kind row='%-30s %-8s %10s %8s %8s %7s %10s %8s %8s %7s\n' theirs
    for kind in cable reboot; do
        theirs_upon "$kind"
        theirs=("$ms" "$simulated" "$sent" "$blocks")
        ours_upon "$kind"
        # shellcheck disable=SC2059
        printf "$row" "$1" "$kind" "${theirs[@]}" "$ms" "$simulated" "$sent" "$blocks"
    done
}
