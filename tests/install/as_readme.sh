#!/bin/sh
# Inside a bare Debian of in_debian: installs hakmem as the README says, and uses every command.
set -eu
export LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive

say() { printf 'test-install: %s\n' "$*"; }
fail() {
    printf 'test-install: %s\n' "$*" >&2
    exit 1
}
quiet() { "$@" >/tmp/log 2>&1 || fail "$*: $(tail -n 20 /tmp/log)"; }
verbs() { /usr/bin/python3 /tmp/install/verbs.py "$@" hakmem; }

# A bare Debian has no sudo, and its root needs none.
printf '#!/bin/sh\nexec "$@"\n' >/usr/local/bin/sudo
chmod +x /usr/local/bin/sudo
quiet apt-get update -q

say "the README's commands"
cd /tmp/hakmem
quiet sh -eu /tmp/readme.sh
cd /
! command -v pip || fail "there is a pip, which users may lack"

say "every command"
verbs

say "without modules: one command each installs them"
quiet apt-get remove -q -y python3-pyelftools python3-numpy python3-zstandard python3-protobuf \
    python3-prometheus-client
for words in "trace -o /tmp/x.pb.gz /tmp/x.recording" exporter; do
    # shellcheck disable=SC2086 # words
    said=$(hakmem $words 2>&1) && fail "hakmem $words needs no modules?"
    remedy=$(printf '%s\n' "$said" | sed -n "s/.*: install with '\(apt-get install .*\)'$/\1/p")
    [ -n "$remedy" ] || fail "hakmem $words names no command: $said"
    say "$remedy"
    # shellcheck disable=SC2086 # words
    quiet $remedy -y
done
verbs

say "bench, compare, replay and tune with the oldest libraries that they permit"
home=$HOME/.cache/hakmem/python-$(python3 -c 'import sys; print("%d.%d" % sys.version_info[:2])')
quiet python3 -m venv "$home"
export PIP_CERT=/tmp/trusted
sed 's/>=\([^,]*\).*/==\1/' /usr/local/share/hakmem/hakmem_yardstick/requirements.txt >/tmp/oldest
quiet "$home/bin/python" -m pip install -q -r /tmp/oldest
verbs --libraries
say "installed as the README says, and all of it used"
