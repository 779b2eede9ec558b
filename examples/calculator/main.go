// Command calculator is a perstack-base server with a skill compiled in: one
// profile, here of four tools, is all that an own skill takes. It serves the
// current directory over standard input and output.
package main

import (
	"context"
	"flag"
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/perstack-ai/perstack-base/sandbox/fault"
	"github.com/perstack-ai/perstack-base/sandbox/process"
	"github.com/perstack-ai/perstack-base/server"
	"github.com/perstack-ai/perstack-base/tools"
)

// calculator is the skill: a name, a line for people, sentences for the model,
// how results are worded, and the tools.
var calculator = &tools.Profile{
	Name:         "calculator",
	Summary:      "Exact arithmetic on two numbers.",
	Instructions: "For every sum, difference, product or quotient call add, subtract, multiply or divide instead of calculating in your head.",
	Dialect:      words{},
	Tools: []*tools.Tool{
		operation("add", "Add", "Add b to a.", func(a, b float64) (float64, error) { return a + b, nil }),
		operation("divide", "Divide", "Divide a by b.", divide),
		operation("multiply", "Multiply", "Multiply a by b.", func(a, b float64) (float64, error) { return a * b, nil }),
		operation("subtract", "Subtract", "Subtract b from a.", func(a, b float64) (float64, error) { return a - b, nil }),
	},
}

// operands are the arguments; the listed schema and its enforcement follow from them.
type operands struct {
	A float64 `json:"a" doc:"The first number."`
	B float64 `json:"b" doc:"The second number."`
}

func operation(name, title, description string, calculate func(a, b float64) (float64, error)) *tools.Tool {
	return tools.Define(tools.Info{Name: name, Title: title, Description: description, Effect: tools.Reads},
		func(_ context.Context, _ *tools.Env, in operands) (float64, error) {
			result, err := calculate(in.A, in.B)
			if math.IsInf(result, 0) {
				return 0, tools.Errorf(fault.TooLarge, "", "the result is too large")
			}
			return result, err
		})
}

func divide(a, b float64) (float64, error) {
	if b == 0 {
		return 0, tools.Errorf(fault.BadInput, "", "division by zero")
	}
	return a / b, nil
}

// words is the dialect: a number in its shortest form, or "Error: " and what was wrong.
type words struct{}

func (words) OK(_ *tools.Call, out any) *mcp.CallToolResult {
	return tools.Text(strconv.FormatFloat(out.(float64), 'f', -1, 64))
}

func (words) Fail(_ *tools.Call, e *tools.Error) *mcp.CallToolResult {
	return tools.Text("Error: " + e.Msg)
}

func main() {
	process.Helpers() // returns at once unless this process was started to watch another
	choice := flag.String("tools", calculator.Name, "LIST of PROFILE, PROFILE.TOOL, -PROFILE.TOOL")
	flag.Parse()
	if err := serve(strings.Split(*choice, ",")); err != nil {
		fmt.Fprintln(os.Stderr, "calculator:", err)
		os.Exit(1)
	}
}

func serve(choice []string) error {
	s, err := server.New(server.Config{Tools: choice, Profiles: []*tools.Profile{calculator}})
	if err != nil {
		return err
	}
	defer s.Close()
	out := os.Stdout
	os.Stdout = os.Stderr // whatever else prints must not reach the protocol
	return s.ServeStdio(context.Background(), os.Stdin, out)
}
