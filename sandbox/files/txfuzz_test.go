package files

import (
	"errors"
	"github.com/perstack-ai/perstack-base/sandbox"
	"io/fs"
	"maps"
	"os"
	"strings"
	"testing"
)

// FuzzTransact plans what the bytes say and compares with a model: a
// transaction that fails changes nothing, one that succeeds changes exactly
// what was planned, and neither leaves anything else behind.
func FuzzTransact(f *testing.F) {
	for _, seed := range []string{"\x00\x01\x02", "\x10\x00\x10", "\x05\x15\x05", "\x06\x00", "\x11\x12\x13\x14", "\x07\x01", "\x08", "\x02\x22\x12\x02", "\x10\x07\x27", "\x10\x08\x07", "\x16\x09\x19\x06", "\x11\x0a\x01", "\x10\x07\x00", "\x10\x02\x0b", "\x10\x07\x0b\x09"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, plan []byte) {
		w := newWorld(t)
		model := map[string]string{"a": "A", "d/b": "B", "readonly": "R"}
		for name, content := range model {
			w.file(name, content)
		}
		must(t, os.Chmod(w.path("readonly"), 0o444))
		w.link("leak", w.canary)
		before := w.snapshot()
		names := []string{"a", "d/b", "new", "deep/er/new", "deep/er", "readonly", "leak", "a/below", "a/below/too", "leak/in", "d/b/x", "a/y/" + strings.Repeat("x", 300)}
		err := w.fs.Transact(nil, func(tx *Tx) error {
			clear(model)
			maps.Copy(model, map[string]string{"a": "A", "d/b": "B", "readonly": "R"})
			for i, b := range plan[:min(len(plan), 12)] {
				name := names[int(b&0x0f)%len(names)]
				if err := planned(tx, model, name, b>>4, byte(i)); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			var path *sandbox.PathError
			var restore *sandbox.RestoreError
			if !errors.As(err, &path) || errors.As(err, &restore) {
				t.Errorf("%T %v", err, err)
			}
			if after := w.snapshot(); after != before {
				t.Errorf("%v\nbefore:\n%s\nafter:\n%s", err, before, after)
			}
		} else {
			for _, name := range names {
				if content, ok := model[name]; ok {
					w.want(name, content)
				} else if info, err := os.Lstat(w.path(name)); err == nil && info.Mode().IsRegular() {
					t.Errorf("%s should not be there", name)
				}
			}
		}
		w.clean()
	})
}

// planned does one operation in the transaction and in the model.
func planned(tx *Tx, model map[string]string, name string, op, i byte) error {
	switch op % 3 {
	case 0:
		if err := tx.Write(name, []byte{'w', i}, nil); err != nil {
			return err
		}
		model[name] = string([]byte{'w', i})
	case 1:
		if err := tx.Remove(name); err != nil {
			return err
		}
		delete(model, name)
	default:
		data, err := tx.ReadFile(name)
		if want, ok := model[name]; ok && err == nil && string(data) != want {
			return &fs.PathError{Op: "model", Path: name, Err: errors.New("a transaction does not see its own plan")}
		}
	}
	return nil
}
