package main

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// helpWidth is the widest line of any help text, in columns.
const helpWidth = 100

// groupAnnotation marks a flag with the heading that it is listed under.
const groupAnnotation = "perstack-base-group"

// inGroup registers flags under one heading of --help.
func inGroup(f *pflag.FlagSet, heading string, register func(*pflag.FlagSet)) {
	group := pflag.NewFlagSet(heading, pflag.ContinueOnError)
	group.SortFlags = false
	register(group)
	group.VisitAll(func(flag *pflag.Flag) { flag.Annotations = map[string][]string{groupAnnotation: {heading}} })
	f.AddFlagSet(group)
}

// help writes the help of one command. The shared flags stand in that of the
// program alone, where they are found; a subcommand names the place.
func help(cmd *cobra.Command, _ []string) {
	w := cmd.OutOrStdout()
	about := cmd.Long
	if about == "" {
		about = wrap(cmd.Short+".", helpWidth, "")
	}
	fmt.Fprintf(w, "%s\n\nUsage:\n", strings.TrimSpace(about))
	if cmd.Runnable() {
		fmt.Fprintf(w, "  %s\n", cmd.UseLine())
	}
	if cmd.HasAvailableSubCommands() {
		fmt.Fprintf(w, "  %s COMMAND [flags]\n", cmd.CommandPath())
	}
	if cmd.HasExample() {
		fmt.Fprintf(w, "\nExamples:\n%s\n", cmd.Example)
	}
	if cmd.HasAvailableSubCommands() {
		fmt.Fprint(w, "\nCommands:\n")
		printCommands(w, cmd)
	}
	printFlags(w, cmd)
	if cmd.HasParent() {
		fmt.Fprintf(w, "\nThe flags that all commands share: %s --help\n", cmd.Root().Name())
	}
}

func printCommands(w io.Writer, cmd *cobra.Command) {
	var rows [][2]string
	for _, c := range cmd.Commands() {
		if c.IsAvailableCommand() {
			rows = append(rows, [2]string{c.Name(), c.Short})
		}
	}
	printRows(w, rows)
}

// printFlags lists a command's own flags, each group below its heading.
func printFlags(w io.Writer, cmd *cobra.Command) {
	const own = "Flags"
	var headings []string
	groups := map[string][][2]string{}
	cmd.LocalFlags().SortFlags = false
	cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
		if f.Hidden {
			return
		}
		heading := own
		if of := f.Annotations[groupAnnotation]; len(of) > 0 {
			heading = of[0]
		}
		if heading != own && !slices.Contains(headings, heading) {
			headings = append(headings, heading)
		}
		groups[heading] = append(groups[heading], [2]string{flagName(f), flagUsage(f)})
	})
	for _, heading := range append(headings, own) {
		fmt.Fprintf(w, "\n%s:\n", heading)
		printRows(w, groups[heading])
	}
}

// flagName is how a flag is written.
func flagName(f *pflag.Flag) string {
	placeholder, _ := pflag.UnquoteUsage(f)
	return strings.TrimSpace("--" + f.Name + " " + placeholder)
}

// flagUsage is what a flag does, and what holds without it.
func flagUsage(f *pflag.Flag) string {
	if f.Name == "help" {
		return "show this text"
	}
	_, usage := pflag.UnquoteUsage(f)
	if f.DefValue != "" && f.DefValue != "false" && f.DefValue != "[]" {
		usage += " (default " + f.DefValue + ")"
	}
	return usage
}

// printRows prints two columns, the second wrapped.
func printRows(w io.Writer, rows [][2]string) {
	width := 0
	for _, row := range rows {
		width = max(width, len(row[0]))
	}
	indent := strings.Repeat(" ", width+4)
	for _, row := range rows {
		fmt.Fprintf(w, "  %-*s  %s\n", width, row[0], wrap(row[1], helpWidth-len(indent), indent))
	}
}

// wrap breaks a text into lines of at most width characters, of which all but
// the first begin with indent.
func wrap(text string, width int, indent string) string {
	var b strings.Builder
	column := 0
	for word := range strings.FieldsSeq(text) {
		size := len([]rune(word))
		switch {
		case column == 0:
		case column+1+size > width:
			b.WriteString("\n" + indent)
			column = 0
		default:
			b.WriteByte(' ')
			column++
		}
		b.WriteString(word)
		column += size
	}
	return b.String()
}
