package main

import (
	"encoding/json"
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/spf13/cobra"

	"github.com/perstack-ai/perstack-base/server"
)

func toolsCommand(o *options) *cobra.Command {
	var asJSON, asMarkdown bool
	cmd := &cobra.Command{
		Use:   "tools",
		Short: "Show the tools that a client will see with these flags",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, end, err := open(o)
			if err != nil {
				return err
			}
			defer end()
			switch {
			case asJSON:
				return printJSON(cmd.OutOrStdout(), s.Listed())
			case asMarkdown:
				_, err := fmt.Fprint(cmd.OutOrStdout(), server.Markdown(s.Listed()))
				return err
			}
			return printTable(cmd.OutOrStdout(), s.Listed())
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "the entries of tools/list, as JSON")
	cmd.Flags().BoolVar(&asMarkdown, "markdown", false, "a Markdown table")
	cmd.MarkFlagsMutuallyExclusive("json", "markdown")
	return cmd
}

// open makes a server of the flags, for commands that look at it or use it once.
func open(o *options) (*server.Server, func(), error) {
	cfg, endLog, err := o.config()
	if err != nil {
		return nil, nil, err
	}
	s, err := server.New(cfg)
	if err != nil {
		endLog()
		return nil, nil, err
	}
	return s, func() { s.Close(); endLog() }, nil
}

func printJSON(w io.Writer, listed []server.Listed) error {
	entries := make([]mcp.Tool, len(listed))
	for i, l := range listed {
		entries[i] = l.Tool
	}
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(entries)
}

func printTable(w io.Writer, listed []server.Listed) error {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tw, "TOOL\tPROFILE\tDOES\t")
	for _, l := range listed {
		fmt.Fprintf(tw, "%s\t%s\t%s\t\n", l.Tool.Name, l.Profile.Name, server.Summary(l.Tool))
	}
	return tw.Flush()
}
