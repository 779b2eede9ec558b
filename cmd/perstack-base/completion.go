package main

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/perstack-ai/perstack-base/server"
)

// completeFlags offers the values that flags take, wherever they are known.
func completeFlags(root *cobra.Command) {
	for name, words := range map[string][]string{
		"sandbox": sandboxModes, "network": networkModes, "log-level": logLevels, "transport": transports,
	} {
		complete(root, name, words, cobra.ShellCompDirectiveNoFileComp)
	}
	if err := root.RegisterFlagCompletionFunc("tools", completeTools); err != nil {
		panic(err)
	}
	for _, name := range []string{"workspace", "skills"} {
		complete(root, name, nil, cobra.ShellCompDirectiveFilterDirs)
	}
	for _, name := range []string{"max-output", "timeout", "listen", "pass-env", "allow-host", "allow-origin", "max-memory", "max-processes", "max-cpus"} {
		complete(root, name, nil, cobra.ShellCompDirectiveNoFileComp)
	}
}

func complete(root *cobra.Command, flag string, words []string, directive cobra.ShellCompDirective) {
	if err := root.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(words, directive)); err != nil {
		panic(err) // there is no such flag
	}
}

// completeTools completes the last item of a list of tools.
func completeTools(_ *cobra.Command, _ []string, begun string) (lists []string, _ cobra.ShellCompDirective) {
	cut := strings.LastIndexAny(begun, ",-") + 1
	for _, item := range selectable() {
		if strings.HasPrefix(item, begun[cut:]) {
			lists = append(lists, begun[:cut]+item)
		}
	}
	return lists, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
}

// selectable are the items of --tools.
func selectable() []string {
	names := []string{"all"}
	for _, p := range server.Profiles {
		names = append(names, p.Name)
		for _, t := range p.Tools {
			names = append(names, p.Name+"."+t.Name)
		}
	}
	return names
}

// completeCall offers the listed tools, then the arguments of the one that was named.
func completeCall(o *options) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, _ string) (words []string, _ cobra.ShellCompDirective) {
		s, end, err := open(o)
		if err != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		defer end()
		if len(args) == 0 {
			for _, l := range s.Listed() {
				words = append(words, l.Tool.Name+"\t"+server.Summary(l.Tool))
			}
			return words, cobra.ShellCompDirectiveNoFileComp
		}
		tool, err := s.Tool(args[0])
		if err != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		for _, a := range server.Arguments(tool) {
			if !slices.ContainsFunc(args[1:], func(word string) bool {
				return pair().MatchString(word) && pair().FindStringSubmatch(word)[1] == a.Name
			}) {
				words = append(words, a.Name+"="+"\t"+a.Description)
			}
		}
		return words, cobra.ShellCompDirectiveNoSpace
	}
}
