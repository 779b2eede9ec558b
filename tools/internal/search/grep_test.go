package search

import (
	"context"
	"testing"
)

func grep(t testing.TB, tree Tree, q Query) string {
	t.Helper()
	got, err := Grep(context.Background(), tree, q)
	if err != nil {
		return "Error: " + err.Error()
	}
	return got
}
