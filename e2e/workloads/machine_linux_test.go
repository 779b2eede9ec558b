package workloads

var machine = []section{
	{"Users and the system", []row{
		{
			name:  "whoami, id, ls -l, stat",
			calls: []string{`touch a && test "$(whoami)" = "$USER" && test "$(id -un)" = "$USER" && test "$(stat -c %U a)" = "$USER" && ls -l a`},
			shows: " a\n",
		}, {
			name: "ssh -G: its own user", needs: []string{"ssh"},
			calls: []string{`ssh -G host.example.org | grep -x "user $USER"`},
			shows: "user ",
		}, {
			name: "sudo", needs: []string{"sudo"},
			calls: []string{"sudo -n true"},
			says:  becomeUser,
		}, {
			name: "su", needs: []string{"su"},
			calls: []string{"su -c true nobody < /dev/null"},
			says:  becomeUser,
		}, {
			name: "ps, top, free, df, nproc, uptime", needs: []string{"ps", "top", "free", "df", "nproc", "uptime"},
			calls: []string{"ps aux | grep -c . > /dev/null && top -bn1 | grep -c . > /dev/null && free > /dev/null && df . > /dev/null && uptime && nproc"},
			shows: "\n",
		}, {
			name: "dpkg -l, apt list", needs: []string{"dpkg", "apt"},
			calls: []string{"dpkg -l dpkg | tail -1 && apt list --installed dpkg 2> /dev/null"},
			shows: "dpkg/",
		}, {
			name: "locale, time zones, os-release, hosts, services", needs: []string{"locale"},
			calls: []string{"locale > /dev/null && TZ=Asia/Tokyo date +%Z && . /etc/os-release && grep -q localhost /etc/hosts && getent services http"},
			shows: "80/tcp",
		}, {
			name:   "MIME types",
			before: "test -s /etc/mime.types",
			calls:  []string{"grep -w ^text/html /etc/mime.types"},
			shows:  "text/html",
		}, {
			name: "machine-id", needs: []string{"cat"},
			before: "test -s /etc/machine-id",
			calls:  []string{"cat /etc/machine-id"},
			shows:  "\n",
		},
	}},
	{"Processes, memory, debuggers", []row{
		{
			name:  "500 processes, one after another",
			calls: []string{"i=0; while [ $i -lt 500 ]; do /bin/true; i=$((i+1)); done; echo $i ran"},
			shows: "500 ran\n",
		},
		{
			name: "sem_open, shm_open, memfd_create", needs: []string{"gcc"},
			files: map[string]string{"ipc.c": ipc},
			calls: []string{"gcc -o ipc ipc.c -lpthread && ./ipc"},
			shows: "sem_open: ok\nshm_open: ok\nmemfd_create: ok\n",
		}, {
			name: "POSIX message queues", needs: []string{"gcc"},
			files: map[string]string{"mq.c": messageQueue},
			calls: []string{"gcc -o mq mq.c && ./mq"},
			shows: "message\n", open: true,
			saysOnly: map[string]string{"landlock": blocked + "use POSIX message queues (the machine's are not the session's own; ask the user to add --sandbox isolate to the arguments of perstack-base)"},
		}, {
			name: "strace", needs: []string{"strace"},
			calls: []string{"strace -f -o trace sh -c 'cat /etc/hostname > /dev/null' && grep -c execve trace && echo traced"},
			open:  true,
			says:  blocked + "stop processes at their exit, as strace does: they could keep each other from being killed; gdb does without",
		}, {
			name: "gdb: run, and attach to a child", needs: []string{"gdb", "gcc"},
			files: map[string]string{"a.c": "#include <unistd.h>\nint answer = 41;\nint main(int argc, char **argv) { if (argc > 1) pause(); return 0; }\n"},
			calls: []string{"gcc -g -o a a.c && gdb -batch -ex 'break main' -ex run -ex 'print answer' a && { ./a wait & p=$!; gdb -batch -p $p -ex 'print answer + 1' && kill $p; }"},
			shows: "= 42\n",
		}, {
			name: "perf_event_open, io_uring, bpf, keyctl", needs: []string{"python3"},
			files: map[string]string{"calls.py": refusedCalls},
			calls: []string{"python3 calls.py"},
			shows: "perf_event_open EPERM\nio_uring_setup EPERM\nbpf EPERM\nkeyctl EPERM\n",
			note:  "each answers EPERM, for which programs are prepared",
		}, {
			name: "unshare", needs: []string{"unshare"},
			calls: []string{"unshare -Ur true"},
			says:  namespaces,
		}, {
			name: "perstack-base, started by a command over stdio, and a command of its own", needs: []string{"python3"}, told: true,
			files:  map[string]string{"ask.py": ask},
			before: `cp "$BINARY" perstack-base`,
			calls:  []string{"timeout 150 python3 ask.py auto '" + inside + "'"},
			shows:  insideShows,
			note: "its commands are confined once more, but not in namespaces; they reach no servers of their own over loopback, and with `--sandbox landlock` around " +
				"they cannot bind, connect, or change modes, owners and times of files: the answer and its doctor say so",
		}, {
			name: "bubblewrap, the sandboxes of other agents", needs: []string{"bwrap"},
			calls: []string{"bwrap --ro-bind / / true"},
			says:  namespaces,
		},
	}},
	{"Terminals", []row{
		{
			name: "script", needs: []string{"script"},
			calls: []string{"script -qec 'test -t 1 && echo terminal' log"},
			shows: "terminal",
		}, {
			name: "a pty of Python's", needs: []string{"python3"},
			calls: []string{`python3 -c 'import pty; pty.spawn(["sh", "-c", "test -t 1 && echo terminal"])'`},
			shows: "terminal",
		}, {
			name: "expect", needs: []string{"expect"},
			calls: []string{`expect -c 'spawn sh -c "read a; echo got \$a"; send "word\n"; expect "got word"; expect eof'`},
			shows: "got word",
		}, {
			name: "tmux", told: true, needs: []string{"tmux"},
			calls: []string{await + "tmux new-session -d -s s 'echo in tmux > out; sleep 60' && await test -s out && tmux ls && cat out; tmux kill-server"},
			shows: "in tmux\n",
		}, {
			name: "screen", needs: []string{"screen"},
			calls: []string{await + "screen -dmS s sh -c 'echo in screen > out; sleep 60' && await test -s out && cat out && screen -S s -X quit"},
			shows: "in screen\n",
		}, {
			name: "entr", needs: []string{"entr"},
			calls: []string{await + "touch a; (echo a | entr -n sh -c 'echo ran >> out' > log 2>&1 & echo $! > pid); await test -s out; until test $(wc -l < out) -gt 1; do touch a; sleep 0.2; done; kill $(cat pid) 2> /dev/null || true; echo seen"},
			shows: "seen\n",
		},
	}},
	{"Keys", []row{
		{
			name: "ssh-keygen, ssh-agent", needs: []string{"ssh-keygen", "ssh-agent", "ssh-add"},
			calls: []string{"ssh-keygen -q -t ed25519 -N '' -C comment -f key && eval $(ssh-agent) && ssh-add -q key && ssh-add -l; ssh-agent -k"},
			shows: "comment",
		}, {
			name: "gpg: generate and sign", needs: []string{"gpg"},
			calls: []string{"gpg -q --batch --passphrase '' --quick-generate-key a@example.org ed25519 sign never 2>&1 && echo text > a && gpg -q --batch --clearsign a && gpg --verify a.asc 2>&1 | grep Good; gpgconf --kill all"},
			shows: "Good signature",
		},
	}},
}

const ipc = `#define _GNU_SOURCE
#include <fcntl.h>
#include <semaphore.h>
#include <stdio.h>
#include <string.h>
#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>
static char name[64];
static void say(const char *what, int ok) { printf("%s: %s\n", what, ok ? "ok" : strerror(errno)); }
int main(void) {
  snprintf(name, sizeof name, "/workloads-%d", getpid());
  say("sem_open", sem_open(name, O_CREAT, 0600, 1) != SEM_FAILED);
  sem_unlink(name);
  say("shm_open", shm_open(name, O_CREAT | O_RDWR, 0600) >= 0);
  shm_unlink(name);
  say("memfd_create", memfd_create("a", 0) >= 0);
}
`

const messageQueue = `#include <fcntl.h>
#include <mqueue.h>
#include <stdio.h>
#include <unistd.h>
int main(void) {
  char name[64], got[64] = "";
  struct mq_attr attr = {.mq_maxmsg = 1, .mq_msgsize = sizeof got};
  snprintf(name, sizeof name, "/workloads-%d", getpid());
  mqd_t q = mq_open(name, O_CREAT | O_RDWR, 0600, &attr);
  if (q < 0) { perror("mq_open"); return 1; }
  mq_unlink(name);
  mq_send(q, "message", 8, 0);
  mq_receive(q, got, sizeof got, 0);
  puts(got);
}
`

// refusedCalls shows how the kernel answers what a sandbox has no need of.
const refusedCalls = `import ctypes, errno, platform
libc = ctypes.CDLL(None, use_errno=True)
numbers = {"x86_64": (298, 425, 321, 250), "aarch64": (241, 425, 280, 219)}[platform.machine()]
buffer = ctypes.create_string_buffer(256)
for name, number, args in zip(("perf_event_open", "io_uring_setup", "bpf", "keyctl"), numbers,
                              ((buffer, 0, -1, -1, 0), (1, buffer), (0, buffer, 72), (0, -3, 0))):
    result = libc.syscall(number, *args)
    print(name, errno.errorcode.get(ctypes.get_errno(), "?") if result < 0 else "works")
`
