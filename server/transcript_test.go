package server

import (
	"context"
	"encoding/json"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/perstack-ai/perstack-base/e2e/testlevel"
	"github.com/perstack-ai/perstack-base/e2e/transcript"
	"github.com/perstack-ai/perstack-base/tools"
)

// TestTranscripts replays every transcript in process; e2e replays them through
// the real binary.
func TestTranscripts(t *testing.T) {
	scripts, err := transcript.Load(transcriptDir)
	if err != nil {
		t.Fatal(err)
	}
	for _, script := range scripts {
		t.Run(script.Profile+"/"+script.Tool, func(t *testing.T) {
			t.Parallel()
			if script.Tool == "run_skill_script" {
				testlevel.NotQuick(t, "waits for a deadline of seconds")
			}
			dir := workspace(t)
			if err := script.Setup(dir); err != nil {
				t.Fatal(err)
			}
			s := newServer(t, scriptConfig(t, script, dir))
			answers, err := script.Run(dir, inProcess(t, s))
			if err != nil {
				t.Fatal(err)
			}
			if *update {
				if err := script.Update(answers); err != nil {
					t.Fatal(err)
				}
				return
			}
			if diff := script.Diff(answers); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// workspace is a directory whose spelling is its real path.
func workspace(t *testing.T) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// inProcess calls tools in one session, as a connection would.
func inProcess(t *testing.T, s *Server) transcript.Caller {
	session, end := s.sessions.Open("transcript")
	t.Cleanup(end)
	ctx := tools.WithSession(context.Background(), session)
	return func(name string, raw json.RawMessage) (*mcp.CallToolResult, error) {
		var args map[string]any
		if err := json.Unmarshal(raw, &args); err != nil {
			return nil, err
		}
		var req mcp.CallToolRequest
		req.Params.Name, req.Params.Arguments = name, args
		return s.lists.Handler(name)(ctx, req)
	}
}

// scriptConfig is the configuration that a transcript's flags mean.
func scriptConfig(t *testing.T, script *transcript.Script, dir string) Config {
	t.Helper()
	cfg := Config{Workspace: dir, Tools: []string{script.Profile}}
	for _, f := range script.Arguments(dir) {
		name, value, _ := strings.Cut(f, "=")
		var err error
		switch name {
		case "--max-output":
			cfg.MaxOutput, err = strconv.Atoi(value)
		case "--timeout":
			cfg.Timeout, err = time.ParseDuration(value)
		case "--skills":
			cfg.Skills = append(cfg.Skills, value)
		case "--read-only":
			cfg.ReadOnly = true
		default:
			t.Fatalf("a transcript cannot use the flag %s", f)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return cfg
}
