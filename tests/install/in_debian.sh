#!/bin/sh
# Inside the Debian of in_debian: installs, uses, removes and purges the packages.
set -eu
export LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive

say() { printf 'test-install: %s\n' "$*"; }
fail() {
    printf 'test-install: %s\n' "$*" >&2
    exit 1
}
# Every file but what apt, dpkg and the loader keep for themselves.
files() {
    find / -xdev \( -path /tmp -o -path /proc -o -path /var/cache -o -path /var/log \
        -o -path /var/lib/apt -o -path /var/lib/dpkg \) -prune -o -print | sort
}
apt() { apt-get -q -y "$@" >/tmp/apt.log 2>&1 || {
    cat /tmp/apt.log
    fail "apt-get $* failed"
}; }
# What others only suggest goes too; apt keeps it otherwise.
remove_unneeded() { apt autoremove --purge -o APT::AutoRemove::SuggestsImportant=false; }
in_force() { grep -q "/usr/lib/.*/libhakmem\.so\.0"; }

apt update
# What is left of a run that failed.
rm -f /etc/ld.so.preload
dpkg --purge hakmem hakmem-debug libhakmem-dev libhakmem0 >/dev/null 2>&1
remove_unneeded
files >/tmp/before

say "apt-get install ./*.deb"
apt install --no-install-recommends /tmp/packages/*.deb
dpkg --audit
for package in hakmem hakmem-debug libhakmem0 libhakmem-dev; do
    (cd / && md5sum --quiet -c "/var/lib/dpkg/info/$package"*.md5sums)
done

say "the command"
env cat /proc/self/maps | in_force && fail "in force without being asked for"
hakmem run cat /proc/self/maps | in_force || fail "hakmem run: not in force"
hakmem run --debug cat /proc/self/maps | grep -q "/usr/lib/.*/libhakmem-debug\.so\.0" ||
    fail "hakmem run --debug: not in force"
hakmem doctor
hakmem options >/dev/null
env LD_PRELOAD=libhakmem.so.0 cat /proc/self/maps | in_force || fail "LD_PRELOAD by name: not in force"

say "programs"
cmake -G Ninja -S /tmp/install/project -B /tmp/project >/tmp/cmake.log || fail "$(cat /tmp/cmake.log)"
cmake --build /tmp/project >/tmp/cmake.log || fail "$(cat /tmp/cmake.log)"
for program in /tmp/project/programs/*; do
    "$program" >/tmp/output || fail "$program: $(cat /tmp/output)"
done
# shellcheck disable=SC2046 # one word per flag
cc /tmp/install/programs/words.c $(pkg-config --cflags --libs hakmem) -o /tmp/words
/tmp/words || fail "words, built with pkg-config"

say "the machine's default"
echo /usr/lib/"$(cc -print-multiarch)"/libhakmem.so.0 >/etc/ld.so.preload
env cat /proc/self/maps | in_force || fail "/etc/ld.so.preload: not in force"
echo /nowhere/libhakmem.so.0 >/etc/ld.so.preload
env true 2>/tmp/output || fail "no program starts where the preloaded file is missing"
grep -q "cannot be preloaded" /tmp/output || fail "nothing is said of a missing file"
rm /etc/ld.so.preload

say "apt-get remove, purge"
apt remove hakmem hakmem-debug libhakmem-dev libhakmem0
[ ! -e /usr/bin/hakmem ] || fail "the command is still there"
dpkg --purge hakmem hakmem-debug libhakmem-dev libhakmem0 >/dev/null 2>&1
remove_unneeded
[ -z "$(dpkg-query -W -f '${binary:Package} ${db:Status-Abbrev}\n' '*hakmem*' 2>/dev/null)" ] ||
    fail "dpkg still knows of the packages"
files >/tmp/after
diff /tmp/before /tmp/after || fail "these files are not as before"
say "installed, used, removed and purged without a trace"
