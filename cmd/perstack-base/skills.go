package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/perstack-ai/perstack-base/sandbox"
	"github.com/perstack-ai/perstack-base/sandbox/files"
	"github.com/perstack-ai/perstack-base/server"
	"github.com/perstack-ai/perstack-base/skillrepo"
)

func skillsCommand(o *options) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "skills",
		Short: "List, validate and digest Agent Skills",
		Args:  noArguments,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(skillsListCommand(o), skillsValidateCommand(), skillsDigestCommand())
	return cmd
}

func skillsListCommand(o *options) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "list",
		Short: "Show the skills that a server with these flags knows, and what it did not load",
		Args:  noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			inventory, err := takeInventory(cmd.Context(), o)
			if err != nil {
				return err
			}
			if asJSON {
				return printLine(cmd.OutOrStdout(), inventory.Inventory)
			}
			return printInventory(cmd.OutOrStdout(), inventory)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print everything known as one JSON object")
	return cmd
}

// A survey is what a server would know of skills, and where it would look for them.
type survey struct {
	skillrepo.Inventory
	Looked []place
}

// A place is a directory in which skills are looked for.
type place struct {
	Dir     string
	Trusted bool
	There   bool
}

func takeInventory(ctx context.Context, o *options) (all survey, err error) {
	dir := o.cfg.Workspace
	if dir == "" {
		dir = "."
	}
	files, err := files.Open(dir, sandbox.Limits{})
	if err != nil {
		return all, fmt.Errorf("cannot open the workspace %s: %w", dir, err)
	}
	defer files.Close()
	roots, err := server.Roots(files, o.skillDirs(), !o.cfg.NoDiscover, o.cfg.AllowWrite...)
	if err != nil {
		return all, err
	}
	for _, r := range roots {
		_, err := os.Stat(r.Dir)
		all.Looked = append(all.Looked, place{r.Dir, r.Trusted, err == nil})
	}
	repo, err := skillrepo.Open(ctx, roots, skillrepo.Options{})
	if err != nil {
		return all, err
	}
	all.Inventory, err = repo.Inventory(ctx)
	return all, err
}

func printInventory(w io.Writer, all survey) error {
	if len(all.Skills) == 0 {
		fmt.Fprintln(w, "No skills.")
	} else if err := printSkills(w, all.Skills); err != nil {
		return err
	}
	for _, s := range all.Skills {
		for _, d := range s.Diagnostics {
			fmt.Fprintf(w, "warning: %s: %s\n", s.Dir, d)
		}
	}
	for _, d := range all.Diagnostics {
		fmt.Fprintf(w, "not loaded: %s\n", d)
	}
	return printLooked(w, all.Looked)
}

func printSkills(w io.Writer, list []skillrepo.SkillInfo) error {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tw, "SKILL\tTRUST\tFILES\tBYTES\tDIRECTORY")
	for _, s := range list {
		fmt.Fprintf(tw, "%s\t%s\t%d\t%d\t%s\n", s.Name, s.Trust, s.Files, s.Bytes, s.Dir)
	}
	return tw.Flush()
}

// printLooked says where skills were looked for: one that is missed is elsewhere.
func printLooked(w io.Writer, looked []place) error {
	if len(looked) == 0 {
		_, err := fmt.Fprintln(w, "Looked nowhere: --no-discover, and no --skills DIR.")
		return err
	}
	fmt.Fprintln(w, "Looked in:")
	for _, p := range looked {
		var notes []string
		if p.Trusted {
			notes = append(notes, "trusted, from --skills")
		}
		if !p.There {
			notes = append(notes, "does not exist")
		}
		line := "  " + p.Dir
		if notes != nil {
			line += " (" + strings.Join(notes, "; ") + ")"
		}
		if _, err := fmt.Fprintln(w, line); err != nil {
			return err
		}
	}
	return nil
}

func skillsValidateCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "validate DIR...",
		Short: "Check skills by the published rules; exit code 1 when one is not valid",
		Long: `Check skills by the published rules of agentskills.io. Exit code 1 means that one is not valid. The
rules know no hooks, paths and other fields that this server and some hosts honour: a skill that has
them works here, but is not valid for every host.`,
		Args: someDirectories,
		RunE: func(cmd *cobra.Command, dirs []string) error {
			valid := true
			for _, dir := range dirs {
				root, err := rootOf(dir)
				if err != nil {
					return err
				}
				report := skillrepo.Validate(cmd.Context(), root, dir)
				valid = valid && len(report.Errors) == 0
				if err := printReport(cmd.OutOrStdout(), cmd.ErrOrStderr(), report, asJSON); err != nil {
					return failure{err}
				}
			}
			if !valid {
				return failure{}
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object, on one line, for each directory")
	return cmd
}

func someDirectories(_ *cobra.Command, args []string) error {
	if len(args) == 0 {
		return errors.New("name at least one skill directory")
	}
	return nil
}

func rootOf(dir string) (skillrepo.Root, error) {
	tree, path, abs, err := files.HostTree(dir)
	return skillrepo.Root{FS: tree, Path: path, Dir: abs}, err
}

func printReport(stdout, stderr io.Writer, r skillrepo.Report, asJSON bool) error {
	if asJSON {
		return printLine(stdout, r)
	}
	if len(r.Errors) == 0 {
		_, err := fmt.Fprintf(stdout, "Valid skill: %s\n", r.Dir)
		return err
	}
	fmt.Fprintf(stderr, "Validation failed for %s:\n", r.Dir)
	for _, e := range r.Errors {
		fmt.Fprintf(stderr, "  - %s\n", e)
	}
	for _, note := range r.Notes() {
		fmt.Fprintf(stderr, "  note: %s\n", note)
	}
	return nil
}

func printLine(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}

func skillsDigestCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "digest DIR...",
		Short: "Print the digest of each skill: it changes with any byte or path",
		Args:  someDirectories,
		RunE: func(cmd *cobra.Command, dirs []string) error {
			for _, dir := range dirs {
				root, err := rootOf(dir)
				if err != nil {
					return err
				}
				digest, err := digestOf(cmd.Context(), root)
				if err != nil {
					return failure{fmt.Errorf("%s: %w", dir, err)}
				}
				fmt.Fprintf(cmd.OutOrStdout(), "%s  %s\n", digest, dir)
			}
			return nil
		},
	}
}

func digestOf(ctx context.Context, root skillrepo.Root) (string, error) {
	sk, err := skillrepo.Load(ctx, root)
	if err != nil {
		return "", err
	}
	return sk.Digest(ctx)
}
