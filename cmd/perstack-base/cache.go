package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/perstack-ai/perstack-base/sandbox/scratch"
)

func cacheCommand(o *options) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "cache",
		Short: "Show what commands keep between sessions, and where",
		Long: "Show the caches of build tools (go, npm, pip, cargo, ccache and others) that live on between\n" +
			"sessions: one for each workspace, the last used first.",
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			trees, err := o.trees()
			if err != nil {
				return err
			}
			return printCaches(cmd.OutOrStdout(), trees)
		},
	}
	cmd.AddCommand(&cobra.Command{
		Use:   "clear",
		Short: "Empty the cache of the workspace",
		Args:  noArguments,
		RunE: func(*cobra.Command, []string) error {
			trees, err := o.trees()
			if err != nil {
				return err
			}
			if err = trees.ClearCache(); errors.Is(err, scratch.ErrCacheInUse) {
				return fmt.Errorf("%w; end the servers of this workspace first", err)
			}
			return err
		},
	})
	return cmd
}

// trees are the private trees of the workspace that the flags name.
func (o *options) trees() (*scratch.Workdirs, error) {
	dir := o.cfg.Workspace
	if dir == "" {
		dir = "."
	}
	dir, err := filepath.Abs(dir)
	if err == nil {
		dir, err = filepath.EvalSymlinks(dir)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot open the workspace: %w", err)
	}
	return scratch.NewWorkdirs(dir), nil
}

func printCaches(w io.Writer, trees *scratch.Workdirs) error {
	found := trees.Caches()
	if len(found) == 0 {
		_, err := fmt.Fprintf(w, "No command has kept anything yet. The cache of this workspace would be %s\n", trees.CacheDir())
		return err
	}
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "SIZE\tLAST USED\tWORKSPACE\tCACHE")
	for _, c := range found {
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", size(c.Bytes), c.Used.Format("2006-01-02 15:04"), shownWorkspace(c.Workspace), c.Dir)
	}
	return table.Flush()
}

// shownWorkspace tells when a workspace is gone, so that its cache is of no use.
func shownWorkspace(dir string) string {
	if _, err := os.Stat(dir); err != nil {
		return dir + " (gone)"
	}
	return dir
}

// size words a number of bytes as people read it.
func size(n int64) string {
	units := []string{"B", "KiB", "MiB", "GiB"}
	value, unit := float64(n), 0
	for value >= 1024 && unit < len(units)-1 {
		value, unit = value/1024, unit+1
	}
	if unit == 0 {
		return fmt.Sprintf("%d B", n)
	}
	return fmt.Sprintf("%.1f %s", value, units[unit])
}
