# Runs commands under limits that are kept by control groups of version 2, in a part of
# their tree that is the user's ($who), and says "fail" where something is not as it shall be.
cgroups=/sys/fs/cgroup
[ -e $cgroups/cgroup.procs ] || mount -t cgroup2 cgroup2 $cgroups
[ "${part:=$cgroups/of-$who}" ] && [ ! -d "$part" ] && {
	echo '+memory +pids +cpu' > $cgroups/cgroup.subtree_control
	mkdir "$part"
	chown "$who" "$part" "$part/cgroup.procs" "$part/cgroup.subtree_control" "$part/cgroup.threads"
}
home=$(awk -F: -v user="$who" '$1 == user { print $6 }' /etc/passwd)
mkdir -p "$home/workspace"
chown "$who" "$home/workspace"

# Whoever starts the server must not stay in the group beside it.
within() {
	sh -c "echo \$\$ > '$part/cgroup.procs' && exec su $who -c \"cd '$home/workspace' && exec $1\""
}

# try WANTED FLAGS SCRIPT: what a command of sh answers.
try() {
	echo "$3" > "$home/workspace/script"
	out=$(within "perstack-base call exec sh args='[\\\"script\\\"]' --sandbox $mode $2" 2>&1)
	case "$out" in *"$1"*) echo "ok: $2: $1" ;; *) echo "fail: $2: $3: $out" ;; esac
}

# Where programs cannot be made to wait where they begin, they run all the same, and
# come under their limits a moment later.
if [ "$late" ]; then
	echo 3 > /proc/sys/kernel/yama/ptrace_scope
	try '/session-1' '' 'sleep 1; cat /proc/self/cgroup'
	try '65536' '--max-memory 64M' 'sleep 1; ulimit -d; cat /proc/self/limits | grep "data size"; sh -c "ulimit -d"'
	out=$(within "perstack-base doctor --json --sandbox $mode --max-memory 64M")
	[ "$(echo "$out" | grep -c '"keeping": "coarsely"')" = 3 ] && echo "ok: doctor" || echo "fail: late: $out"
	exit
fi

memory="ended because the session's commands used more than --max-memory 64M"
hold='hold() { dd if=/dev/zero bs=30M count=1 2> /dev/null | sleep 4; }'
try "$memory" '--max-memory 64M' 'dd if=/dev/zero of=/dev/null bs=200M count=1; echo it got it'
try 'it got it' '' 'dd if=/dev/zero of=/dev/null bs=200M count=1; echo it got it'
try 'one is fine' '--max-memory 64M' "$hold; hold; echo one is fine"
try "$memory" '--max-memory 64M' "$hold; for i in 1 2 3 4; do hold & done; wait; echo so are four"
[ "$mode" = isolate ] && try "$memory" '--max-memory 64M' 'head -c 45m /dev/zero > /dev/shm/a; head -c 45m /dev/zero > /tmp/b; echo both are there'
try 'nineteen' '--max-processes 20' 'for i in $(seq 19); do sleep 8 & done; wait; echo nineteen'
try '--max-processes 20 reached' '--max-processes 20' 'for i in $(seq 20); do sleep 30 & done; wait; echo twenty'
try 'out of memory on this machine' '' 'dd if=/dev/zero of=/dev/null bs=1950M count=1'
try '1000' '' 'cat /proc/self/oom_score_adj'

# Every limit is exact, so strict takes them.
if [ "$mode" != off ]; then
	out=$(within "perstack-base doctor --json --sandbox strict --max-memory 64M --max-processes 20 --max-cpus 0.5")
	[ "$(echo "$out" | grep -c '"keeping": "exactly"')" = 3 ] && echo "ok: doctor" || echo "fail: doctor: $out"
fi
if [ "$who" != root ]; then # root may divide the whole tree, as nobody manages it here
	out=$(cd "$home/workspace" && su "$who" -c 'perstack-base serve --sandbox strict --max-cpus 0.5 < /dev/null' 2>&1)
	case "$? $out" in '2 '*'--max-cpus 0.5 is kept not at all'*'Delegate=yes'*) echo "ok: strict" ;; *) echo "fail: strict starts outside: $out" ;; esac
fi

# Processor time is held back, and what nobody asked for is bounded all the same.
echo 'while :; do :; done' > "$home/workspace/script"
within "perstack-base call exec sh args='[\\\"script\\\"]' --sandbox $mode --max-cpus 0.25 --timeout 40s" > /run/busy 2>&1 &
throttled() { cat "$part"/perstack-base-*/session-1/cpu.stat 2> /dev/null | grep -q 'nr_throttled [1-9]'; }
for _ in $(seq 300); do throttled && break; sleep 0.1; done
throttled && echo "ok: throttled" || { echo "fail: never throttled"; cat /run/busy; }
cat "$part"/perstack-base-*/session-1/pids.max | grep -q '^4096$' && echo "ok: 4096" || echo "fail: no bound on processes"

# A server that ends leaves nothing, and so does one that was killed once the next has
# started: here in the group at the top, which may hold processes although it is divided.
kill $(ps | awk '/[p]erstack-base call/ { print $1 }')
for _ in $(seq 300); do [ -z "$(ls -d "$part"/perstack-base-* 2> /dev/null)" ] && break; sleep 0.1; done
ls -d "$part"/perstack-base-*/* 2> /dev/null && echo "fail: groups are left" || echo "ok: nothing is left"
# A group that somebody else is in, too, cannot be divided, and is left as it was.
if [ "$mode" = isolate ]; then
	out=$(sh -c "echo \$\$ > '$part/cgroup.procs' && exec su $who -c \"cd '$home/workspace'; perstack-base doctor --json --max-cpus 1; true\"")
	case "$out" in *'other processes are in the control group'*) echo "ok: shared" ;; *) echo "fail: shared: $out" ;; esac
	ls -d "$part"/perstack-base-* 2> /dev/null && echo "fail: it left its groups"
fi
if [ "$who" = root ]; then
	(cd "$home/workspace" && exec perstack-base call exec sh args='["script"]' --sandbox $mode) > /run/busy 2>&1 &
	server=$!
	for _ in $(seq 300); do [ -n "$(cat $cgroups/perstack-base-*/session-1/cgroup.procs 2> /dev/null)" ] && break; sleep 0.1; done
	ls -d $cgroups/perstack-base-*/session-1 || { echo "fail: no group at the top"; cat /run/busy; }
	kill -9 $server
	for _ in $(seq 300); do grep -q 'populated 0' $cgroups/perstack-base-*/server/cgroup.events && break; sleep 0.1; done
	sleep 6
	(cd "$home/workspace" && perstack-base call exec echo args='["on"]' --sandbox $mode)
	ls -d $cgroups/perstack-base-* 2> /dev/null && echo "fail: leftovers" || echo "ok: leftovers"
fi
true
