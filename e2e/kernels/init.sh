#!/bin/sh
# The first process of a machine: runs the jobs, one after the other, and switches
# the machine off, whatever happens. What it prints between the markers is the jobs'.
export PATH=/usr/bin:/bin HOME=/root TMPDIR=/tmp

# Nobody can pivot away from the initial file system, as namespaces must.
if [ ! -e /moved ]; then
	/bin/busybox mkdir /proc /new
	/bin/busybox mount -t proc proc /proc
	/bin/busybox --install -s /bin
	umount /proc
	mount -t tmpfs -o mode=755 root /new
	cp -a /bin /etc /usr /jobs /init /new/
	: > /new/moved
	exec switch_root /new /init
fi

trap 'poweroff -f' EXIT
mkdir -p /proc /sys /dev /tmp /run /root /home/user /var/tmp /srv
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t securityfs security /sys/kernel/security
mount -t devtmpfs dev /dev
mkdir -p /dev/pts /dev/shm
mount -t devpts -o ptmxmode=666 devpts /dev/pts
for dir in /dev/shm /tmp /run; do mount -t tmpfs tmpfs "$dir"; done
chmod 1777 /tmp /dev/shm /var/tmp
chown user:user /home/user
ip link set lo up
ip addr add 203.0.113.1/32 dev lo # an address of its own that is not loopback's
ln -s /bin/busybox /usr/bin/env
echo secret > /srv/secret

for job in /jobs/*; do
	. "$job/settings" # name, user, seconds
	echo "@@ begin $name"
	home=$(awk -F: -v user="$user" '$1 == user { print $6 }' /etc/passwd)
	mkdir -p "$home/workspace"
	chown "$user" "$home/workspace"
	timeout -s KILL "$seconds" su "$user" -c "cd '$home/workspace' && . '$job/script'" > /run/out 2>&1 < /dev/null
	code=$?
	grep -v '^=== ' /run/out
	echo
	echo "@@ end $name $code $(cut -d. -f1 /proc/uptime)"
done
