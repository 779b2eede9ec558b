package e2e

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/perstack-ai/perstack-base/e2e/testlevel"
	"github.com/perstack-ai/perstack-base/e2e/transcript"
)

// connections are all the ways to speak with the binary.
var connections = []struct {
	name    string
	begin   func(t testing.TB, dir string, flags []string) *client
	lists   bool // a list has an id
	forgets bool // no request knows of another
}{
	{name: "stdio", begin: func(t testing.TB, dir string, flags []string) *client {
		return start(t, dir, append([]string{"serve"}, flags...)...)
	}},
	{name: "http", lists: true, begin: func(t testing.TB, dir string, flags []string) *client {
		return visit(startSite(t, dir, "http", flags...), false).client
	}},
	{name: "http modern", lists: true, forgets: true, begin: func(t testing.TB, dir string, flags []string) *client {
		return visit(startSite(t, dir, "http", flags...), true).client
	}},
	{name: "sse", begin: func(t testing.TB, dir string, flags []string) *client {
		return listen(startSite(t, dir, "sse", flags...)).client
	}},
}

// TestTranscripts replays every transcript over every connection.
func TestTranscripts(t *testing.T) {
	scripts, err := transcript.Load("../testdata/transcripts")
	if err != nil {
		t.Fatal(err)
	}
	for _, over := range connections {
		for _, script := range scripts {
			if script.Session && over.forgets {
				continue
			}
			t.Run(over.name+"/"+script.Profile+"/"+script.Tool, func(t *testing.T) {
				t.Parallel()
				if over.name != "http modern" && (script.Profile != "perstack" || over.name != "stdio") {
					testlevel.NotQuick(t, "one profile over the oldest way, and all over the newest")
				}
				if script.Tool == "run_skill_script" {
					testlevel.NotQuick(t, "waits for a deadline of seconds")
				}
				dir := workspace(t)
				if err := script.Setup(dir); err != nil {
					t.Fatal(err)
				}
				c := over.begin(t, dir, append([]string{"--tools", script.Profile}, script.Arguments(dir)...))
				c.initialize()
				call := c.call
				if over.forgets {
					call = (&listKeeper{client: c}).call
				}
				answers, err := script.Run(dir, call)
				if err != nil {
					t.Fatal(err)
				}
				if over.lists {
					withoutListID(answers)
				}
				if diff := script.Diff(answers); diff != "" {
					t.Error(diff)
				}
			})
		}
	}
}

// A listKeeper does what a server asks of clients without a session: it passes
// the id of its list on to every later call.
type listKeeper struct {
	*client
	id string
}

var givenID = regexp.MustCompile(`(?:,?"listId":"|\nlistId: )((?:todo|plan)_[\w-]{22})(?:"|$)`)

// keepsList are the tools that work on a list.
var keepsList = map[string]bool{"todo": true, "clearTodo": true, "attemptCompletion": true, "update_plan": true}

func (k *listKeeper) call(tool string, args json.RawMessage) (*mcp.CallToolResult, error) {
	if keepsList[tool] && k.id != "" {
		var object map[string]any
		if json.Unmarshal(args, &object) == nil && object != nil {
			object["listId"] = k.id
			args, _ = json.Marshal(object)
		}
	}
	result, err := k.client.call(tool, args)
	if err != nil {
		return nil, err
	}
	if block, ok := result.Content[0].(mcp.TextContent); ok && keepsList[tool] {
		if m := givenID.FindStringSubmatch(block.Text); m != nil {
			k.id = m[1]
			block.Text = strings.Replace(block.Text, m[0], "", 1)
			result.Content[0] = block
			if result.RawStructuredContent != nil {
				result.RawStructuredContent = json.RawMessage(block.Text)
			}
		}
	}
	return result, nil
}

// withoutListID takes the argument that only HTTP has out of the hints.
func withoutListID(answers []transcript.Answer) {
	for i := range answers {
		text := strings.Replace(answers[i].Text, ", listId.", ".", 1)
		answers[i].Text = strings.Replace(text, "Known arguments: listId.", "This tool takes no arguments.", 1)
	}
}
