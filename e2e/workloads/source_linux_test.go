package workloads

const (
	commitOne   = "git init -q . && echo 1 > one && git add one && git commit -qm first"
	mainOutside = "git init -q main && cd main && mkdir pkg && echo 1 > pkg/one && git add . && git commit -qm first"
)

var source = []section{
	{"Git", []row{
		{
			name: "git init, 50 files, add, commit, log; the identity from ~/.gitconfig", needs: []string{"git"},
			calls: []string{"git init -q . && for i in $(seq 50); do echo $i > f$i; done && git add . && git commit -qm first && git log --stat --format=%ae"},
			shows: "50 files changed",
		}, {
			name: "~/.gitconfig with what it includes, and its excludesFile", needs: []string{"git"},
			calls: []string{commitOne, "touch ignored-everywhere && git status --porcelain && git last"},
			shows: "first\n",
		}, {
			name: "git worktree add and git gc in the workspace", needs: []string{"git"},
			calls: []string{"mkdir main && cd main && " + commitOne + " && git worktree add -q ../tree && git gc -q && git -C ../tree status && git -C ../tree log --format=%s"},
			shows: "first\n",
		}, {
			name: "git clone of a repository in the workspace", needs: []string{"git"},
			calls: []string{"mkdir from && (cd from && " + commitOne + ") && git clone -q from to && git -C to log --format=%s"},
			shows: "first\n",
		}, {
			name: "a linked worktree as the workspace: status, commit, log", needs: []string{"git"},
			before: mainOutside + " && git worktree add -q ../tree", workspace: "tree",
			calls: []string{"git status --porcelain && echo 2 > two && git add two && git commit -qm second && git log --format=%s"},
			shows: "second\nfirst\n",
		}, {
			name: "a directory within a repository as the workspace: status, diff, log", needs: []string{"git"},
			before: mainOutside, workspace: "main/pkg",
			calls: []string{"echo 2 >> one && git status --porcelain && git diff --stat && git log --format=%s"},
			shows: "first\n",
		}, {
			name: "a directory within a repository as the workspace: commit", needs: []string{"git"},
			before: mainOutside, workspace: "main/pkg",
			calls: []string{"echo 2 >> one && git commit -qam second"},
			says:  blocked + "change ROW/main/.git/index.lock: of the repository outside the workspace ...; ask the user to run this git command outside ...", open: true,
		}, {
			name: "git clone of a repository outside", needs: []string{"git"},
			before: "cd $OUTSIDE && test -d repository || (mkdir repository && cd repository && " + commitOne + ")",
			calls:  []string{"rm -rf repository && git clone -q $OUTSIDE/repository"},
			says:   readOf("OUTSIDE/repository"), open: true,
		}, {
			name: "git clone https://...", needs: []string{"git"},
			calls: []string{"git clone -q https://git.example.org/a/b.git"},
			says:  noNetwork,
		}, {
			name: "ssh, and git over it", needs: []string{"git", "ssh"},
			calls: []string{"git clone -q git@192.0.2.1:a/b.git"},
			says:  noNetwork,
		},
	}},
	{"Files", []row{
		{
			name: "find and grep in hundreds of files, cp -r", needs: []string{"find"},
			calls: []string{"mkdir -p a && cd a && for d in $(seq 5); do mkdir $d; for f in $(seq 100); do echo needle$f > $d/$f; done; done; cd .. && cp -r a b && grep -rl needle77 b | wc -l && find b -type f | wc -l"},
			shows: "5\n500\n",
		}, {
			name:  "find / -maxdepth 2",
			calls: []string{"find / -maxdepth 2 -name perstack-never 2> errors || grep -c . errors > /dev/null; ls /usr/bin/env && echo looked"},
			shows: "looked\n",
		}, {
			name:   "cat of a file outside",
			before: "echo outside > $OUTSIDE/file",
			calls:  []string{"cat $OUTSIDE/file"},
			says:   readOf("OUTSIDE/file"), open: true,
		}, {
			name:   "... where the exit code hides it",
			before: "echo outside > $OUTSIDE/file",
			calls:  []string{"cat $OUTSIDE/file 2>&1 | tail -1"},
			says:   readOf("OUTSIDE/file"), open: true,
		}, {
			name:  "writing a file outside",
			calls: []string{"echo x > $OUTSIDE/new"},
			says:  writeOf("OUTSIDE/new", "OUTSIDE"), open: true,
		}, {
			name:  "writing a file in $TMPDIR, and in $HOME",
			calls: []string{"echo 1 > $TMPDIR/a && echo 2 > ~/b && cat $TMPDIR/a ~/b"},
			shows: "1\n2\n",
		}, {
			name:  "writing a file in /tmp",
			calls: []string{"echo 1 > /tmp/workloads.$$ && cat /tmp/workloads.$$"},
			shows: "1\n", open: true,
			saysOnly: map[string]string{"landlock": writeOf("/tmp/...", "/tmp")},
		}, {
			name: "fifo, flock, mmap", needs: []string{"flock", "python3"},
			calls: []string{"mkfifo f && (echo through > f &) && cat f && flock lock echo locked && python3 -c 'import mmap; f = open(\"m\", \"w+b\"); f.truncate(4096); m = mmap.mmap(f.fileno(), 4096); m[:6] = b\"mapped\"; m.flush(); print(open(\"m\", \"rb\").read(6))'"},
			shows: "through\nlocked\nb'mapped'\n",
		}, {
			name: "files watched: inotify", needs: []string{"python3"},
			files: map[string]string{"watch.py": inotify},
			calls: []string{"python3 watch.py"},
			shows: "seen\n",
		},
	}},
}

const inotify = `import ctypes, os, select
libc = ctypes.CDLL(None, use_errno=True)
fd = libc.inotify_init1(0)
assert libc.inotify_add_watch(fd, b".", 0x100) > 0, os.strerror(ctypes.get_errno())
open("new", "w").close()
assert select.select([fd], [], [], 60)[0]
print("seen")
`
