# Each bench sources this file with its arguments. If they ask for help, it prints the comment at the head of the
# bench. It refuses options that the usage line there does not name.
# shellcheck shell=bash

print_head() { sed -n '2,/^[^#]/ { s/^# \{0,1\}//p }' "$0"; }

case ${1:-} in
-h | --help)
    print_head
    exit
    ;;
-*)
    # The usage line names all options of a bench in brackets.
    if ! print_head | grep -q -- "^usage:.*\[$1\]"; then
        echo "$(basename "$0"): there is no option $1" >&2
        print_head | grep '^usage:' >&2
        exit 2
    fi
    ;;
esac
