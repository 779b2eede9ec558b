package server

import (
	"fmt"
	"strings"
	"time"

	"github.com/perstack-ai/perstack-base/sandbox/files"
	"github.com/perstack-ai/perstack-base/sandbox/scratch"
	"github.com/perstack-ai/perstack-base/skillrepo"
	"github.com/perstack-ai/perstack-base/tools"
)

// Roots are the directories in which skills are looked for, in their precedence:
// those that the user named, then the workspace's and the user's own. Commands may
// write the workspace and what is writable besides, so no link there is trusted.
func Roots(fsys *files.FS, dirs []string, discover bool, writable ...string) ([]skillrepo.Root, error) {
	var roots []skillrepo.Root
	writable = append([]string{fsys.Root()}, writable...)
	for _, dir := range dirs {
		if strings.TrimSpace(dir) == "" {
			continue
		}
		root, err := hostRoot(dir)
		if err != nil {
			return nil, fmt.Errorf("--skills %s: %w", dir, err)
		}
		root.Trusted, root.Writable = true, writable
		roots = append(roots, root)
	}
	if !discover {
		return roots, nil
	}
	for _, dir := range []string{"skills", ".agents/skills"} {
		top := strings.TrimSuffix(fsys.Root(), "/")
		roots = append(roots, skillrepo.Root{FS: fsys.Tree(), Path: dir, Dir: top + "/" + dir})
	}
	if home := files.HomeDir(); home != "" {
		if root, err := hostRoot(home + "/.agents/skills"); err == nil {
			root.Writable = writable
			roots = append(roots, root)
		}
	}
	return roots, nil
}

func hostRoot(dir string) (skillrepo.Root, error) {
	tree, path, abs, err := files.HostTree(dir)
	return skillrepo.Root{FS: tree, Path: path, Dir: abs}, err
}

// openSkills looks for skills and makes the engine that serves them.
func (s *Server) openSkills(cfg Config) error {
	roots, err := Roots(s.env.Files, cfg.Skills, !cfg.NoDiscover, cfg.AllowWrite...)
	if err != nil {
		return err
	}
	log := func(d skillrepo.Diagnostic) { cfg.Log.Warn(d.Message, "skill", d.Path) }
	if s.repo, err = skillrepo.Open(s.running, roots, skillrepo.Options{Log: log}); err != nil {
		return err
	}
	s.env.Skills = &tools.Skills{
		Repo: s.repo, Files: s.env.Files, Workdirs: scratch.NewWorkdirs(s.env.Files.Root(), cfg.AllowWrite...), Log: cfg.Log,
		HostEnv: s.commands.Env, PassEnv: cfg.PassEnv, AllowRead: cfg.AllowRead, AllowWrite: cfg.AllowWrite, ReadOnly: cfg.ReadOnly, Network: cfg.Network,
		Confined: func() bool { ok, _ := s.commands.Confined(); return ok },
	}
	return nil
}

// sweepEvery is how often run workspaces without an owner are looked for. The first look
// waits until the clients that a server is started for have what they want to know of it.
const (
	sweepFirst = 10 * time.Second
	sweepEvery = time.Hour
)

// watchSkills keeps the lists up with the disk until the server ends.
func (s *Server) watchSkills() {
	go s.repo.Watch(s.running, s.lists.sync)
	time.AfterFunc(sweepFirst, s.sweep)
}

// sweep looks for run workspaces without an owner until the server ends.
func (s *Server) sweep() {
	tick := time.NewTicker(sweepEvery)
	defer tick.Stop()
	for s.running.Err() == nil {
		s.env.Skills.Workdirs.Sweep()
		select {
		case <-tick.C:
		case <-s.running.Done():
		}
	}
}
