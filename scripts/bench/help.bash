# Sourced by each bench, with its arguments: prints the comment at the bench's head if help is asked for,
# and refuses options that it does not name.
# shellcheck shell=bash

print_head() { sed -n '2,/^[^#]/ { s/^# \{0,1\}//p }' "$0"; }

case ${1:-} in
-h | --help)
    print_head
    exit
    ;;
-*)
    # The usage line names those that there are.
    if ! print_head | grep -q -- "^usage:.*\[$1\]"; then
        echo "$(basename "$0"): there is no option $1" >&2
        print_head | grep '^usage:' >&2
        exit 2
    fi
    ;;
esac
