package sandbox

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// byName are the calls that open, make or remove something by its name. Where
// commands can write, a name may lead anywhere by the time it is used: there
// only os.Root, openat and the like will do.
var byName = map[string][]string{
	"os": {"Open", "OpenFile", "OpenRoot", "ReadFile", "WriteFile", "Create", "CreateTemp", "Mkdir", "MkdirAll", "MkdirTemp", "Remove", "RemoveAll",
		"Rename", "Symlink", "Link", "Chmod", "Chown", "Lchown", "Chtimes", "Truncate", "ReadDir", "DirFS", "CopyFS", "Chdir"},
	"filepath": {"Walk", "WalkDir", "Glob"},
	"unix":     {"Open", "Creat", "Mkdir", "Unlink", "Rmdir", "Rename", "Link", "Symlink", "Chmod", "Chown", "Lchown", "Truncate", "Mknod", "Chdir"},
	"syscall":  {"Open", "Creat", "Mkdir", "Unlink", "Rmdir", "Rename", "Link", "Symlink", "Chmod", "Chown", "Lchown", "Truncate", "Mknod", "Chdir"},
}

// nobodyElseWrites says of each function that opens by name why no command has a
// say in what it opens.
var nobodyElseWrites = map[string]string{
	"internal/filetest/filetest.go Put":                                      "tests alone",
	"files/fs.go Open":                                                       "before the first command, links resolved",
	"files/hosttree_linux.go hostTree.walk":                                  "the root",
	"files/hosttree_other.go newHostTree":                                    "where nothing is confined",
	"files/hosttree_other.go hostTree.Open":                                  "where nothing is confined",
	"process/internal/environ/cacheenv.go mendCache":                         "the cache itself, in a directory that commands cannot write; then a handle",
	"process/internal/environ/cacheoffline.go uniteYarn":                     "the cache itself, in a directory that commands cannot write; then a handle",
	"process/internal/environ/cacheoffline.go offlinePNPM":                   "the cache itself, in a directory that commands cannot write; then a handle",
	"process/internal/environ/cacheoffline.go unite":                         "only names are read, and links to them made by a handle",
	"process/internal/environ/cacheoffline.go twin":                          "only names are read, and links to them made by a handle",
	"process/internal/environ/cacheenv.go offlineNPM":                        "the cache itself, in a directory that commands cannot write; then a handle",
	"process/internal/home/cargo.go makeInCache":                             "the cache itself, in a directory that commands cannot write; then a handle",
	"process/internal/private/sessiondir.go New":                             "in a directory that Policy.Safe vouches for",
	"process/container.go confinement.newTree":                               "in a directory that Policy.Safe vouches for, before the container that has it",
	"process/runner.go runner.welcome":                                       "before the first command",
	"process/internal/containers/engine.go var":                              "a file of the system",
	"process/internal/private/sessiondir.go Remove":                          "the directory that New was given",
	"process/internal/environ/repository.go readBelow":                       "the workspace or what it lies in, before the first command; then a handle",
	"scratch/workdirs.go Workdirs.private":                                   "in a directory that exposed has looked at",
	"internal/confine/policy/walker_linux.go walker.restart":                 "the root",
	"process/internal/private/names.go Dir.LayNames":                         "the machine's /etc",
	"internal/network/hosts.go Gate.readHosts":                               "the machine's /etc",
	"internal/network/hosts.go fromHosts":                                    "the machine's /etc",
	"internal/confine/namespaces/isolator_linux.go NewWith":                  "the machine's /etc",
	"internal/confine/broker/patches_linux.go Question.writeAll":             "/proc",
	"internal/confine/broker/interruption_linux.go Question.interruption":    "/proc",
	"internal/confine/broker/outward_linux.go Question.flagsOf":              "/proc",
	"internal/confine/namespaces/view_linux.go view.layNameServers":          "inside of the view, before the first command",
	"internal/confine/namespaces/view_linux.go bindDevice":                   "the new tree of mounts, before the first command",
	"internal/confine/namespaces/mounts_linux.go emptyFile":                  "an empty file system that no command has seen yet",
	"process/decision.go forbidden":                                          "/proc",
	"internal/confine/hints/hostports.go ListensOnLoopback":                  "/proc",
	"internal/confine/namespaces/ipc_linux.go mountQueues":                   "the new tree of mounts, before the first command",
	"internal/confine/policy/place_linux.go Policy.Reach":                    "a descriptor",
	"internal/confine/policy/place_other.go Policy.Reach":                    "where nothing is confined",
	"internal/confine/policy/policy.go expand":                               "/etc",
	"internal/confine/kernel/landlock_linux.go AddRule":                      "the root, devices, and mounts that no command has seen yet",
	"internal/confine/selftest/probes_linux.go Canary":                       "temporary files of the system, exclusive ones",
	"internal/confine/broker/file_linux.go Question.byFD":                    "/proc",
	"internal/confine/broker/file_linux.go Question.byPath":                  "/proc",
	"internal/confine/broker/file_linux.go Question.openPath":                "/proc",
	"internal/confine/broker/pty_linux.go Question.open":                     "a terminal by its number, whose master is looked at before and after",
	"internal/confine/broker/pty_linux.go holdsMaster":                       "/proc",
	"internal/confine/namespaces/guardgit_linux.go makeOwnSettings":          "inside of the view: it leads nowhere else",
	"internal/confine/namespaces/guardgit_linux.go lookInto":                 "inside of the view: it leads nowhere else",
	"internal/confine/namespaces/guardgit_linux.go gitGuard.guardRepository": "inside of the view: it leads nowhere else",
	"files/guard.go FS.gitConfig":                                            "settings that git reads, too, wherever they are; only names in the workspace are taken from them",
	"internal/confine/namespaces/hold_linux.go readSettings":                 "the same",
	"internal/confine/policy/gituser.go linksIn":                             "hooks that git runs, too, wherever they are; only names in the workspace are taken from them",
	"internal/confine/namespaces/hold_linux.go gitGuard.guardName":           "inside of the view, before the first command",
	"internal/confine/namespaces/hold_linux.go gitGuard.noteTwins":           "inside of the view: it leads nowhere else",
	"internal/confine/namespaces/hold_linux.go gitGuard.guardTwins":          "inside of the view: it leads nowhere else",
	"internal/confine/namespaces/hold_linux.go openOld":                      "the machine's own root",
	"internal/confine/namespaces/hold_linux.go gitGuard.guardSetting":        "inside of the view: it leads nowhere else",
	"internal/confine/broker/task_linux.go lastNumber":                       "/proc",
	"internal/confine/namespaces/guardgit_linux.go guardWorktrees":           "inside of the view: it leads nowhere else",
	"internal/confine/namespaces/guardgit_linux.go guardPlace":               "inside of the view: it leads nowhere else",
	"internal/confine/namespaces/gitlock_linux.go holdLocks":                 "the workspace itself, in a directory that commands cannot write; then a handle",
	"process/internal/environ/repository.go linkBelow":                       "where commands can make no link, and only to look for one",
	"process/internal/environ/repository.go linkedRepository":                "a git directory that commands cannot write",
	"internal/confine/namespaces/keeperids_linux.go sameIDs":                 "/proc",
	"internal/confine/namespaces/limits_linux.go memoryLimit":                "/proc and /sys",
	"internal/confine/namespaces/reserve_linux.go chargedTo":                 "the control groups of the system",
	"internal/confine/namespaces/reserve_linux.go usedBy":                    "the control groups of the system",
	"internal/confine/namespaces/mounts_linux.go mountTable":                 "/proc",
	"internal/confine/kernel/procdir_linux.go OpenProcDir":                   "the proc of the namespaces, which commands cannot mount over",
	"internal/confine/threads/watcher_linux.go memoryFile":                   "a descriptor",
	"internal/proc/memory_linux.go var":                                      "/proc",
	"internal/proc/room_linux.go readNumber":                                 "the control groups of the system",
	"internal/confine/namespaces/terminals_linux.go Isolator.openTerminals":  "the keeper's own mounts, before the first command",
	"internal/proc/table_linux.go table":                                     "/proc",
	"internal/proc/table_linux.go readFile":                                  "/proc",
	"internal/proc/awaits_linux.go entries":                                  "/proc",
	"internal/proc/awaits_linux.go asked.epolls":                             "/proc",
	"internal/proc/awaits_linux.go asked.memory":                             "/proc",
	"internal/pty/pty_darwin.go Open":                                        "/dev",
	"internal/pty/pty_darwin.go unlock":                                      "/dev",
	"internal/pty/pty_linux.go unlock":                                       "/dev/pts",
	"internal/proc/table_linux.go FileField":                                 "/proc",
	"internal/confine/namespaces/view_linux.go enterEmptyRoot":               "an empty file system that no command has seen yet",
	"internal/confine/namespaces/view_linux.go leaveOldRoot":                 "an empty file system that no command has seen yet",
	"internal/confine/namespaces/view_linux.go view.collect":                 "the resolver's directory",
	"internal/confine/namespaces/view_linux.go view.grant":                   "what the root and /dev hold, if all of it is granted",
	"internal/confine/namespaces/mounts_linux.go openObject":                 "what the root and /dev hold, devices, and the session's etc",
	"internal/confine/namespaces/mounts_linux.go mountPoint":                 "an empty file system that no command has seen yet",
	"internal/confine/namespaces/view_linux.go view.mountTmpfs":              "an empty file system that no command has seen yet",
	"internal/confine/namespaces/view_linux.go view.devices":                 "an empty file system that no command has seen yet",
	"internal/confine/namespaces/view_linux.go view.link":                    "an empty file system that no command has seen yet",
	"internal/confine/namespaces/sockets_linux.go holdsSocketsOnly":          "inside of the view, below a place that is read only",
	"internal/cgroup/leaf_linux.go Leaf.Processes":                           "the control groups of the system",
	"internal/cgroup/leaf_linux.go Leaf.write":                               "the control groups of the system",
	"internal/cgroup/leaf_linux.go Tree.NewLeaf":                             "the control groups of the system",
	"internal/cgroup/leaf_linux.go Tree.spare":                               "the control groups of the system",
	"process/ownfile.go Commands.OpenOwn":                                    "a directory that no command can write, which is looked at before and after",
	"internal/cgroup/leaf_linux.go countersOf":                               "the control groups of the system",
	"internal/cgroup/container_linux.go Container.read":                      "the control groups of the system",
	"internal/cgroup/leaf_linux.go remove":                                   "the control groups of the system",
	"internal/cgroup/leaf_linux.go below":                                    "the control groups of the system",
	"internal/cgroup/leaf_linux.go removeLeftovers":                          "the control groups of the system",
	"internal/cgroup/tree_linux.go Tree.leave":                               "the control groups of the system",
	"internal/cgroup/tree_linux.go Tree.moveIn":                              "the control groups of the system",
	"internal/cgroup/tree_linux.go enable":                                   "the control groups of the system",
	"internal/cgroup/tree_linux.go look":                                     "/proc",
	"internal/cgroup/tree_linux.go move":                                     "the control groups of the system",
	"internal/cgroup/tree_linux.go words":                                    "the control groups of the system",
	"internal/confine/namespaces/usage_linux.go Isolator.openMemory":         "the keeper's own mounts, before the first command",
	"process/internal/usage/usage_linux.go mapped":                           "/proc",
	"process/internal/usage/usage_linux.go numbers":                          "/proc",
	"internal/confine/namespaces/view_linux.go coverPerstack":                "inside of the view: it leads nowhere else",
}

// TestByHandleOnly walks the source of the packages that touch the machine.
func TestByHandleOnly(t *testing.T) {
	used := map[string]bool{}
	files := 0
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		files++
		set := token.NewFileSet()
		file, err := parser.ParseFile(set, path, nil, 0)
		if err != nil {
			return err
		}
		for _, decl := range file.Decls {
			name := filepath.ToSlash(path) + " " + declName(decl)
			ast.Inspect(decl, func(n ast.Node) bool {
				if call, ok := n.(*ast.CallExpr); ok && opensByName(call) {
					used[name] = true
					if nobodyElseWrites[name] == "" {
						t.Errorf("%s: %s opens by name; if no command can write there, say why in nobodyElseWrites", set.Position(call.Pos()), name)
					}
				}
				return true
			})
		}
		return nil
	})
	if err != nil || files < 50 {
		t.Fatalf("%d files: %v", files, err)
	}
	for name := range nobodyElseWrites {
		if !used[name] {
			t.Errorf("%s opens nothing by name any more", name)
		}
	}
}

// declName is Type.Method or Function.
func declName(decl ast.Decl) string {
	f, ok := decl.(*ast.FuncDecl)
	if !ok {
		return "var"
	}
	if f.Recv == nil {
		return f.Name.Name
	}
	typ := f.Recv.List[0].Type
	if star, ok := typ.(*ast.StarExpr); ok {
		typ = star.X
	}
	if index, ok := typ.(*ast.IndexExpr); ok {
		typ = index.X
	}
	return typ.(*ast.Ident).Name + "." + f.Name.Name
}

// opensByName reports a call of byName whose name is not the kernel's own.
func opensByName(call *ast.CallExpr) bool {
	fun, ok := call.Fun.(*ast.SelectorExpr)
	if !ok || len(call.Args) == 0 {
		return false
	}
	pkg, ok := fun.X.(*ast.Ident)
	return ok && slices.Contains(byName[pkg.Name], fun.Sel.Name) && !slices.ContainsFunc(call.Args[:1], kernels)
}

// kernels reports whether an expression begins with /proc, /sys, /dev/null or os.DevNull.
func kernels(e ast.Expr) bool {
	switch e := e.(type) {
	case *ast.BinaryExpr:
		return kernels(e.X)
	case *ast.SelectorExpr:
		return e.Sel.Name == "DevNull"
	case *ast.CallExpr:
		return len(e.Args) > 0 && kernels(e.Args[0])
	case *ast.BasicLit:
		text, err := strconv.Unquote(e.Value)
		return err == nil && (strings.HasPrefix(text, "/proc") || strings.HasPrefix(text, "/sys") || text == "/dev/null")
	}
	return false
}
