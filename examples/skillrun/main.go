// Command skillrun shows what an agent does with skills, with a person in the place
// of the model: it starts the server as an MCP client does, on its standard input and
// output, and turns lines such as
//
//	list
//	load python-math
//	run python-math python3 scripts/fib.py 10 > out/fib.txt
//
// into calls of prompts/list, skill_load and skill_run. With -executor container the
// commands of skills run in a container of -image; nothing else changes.
//
// session.go has the calls, this file the flags and the lines.
package main

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
)

// options are the flags.
type options struct {
	executor, image, engine string
	server, workspace       string
	skills, inputs          string
	artifacts, omitInline   bool
}

func main() {
	var o options
	flag.StringVar(&o.executor, "executor", "local", "where commands run: local or container")
	flag.StringVar(&o.image, "image", "python:3.12-slim", "with -executor container: the image")
	flag.StringVar(&o.engine, "engine", "docker", "with -executor container: docker, podman, nerdctl or a path")
	flag.StringVar(&o.server, "server", "", "the server's binary (default: go run of this module's)")
	flag.StringVar(&o.workspace, "workspace", ".", "the directory that is served")
	flag.StringVar(&o.skills, "skills-root", cmp.Or(os.Getenv("SKILLS_ROOT"), "skills"), "where the skills are; SKILLS_ROOT sets the default")
	flag.StringVar(&o.inputs, "inputs-host", "", "a directory from which input may take files")
	flag.BoolVar(&o.artifacts, "artifacts", false, "save output files as artifacts")
	flag.BoolVar(&o.omitInline, "omit-inline", false, "leave the content of output files out")
	flag.Parse()
	if err := run(context.Background(), o, os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "skillrun:", err)
		os.Exit(1)
	}
}

// help is what can be said.
const help = `list                   the skills: what a model sees of them at first
load SKILL [DOC...]    the instructions of a skill, with docs of it
docs SKILL             the docs that it has
input PATH             give this file to every later run, in inputs/
run SKILL COMMAND      run a command of it; files in out/ come back
quit
`

// run reads lines and does what they say until they end.
func run(ctx context.Context, o options, in io.Reader, out io.Writer) error {
	s, err := begin(ctx, o)
	if err != nil {
		return err
	}
	defer s.client.Close()
	fmt.Fprintf(out, "Commands of skills run %s. Say help for what can be said.\n", where(o))
	lines := bufio.NewScanner(in)
	for prompt(out); lines.Scan(); prompt(out) {
		answer, err := s.do(ctx, strings.TrimSpace(lines.Text()))
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			fmt.Fprintln(out, "Error:", err)
		default:
			fmt.Fprint(out, answer)
		}
	}
	fmt.Fprintln(out)
	return lines.Err()
}

func prompt(out io.Writer) { fmt.Fprint(out, "> ") }

func where(o options) string {
	if o.executor == "container" {
		return "in a container of " + o.image
	}
	return "on this machine"
}

// do is what one line asks for.
func (s *session) do(ctx context.Context, line string) (string, error) {
	verb, rest, _ := strings.Cut(line, " ")
	rest = strings.TrimSpace(rest)
	name, more, _ := strings.Cut(rest, " ")
	switch verb {
	case "":
		return "", nil
	case "help":
		return help, nil
	case "quit", "exit":
		return "", io.EOF
	case "list":
		return s.list(ctx)
	case "load":
		return s.load(ctx, name, strings.Fields(more))
	case "docs":
		return s.docs(ctx, name)
	case "input":
		return s.input(rest)
	case "run":
		return s.run(ctx, name, strings.TrimSpace(more))
	}
	return "", fmt.Errorf("%q is not known; say help", verb)
}
