package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/spf13/cobra"

	"github.com/perstack-ai/perstack-base/server"
)

func toolsCommand(o *options) *cobra.Command {
	var asJSON, asMarkdown bool
	cmd := &cobra.Command{
		Use:   "tools",
		Short: "Show the tools that a client will see with these flags",
		Example: `  perstack-base tools --tools baseagent     those of another profile
  perstack-base tools --tools all           those of every profile`,
		Args: noArguments,
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
			printTools(cmd.OutOrStdout(), s)
			return nil
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the entries of tools/list as JSON")
	cmd.Flags().BoolVar(&asMarkdown, "markdown", false, "print a Markdown table")
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

// printTools shows each tool with its arguments, and what else could be listed.
func printTools(w io.Writer, s *server.Server) {
	const indent = "    "
	for _, l := range s.Listed() {
		heading := fmt.Sprintf("%s (%s)", l.Tool.Name, l.Profile.Name)
		if arguments := argumentList(l.Tool); arguments != "" {
			heading += ": " + arguments
		}
		fmt.Fprintln(w, wrap(heading, helpWidth-len(indent), indent))
		fmt.Fprintln(w, indent+wrap(server.Summary(l.Tool), helpWidth-len(indent), indent))
	}
	fmt.Fprintln(w, "\nArguments in [brackets] are optional. To try a tool: perstack-base call TOOL")
	printUnlisted(w, s)
}

// printUnlisted names the tools that other profiles have.
func printUnlisted(w io.Writer, s *server.Server) {
	var rows [][2]string
	for _, name := range s.Unlisted() {
		profile, tool, _ := strings.Cut(name, ".")
		if last := len(rows) - 1; last >= 0 && rows[last][0] == profile {
			rows[last][1] += " " + tool
		} else {
			rows = append(rows, [2]string{profile, tool})
		}
	}
	if rows != nil {
		fmt.Fprintln(w, "\nNot listed; --tools PROFILE or PROFILE.TOOL lists them, --tools all every profile:")
		printRows(w, rows)
	}
}

// argumentList names the arguments of a tool, optional ones in brackets.
func argumentList(t mcp.Tool) string {
	var names []string
	for _, a := range server.Arguments(t) {
		if a.Required {
			names = append(names, a.Name)
		} else {
			names = append(names, "["+a.Name+"]")
		}
	}
	return strings.Join(names, " ")
}
