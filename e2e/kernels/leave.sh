# Commands try to get out of what control groups keep for them, in a part of the tree that
# is the user's; says "fail" where one does that should not.
cgroups=/sys/fs/cgroup
[ -e $cgroups/cgroup.procs ] || mount -t cgroup2 cgroup2 $cgroups
part=$cgroups/of-$who
[ -d "$part" ] || {
	echo '+memory +pids +cpu' > $cgroups/cgroup.subtree_control
	mkdir "$part"
	chown "$who" "$part" "$part/cgroup.procs" "$part/cgroup.subtree_control" "$part/cgroup.threads"
}
home=$(awk -F: -v user="$who" '$1 == user { print $6 }' /etc/passwd)
mkdir -p "$home/workspace"
chown "$who" "$home/workspace"
within() { sh -c "echo \$\$ > '$part/cgroup.procs' && exec su $who -c \"cd '$home/workspace' && exec $1\"" 2>&1; }
call() {
	echo "$2" > "$home/workspace/script"
	within "perstack-base call exec sh args='[\\\"script\\\"]' --sandbox $mode $1"
}
flags='--max-memory 64M --max-processes 20'

# What it sees, and what it can change of it.
out=$(call "$flags" "
for group in \$(find $cgroups -type d 2> /dev/null); do
	for file in cgroup.procs cgroup.threads; do (echo \$\$ > \$group/\$file) 2> /dev/null && echo moved to \$group; done
	(echo 0 > \$group/cgroup.procs) 2> /dev/null && echo moved all to \$group
	for set in memory.max=max pids.max=max cpu.max=max memory.swap.max=max memory.oom.group=0 cgroup.subtree_control=-memory cgroup.freeze=0; do
		(echo \${set#*=} > \$group/\${set%=*}) 2> /dev/null && echo changed \$group/\$set
	done
	mkdir \$group/inner 2> /dev/null && echo made \$group/inner
done
for fd in /proc/self/fd/*; do readlink \$fd; done | grep cgroup
for fd in 3 4 5 6 7 8 9; do (echo 0 >&\$fd) 2> /dev/null && echo wrote to \$fd; done
grep 0:: /proc/self/cgroup
unshare -C true 2> /dev/null && echo unshared
echo end")
case "$mode $out" in
off*moved*) echo "ok: unconfined commands leave" ;;
off*) echo "fail: doctor says that unconfined commands leave: $out" ;;
*moved* | *changed* | *made* | *wrote* | *unshared*) echo "fail: $out" ;;
*end*) echo "ok: nothing to change" ;;
*) echo "fail: no end: $out" ;;
esac

# More than the kernel can have is no limit, and not an error.
for flag in '--max-processes 4194304' '--max-processes 4194305' '--max-processes 2147483647' '--max-memory 8388607T' '--max-cpus 65536' '--max-cpus 0.01' '--max-memory 1M' '--max-processes 1'; do
	out=$(call "$flag" 'echo here')
	case "$out" in *here*) echo "ok: $flag" ;; *) echo "fail: $flag: $out" ;; esac
done

# A bound of a group above holds, too: a session leaves the server what it needs of that.
above=$cgroups/above-$mode-$who
part=$above/part
mkdir "$above" && echo '+memory +pids +cpu' > "$above/cgroup.subtree_control" && mkdir "$part"
chown "$who" "$part" "$part/cgroup.procs" "$part/cgroup.subtree_control" "$part/cgroup.threads"
echo 200M > "$above/memory.max"
call '' 'sleep 1000' > /run/above 2>&1 &
bounded() { grep -q '^157286400$' "$part"/perstack-base-*/session-1/memory.max 2> /dev/null; }
for _ in $(seq 300); do bounded && break; sleep 0.1; done
bounded && echo "ok: of a group above" || { echo "fail: of a group above"; cat "$part"/perstack-base-*/session-1/memory.max /run/above; }
kill $(ps | awk '/[p]erstack-base call/ { print $1 }')
wait

# What commands make in their group goes with it.
if [ "$mode" = off ]; then
	out=$(call '' "g=$cgroups\$(sed 's/0:://' /proc/self/cgroup); mkdir -p \$g/a/b && echo \$\$ > \$g/a/b/cgroup.procs && cat /proc/self/cgroup; sleep 1000 > /dev/null 2>&1 & echo started")
	case "$out" in *session-1/a/b*) ;; *) echo "fail: no inner group: $out" ;; esac
	ls -d "$part"/perstack-base-* 2> /dev/null && echo "fail: it left its groups: $out" || echo "ok: inner groups"
	out=$(within "perstack-base doctor --sandbox off --max-memory 64M")
	case "$out" in *'can leave'*) echo "ok: doctor" ;; *) echo "fail: doctor: $out" ;; esac
fi
true
