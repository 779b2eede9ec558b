package skill

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// BenchmarkStage measures staging of a skill of 512 files, when nothing changed
// and when everything must be copied.
func BenchmarkStage(b *testing.B) {
	files := map[string]string{"skills/s/SKILL.md": plainSkill}
	for i := range 511 {
		files[fmt.Sprintf("skills/s/references/%02d/%d.md", i%16, i)] = strings.Repeat("x", 4096)
	}
	r := newRig(b, files)
	time.Sleep(50 * time.Millisecond)
	w, err := r.workspace(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	sk, err := r.engine.find(b.Context(), "s")
	if err != nil {
		b.Fatal(err)
	}
	for name, anew := range map[string]bool{"warm": false, "anew": true} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if anew {
					delete(w.staged, "s")
				}
				if _, _, err := w.stage(b.Context(), sk); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
